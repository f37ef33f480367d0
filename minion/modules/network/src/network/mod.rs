//! `network`: addresses of this host, and address arithmetic.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_text::glob::fnmatch;
use brine_value::{Map, Value, map};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

mod hosts;
mod networks;
pub(super) mod routes;
mod sockets;
mod state;
mod subnet;

use subnet::Subnet;

pub(super) static MODULE: Module = Module {
    functions: &[&FUNCTIONS, &routes::FUNCTIONS, &sockets::FUNCTIONS, &hosts::FUNCTIONS],
    states: &[&state::FUNCTIONS],
    unavailable: Some(state::unavailable),
    ..Module::EMPTY
};

/// Execution functions of `network`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "network",
    [
        ip_addrs,
        ipaddrs,
        ip_addrs6,
        ipaddrs6,
        interfaces,
        hw_addr,
        hwaddr,
        interface,
        interface_ip,
        networks::subnets,
        networks::subnets6,
        networks::ip_networks,
        networks::ip_networks6,
        ifacestartswith,
        iphexval,
        networks::in_subnet,
        networks::ip_in_subnet,
        networks::convert_cidr,
        networks::calc_net,
        get_hostname,
        get_fqdn,
        is_private,
        is_loopback,
        reverse_ip
    ]
);

/// The arguments that select addresses of this host.
#[derive(Args)]
pub struct AddressArgs {
    /// Name of an interface, or a list of them; all by default.
    #[default]
    interface: Value,
    /// Whether addresses of the loopback interface are returned.
    #[default(false)]
    include_loopback: bool,
    /// Network that the addresses are in.
    cidr: Option<String>,
}

/// Return the IPv4 addresses of this host: of an interface or several, and in a network (`cidr`) or of a `type`
/// (public, private).
///
/// CLI Example:
///
///     salt '*' network.ip_addrs
///     salt '*' network.ip_addrs eth0 cidr=10.0.0.0/8
#[function]
pub fn ip_addrs(
    _context: &Context,
    #[args] args: AddressArgs,
    /// Which addresses: `public` or `private`; all by default.
    r#type: Option<String>,
) -> CallResult {
    addresses(IpAddr::is_ipv4, &args, r#type.as_deref())
}

/// Return the IPv4 addresses of this host, as `ip_addrs`.
///
/// CLI Example:
///
///     salt '*' network.ipaddrs
#[function]
pub fn ipaddrs(
    _context: &Context,
    #[args] args: AddressArgs,
    /// Which addresses: `public` or `private`; all by default.
    r#type: Option<String>,
) -> CallResult {
    addresses(IpAddr::is_ipv4, &args, r#type.as_deref())
}

/// Return the IPv6 addresses of this host.
///
/// CLI Example:
///
///     salt '*' network.ip_addrs6
#[function]
pub fn ip_addrs6(_context: &Context, #[args] args: AddressArgs) -> CallResult {
    addresses(IpAddr::is_ipv6, &args, None)
}

/// Return the IPv6 addresses of this host, as `ip_addrs6`.
///
/// CLI Example:
///
///     salt '*' network.ipaddrs6
#[function]
pub fn ipaddrs6(_context: &Context, #[args] args: AddressArgs) -> CallResult {
    addresses(IpAddr::is_ipv6, &args, None)
}

/// Return the interfaces of this host with their addresses.
///
/// CLI Example:
///
///     salt '*' network.interfaces
#[function]
pub fn interfaces(_context: &Context) -> CallResult {
    Ok(Value::Map(
        interfaces_of_host().into_iter().map(|(name, reported)| (name.into(), reported.to_map().into())).collect(),
    ))
}

/// Return the hardware address of an interface.
///
/// CLI Example:
///
///     salt '*' network.hw_addr eth0
#[function]
pub fn hw_addr(
    _context: &Context,
    /// Name of the interface.
    iface: String,
) -> CallResult {
    Ok(hardware(&iface))
}

/// Return the hardware address of an interface, as `hw_addr`.
///
/// CLI Example:
///
///     salt '*' network.hwaddr eth0
#[function]
pub fn hwaddr(
    _context: &Context,
    /// Name of the interface.
    iface: String,
) -> CallResult {
    Ok(hardware(&iface))
}

/// Return the IPv4 addresses of an interface, with their networks.
///
/// CLI Example:
///
///     salt '*' network.interface eth0
#[function]
pub fn interface(
    _context: &Context,
    /// Name of the interface.
    iface: String,
) -> CallResult {
    Ok(match interfaces_of_host().remove(&iface) {
        Some(own) => own.to_map().get("inet").cloned().unwrap_or_else(|| "".into()),
        None => no_interface(&iface),
    })
}

/// Return the first IPv4 address of an interface.
///
/// CLI Example:
///
///     salt '*' network.interface_ip eth0
#[function]
pub fn interface_ip(
    _context: &Context,
    /// Name of the interface.
    iface: String,
) -> CallResult {
    Ok(match interfaces_of_host().remove(&iface) {
        Some(own) => own.v4.first().map_or_else(|| "".into(), |address| address.ip.to_string().into()),
        None => no_interface(&iface),
    })
}

/// Return the interfaces with an IPv4 address that has this prefix.
///
/// CLI Example:
///
///     salt '*' network.ifacestartswith 10.0
#[function]
pub fn ifacestartswith(
    _context: &Context,
    /// Network, such as `10.0.0.0/8`.
    cidr: Value,
) -> CallResult {
    let begins = cidr.to_string();
    let all = interfaces_of_host().into_values().flat_map(|own| own.v4);
    Ok(all
        .filter(|address| address.ip.to_string().starts_with(&begins))
        .map(|address| Value::from(address.label))
        .collect())
}

/// Return an IPv4 address as eight hex digits.
///
/// CLI Example:
///
///     salt '*' network.iphexval 10.0.0.1
#[function]
pub fn iphexval(
    _context: &Context,
    /// Address.
    ip: String,
) -> CallResult {
    let ip: Ipv4Addr = ip.parse().map_err(|_| CallError::Execution(format!("'{ip}' is not an IPv4 address")))?;
    Ok(format!("{:08X}", u32::from(ip)).into())
}

/// Return the name of this host.
///
/// CLI Example:
///
///     salt '*' network.get_hostname
#[function]
pub fn get_hostname(_context: &Context) -> CallResult {
    let name = nix::unistd::gethostname().map_err(CallError::execution)?;
    Ok(name.to_string_lossy().into_owned().into())
}

/// Return the fully qualified domain name of this host.
///
/// CLI Example:
///
///     salt '*' network.get_fqdn
#[function]
pub fn get_fqdn(context: &Context) -> CallResult {
    Ok(context.grains().get("fqdn").cloned().unwrap_or_default())
}

/// Return whether an address is private.
///
/// CLI Example:
///
///     salt '*' network.is_private 10.0.0.3
#[function]
pub fn is_private(
    _context: &Context,
    /// Address.
    ip_addr: String,
) -> CallResult {
    Ok(brine_text::network::is_private(address(&ip_addr)?).into())
}

/// Return whether an address is a loopback address.
///
/// CLI Example:
///
///     salt '*' network.is_loopback 127.0.0.1
#[function]
pub fn is_loopback(
    _context: &Context,
    /// Address.
    ip_addr: String,
) -> CallResult {
    Ok(address(&ip_addr)?.is_loopback().into())
}

/// Return the reverse DNS name of an address.
///
/// CLI Example:
///
///     salt '*' network.reverse_ip 172.17.0.4
#[function]
pub fn reverse_ip(
    _context: &Context,
    /// Address.
    ip_addr: String,
) -> CallResult {
    Ok(subnet::reverse(address(&ip_addr)?).into())
}

fn address(text: &str) -> Result<IpAddr, CallError> {
    text.trim()
        .parse()
        .map_err(|_| CallError::Execution(format!("'{text}' does not appear to be an IPv4 or IPv6 address")))
}

fn subnet(text: &str) -> Result<Subnet, CallError> {
    text.parse().map_err(|()| CallError::Execution(format!("'{text}' does not appear to be an IPv4 or IPv6 network")))
}

/// Returns the networks of the interfaces, deduplicated.
fn networks(family: fn(&IpAddr) -> bool, interface: Option<&str>, with_loopback: bool) -> BTreeMap<String, Subnet> {
    let all = interfaces_of_host().into_iter().filter(|(name, _)| interface.is_none_or(|required| required == name));
    let addresses = all.flat_map(|(_, own)| {
        let v4 = own.v4.iter().map(|address| (IpAddr::from(address.ip), address.subnet())).collect::<Vec<_>>();
        let v6 = own.v6.iter().map(|(ip, length)| (IpAddr::from(*ip), Subnet::new((*ip).into(), *length)));
        v4.into_iter().chain(v6).collect::<Vec<_>>()
    });
    let addresses = addresses.filter(|(ip, _)| family(ip) && (with_loopback || !ip.is_loopback()));
    addresses.map(|(_, network)| (network.to_string(), network)).collect()
}

fn no_interface(name: &str) -> Value {
    format!(
        "Interface \"{name}\" not in available interfaces: \"{}\"",
        interfaces_of_host().into_keys().collect::<Vec<_>>().join("\", \"")
    )
    .into()
}

fn hardware(name: &str) -> Value {
    match interfaces_of_host().remove(name) {
        Some(own) => own.hardware.unwrap_or_default().into(),
        None => no_interface(name),
    }
}

/// An IPv4 address of an interface.
struct Address4 {
    ip: Ipv4Addr,
    mask: Ipv4Addr,
    broadcast: Option<Ipv4Addr>,
    label: String,
}

impl Address4 {
    fn subnet(&self) -> Subnet {
        Subnet::new(self.ip.into(), u32::from(self.mask).leading_ones())
    }
}

/// Attributes of an interface.
#[derive(Default)]
struct Interface {
    up: bool,
    hardware: Option<String>,
    v4: Vec<Address4>,
    v6: Vec<(Ipv6Addr, u32)>,
}

impl Interface {
    fn to_map(&self) -> Map {
        let mut report = map! {"up" => self.up};
        if let Some(hardware) = &self.hardware {
            report.insert("hwaddr".into(), hardware.as_str().into());
        }
        let v4 = self.v4.iter().map(|address| {
            Value::Map(map! {
                "address" => address.ip.to_string(),
                "netmask" => address.mask.to_string(),
                "broadcast" => address.broadcast.map(|ip| ip.to_string()),
                "label" => &address.label,
            })
        });
        let v6 = self.v6.iter().map(|(ip, length)| {
            let scope = if ip.is_loopback() {
                "host"
            } else if ip.segments()[0] & 0xffc0 == 0xfe80 {
                "link"
            } else {
                "global"
            };
            Value::Map(map! {"address" => ip.to_string(), "prefixlen" => length.to_string(), "scope" => scope})
        });
        for (name, addresses) in [("inet", v4.collect::<Vec<_>>()), ("inet6", v6.collect())] {
            if !addresses.is_empty() {
                report.insert(name.into(), addresses.into());
            }
        }
        report
    }
}

/// Returns all interfaces by name. Unreadable ones are omitted.
fn interfaces_of_host() -> BTreeMap<String, Interface> {
    let mut all: BTreeMap<String, Interface> = BTreeMap::new();
    for entry in getifaddrs().into_iter().flatten() {
        // An alias such as `eth0:1` is part of its interface.
        let name = entry.interface_name.split(':').next().unwrap_or_default().to_owned();
        let own = all.entry(name).or_default();
        own.up = entry.flags.contains(InterfaceFlags::IFF_UP);
        let v4 = |storage: Option<nix::sys::socket::SockaddrStorage>| {
            storage?.as_sockaddr_in().map(nix::sys::socket::SockaddrIn::ip)
        };
        if let Some(link) = entry.address.as_ref().and_then(|address| address.as_link_addr()) {
            let bytes = link.addr().map(|bytes| bytes.map(|byte| format!("{byte:02x}")).join(":"));
            own.hardware = own.hardware.take().or(bytes);
        } else if let Some(ip) = v4(entry.address) {
            let mask = v4(entry.netmask).unwrap_or(Ipv4Addr::BROADCAST);
            let broadcast = entry.flags.contains(InterfaceFlags::IFF_BROADCAST).then(|| v4(entry.broadcast)).flatten();
            own.v4.push(Address4 { ip, mask, broadcast, label: entry.interface_name.clone() });
        } else if let Some(ip) = entry.address.as_ref().and_then(|address| address.as_sockaddr_in6()) {
            let mask = entry.netmask.as_ref().and_then(|mask| mask.as_sockaddr_in6());
            own.v6.push((ip.ip(), mask.map_or(128, |mask| u128::from(mask.ip()).leading_ones())));
        }
    }
    all
}

/// Returns the selected addresses of this host, in order.
fn addresses(kind: fn(&IpAddr) -> bool, args: &AddressArgs, scope: Option<&str>) -> Result<Value, CallError> {
    let patterns: Option<Vec<String>> = match &args.interface {
        Value::Nil => None,
        Value::List(names) => Some(names.iter().map(ToString::to_string).collect()),
        names => Some(names.to_string().split(',').map(|name| name.trim().to_owned()).collect()),
    };
    let network = args.cidr.as_deref().map(subnet).transpose()?;
    let mut addresses = BTreeSet::new();
    for (name, own) in interfaces_of_host() {
        if patterns.as_ref().is_some_and(|patterns| !patterns.iter().any(|pattern| fnmatch(pattern, &name))) {
            continue;
        }
        let v4 = own.v4.iter().map(|address| IpAddr::V4(address.ip));
        let v6 = own.v6.iter().map(|(ip, _)| IpAddr::V6(*ip));
        addresses.extend(v4.chain(v6).filter(|ip| kind(ip) && (args.include_loopback || !ip.is_loopback())));
    }
    let fits = |ip: &IpAddr| match (&network, scope) {
        (Some(network), _) => network.holds(*ip),
        (None, Some("public")) => !brine_text::network::is_private(*ip),
        (None, Some("private")) => brine_text::network::is_private(*ip),
        _ => true,
    };
    Ok(addresses.into_iter().filter(fits).map(|ip| ip.to_string()).collect())
}

#[cfg(test)]
mod tests;

//! Networks of this host, and network arithmetic.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use brine_context::Context;
use brine_function::{CallResult, function};
use brine_value::{Value, map};

use super::subnet::Subnet;
use super::{address, interfaces_of_host, networks, subnet};

/// Return the IPv4 networks of this host.
///
/// CLI Example:
///
///     salt '*' network.subnets
#[function]
pub fn subnets(_context: &Context) -> CallResult {
    let all = interfaces_of_host().into_values().flat_map(|own| own.v4);
    let networks: BTreeSet<String> =
        all.filter(|address| !address.ip.is_loopback()).map(|address| address.subnet().to_string()).collect();
    Ok(networks.into_iter().collect())
}

/// Return the IPv6 networks of this host.
///
/// CLI Example:
///
///     salt '*' network.subnets6
#[function]
pub fn subnets6(_context: &Context) -> CallResult {
    Ok(networks(IpAddr::is_ipv6, None, false).keys().map(ToString::to_string).collect())
}

/// Return the IPv4 networks of this host's interfaces, or of one interface; with `verbose`, with their attributes.
///
/// CLI Example:
///
///     salt '*' network.ip_networks interface=eth0
#[function]
pub fn ip_networks(
    _context: &Context,
    /// Name of the interface; all by default.
    interface: Option<String>,
    /// Whether loopback addresses are listed.
    #[default(false)]
    include_loopback: bool,
    /// Whether the networks have further fields.
    #[default(false)]
    verbose: bool,
) -> CallResult {
    Ok(describe_networks(&networks(IpAddr::is_ipv4, interface.as_deref(), include_loopback), verbose))
}

/// Return the IPv6 networks of this host's interfaces, as `ip_networks`.
///
/// CLI Example:
///
///     salt '*' network.ip_networks6
#[function]
pub fn ip_networks6(
    _context: &Context,
    /// Name of the interface; all by default.
    interface: Option<String>,
    /// Whether loopback addresses are listed.
    #[default(false)]
    include_loopback: bool,
    /// Whether the networks have further fields.
    #[default(false)]
    verbose: bool,
) -> CallResult {
    Ok(describe_networks(&networks(IpAddr::is_ipv6, interface.as_deref(), include_loopback), verbose))
}

/// Return whether this host has an address in a network.
///
/// CLI Example:
///
///     salt '*' network.in_subnet 10.0.0.0/16
#[function]
pub fn in_subnet(
    _context: &Context,
    /// Network, such as `10.0.0.0/8`.
    cidr: String,
) -> CallResult {
    let network = subnet(&cidr)?;
    let all = interfaces_of_host().into_values().flat_map(|own| own.v4);
    Ok(all.into_iter().any(|address| !address.ip.is_loopback() && network.holds(address.ip.into())).into())
}

/// Return whether an address is in a network.
///
/// CLI Example:
///
///     salt '*' network.ip_in_subnet 172.17.0.4 172.16.0.0/12
#[function]
pub fn ip_in_subnet(
    _context: &Context,
    /// Address.
    ip_addr: String,
    /// Network, such as `10.0.0.0/8`.
    cidr: String,
) -> CallResult {
    Ok(subnet(&cidr)?.holds(address(&ip_addr)?).into())
}

/// Return the network address, the netmask and the broadcast address of a network.
///
/// CLI Example:
///
///     salt '*' network.convert_cidr 172.31.0.0/16
#[function]
pub fn convert_cidr(
    _context: &Context,
    /// Network, such as `10.0.0.0/8`.
    cidr: String,
) -> CallResult {
    let network = subnet(&cidr)?;
    Ok(map! {
        "network" => network.first().to_string(),
        "netmask" => network.mask().to_string(),
        "broadcast" => network.last().to_string(),
    }
    .into())
}

/// Return the network of an address with a netmask, or with a prefix length after a slash.
///
/// CLI Example:
///
///     salt '*' network.calc_net 172.17.0.5 255.255.255.240
#[function]
pub fn calc_net(
    _context: &Context,
    /// Address.
    ip_addr: String,
    /// Netmask.
    netmask: Option<String>,
) -> CallResult {
    let text = netmask.map_or_else(|| ip_addr.clone(), |mask| format!("{ip_addr}/{mask}"));
    Ok(subnet(&text)?.to_string().into())
}

fn describe_networks(networks: &BTreeMap<String, Subnet>, verbose: bool) -> Value {
    if !verbose {
        return networks.keys().map(|name| Value::from(name.as_str())).collect();
    }
    let report = networks.iter().map(|(name, network)| {
        let report = map! {
            "address" => network.first().to_string(), "netmask" => network.mask().to_string(),
            "num_addresses" => network.size(), "prefixlen" => network.length(),
        };
        (name.as_str().into(), report.into())
    });
    Value::Map(report.collect())
}

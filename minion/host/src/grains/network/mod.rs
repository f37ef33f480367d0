//! Grains about host names, addresses, gateways and name servers.
//!
//! No network requests: an unreachable name server must not prevent the start of the minion. Names are resolved only by
//! `/etc/hosts`.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use brine_value::{Map, Value, map};

use super::read;

/// Returns the grains of the network.
pub(super) fn grains() -> Map {
    let nodename =
        nix::unistd::gethostname().map_or_else(|_| "localhost".into(), |name| name.to_string_lossy().into_owned());
    let mut grains = names(&nodename, &read("/etc/hosts").unwrap_or_default());
    grains.extend(interfaces());
    let ip4 = gateway4(&read("/proc/net/route").unwrap_or_default());
    let ip6 = gateway6(&read("/proc/net/ipv6_route").unwrap_or_default());
    let or_false = |address: Option<IpAddr>| address.map_or(Value::Bool(false), |address| address.to_string().into());
    grains.extend(map! {
        "ip_gw" => ip4.is_some() || ip6.is_some(),
        "ip4_gw" => or_false(ip4),
        "ip6_gw" => or_false(ip6),
        "dns" => resolver(&read("/etc/resolv.conf").unwrap_or_default()),
    });
    grains
}

/// Returns the names of the host.
fn names(nodename: &str, hosts: &str) -> Map {
    let entries = || {
        hosts.lines().filter_map(|line| {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let address: IpAddr = words.next()?.parse().ok()?;
            let names: Vec<&str> = words.collect();
            (!names.is_empty()).then_some((address, names))
        })
    };
    // The canonical name is the first of the line with the host's name; localhost lines are ignored.
    let own = || entries().filter(|(_, names)| names.contains(&nodename));
    let canonical = own().map(|(_, names)| names[0]).find(|name| !name.starts_with("localhost"));
    let fqdn = canonical.filter(|name| name.contains('.')).unwrap_or(nodename);
    let addresses: BTreeSet<IpAddr> =
        entries().filter(|(_, names)| names.contains(&fqdn) || names.contains(&nodename)).map(|(ip, _)| ip).collect();
    let of = |v4: bool| addresses.iter().filter(|ip| ip.is_ipv4() == v4).map(ToString::to_string).collect::<Value>();
    let (host, domain) = fqdn.split_once('.').unwrap_or((fqdn, ""));
    map! {
        "nodename" => nodename,
        "localhost" => nodename,
        "fqdn" => fqdn,
        "host" => host,
        "domain" => domain,
        "fqdn_ip4" => of(true),
        "fqdn_ip6" => of(false),
        "fqdns" => Value::List(Vec::new()),
    }
}

/// Returns the addresses of all interfaces, by interface index. These are the interfaces of the network namespace of this
/// process; `/sys` may show those of another one.
fn interfaces() -> Map {
    let interfaces: Vec<_> = nix::ifaddrs::getifaddrs().into_iter().flatten().collect();
    let mut all: Vec<(usize, String, String)> = interfaces
        .iter()
        .filter_map(|interface| {
            let link = interface.address.as_ref()?.as_link_addr()?;
            let hardware = match link.halen() {
                0 => String::new(),
                6 => link.to_string(),
                // Those of InfiniBand are longer.
                _ => read(&format!("/sys/class/net/{}/address", interface.interface_name)).unwrap_or_default(),
            };
            Some((link.ifindex(), interface.interface_name.clone(), hardware))
        })
        .collect();
    all.sort();
    let addresses: Vec<(String, IpAddr)> = interfaces
        .iter()
        .filter_map(|interface| {
            let address = interface.address.as_ref()?;
            let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            let v6 = || address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip()));
            // An alias such as `eth0:1` belongs to its interface.
            let name = interface.interface_name.split(':').next()?.to_owned();
            Some((name, v4.or_else(v6)?))
        })
        .collect();
    let by_interface = |is_kind: fn(&IpAddr) -> bool| -> Value {
        let mut addresses_by_name = Map::new();
        for (_, name, _) in &all {
            let own = addresses.iter().filter(|(of, ip)| of == name && is_kind(ip));
            addresses_by_name.insert(name.as_str().into(), own.map(|(_, ip)| ip.to_string()).collect());
        }
        addresses_by_name.into()
    };
    let every = |is_kind: fn(&IpAddr) -> bool| {
        let sorted: BTreeSet<IpAddr> = addresses.iter().map(|(_, ip)| *ip).filter(is_kind).collect();
        sorted.iter().map(ToString::to_string).collect::<Value>()
    };
    let hardware: Map = all.iter().map(|(_, name, address)| (name.into(), address.into())).collect();
    map! {
        "hwaddr_interfaces" => hardware,
        "ip4_interfaces" => by_interface(IpAddr::is_ipv4),
        "ip6_interfaces" => by_interface(IpAddr::is_ipv6),
        "ip_interfaces" => by_interface(|_| true),
        "ipv4" => every(IpAddr::is_ipv4),
        "ipv6" => every(IpAddr::is_ipv6),
    }
}

/// Returns the default gateway in `/proc/net/route`, where addresses are hexadecimal in the machine's byte order.
fn gateway4(routes: &str) -> Option<IpAddr> {
    routes.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let address = u32::from_str_radix(words.get(2)?, 16).ok()?;
        (words.get(1) == Some(&"00000000") && address != 0).then(|| Ipv4Addr::from(address.to_ne_bytes()).into())
    })
}

/// Returns the default gateway in `/proc/net/ipv6_route`.
fn gateway6(routes: &str) -> Option<IpAddr> {
    routes.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (destination, length) = (u128::from_str_radix(words.first()?, 16).ok()?, *words.get(1)?);
        let address = u128::from_str_radix(words.get(4)?, 16).ok()?;
        (destination == 0 && length == "00" && address != 0).then(|| Ipv6Addr::from(address).into())
    })
}

/// Parses `/etc/resolv.conf`.
fn resolver(text: &str) -> Map {
    let lines = || {
        text.lines().filter_map(|line| {
            let line = line.split(['#', ';']).next().unwrap_or_default();
            line.trim().split_once(char::is_whitespace)
        })
    };
    let words = |keyword: &str| -> Vec<&str> {
        lines().filter(|(key, _)| *key == keyword).flat_map(|(_, rest)| rest.split_whitespace()).collect()
    };
    let servers: BTreeSet<(usize, &str)> = words("nameserver").into_iter().enumerate().collect();
    let of = |v4: bool| -> Value {
        let fits = |server: &str| {
            server.split('%').next().unwrap_or_default().parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4() == v4)
        };
        servers.iter().map(|(_, server)| *server).filter(|server| fits(server)).collect()
    };
    map! {
        "nameservers" => servers.iter().map(|(_, server)| *server).collect::<Value>(),
        "ip4_nameservers" => of(true),
        "ip6_nameservers" => of(false),
        "sortlist" => words("sortlist").into_iter().collect::<Value>(),
        "domain" => words("domain").last().copied().unwrap_or_default(),
        "search" => words("search").into_iter().collect::<Value>(),
        "options" => words("options").into_iter().collect::<Value>(),
    }
}

#[cfg(test)]
mod tests;

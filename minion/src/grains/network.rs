//! Names and addresses of this host.

use std::collections::BTreeSet;

use brine_core::{Map, Value, map};
use nix::ifaddrs::getifaddrs;

pub(super) fn grains() -> Map {
    let mut grains = names();
    grains.extend(addresses());
    grains.insert("dns".into(), resolver(&std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default()).into());
    grains
}

fn names() -> Map {
    let node =
        nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_else(|| "localhost".into());
    // From the hosts file alone: a name server that does not answer must not hold up the minion.
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let fqdn = full_name(&hosts, &node);
    let (host, domain) = fqdn.split_once('.').unwrap_or((&fqdn, ""));
    map! {"nodename" => node.as_str(), "localhost" => node.as_str(), "fqdn" => fqdn.as_str(), "host" => host, "domain" => domain}
}

/// The first name with a domain that the hosts file has on the line of this name.
fn full_name(hosts: &str, node: &str) -> String {
    if node.contains('.') {
        return node.to_owned();
    }
    let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
    let line =
        lines.map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>()).find(|names| names.contains(&node));
    let full = line.and_then(|names| names.into_iter().find(|name| name.starts_with(&format!("{node}."))));
    full.unwrap_or(node).to_owned()
}

fn addresses() -> Map {
    let (mut v4, mut v6) = (BTreeSet::new(), BTreeSet::new());
    let (mut by4, mut by6, mut by_any, mut hardware) = (Map::new(), Map::new(), Map::new(), Map::new());
    for interface in getifaddrs().into_iter().flatten() {
        let name = Value::from(interface.interface_name.as_str());
        for map in [&mut by4, &mut by6, &mut by_any] {
            map.entry(name.clone()).or_insert_with(|| Value::List(Vec::new()));
        }
        let Some(address) = interface.address else { continue };
        let add = |map: &mut Map, address: &str| {
            if let Some(Value::List(list)) = map.get_mut(&name) {
                list.push(address.into());
            }
        };
        if let Some(address) = address.as_sockaddr_in() {
            let text = address.ip().to_string();
            add(&mut by4, &text);
            add(&mut by_any, &text);
            v4.insert(text);
        } else if let Some(address) = address.as_sockaddr_in6() {
            let text = address.ip().to_string();
            add(&mut by6, &text);
            add(&mut by_any, &text);
            v6.insert(text);
        } else if let Some(link) = address.as_link_addr().and_then(nix::sys::socket::LinkAddr::addr) {
            let text: Vec<String> = link.iter().map(|byte| format!("{byte:02x}")).collect();
            hardware.insert(name.clone(), text.join(":").into());
        }
    }
    let outside =
        |all: &BTreeSet<String>, own: &str| all.iter().filter(|address| *address != own).cloned().collect::<Value>();
    map! {
        "fqdn_ip4" => outside(&v4, "127.0.0.1"),
        "fqdn_ip6" => outside(&v6, "::1"),
        "ipv4" => v4.into_iter().collect::<Value>(),
        "ipv6" => v6.into_iter().collect::<Value>(),
        "ip4_interfaces" => by4,
        "ip6_interfaces" => by6,
        "ip_interfaces" => by_any,
        "hwaddr_interfaces" => hardware,
    }
}

/// What a resolv.conf says.
fn resolver(text: &str) -> Map {
    let words = |keyword: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.trim().strip_prefix(keyword)?.strip_prefix([' ', '\t']));
        lines.flat_map(str::split_whitespace).map(str::to_owned).collect()
    };
    let servers = words("nameserver");
    let (six, four): (Vec<String>, Vec<String>) = servers.iter().cloned().partition(|server| server.contains(':'));
    map! {
        "nameservers" => servers,
        "ip4_nameservers" => four,
        "ip6_nameservers" => six,
        "search" => words("search"),
        "domain" => words("domain").into_iter().next().unwrap_or_default(),
        "options" => words("options"),
        "sortlist" => words("sortlist"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_core::list;

    #[test]
    fn the_full_name_comes_from_the_hosts_file() {
        let hosts = "127.0.0.1 localhost\n10.0.0.5 web1.example.org web1 # comment\n";
        assert_eq!(full_name(hosts, "web1"), "web1.example.org");
        assert_eq!(full_name(hosts, "db1"), "db1");
        assert_eq!(full_name(hosts, "a.b"), "a.b");
    }

    #[test]
    fn the_resolver_is_read() {
        let dns = resolver("# x\nnameserver 10.0.0.1\nnameserver fe80::1\nsearch a.org b.org\noptions ndots:2\n");
        assert_eq!(dns.get("nameservers"), Some(&list!["10.0.0.1", "fe80::1"]));
        assert_eq!(
            (dns.get("ip6_nameservers"), dns.get("search")),
            (Some(&list!["fe80::1"]), Some(&list!["a.org", "b.org"]))
        );
    }
}

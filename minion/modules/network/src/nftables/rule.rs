//! Builds a rule of nftables from options.

use brine_value::{Map, Value};

use super::family::Family;
use crate::firewalls::listed;

/// Arguments that are no matches: those of a state or job, and `match`, which names a module of iptables.
const IGNORED: [&str; 8] = ["name", "chain", "save", "table", "position", "comment", "match", "test"];

/// Builds a rule. The error names options that would be lost: the rule would match more than its author wrote.
pub(super) fn build(mut options: Map, family: Family) -> Result<String, String> {
    options.retain(|name, _| name.as_str().is_some_and(|name| !IGNORED.contains(&name) && !name.starts_with("__")));
    if let Some(target) = options.shift_remove("target") {
        options.insert("jump".into(), target);
    }
    let protocol = text(&mut options, "proto");
    let mut parts: Vec<String> = Vec::new();
    for (name, key) in [("if", "iifname"), ("of", "oifname")] {
        parts.extend(text(&mut options, name).map(|interface| format!("meta {key} {interface}")));
    }
    let state = text(&mut options, "state");
    parts.extend(text(&mut options, "connstate").or(state).map(|states| format!("ct state {{ {states} }}")));
    let mut has_protocol = protocol.is_none();
    for (name, key) in [("icmp-type", "icmp type"), ("icmpv6-type", "icmpv6 type")] {
        let kinds = text(&mut options, name);
        has_protocol |= kinds.is_some();
        parts.extend(kinds.map(|kinds| format!("{key} {{ {kinds} }}")));
    }
    parts.extend(text(&mut options, "pkttype").map(|kinds| format!("meta pkttype {{ {kinds} }}")));
    if options.shift_remove("counter").is_some() {
        parts.push("counter".into());
    }
    for (name, other) in [("saddr", "source"), ("daddr", "destination")] {
        let second = text(&mut options, other);
        let address = text(&mut options, name).or(second);
        parts.extend(address.map(|address| {
            let (header, kind) = family.header(&address);
            format!("{header} {name} {kind}{address}")
        }));
    }
    let mut ports = Vec::new();
    for field in ["dport", "sport"] {
        ports.extend(text(&mut options, field).map(|port| (field, port.replace(':', "-"))));
    }
    for (name, field) in [("dports", "dport"), ("sports", "sport")] {
        ports.extend(options.shift_remove(name).map(|value| (field, descending(&value))));
    }
    has_protocol |= !ports.is_empty();
    if let Some(protocol) = protocol.as_ref().filter(|_| !has_protocol) {
        parts.push(format!("meta l4proto {protocol}"));
    }
    let protocol = protocol.map(|protocol| format!("{protocol} ")).unwrap_or_default();
    parts.extend(ports.into_iter().map(|(field, ports)| format!("{protocol}{field} {{ {ports} }}")));
    for (name, prefix) in [
        ("jump", ""),
        ("j", ""),
        ("redirect-to", "redirect to "),
        ("to-port", "redirect to "),
        ("to-ports", "redirect to "),
        ("to-source", ""),
        ("to-destination", ""),
        ("reject-with", "reject with "),
    ] {
        parts.extend(text(&mut options, name).map(|value| format!("{prefix}{value}")));
    }
    if options.is_empty() {
        return Ok(parts.join(" "));
    }
    let names: Vec<String> = options.keys().map(ToString::to_string).collect();
    Err(format!("nftables rules have no option {}: correct it, or remove it", names.join(", ")))
}

/// Removes an option, and returns its value; a list is joined by commas. An empty one is none.
fn text(options: &mut Map, name: &str) -> Option<String> {
    options
        .shift_remove(name)
        .filter(|value| !value.is_nil())
        .map(|value| listed(&value).join(","))
        .filter(|text| !text.is_empty())
}

/// Formats ports from high to low, as Salt does; ranges and names stay in their order.
fn descending(value: &Value) -> String {
    let words: Vec<String> = listed(value).iter().map(|port| port.trim().replace(':', "-")).collect();
    let Ok(mut ports) = words.iter().map(|port| port.parse::<u16>()).collect::<Result<Vec<_>, _>>() else {
        return words.join(", ");
    };
    ports.sort_unstable_by(|one, other| other.cmp(one));
    ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn rules_are_in_the_syntax_of_nft() {
        for (options, rule) in [
            (
                map! {"jump" => "accept", "match" => "state", "connstate" => "new", "dport" => 80, "proto" => "tcp", "sport" => "1025:65535", "save" => true},
                "ct state { new } tcp dport { 80 } tcp sport { 1025-65535 } accept",
            ),
            (
                map! {"connstate" => "RELATED,ESTABLISHED", "jump" => "ACCEPT"},
                "ct state { RELATED,ESTABLISHED } ACCEPT",
            ),
            (
                map! {"state" => list!["related", "established"], "j" => "accept"},
                "ct state { related,established } accept",
            ),
            (
                map! {"if" => "eth0", "of" => "eth1", "target" => "drop", "__pub_fun" => "x"},
                "meta iifname eth0 meta oifname eth1 drop",
            ),
            (
                map! {"proto" => "icmp", "icmp-type" => "echo-request", "jump" => "accept"},
                "icmp type { echo-request } accept",
            ),
            (
                map! {"icmpv6-type" => "echo-request", "pkttype" => "host", "counter" => true},
                "icmpv6 type { echo-request } meta pkttype { host } counter",
            ),
            (
                map! {"source" => "10.0.0.0/8", "daddr" => "10.1.1.1", "jump" => "drop"},
                "ip saddr 10.0.0.0/8 ip daddr 10.1.1.1 drop",
            ),
            (map! {"dports" => "80,443", "proto" => "tcp", "jump" => "accept"}, "tcp dport { 443, 80 } accept"),
            (map! {"sports" => list![22, "1000:2000"], "proto" => "udp"}, "udp sport { 22, 1000-2000 }"),
            (map! {"dport" => 80, "proto" => "tcp", "to-port" => 8080}, "tcp dport { 80 } redirect to 8080"),
            (map! {"jump" => "snat", "to-source" => "10.0.0.9"}, "snat 10.0.0.9"),
            (map! {"reject-with" => "icmp type host-unreachable"}, "reject with icmp type host-unreachable"),
            // A protocol without ports is a match of its own.
            (map! {"proto" => "tcp", "jump" => "drop"}, "meta l4proto tcp drop"),
            (map! {}, ""),
        ] {
            assert_eq!(build(options, Family::Ip).unwrap(), rule);
        }
        let lost = build(map! {"sorce" => "10.0.0.0/8", "jump" => "accept"}, Family::Ip).unwrap_err();
        assert_eq!(lost, "nftables rules have no option sorce: correct it, or remove it");
    }

    #[test]
    fn addresses_of_families_with_several_protocols_name_theirs() {
        for (family, address, rule) in [
            ("ipv6", "fd00::/64", "ip6 saddr fd00::/64"),
            ("inet", "fd00::/64", "ip6 saddr fd00::/64"),
            ("inet", "10.0.0.1", "ip saddr 10.0.0.1"),
            ("ip", "10.0.0.1", "ip saddr 10.0.0.1"),
            ("arp", "10.0.0.1", "arp saddr ip 10.0.0.1"),
        ] {
            assert_eq!(build(map! {"saddr" => address}, Family::parse(family).unwrap()).unwrap(), rule, "{family}");
        }
        assert!(Family::parse("ipx").is_err());
    }
}

use brine_value::{list, map};

use super::*;

#[test]
fn rules_are_in_the_syntax_of_nft() {
    for (options, rule) in [
        (
            map! {"jump" => "accept", "match" => "state", "connstate" => "new", "dport" => 80, "proto" => "tcp", "sport" => "1025:65535", "save" => true},
            "ct state { new } tcp dport { 80 } tcp sport { 1025-65535 } accept",
        ),
        (map! {"connstate" => "RELATED,ESTABLISHED", "jump" => "ACCEPT"}, "ct state { RELATED,ESTABLISHED } ACCEPT"),
        (map! {"state" => list!["related", "established"], "j" => "accept"}, "ct state { related,established } accept"),
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

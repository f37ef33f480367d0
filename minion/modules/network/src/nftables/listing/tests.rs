use super::*;

// As printed by nftables 1.0.6 after the rule was added.
#[test]
fn a_rule_is_the_one_that_nft_prints_for_it() {
    for (written, printed) in [
        ("meta iifname eth0 accept", "iifname \"eth0\" accept"),
        ("meta pkttype { host } accept", "meta pkttype host accept"),
        ("meta l4proto tcp accept", "meta l4proto tcp accept"),
        ("icmp type { echo-request } accept", "icmp type echo-request accept"),
        ("ip saddr 10.0.0.1/32 accept", "ip saddr 10.0.0.1 accept"),
        ("ip saddr 10.0.0.1/8 accept", "ip saddr 10.0.0.0/8 accept"),
        ("ip6 saddr FD00::1/128 accept", "ip6 saddr fd00::1 accept"),
        ("ip6 saddr fd00:0::/64 accept", "ip6 saddr fd00::/64 accept"),
        ("counter ip saddr 10.0.0.5 accept", "counter packets 0 bytes 0 ip saddr 10.0.0.5 accept"),
        ("tcp dport { 80, 22 } tcp sport { 1025-65535 } accept", "tcp dport { 22, 80 } tcp sport 1025-65535 accept"),
        ("tcp dport {443,80} accept", "tcp dport { 80, 443 } accept"),
        ("ct state { new,established } accept", "ct state { established, new } accept"),
        ("ct state new,established accept", "ct state established,new accept"),
        ("tcp dport vmap { 80 : drop, 22 : accept }", "tcp dport vmap { 22 : accept, 80 : drop }"),
        ("tcp dport { 80 } redirect to 8080", "tcp dport 80 redirect to :8080"),
        ("dnat 10.0.0.1", "dnat to 10.0.0.1"),
        ("mark set 1", "meta mark set 0x00000001"),
        ("log prefix \"in: x\" drop", "log prefix \"in: x\" drop"),
        ("accept comment \"a;b { #\"", "accept comment \"a;b { #\""),
    ] {
        assert!(is_same(written, printed), "{written}: {:?}", tokens(printed).map(|all| normalized(&all)).ok());
        assert_eq!(validate(written), Ok(()));
    }
    for (written, printed) in [
        ("accept", "tcp dport 22 accept"),
        ("tcp dport 22 accept", "tcp dport 22 accept comment \"ssh in\""),
        ("tcp dport { 22 } accept", "tcp dport { 22, 80 } accept"),
        ("ip saddr 10.0.0.0/8 accept", "ip saddr 10.0.0.0/16 accept"),
        ("ip saddr 10.0.0.1 accept", "ip saddr != 10.0.0.1 accept"),
        ("tcp dport . accept", "tcp dport 2 accept"),
        ("accept comment \"a\"", "accept comment \"b\""),
        ("accept comment \"a", "accept comment \"a"),
    ] {
        assert!(!is_same(written, printed), "{written}");
    }
}

#[test]
fn listings_have_rules_and_handles() {
    let listing = "table ip filter {\n\tchain input { # handle 1\n\t\ttype filter hook input priority filter; policy accept;\n\t\t\
                   log prefix \"a # handle 77\" accept # handle 28\n\t\tjump {\n\t\t\ttcp dport 22 accept\n\t\t} # handle 39\n\t}\n}";
    let rules = [(28, "log prefix \"a # handle 77\" accept"), (39, "}")];
    assert_eq!(parse(listing), rules.map(|(handle, text)| Listed { handle, text: text.into() }));
    for broken in ["", "accept # handle x", "accept # handle ", "}}}{{{", "# handle 99999999999999999999"] {
        assert_eq!(parse(broken), []);
    }
}

#[test]
fn a_rule_cannot_have_further_commands() {
    for text in [
        "accept; flush ruleset",
        "accept\nflush ruleset",
        "accept } ; flush ruleset ; {",
        "jump { accept; } ; flush ruleset",
        "log prefix \"x",
        "accept # x",
        "accept\0",
        "{ accept",
    ] {
        assert!(validate(text).is_err(), "{text}");
    }
    assert_eq!(validate("jump { tcp dport 22 accept; udp dport 53 accept; }"), Ok(()));
}

#[test]
fn malformed_rules_do_not_panic() {
    for text in [",", "a,", "a,,b", "{", "}", "{,}", "counter packets", ":", "1.2.3.4/99", "::/x", "\"", "é, {\"ü\"}"]
    {
        _ = is_same(text, text);
        _ = validate(text);
    }
}

use super::*;

#[test]
fn entries_are_among_the_elements_that_ipset_prints() {
    let some = &["192.168.0.3", "192.168.1.0", "192.168.1.1", "192.168.1.2", "192.168.1.3"][..];
    let nets = &["10.1.2.0/24 nomatch", "10.0.0.0/8 comment \"a b\"", "10.1.0.0/16"][..];
    let ranges = &["10.0.0.0/30", "10.0.0.4/31", "10.0.1.7", "10.3.1.0/24"][..];
    let pairs = &["192.168.0.3,udp:53 comment \"hi\"", "192.168.0.3,tcp:80", "192.168.0.3,tcp:81"][..];
    let six = &["fd00::/64 timeout 59 packets 3 bytes 4 comment \"x\" skbprio 1:10"][..];
    // Entry, whether any of its elements is in the set, whether all are.
    for (kind, members, entry, any, all) in [
        ("hash:ip", some, "192.168.0.3", true, true),
        ("hash:ip", some, "192.168.0.4", false, false),
        ("hash:ip", some, "192.168.1.0/30", true, true),
        ("hash:ip", some, "192.168.1.0-192.168.1.3", true, true),
        ("hash:ip", some, "192.168.1.0/29", true, false),
        ("hash:ip", some, "0.0.0.0/0", true, false),
        ("hash:ip", some, "fd00::1", false, false),
        ("hash:ip", some, "example.com", false, false),
        ("hash:ip", some, "192.168.0.3 comment x", false, false),
        ("hash:net", nets, "10.0.0.0/8", true, true),
        ("hash:net", nets, "10.0.0.1/8", true, true),
        ("hash:net", nets, "10.0.0.0/8 comment \"a b\"", true, true),
        ("hash:net", nets, "10.0.0.0/8 comment b", false, false),
        ("hash:net", nets, "10.1.2.0/24 nomatch", true, true),
        ("hash:net", nets, "10.1.2.0/24", false, false),
        ("hash:net", nets, "10.1.0.0/16 nomatch", false, false),
        ("hash:net", ranges, "10.0.1.0/24", false, false),
        ("hash:ip", some, "192.168.0.3,80", false, false),
        ("hash:net", nets, "10.2.0.0/16", false, false),
        ("hash:net", nets, "10.2.3.4", true, true),
        ("hash:net", ranges, "10.0.0.0-10.0.0.5", true, true),
        ("hash:net", ranges, "10.0.0.0-10.0.0.6", true, false),
        ("hash:ip,port", pairs, "192.168.0.3,80", true, true),
        ("hash:ip,port", pairs, "192.168.0.3,80-81", true, true),
        ("hash:ip,port", pairs, "192.168.0.3,80-82", true, false),
        ("hash:ip,port", pairs, "192.168.0.3,53", false, false),
        ("hash:ip,port", pairs, "192.168.0.3,udp:53 comment hi", true, true),
        ("hash:ip,port", pairs, "192.168.0.3", false, false),
        ("hash:ip,port", &["1.1.1.1,icmp:echo-request"], "1.1.1.1,icmp:echo-request", true, true),
        ("bitmap:port", &["80"], "80", true, true),
        ("bitmap:ip,mac", &["10.0.0.1,AA:BB:CC:DD:EE:FF"], "10.0.0.1,aa:bb:cc:dd:ee:ff", true, true),
        ("hash:ip,mark", &["1.1.1.1,0x000003e7"], "1.1.1.1,999", true, true),
        ("hash:net,iface", &["10.0.0.0/8,eth0"], "10.0.0.0/8,eth0", true, true),
        ("hash:net,iface", &["10.0.0.0/8,eth0"], "10.0.0.0/8,eth1", false, false),
        ("hash:net", six, "FD00:0::/64", true, true),
        ("hash:net", six, "fd00::/64 comment x skbprio 1:10", true, true),
        ("hash:net", six, "fd00::/64 timeout 60", false, false),
        ("list:set", &["web"], "web", true, true),
        ("list:set", &["web"], "we", false, false),
    ] {
        let elements: Vec<Element> = members.iter().map(|member| Element::parse(kind, member)).collect();
        let entry_ = Element::parse(kind, entry);
        assert_eq!((entry_.is_in(&elements), entry_.is_covered(&elements)), (any, all), "{kind} {entry}");
    }
}

#[test]
fn malformed_elements_do_not_panic() {
    for kind in ["hash:ip,port,net", "bitmap:port", "hash:ip,mark", "list:set", "", ":", "x"] {
        for text in [
            "",
            ",,,",
            "1.2.3.4/33",
            "1.2.3.4/99",
            "::/129",
            "::/0",
            "9.9.9.9-1.1.1.1",
            "1.1.1.1-::2",
            "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "99999",
            "9-1",
            "0x",
            "comment \"",
            "Members:",
        ] {
            let element = Element::parse(kind, text);
            _ = element.is_covered(&[Element::parse(kind, text)]);
        }
    }
}

#[test]
fn ranges_consist_of_few_networks() {
    for (range, count) in [
        ("10.0.0.0-10.0.0.5", 2),
        ("10.0.0.0-10.0.0.255", 1),
        ("10.0.0.1-10.0.0.254", 14),
        ("0.0.0.0/0", 1),
        ("::/0", 1),
        ("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", 128),
    ] {
        let (first, last) = addresses(range).unwrap();
        assert_eq!(networks(first, last).len(), count, "{range}");
    }
}

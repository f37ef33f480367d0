use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

#[test]
fn connections_are_parsed() {
    let line = "   1: 0100007F:1F90 0200A8C0:0016 01 00000000:00000000 00:00000000 00000000 0 0 1 1 x";
    let expected = map! {
        "local_addr" => "127.0.0.1", "local_port" => 8080, "remote_addr" => "192.168.0.2", "remote_port" => 22,
    };
    assert_eq!(parse_established(line), Some(expected));
    assert_eq!(parse_established(&line.replace(" 01 ", " 0A ")), None);
    assert_eq!(parse_established("  sl  local_address rem_address   st"), None);
    let six = "00000000000000000000000001000000:0050";
    assert_eq!(parse_endpoint(six), Some(("::1".into(), 80)));
    assert_eq!(parse_endpoint("0G:1"), None);
}

#[test]
fn traceroute_hops_are_parsed() {
    let first = map! {
        "count" => 1, "hostname" => "gw", "ip" => "192.0.2.1", "ms1" => 0.5, "ms2" => 0.25, "ms3" => 1.0,
    };
    let cases = [
        (" 1  gw (192.0.2.1)  0.5 ms  0.25 ms  1.0 ms", first),
        (" 2  * * *", map! {"count" => 2, "hostname" => "*"}),
        (" 3  a (192.0.2.2)  0.5 ms", map! {}),
        ("x  y", map! {}),
    ];
    for (line, expected) in cases {
        assert_eq!(parse_hop(line), expected.into(), "{line}");
    }
}

#[test]
fn host_names_are_replaced_in_configuration_files() {
    let hosts = "# web1 is here\n127.0.0.1 localhost  web1\n::1   web11\n";
    assert_eq!(renamed(hosts, "web1", "db1"), "# web1 is here\n127.0.0.1\tlocalhost\tdb1\n::1   web11\n");
    assert_eq!(with_host_name("A=1\nHOSTNAME=\"x\"\n", "db1"), "A=1\nHOSTNAME=\"db1\"\n");
    assert_eq!(with_host_name("HOSTNAME=x\n", "db1"), "HOSTNAME=db1\n");
    assert_eq!(qualified("192.0.2.1  web1 web1.example.com"), Some("web1.example.com".into()));
    assert_eq!(qualified("192.0.2.1  web1"), Some("web1".into()));
}

// As written by ethtool 6.1, net-tools 2.10 and traceroute 2.1.2.
#[test]
fn program_output_is_parsed() {
    let programs = Scripted::new(
        "
            $ ethtool -g eth0
            | Ring parameters for eth0:
            | Pre-set maximums:
            | RX:\t\t4096
            | RX Mini:\tn/a
            | Current hardware settings:
            | RX:\t\t512
            | TX:\t\t256
            $ ethtool -g lo
            ! netlink error: Operation not supported
            = 1
            $ ethtool -G eth0 rx 256
            $ arp -an
            | ? (192.0.2.1) at 52:54:00:12:35:02 [ether] on eth0
            $ traceroute example.com
            | traceroute to example.com (192.0.2.9), 30 hops max, 60 byte packets
            |  1  gw (192.0.2.1)  0.5 ms  0.4 ms  0.3 ms
            |  2  * * *
            ",
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("network.get_bufsize", list!["eth0"], map! {}),
        ("network.get_bufsize", list!["lo"], map! {}),
        ("network.get_bufsize", list!["-x"], map! {}),
        ("network.mod_bufsize", list!["eth0"], map! {"rx" => 256}),
        ("network.mod_bufsize", list!["eth0"], map! {"rx" => "1 --x"}),
        ("network.mod_bufsize", list!["eth0"], map! {}),
        ("network.mod_bufsize", list!["eth0", "x"], map! {}),
        ("network.arp", list![], map! {}),
        ("network.traceroute", list!["example.com;"], map! {}),
        ("network.traceroute", list!["example.com"], map! {}),
        ("network.mod_hostname", list!["bad\nname"], map! {}),
        ("network.wol", list!["08"], map! {}),
    ]), @r#"
        network.get_bufsize: {"result": true, "rx-max": 4096, "rx": 512, "tx": 256}
        network.get_bufsize: {"result": false, "comment": "netlink error: Operation not supported"}
        network.get_bufsize: ERROR: '-x' cannot be used: it starts with '-' or is empty
        network.mod_bufsize: {"result": true, "comment": "rx 256"}
        network.mod_bufsize: {"result": false, "comment": "rx must be a number, not '1 --x'"}
        network.mod_bufsize: {"result": false, "comment": "Requires rx=<val> tx==<val> rx-mini=<val> and/or rx-jumbo=<val>"}
        network.mod_bufsize: {"result": false, "comment": "Unknown arguments: x"}
        network.arp: {"52:54:00:12:35:02": "192.0.2.1"}
        network.traceroute: [{"count": 1, "hostname": "gw", "ip": "192.0.2.1", "ms1": 0.5, "ms2": 0.4, "ms3": 0.3}, {"count": 2, "hostname": "*"}]
        network.traceroute: [{"count": 1, "hostname": "gw", "ip": "192.0.2.1", "ms1": 0.5, "ms2": 0.4, "ms3": 0.3}, {"count": 2, "hostname": "*"}]
        network.mod_hostname: ERROR: the host name 'bad
        name' is invalid: expected letters, digits, '-' and '.', at most 253 of them
        network.wol: ERROR: MAC address '08' is invalid: expected a form such as 08:00:27:13:69:77
        "#);
}

use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

#[test]
fn routing_tables_are_parsed() {
    let v4 = Route::v4("eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0").unwrap().to_value();
    // The gateway is written in little-endian order.
    if cfg!(target_endian = "little") {
        assert_eq!(v4.get("gateway"), Some(&"192.0.2.1".into()));
    }
    assert_eq!((v4.get("destination"), v4.get("flags")), (Some(&"0.0.0.0".into()), Some(&"UG".into())));
    let zero = "00000000000000000000000000000000";
    for (line, destination, flags) in [
        (format!("{zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200 lo"), "::/0", "!n"),
        (format!("{zero} 00 {zero} 00 {zero} 00000400 00000001 00000000 00450003 eth0"), "::/0", "UGDAe"),
    ] {
        let route = Route::v6(&line).unwrap();
        assert_eq!((route.destination.as_str(), route.flags.as_str()), (destination, flags));
    }
    assert!(Route::v4("").is_none() && Route::v6("x").is_none());
}

#[test]
fn output_of_ip_is_parsed() {
    let programs = Scripted::new(
        r"
            $ ip route get 10.1.1.1
            | 10.1.1.1 via 192.0.2.1 dev eth0 src 192.0.2.2 uid 0
            |     cache
            $ ip neigh show
            | 192.0.2.1 dev eth0 lladdr 02:fc:00:00:00:05 REACHABLE
            | 192.0.2.9 dev eth0 FAILED
            | fe80::1 dev eth0 lladdr 02:fc:00:00:00:05 router STALE
            ",
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("network.get_route", list!["10.1.1.1"], map! {}),
        ("network.get_route", list!["-h"], map! {}),
        ("network.ip_neighs", list![], map! {}),
        ("network.ip_neighs6", list![], map! {}),
        ("network.connect", list!["127.0.0.1"], map! {}),
        ("network.default_route", list!["ipx"], map! {}),
    ]), @r#"
        network.get_route: {"destination": "10.1.1.1", "gateway": "192.0.2.1", "interface": "eth0", "source": "192.0.2.2"}
        network.get_route: ERROR: '-h' cannot be used: it starts with '-' or is empty
        network.ip_neighs: {"02:fc:00:00:00:05": "192.0.2.1"}
        network.ip_neighs6: {"02:fc:00:00:00:05": "fe80::1"}
        network.connect: {"result": false, "comment": "Required argument, port, is missing."}
        network.default_route: ERROR: Invalid address family ipx
        "#);
}

use brine_value::list;

use super::super::tests::{poll_once, wrong};
use super::*;

const TABLE: &str = "Inter-|   Receive            |  Transmit\n face |bytes packets\n    \
                     lo: 10 2 3 4 0 0 0 0 20 5 6 7 0 0 0 0\n  eth0:1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n";

#[test]
fn counters_are_reported_when_they_reach_or_exceed_a_value() {
    for (above, values, report) in [
        (false, [Some(20), None, None, None, None, None, None, None], true),
        (false, [Some(19), None, None, None, None, None, None, None], false),
        (true, [Some(19), None, None, None, None, None, None, None], true),
        (true, [Some(20), None, None, None, None, None, None, None], false),
        (true, [Some(99), None, None, None, None, Some(5), None, None], true),
    ] {
        let beacon = NetworkInfo(vec![Interface { name: "lo".into(), above, values }]);
        let all = map! {
            "bytes_sent" => 20, "bytes_recv" => 10, "packets_sent" => 5, "packets_recv" => 2,
            "errin" => 3, "errout" => 6, "dropin" => 4, "dropout" => 7,
        };
        let event = map! {"interface" => "lo", "network_info" => all};
        assert_eq!(beacon.events(TABLE), if report { vec![event] } else { vec![] }, "{values:?}");
    }
    assert_eq!(counters(TABLE, "eth"), None);
}

#[test]
fn this_host_has_counters_and_options_are_checked() {
    let config = |options: Map| list![map! {"interfaces" => map! {"lo" => options}}];
    assert!(
        poll_once("network_info", &config(map! {"type" => "greater", "bytes_sent" => 1u64 << 62})).unwrap().is_empty()
    );
    for (options, error) in [
        (map! {"type" => "less", "errin" => 1}, "interface 'lo': option 'type': expected equal or greater"),
        (map! {"errin" => "x"}, "option 'errin': expected a number, got x"),
    ] {
        assert_eq!(wrong("network_info", &config(options)), error);
    }
    assert!(
        wrong("network_info", &config(map! {})).starts_with("interface 'lo': expected at least one of bytes_sent, ")
    );
}

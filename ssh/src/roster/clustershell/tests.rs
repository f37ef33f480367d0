use std::net::TcpListener;

use brine_testing::Scripted;

use super::*;

#[test]
fn the_size_of_a_node_set_is_known_before_it_is_expanded() {
    for (set, expected) in [
        ("web1", 1),
        ("web[1-40]", 40),
        ("web[01-10,20,30-34/2]", 14),
        ("rack[1-10]node[1-20]", 200),
        ("a[1-10],b[1-10]!c[1-5] d", 26),
        ("web[1-99999999999999999999]", u64::MAX),
        ("a[1-4294967296]b[1-4294967296]", u64::MAX),
        ("a[1-10/0]", 10),
        ("@db", 1),
    ] {
        assert_eq!(size(set), expected, "{set}");
    }
}

#[test]
fn hosts_are_those_of_the_node_set_with_the_first_port_that_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let programs = Scripted::new(
        "$ nodeset -e -S ...
             | 127.0.0.1
             | 127.0.0.2",
    );
    let fields = hosts(&*programs, &"@all".into(), TargetKind::Glob, &(vec![1, port], Duration::from_secs(5))).unwrap();
    let expected = [map! {"host" => "127.0.0.1", "port" => i64::from(port)}, map! {"host" => "127.0.0.2"}];
    assert_eq!(fields.into_values().collect::<Vec<_>>(), expected);
}

#[test]
fn invalid_and_large_node_sets_never_reach_the_program() {
    let programs = Scripted::new("");
    for (tgt, kind, part) in [
        ("web[1-200000]", TargetKind::Glob, "more than 100000 hosts"),
        ("@a;id", TargetKind::Glob, "a character that no node set has"),
        ("$(id)", TargetKind::Glob, "a character that no node set has"),
        ("web1", TargetKind::Grain, "takes a node set"),
    ] {
        let error = hosts(&*programs, &tgt.into(), kind, &(vec![22], Duration::from_secs(1))).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    let refusing = Scripted::new(
        "$ nodeset -e -S ...
             ! usage: nodeset
             ! nodeset: parse error
             = 1",
    );
    let error = hosts(&*refusing, &"web[".into(), TargetKind::Glob, &(vec![22], Duration::from_secs(1))).unwrap_err();
    assert_eq!(error.to_string(), "the node set 'web[': nodeset: parse error");
}

use brine_jinja::Host as Functions;
use brine_testing::web;

use super::super::tests::options;
use super::super::{RosterOptions, hosts};
use super::*;

/// Starts a range server that resolves a few expressions, and returns its address.
fn server() -> String {
    let port = web::server(|asked| {
        let plain = "text/plain";
        match asked.split_whitespace().nth(1).unwrap_or_default() {
            "/range/list?%25web" => {
                ("200 OK", plain, "web2.example.com\nweb1.example.com\r\nweb1.example.com\n\n".into())
            }
            "/range/list?a%2C%20b/c" => ("200 OK", plain, "spaced\n".into()),
            "/range/list?none" => ("200 OK", plain, String::new()),
            "/range/list?option" => ("200 OK", plain, "-oProxyCommand=x\n".into()),
            "/range/list?command" => ("200 OK", plain, "a;touch\n".into()),
            "/range/list?path" => ("200 OK", plain, "../../etc\n".into()),
            "/range/list?many" => {
                ("200 OK", plain, (0..=MAX_HOSTS).fold(String::new(), |list, n| list + &format!("h{n}\n")))
            }
            "/range/list?large" => ("200 OK", plain, "h\n".repeat((MAX_LIST / 2 + 1) as usize)),
            "/range/list?unknown" => ("200 OK", "text/plain\r\nRangeException: NOCLUSTERDEF unknown", "x\n".into()),
            _ => ("404 Not Found", plain, String::new()),
        }
    });
    format!("127.0.0.1:{port}")
}

fn found(options: &RosterOptions, tgt: &str, kind: &str) -> String {
    match hosts(options, &tgt.into(), kind.parse().unwrap(), &Functions::new()) {
        Ok(hosts) => hosts.keys().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        Err(error) => error.to_string().replace(&options.range_server, "SERVER"),
    }
}

#[test]
fn hosts_come_from_the_list_of_the_server() {
    let options = RosterOptions { roster: "range".into(), range_server: server(), ..options("".into()) };
    for (tgt, kind, expected) in [
        ("%web", "range", "web1.example.com web2.example.com"),
        ("%web", "glob", "web1.example.com web2.example.com"),
        ("a, b/c", "range", "spaced"),
        ("none", "range", ""),
        ("%web", "list", "the roster 'range' takes an expression of its server as target, not a target of type list"),
        ("unknown", "range", "asking the range server SERVER failed: 'unknown': NOCLUSTERDEF unknown"),
        ("gone", "range", "asking the range server SERVER failed: HTTP 404: Not Found"),
        ("many", "range", "asking the range server SERVER failed: it returned 100001 hosts, the limit is 100000"),
    ] {
        assert_eq!(found(&options, tgt, kind), expected, "{tgt} {kind}");
    }
    // Names that ssh, a shell or a file system would interpret as something else.
    for tgt in ["option", "command", "path"] {
        let error = found(&options, tgt, "range");
        assert!(error.starts_with("the list of the range server is invalid: "), "{tgt}: {error}");
    }
    assert!(found(&options, "large", "range").contains("failed"), "the list is bounded");
    assert!(found(&options, &"x".repeat(MAX_EXPRESSION + 1), "range").contains("more than 7500 bytes"));
    let all = hosts(&options, &"%web".into(), TargetKind::Range, &Functions::new()).unwrap();
    assert_eq!((all[0].host.as_str(), all[0].user.as_deref()), ("web1.example.com", Some("default")));
}

#[test]
fn the_list_filters_the_hosts_of_another_roster() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("roster");
    std::fs::write(&path, "web1.example.com: 10.0.0.1\ndb1: 10.0.0.2\n").unwrap();
    let options = RosterOptions { range_server: server(), ..options(path) };
    assert_eq!(found(&options, "%web", "range"), "web1.example.com");
    assert_eq!(found(&options, "none", "range"), "");
}

#[test]
fn an_invalid_or_unreachable_server_is_a_one_line_error() {
    for (range_server, expected) in [
        ("", "the option 'range_server' is invalid: expected HOST:PORT"),
        ("http://range:80", "the option 'range_server' is invalid: expected HOST:PORT"),
        ("range:80/x?y@z", "the option 'range_server' is invalid: expected HOST:PORT"),
        ("127.0.0.1:1", "[Errno 111] Connection refused"),
    ] {
        let options = RosterOptions { roster: "range".into(), range_server: range_server.into(), ..options("".into()) };
        let error = hosts(&options, &"x".into(), TargetKind::Range, &Functions::new()).unwrap_err().to_string();
        assert_eq!(error, format!("asking the range server {range_server} failed: {expected}"));
    }
}

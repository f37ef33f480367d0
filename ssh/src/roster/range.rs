//! The roster `range`, and targets by range (`-R`): a range server resolves expressions such as `%%dc1.web,-web7`. As
//! with Salt's client library, the request is `GET /range/list?EXPRESSION` over HTTP, with one host per line in the
//! response. An error in the expression is reported in the header `RangeException`.

use std::time::Duration;

use brine_host::web;
use brine_target::TargetKind;
use brine_value::{Value, map, percent_encoded_path};

use super::{Fields, MAX_HOSTS, RosterError};

/// The timeout of the request.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum length of an expression, in bytes: servers reject longer URLs.
const MAX_EXPRESSION: usize = 7500;
/// The maximum size of a list of hosts, in bytes.
const MAX_LIST: u64 = 16 << 20;

/// Returns the fields of the hosts of an expression. As in Salt, `-R` and a target without a type mean the same.
pub(super) fn hosts(server: &str, tgt: &Value, kind: TargetKind) -> Result<Fields, RosterError> {
    if !matches!(kind, TargetKind::Range | TargetKind::Glob) {
        let message = "the roster 'range' takes an expression of its server as target, not a target of type";
        return Err(RosterError::Program(format!("{message} {kind}")));
    }
    let found = expand(server, tgt)?;
    Ok(found.into_iter().map(|host| (host.clone(), map! {"host" => host})).collect())
}

/// Resolves an expression to its hosts, sorted and deduplicated.
pub(super) fn expand(server: &str, tgt: &Value) -> Result<Vec<String>, RosterError> {
    let failed = |reason: String| {
        RosterError::Program(format!("asking the range server {} failed: {reason}", server.escape_debug()))
    };
    let is_address = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
    if server.is_empty() || !server.chars().all(is_address) {
        return Err(failed("the option 'range_server' is invalid: expected HOST:PORT".into()));
    }
    let expression = tgt.to_string();
    if expression.len() > MAX_EXPRESSION {
        return Err(failed(format!("the expression has more than {MAX_EXPRESSION} bytes")));
    }
    let url = format!("http://{server}/range/list?{}", percent_encoded_path(&expression));
    let options = web::Options { timeout: TIMEOUT, ..web::Options::default() };
    let agent = web::agent(&options).map_err(|error| failed(error.to_string()))?;
    let mut response = agent.get(&url).call().map_err(|error| failed(web::error_message(&error)))?;
    if let Some(exception) = response.headers().get("RangeException") {
        let reason = String::from_utf8_lossy(exception.as_bytes()).escape_debug().to_string();
        return Err(failed(format!("'{expression}': {reason}")));
    }
    let body = response.body_mut().with_config().limit(MAX_LIST).read_to_vec();
    let body = body.map_err(|error| failed(web::error_message(&error)))?;
    let text = String::from_utf8(body).map_err(|_| failed("its list of hosts is not UTF-8".into()))?;
    let mut found: Vec<String> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    found.sort();
    found.dedup();
    if found.len() > MAX_HOSTS {
        return Err(failed(format!("it returned {} hosts, the limit is {MAX_HOSTS}", found.len())));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
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
            (
                "%web",
                "list",
                "the roster 'range' takes an expression of its server as target, not a target of type list",
            ),
            ("unknown", "range", "asking the range server SERVER failed: 'unknown': NOCLUSTERDEF unknown"),
            ("gone", "range", "asking the range server SERVER failed: http status: 404"),
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
            let options =
                RosterOptions { roster: "range".into(), range_server: range_server.into(), ..options("".into()) };
            let error = hosts(&options, &"x".into(), TargetKind::Range, &Functions::new()).unwrap_err().to_string();
            assert_eq!(error, format!("asking the range server {range_server} failed: {expected}"));
        }
    }
}

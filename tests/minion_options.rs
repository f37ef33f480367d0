//! Options of a minion that functions without a master use: conditions of states, bounds of HTTP requests, log levels.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::support::local_minion::Minion;
use crate::support::stderr;

#[test]
fn global_state_conditions_skip_states() {
    let options = "global_state_conditions: {test.nop: 'not G@id:db', test.succeed_with_changes: ['x', 'G@id:db']}\n";
    let results = Minion::new(options).apply("a: test.nop\nb: test.succeed_with_changes\n", false);
    let actual: Vec<&Value> = results.iter().map(|result| &result[0]).collect();
    assert_eq!(actual, [&Value::Null, &json!(true)], "{results:?}");
    assert_eq!(results[0][2], json!({}));
}

/// Serves one response of 5,000 bytes, and returns its URL.
fn serve_once() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        let _ = peer.read(&mut head);
        let _ =
            peer.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{}", "x".repeat(5000)).as_bytes());
    });
    url
}

#[test]
fn the_size_and_time_of_http_responses_are_bounded() {
    let answer = Minion::new("").call(&["http.query", &serve_once()]);
    assert_eq!(answer["body"].as_str().map(str::len), Some(5000), "{answer}");
    let answer = Minion::new("http_max_body: 4999\n").call(&["http.query", &serve_once()]);
    assert!(answer["error"].as_str().is_some_and(|error| error.contains("http_max_body")), "{answer}");

    // A server that accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let answer = Minion::new("http_request_timeout: 0.2\n").call(&["http.query", &url]);
    assert!(answer["error"].as_str().is_some_and(|error| error.contains("timeout")), "{answer}");
}

#[test]
fn log_granular_levels_lower_the_level_of_a_logger() {
    for (levels, is_logged) in [("", true), ("log_granular_levels: {salt.fileserver: error}\n", false)] {
        let minion = Minion::new(levels);
        std::fs::remove_dir(minion.directory.path().join("srv")).unwrap();
        let log = stderr(&minion.run(&["-l", "debug", "cp.list_master"]));
        assert_eq!(log.contains("a file root does not exist"), is_logged, "{log}");
        assert!(log.contains("configuration file read"), "{log}");
    }
}

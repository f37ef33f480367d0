use std::io::{Read, Write};
use std::net::TcpListener;

use brine_value::{list, map};

use super::*;

/// Starts a service that answers requests with the expected body, and others with 401. Returns its URL.
fn service(expected: &'static str, answer: &'static str) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut request, mut part) = (String::new(), [0; 4096]);
            while request.split_once("\r\n\r\n").is_none_or(|(_, body)| body.len() < expected.len()) {
                match stream.read(&mut part).unwrap() {
                    0 => break,
                    length => request += &String::from_utf8_lossy(&part[..length]),
                }
            }
            let is_right = request.starts_with("POST /auth ") && request.ends_with(expected);
            let answer = if is_right { answer } else { "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n" };
            _ = stream.write_all(answer.as_bytes());
        }
    });
    format!("http://user:s3cret@127.0.0.1:{port}/auth")
}

fn rest(url: String) -> Rest {
    Rest::new(&map! {"^url" => url}).unwrap()
}

#[test]
fn the_service_authenticates_and_returns_entries() {
    let form = "username=fred&password=p%26w";
    for (answer, entries) in [
        (
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[\"test.*\", {\"web*\": [\"pkg.*\"]}]",
            Some(list!["test.*", map! {"web*" => list!["pkg.*"]}]),
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", Some(list![])),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nnull", Some(list![])),
        ("HTTP/1.1 204 OK\r\nConnection: close\r\n\r\n", None),
        ("HTTP/1.1 302 Found\r\nLocation: /auth\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", None),
        ("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", None),
    ] {
        let proven = rest(service(form, answer)).authenticate("fred", "p&w").unwrap();
        assert_eq!(proven.map(|proven| Value::from(proven.entries)), entries, "{answer}");
    }
    let service = rest(service(form, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    assert_eq!(service.authenticate("fred", "other").unwrap(), None);
}

#[test]
fn service_failures_are_errors_not_denials() {
    let form = "username=fred&password=pw";
    let invalid = rest(service(form, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"a\": 1}"));
    let error = invalid.authenticate("fred", "pw").unwrap_err().to_string();
    assert!(error.ends_with("/auth failed: its answer is invalid: expected a JSON list of entries"), "{error}");
    assert!(!error.contains("s3cret"), "{error}");

    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut hanging = rest(format!("http://{}/auth?token=s3cret", silent.local_addr().unwrap()));
    hanging.deadline = Duration::from_millis(200);
    let error = hanging.authenticate("fred", "pw").unwrap_err().to_string();
    assert!(error.contains("/auth failed: ") && !error.contains("s3cret"), "{error}");
    assert!(Rest::new(&Map::new()).is_err() && Rest::new(&map! {"^url" => "ftp://x"}).is_err());
}

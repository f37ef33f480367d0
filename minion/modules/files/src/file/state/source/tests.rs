use std::io::{Read, Write};

use super::*;
use crate::testing;

const SUM: &str = "434728a410a78f56fc1b5899c3593436e61ab0c731e9072d95e96db290205e53";

#[test]
fn hashes_are_parsed_in_every_form() {
    let sha256 = Some(Hash { kind: "sha256", hex: SUM.into() });
    for (text, hash) in [
        (SUM.to_owned(), sha256.clone()),
        (format!("sha256={SUM}"), sha256.clone()),
        (format!("sha256:{}", SUM.to_uppercase()), sha256.clone()),
        (format!("md5={SUM}"), None),
        ("abc".to_owned(), None),
    ] {
        assert_eq!(parse(&text), hash, "{text}");
    }
    let other = "a".repeat(64);
    for (text, hash) in [
        (format!("{other}  other.tgz\n{SUM}  *dir/my.tgz\n"), sha256.clone()),
        (format!("SHA256 (other) = {other}\nSHA256 (my.tgz) = {SUM}\n"), sha256.clone()),
        (format!("{SUM}\n"), sha256),
        ("nothing here\n".to_owned(), None),
    ] {
        assert_eq!(find_hash(&text, &["my.tgz"]), hash, "{text}");
    }
}

#[test]
fn content_of_web_servers_is_verified() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 1024];
            let length = stream.read(&mut request).unwrap();
            let is_there = request[..length].starts_with(b"GET /file ");
            let (status, body) = if is_there { ("200 OK", "content\n") } else { ("404 Not Found", "") };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        }
    });
    let context = testing::state_context(false, &[]);
    let url = |path: &str| format!("http://127.0.0.1:{port}/{path}");
    let with = |hash: Option<&str>, skip| Verify { skip, ..Verify::by_hash(hash.map(str::to_owned), None) };
    let read = |path: &str, verify: &Verify| read(&context, "/nonexistent", &url(path), verify);
    assert_eq!(read("file", &with(Some(SUM), false)), Ok(b"content\n".to_vec()));
    assert_eq!(read("file", &with(None, true)), Ok(b"content\n".to_vec()));
    assert!(matches!(read("file", &with(None, false)), Err(Problem::Invalid(reported)) if reported.contains("verify")));
    assert!(matches!(read("file", &with(Some(&"0".repeat(64)), false)), Err(Problem::HashMismatch(_))));
    assert!(matches!(read("none", &with(None, true)), Err(Problem::Invalid(reported)) if reported.contains("404")));
}

//! A web server for unit tests.

use std::io::{Read, Write};
use std::net::TcpListener;

/// Starts a web server that answers each request with a status, a content type and a body, and returns its port.
pub fn server(answer: impl Fn(&str) -> (&'static str, &'static str, String) + Send + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = Vec::new();
            let mut part = [0; 4096];
            loop {
                let length = stream.read(&mut part).unwrap();
                asked.extend_from_slice(&part[..length]);
                let text = String::from_utf8_lossy(&asked).to_lowercase();
                let wanted = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                let is_whole = text.find("\r\n\r\n").is_some_and(|head| asked.len() >= head + 4 + wanted.unwrap_or(0));
                if is_whole || length == 0 {
                    break;
                }
            }
            let (status, kind, body) = answer(&String::from_utf8_lossy(&asked));
            let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
            stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes()).unwrap();
        }
    });
    port
}

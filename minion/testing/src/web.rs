//! A web server for unit tests.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Starts a web server that answers each request with a status, a content type and a body, and returns its port.
pub fn server(answer: impl Fn(&str) -> (&'static str, &'static str, String) + Send + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let asked = request(&mut stream);
            let (status, kind, body) = answer(&String::from_utf8_lossy(&asked));
            let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
            // A client may disconnect at any time.
            _ = stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes());
        }
    });
    port
}

/// Reads a request with its body, or up to the end of the connection.
fn request(stream: &mut TcpStream) -> Vec<u8> {
    let (mut asked, mut part) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return asked,
            Ok(length) => asked.extend_from_slice(&part[..length]),
        }
        let text = String::from_utf8_lossy(&asked).to_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if text.find("\r\n\r\n").is_some_and(|head| asked.len() >= head + 4 + length.unwrap_or(0)) {
            return asked;
        }
    }
}

/// Answers that carry no whole file: the path under which [`odd_server`] sends them, and the bytes.
pub const ODD: &[(&str, &str)] = &[
    ("loop", "HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 4\r\n\r\nLOOP"),
    ("no_location", "HTTP/1.1 302 Found\r\nContent-Length: 4\r\n\r\nNONE"),
    ("bad_location", "HTTP/1.1 302 Found\r\nLocation: http://[::1\r\nContent-Length: 3\r\n\r\nBAD"),
    ("ftp", "HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1/x\r\nContent-Length: 3\r\n\r\nFTP"),
    ("local_file", "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 4\r\n\r\nFILE"),
    ("choices", "HTTP/1.1 300 Multiple Choices\r\nContent-Length: 7\r\n\r\nCHOICES"),
    ("not_modified", "HTTP/1.1 304 Not Modified\r\n\r\n"),
    ("use_proxy", "HTTP/1.1 305 Use Proxy\r\nLocation: /whole\r\nContent-Length: 5\r\n\r\nPROXY"),
    ("strange_redirect", "HTTP/1.1 399 Strange\r\nLocation: /whole\r\nContent-Length: 7\r\n\r\nSTRANGE"),
    ("no_content", "HTTP/1.1 204 No Content\r\n\r\n"),
    ("reset_content", "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"),
    ("part", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-3/10\r\nContent-Length: 4\r\n\r\nPART"),
    ("short", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nSHORT"),
    ("two_lengths", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 6\r\n\r\nLONGER"),
    ("word_as_length", "HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\nLONGER"),
    ("negative_length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nLONGER"),
    ("no_last_chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nCHUNKS\r\n"),
    ("half_chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n60\r\nCHUNKS"),
    ("no_chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nCHUNKS\r\n0\r\n\r\n"),
    ("not_found", "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nGONE"),
    ("broken", "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nOOPS"),
    ("garbage", "GARBAGE\r\n\r\n"),
    ("nothing", ""),
    ("half_head", "HTTP/1.1 200 OK\r\nContent-Le"),
    ("switching", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nSWITCH"),
    ("too_large", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\nx"),
];

/// Answers with a whole file, of the content `whole`.
pub const WHOLE: &[(&str, &str)] = &[
    ("whole", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole"),
    ("chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nwh\r\n3\r\nole\r\n0\r\n\r\n"),
    ("until_the_end", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nwhole"),
    ("http_1_0", "HTTP/1.0 200 OK\r\n\r\nwhole"),
    ("changed_by_a_proxy", "HTTP/1.1 203 Changed\r\nContent-Length: 5\r\n\r\nwhole"),
    ("continued", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole"),
    ("redirected", "HTTP/1.1 302 Found\r\nLocation: redirected_again\r\nContent-Length: 3\r\n\r\nONE"),
    ("redirected_again", "HTTP/1.1 308 Moved\r\nLocation: /whole\r\nContent-Length: 3\r\n\r\nTWO"),
];

/// Starts a web server that sends the answers of [`ODD`] and [`WHOLE`] to requests of their paths, and returns its port.
pub fn odd_server() -> u16 {
    raw_server(|asked| {
        let path = asked.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
        let (path, _) = path.split_once('.').unwrap_or((path, ""));
        let answer = ODD.iter().chain(WHOLE).find(|(name, _)| *name == path);
        answer.map_or_else(String::new, |(_, answer)| (*answer).to_owned())
    })
}

/// Starts a web server that answers each request with these bytes and closes the connection. Returns its port.
pub fn raw_server(answer: impl Fn(&str) -> String + Send + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let asked = request(&mut stream);
            // A client may disconnect at any time.
            _ = stream.write_all(answer(&String::from_utf8_lossy(&asked)).as_bytes());
        }
    });
    port
}

use std::io::{Read, Write};
use std::net::TcpListener;

use brine_value::{Map, map};

use super::*;

/// Serves one reply, and returns the URL and the request.
fn service(reply: &'static str) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut request, mut part) = (String::new(), [0; 4096]);
        loop {
            let length = stream.read(&mut part).unwrap();
            request += &String::from_utf8_lossy(&part[..length]);
            let body = request.split_once("\r\n\r\n").map(|(head, body)| {
                let head = head.to_lowercase();
                let expected = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                body.len() >= expected.and_then(|length| length.parse().ok()).unwrap_or(0)
            });
            if body == Some(true) || length == 0 {
                break;
            }
        }
        stream.write_all(reply.as_bytes()).unwrap();
        sender.send(request).unwrap();
    });
    (url, requests)
}

fn client(url: &str) -> Http {
    Http::new("test", "url", url, Trust::default(), &Options::new(&Map::new(), None)).unwrap()
}

#[test]
fn requests_have_type_and_credentials() {
    let (url, requests) = service("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}");
    let http = client(&url.replace("//", "//fred:s3cret@")).with_header("X-One", "1".to_owned());
    let body = map! {"text" => "ü"}.into();
    assert_eq!(http.send_json("POST", "/x?y=1", &Body::Json(&body)).unwrap(), map! {"a" => 1}.into());
    let request = requests.recv().unwrap();
    let head = request.to_lowercase();
    assert!(request.starts_with("POST /x?y=1 HTTP/1.1\r\n") && request.ends_with("{\"text\": \"ü\"}"), "{request}");
    for header in ["authorization: basic znjlzdpzm2nyzxq=", "x-one: 1", "content-type: application/json"] {
        assert!(head.contains(header), "{header}: {request}");
    }
    let (url, requests) = service("HTTP/1.1 204 No\r\n\r\n");
    client(&url).send("POST", "", &Body::Form(&[("a b", "&ü")])).unwrap();
    assert!(requests.recv().unwrap().ends_with("\r\n\r\na+b=%26%C3%BC"));
}

#[test]
fn errors_have_no_secrets() {
    for (reply, expected, outage) in [
        ("HTTP/1.1 401 No\r\nContent-Length: 4\r\n\r\nno\nx", "status 401: no x", false),
        ("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "status 503: no text", true),
        ("HTTP/1.1 302 No\r\nLocation: /s3cret\r\nContent-Length: 0\r\n\r\n", "status 302: no text", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{", "its reply is not JSON: ", false),
        ("", "", true),
    ] {
        let (url, _requests) = service(reply);
        let http = client(&format!("{}/s3cret/", url.replace("//", "//fred:s3cret@")));
        let error = http.send_json("POST", "/s3cret", &Body::Json(&Value::Nil)).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(&format!("{url} (test) failed: {expected}")), "{text}");
        assert_eq!(error.is_outage(), outage, "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
    let unused = brine_system::ports::free_port().unwrap();
    let error = client(&format!("http://127.0.0.1:{unused}/s3cret")).send("GET", "/", &Body::Nothing).err().unwrap();
    assert!(error.is_outage() && !error.to_string().contains("s3cret"), "{error}");
}

#[test]
fn other_urls_are_refused() {
    for url in ["", "ftp://x", "https://", "localhost:80"] {
        let error = Http::new("test", "url", url, Trust::default(), &Options::default()).err().unwrap();
        assert_eq!(error.to_string(), "option 'test.url': it is invalid: expected a URL with http:// or https://");
    }
}

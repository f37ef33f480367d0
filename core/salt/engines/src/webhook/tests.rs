use std::io::{Read, Write};
use std::net::SocketAddr;

use brine_value::{Value, map};
use futures::future::BoxFuture;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::*;
use crate::PublishError;

struct Bus(UnboundedSender<(String, Map)>);

impl Publisher for Bus {
    fn id(&self) -> &'static str {
        "m1"
    }

    fn max_event_size(&self) -> usize {
        1000
    }

    fn publish(&self, tag: String, data: Map) -> BoxFuture<'_, Result<(), PublishError>> {
        let result = match tag.rsplit('/').next() {
            Some("refused") => Err(PublishError::Refused("it is refused".to_owned())),
            Some("unavailable") => Err(PublishError::Unavailable("the disk is full".to_owned())),
            _ => Ok(()),
        };
        _ = self.0.send((tag, data));
        Box::pin(async { result })
    }
}

/// A running engine.
struct Served {
    address: SocketAddr,
    events: UnboundedReceiver<(String, Map)>,
    stopping: CancellationToken,
    ended: tokio::task::JoinHandle<Result<(), EngineError>>,
}

async fn served(kwargs: Map) -> Served {
    let mut all = map! {"address" => "127.0.0.1", "port" => 0};
    all.extend(kwargs);
    let (sender, events) = unbounded_channel();
    let (engine, stopping) = (Webhook::new(&all).unwrap(), CancellationToken::new());
    let listener = engine.listen().await.unwrap();
    let address = listener.local_addr().unwrap();
    let ended = tokio::spawn(engine.serve(listener, Arc::new(Bus(sender)), stopping.clone()));
    Served { address, events, stopping, ended }
}

/// Sends a request, and returns the status of the response.
async fn status(address: SocketAddr, request: &str) -> u16 {
    let request = request.to_owned();
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        // The server may close a connection whose request it has not read.
        _ = stream.read_to_string(&mut answer);
        answer
    });
    answer.await.unwrap().split(' ').nth(1).unwrap().parse().unwrap()
}

fn post(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

#[test]
fn arguments_are_checked() {
    for (kwargs, error) in [
        (map! {}, None),
        (map! {"address" => "10.128.1.145", "port" => 8000, "ssl_crt" => "/a", "ssl_key" => "/b"}, None),
        (map! {"port" => 70_000}, Some("'port' is invalid")),
        (map! {"ssl_crt" => "/a"}, Some("are required together")),
        (map! {"host" => "a"}, Some("'host' is unknown")),
    ] {
        let read = Webhook::new(&kwargs);
        match error {
            None => assert!(read.is_ok(), "{kwargs:?}: {read:?}"),
            Some(error) => assert!(read.as_ref().is_err_and(|read| read.contains(error)), "{kwargs:?}: {read:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn posted_data_becomes_an_event() {
    let mut engine = served(map! {}).await;
    assert_eq!(
        status(engine.address, &post("/ci/build?x=1", "X-Event: push\r\nCookie: a=b\r\n", "{\"n\": 1}")).await,
        200
    );
    let (tag, data) = engine.events.recv().await.unwrap();
    let headers = map! {"Host" => "h", "Connection" => "close", "Content-Length" => "8", "X-Event" => "push"};
    assert_eq!(
        (tag.as_str(), data),
        ("salt/engines/hook/ci/build", map! {"headers" => headers, "body" => "{\"n\": 1}"})
    );
    let chunked = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    assert_eq!(status(engine.address, chunked).await, 200);
    let (tag, data) = engine.events.recv().await.unwrap();
    assert_eq!((tag.as_str(), data.get("body")), ("salt/engines/hook/", Some(&Value::from("abcde"))));
    engine.stopping.cancel();
    engine.ended.await.unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(engine.address).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn other_requests_are_refused() {
    let mut engine = served(map! {}).await;
    let large = "x".repeat(1001);
    let chunks = format!(
        "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n{large}\r\n0\r\n\r\n"
    );
    for (request, expected) in [
        ("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".to_owned(), 405),
        (post("/a%0Ab", "", ""), 400),
        (post("/a", "", &large), 413),
        (chunks, 413),
    ] {
        assert_eq!(status(engine.address, &request).await, expected, "{request}");
    }
    assert!(engine.events.try_recv().is_err());
    for (path, expected) in [("/refused", 400), ("/unavailable", 503)] {
        assert_eq!(status(engine.address, &post(path, "", "")).await, expected, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_by_tls_are_served_with_the_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let path = |name: &str, text: String| {
        std::fs::write(directory.path().join(name), text).unwrap();
        directory.path().join(name).to_str().unwrap().to_owned()
    };
    let certificate = path("a.crt", made.cert.pem());
    let kwargs = map! {"ssl_crt" => certificate.as_str(), "ssl_key" => path("a.key", made.signing_key.serialize_pem())};
    let mut engine = served(kwargs).await;
    let mut trusted = rustls::RootCertStore::empty();
    trusted.add(made.cert.der().clone()).unwrap();
    let client = rustls::ClientConfig::builder_with_provider(brine_tls::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(trusted)
        .with_no_client_auth();
    let stream = tokio::net::TcpStream::connect(engine.address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
    let mut stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, post("/tls", "", "x").as_bytes()).await.unwrap();
    let (tag, _) = engine.events.recv().await.unwrap();
    assert_eq!(tag, "salt/engines/hook/tls");
    let broken = served(map! {"ssl_crt" => certificate.as_str(), "ssl_key" => "/nonexistent/key"}).await;
    let error = broken.ended.await.unwrap().unwrap_err();
    let error = error.to_string();
    assert!(error.starts_with("reading /nonexistent/key failed"), "{error}");
}

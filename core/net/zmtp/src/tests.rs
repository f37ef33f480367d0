//! Tests every socket against itself, against the `zeromq` crate, and against hostile bytes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use zeromq::{Socket, SocketRecv, SocketSend};

use super::*;

struct Echo;

impl Handler for Echo {
    async fn handle(&self, _peer: Peer, request: Bytes, _: Worker) -> Option<Bytes> {
        (request != "silence").then_some(request)
    }
}

async fn any_port() -> Listener {
    Listener::bind(&Endpoint::Tcp("127.0.0.1".into(), 0)).await.unwrap()
}

async fn echo_server(limits: Limits) -> (Endpoint, tokio_util::sync::DropGuard) {
    let listener = any_port().await;
    let endpoint = listener.endpoint().clone();
    let shutdown = CancellationToken::new();
    tokio::spawn(Router::serve(listener, Arc::new(Echo), 4, limits, Bounds::default(), shutdown.clone()));
    (endpoint, shutdown.drop_guard())
}

fn client(endpoint: &Endpoint) -> RequestClient {
    RequestClient::new(endpoint.clone(), Limits::default())
}

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn many_requests_over_one_connection_get_their_own_replies() {
    let (endpoint, _guard) = echo_server(Limits::default()).await;
    let client = client(&endpoint);
    let asked = (0..200).map(|n| {
        let client = client.clone();
        tokio::spawn(async move { (n, client.request(format!("number {n}"), LONG).await.unwrap()) })
    });
    for one in futures::future::join_all(asked).await {
        let (n, reply) = one.unwrap();
        assert_eq!(reply, format!("number {n}"));
    }
    let large = vec![7; 3_000_000];
    assert_eq!(client.request(large.clone(), LONG).await.unwrap(), large);
}

/// Answers `wait` only after another request has arrived, without occupying a worker meanwhile.
struct Waiting(tokio::sync::Notify);

impl Handler for Waiting {
    async fn handle(&self, _peer: Peer, request: Bytes, worker: Worker) -> Option<Bytes> {
        if request == "wait" {
            drop(worker);
            self.0.notified().await;
        } else {
            self.0.notify_one();
        }
        Some(request)
    }
}

#[tokio::test]
async fn a_request_that_waits_for_another_one_does_not_block_it() {
    let listener = any_port().await;
    let client = client(listener.endpoint());
    let shutdown = CancellationToken::new();
    let handler = Arc::new(Waiting(tokio::sync::Notify::new()));
    tokio::spawn(Router::serve(listener, handler, 1, Limits::default(), Bounds::default(), shutdown.clone()));
    let _guard = shutdown.drop_guard();
    let (waits, goes) = tokio::join!(client.request("wait", LONG), client.request("go", LONG));
    assert_eq!((waits.unwrap().as_ref(), goes.unwrap().as_ref()), (&b"wait"[..], &b"go"[..]));
}

#[tokio::test]
async fn a_request_without_a_reply_times_out_and_the_next_one_works() {
    let (endpoint, _guard) = echo_server(Limits::default()).await;
    let client = client(&endpoint);
    let error = client.request("silence", Duration::from_millis(30)).await.unwrap_err();
    assert!(matches!(error, TransportError::TimedOut { .. }), "{error}");
    assert_eq!(client.request("word", LONG).await.unwrap(), "word");
}

#[tokio::test]
async fn a_client_connects_again_after_the_server_came_back() {
    let listener = any_port().await;
    let endpoint = listener.endpoint().clone();
    let shutdown = CancellationToken::new();
    let server = tokio::spawn(Router::serve(
        listener,
        Arc::new(Echo),
        4,
        Limits::default(),
        Bounds::default(),
        shutdown.clone(),
    ));
    let client = client(&endpoint);
    assert_eq!(client.request("a", LONG).await.unwrap(), "a");
    shutdown.cancel();
    server.await.unwrap();
    let listener = loop {
        // The port is free once the last connection of the old server is closed.
        match Listener::bind(&endpoint).await {
            Ok(listener) => break listener,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    tokio::spawn(Router::serve(
        listener,
        Arc::new(Echo),
        4,
        Limits::default(),
        Bounds::default(),
        CancellationToken::new(),
    ));
    let mut tries = 0;
    while client.request("b", LONG).await.is_err() {
        tries += 1;
        assert!(tries < 5, "the client does not come back");
    }
}

#[tokio::test]
async fn the_zeromq_crates_req_socket_is_served() {
    let (endpoint, _guard) = echo_server(Limits::default()).await;
    let mut req = zeromq::ReqSocket::new();
    req.connect(&endpoint.to_string()).await.unwrap();
    for text in ["one", "two"] {
        req.send(text.into()).await.unwrap();
        assert_eq!(req.recv().await.unwrap().get(0).unwrap(), text);
    }
}

#[tokio::test]
async fn a_request_goes_to_the_zeromq_crates_router_socket() {
    let mut router = zeromq::RouterSocket::new();
    let endpoint: Endpoint = router.bind("tcp://127.0.0.1:0").await.unwrap().to_string().parse().unwrap();
    tokio::spawn(async move {
        loop {
            let (first, second) = (router.recv().await.unwrap(), router.recv().await.unwrap());
            // Such a router may accept only an empty frame between the sender and the request.
            assert_eq!((first.len(), second.len()), (3, 3));
            router.send(second).await.unwrap();
            router.send(first).await.unwrap();
        }
    });
    let client = client(&endpoint);
    for _ in 0..3 {
        let (one, other) = tokio::join!(client.request("over", LONG), client.request("there", LONG));
        assert_eq!((one.unwrap(), other.unwrap()), ("over".into(), "there".into()));
    }
}

#[tokio::test]
async fn frames_beyond_the_limit_end_the_connection_and_nothing_else() {
    let (endpoint, _guard) = echo_server(Limits { message: 1000, frames: 4, ..Limits::default() }).await;
    let Endpoint::Tcp(host, port) = endpoint.clone() else { unreachable!() };
    let before = metrics::CONNECTIONS_REFUSED.get();
    for hostile in [
        // eight exabytes are announced
        &b"\x02\x7f\xff\xff\xff\xff\xff\xff\xff"[..],
        b"\x02\x00\x00\x00\x00\x00\x00\x03\xe9",
        // with the frame before it the size wraps around
        b"\x01\x04abcd\x02\xff\xff\xff\xff\xff\xff\xff\xff",
        // five frames
        b"\x01\x00\x01\x00\x01\x00\x01\x00\x01\x00",
        // no empty frame
        b"\x00\x03abc",
    ] {
        let mut stream = tokio::net::TcpStream::connect((host.as_str(), port)).await.unwrap();
        let mut greeting = [0; 64];
        (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
        greeting[12..16].copy_from_slice(b"NULL");
        stream.write_all(&greeting).await.unwrap();
        stream.write_all(b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ").await.unwrap();
        stream.write_all(hostile).await.unwrap();
        let mut rest = Vec::new();
        // The connection is closed or reset.
        let _ = stream.read_to_end(&mut rest).await;
    }
    assert_eq!(client(&endpoint).request("still here", LONG).await.unwrap(), "still here");
    assert!(metrics::CONNECTIONS_REFUSED.get() >= before + 5);
}

#[tokio::test]
async fn a_connection_with_another_protocol_is_closed() {
    let (endpoint, _guard) = echo_server(Limits::default()).await;
    let Endpoint::Tcp(host, port) = endpoint.clone() else { unreachable!() };
    let mut stream = tokio::net::TcpStream::connect((host.as_str(), port)).await.unwrap();
    stream.write_all(&[b'G'; 100]).await.unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert_eq!(client(&endpoint).request("still here", LONG).await.unwrap(), "still here");
}

#[tokio::test]
async fn publishes_reach_matching_subscribers() {
    let listener = any_port().await;
    let endpoint = listener.endpoint().clone();
    let (publisher, shutdown) = (Publisher::new(), CancellationToken::new());
    tokio::spawn(publisher.clone().serve(listener, Bounds::default(), shutdown.clone()));
    let _guard = shutdown.drop_guard();
    let mut ours = Subscriber::connect(&endpoint, &[b"salt/"], Limits::default()).await.unwrap();
    let mut theirs = zeromq::SubSocket::new();
    theirs.connect(&endpoint.to_string()).await.unwrap();
    theirs.subscribe("salt/").await.unwrap();
    // Subscriptions arrive asynchronously: publish until both have received a message.
    let (mut heard_ours, mut heard_theirs) = (false, false);
    while !(heard_ours && heard_theirs) {
        publisher.publish(&["other".into()]);
        publisher.publish(&["salt/auth".into(), "body".into()]);
        if let Ok(frames) = tokio::time::timeout(Duration::from_millis(20), ours.recv()).await {
            assert_eq!(frames.unwrap(), ["salt/auth", "body"]);
            heard_ours = true;
        }
        if let Ok(message) = tokio::time::timeout(Duration::from_millis(20), theirs.recv()).await {
            assert_eq!(message.unwrap().into_vec(), ["salt/auth", "body"]);
            heard_theirs = true;
        }
    }
}

#[tokio::test]
async fn publish_by_name_skips_subscribers_to_everything() {
    let listener = any_port().await;
    let endpoint = listener.endpoint().clone();
    let (publisher, shutdown) = (Publisher::new(), CancellationToken::new());
    tokio::spawn(publisher.clone().serve(listener, Bounds::default(), shutdown.clone()));
    let _guard = shutdown.drop_guard();
    let connect = |prefix: &'static [u8]| {
        let endpoint = endpoint.clone();
        async move { Subscriber::connect(&endpoint, &[prefix], Limits::default()).await.unwrap() }
    };
    let (mut everything, mut topic) = (connect(b"").await, connect(b"our").await);
    while publisher.connections() < 2 {
        tokio::task::yield_now().await;
    }
    publisher.publish_by_name(&["ours".into(), "1".into()]);
    publisher.publish(&["ours".into(), "2".into()]);
    assert_eq!(topic.recv().await.unwrap(), ["ours", "1"]);
    assert_eq!(topic.recv().await.unwrap(), ["ours", "2"]);
    assert_eq!(everything.recv().await.unwrap(), ["ours", "2"]);
}

#[tokio::test]
async fn a_message_is_delivered_once_for_several_matching_topics() {
    let listener = any_port().await;
    let endpoint = listener.endpoint().clone();
    let (publisher, shutdown) = (Publisher::new(), CancellationToken::new());
    tokio::spawn(publisher.clone().serve(listener, Bounds::default(), shutdown.clone()));
    let _guard = shutdown.drop_guard();
    let connect = async |prefixes: &[&str]| Subscriber::connect(&endpoint, prefixes, Limits::default()).await.unwrap();
    let mut everything = connect(&[""]).await;
    let mut both = connect(&["broadcast", "a1"]).await;
    let mut other = connect(&["broadcast", "b2"]).await;
    let mut theirs = zeromq::SubSocket::new();
    theirs.connect(&endpoint.to_string()).await.unwrap();
    theirs.subscribe("a1").await.unwrap();
    while publisher.connections() < 4 {
        tokio::task::yield_now().await;
    }
    let large = Bytes::from(vec![1; 100_000]);
    publisher.publish_under(vec!["c3".into(), "a1".into()], &large);
    publisher.publish_under(vec!["broadcast".into()], &"to all".into());
    publisher.publish_under(vec!["a1".into()], &"last".into());
    for expected in [&large, &"to all".into(), &"last".into()] {
        assert_eq!(everything.recv().await.unwrap(), [expected]);
    }
    for expected in [["a1".into(), large.clone()], ["broadcast".into(), "to all".into()], ["a1".into(), "last".into()]]
    {
        assert_eq!(both.recv().await.unwrap(), expected);
    }
    assert_eq!(other.recv().await.unwrap(), ["broadcast", "to all"]);
    // The crate sends subscriptions some time after it has connected: earlier messages are sent then.
    assert_eq!(theirs.recv().await.unwrap().into_vec(), ["a1".into(), large]);
    assert_eq!(theirs.recv().await.unwrap().into_vec(), ["a1", "last"]);
}

#[tokio::test]
async fn pushed_messages_come_in_order_from_either_kind_of_client() {
    let directory = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::Ipc(directory.path().join("pull.ipc"));
    let listener = Listener::bind(&endpoint).await.unwrap();
    let (taken, mut all) = mpsc::unbounded_channel();
    let take = move |batch: Vec<Bytes>| {
        for message in batch {
            taken.send(message).unwrap();
        }
        std::future::ready(())
    };
    let shutdown = CancellationToken::new();
    tokio::spawn(Pull::serve(listener, take, Limits::default(), shutdown.clone()));
    let _guard = shutdown.drop_guard();
    let mut push = Push::connect(&endpoint).await.unwrap();
    for n in 0..1000 {
        push.push(format!("{n}").as_bytes());
    }
    push.flush().await.unwrap();
    for n in 0..1000 {
        assert_eq!(all.recv().await.unwrap(), format!("{n}"));
    }
    let mut push = zeromq::PushSocket::new();
    push.connect(&endpoint.to_string()).await.unwrap();
    push.send("theirs".into()).await.unwrap();
    assert_eq!(all.recv().await.unwrap(), "theirs");
}

#[tokio::test]
async fn a_unix_socket_is_private_and_a_stale_one_is_replaced() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.ipc");
    let endpoint = Endpoint::Ipc(path.clone());
    // A stale socket.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let listener = Listener::bind(&endpoint).await.unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(matches!(Listener::bind(&endpoint).await, Err(TransportError::Io { .. })));
    drop(listener);
    assert!(!path.exists());
    // The socket of another process is not removed.
    let old = Listener::bind(&endpoint).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    let new = Listener::bind(&endpoint).await.unwrap();
    drop(old);
    assert!(path.exists());
    drop(new);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_distinguished_from_a_host_that_is_not_there() {
    for (host, is_unresolved) in [("no-such-host.invalid", true), ("127.0.0.1", false)] {
        for source in [None, Some("127.0.0.1:0".parse().unwrap())] {
            let opened = Endpoint::Tcp(host.into(), 1).open(source, Keepalive::default()).await;
            let error = opened.err().unwrap();
            assert_eq!(matches!(error, TransportError::Unresolved { .. }), is_unresolved, "{error:?}");
            assert!(error.to_string().starts_with(&format!("tcp://{host}:1: ")), "{error}");
        }
    }
}

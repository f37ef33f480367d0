//! Sockets with Salt's framing: against each other, and against peers that send too much or too slowly, or that do not
//! read.

use std::sync::Arc;
use std::time::Duration;

use brine_value::{Value, map, msgpack};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{BODY, START};
use crate::{
    Bounds, Endpoint, Framing, Handler, Limits, Listener, Peer, PeerLimits, Publisher, RequestClient, Router,
    Subscriber, TransportError, Worker, metrics,
};

const LONG: Duration = Duration::from_secs(60);
/// A loopback address other than the server's: a peer of another host, to the server.
const REMOTE: &str = "127.0.0.2";

fn limits() -> Limits {
    Limits { framing: Framing::Salt, ..Limits::default() }
}

fn packed(value: impl Into<Value>) -> Bytes {
    msgpack::pack(&value.into()).into()
}

/// Echoes; authenticates the peer on `prove`, and answers `large` with 32 MB.
struct Echo;

impl Handler for Echo {
    async fn handle(&self, peer: Peer, request: Bytes, _: Worker) -> Option<Bytes> {
        match msgpack::unpack(&request).ok().as_ref().and_then(Value::as_str) {
            Some("prove") => peer.authenticate(),
            Some("large") => return Some(packed(Value::Bytes(vec![0; 32 << 20]))),
            Some("silence") => return None,
            _ => {}
        }
        Some(request)
    }

    fn refuse(&self, _: &Peer) -> Option<Bytes> {
        Some(packed("bad load"))
    }
}

async fn listen(endpoint: &Endpoint) -> Listener {
    loop {
        // The port of an earlier server is free once its last connection is closed.
        match Listener::bind(endpoint).await {
            Ok(listener) => return listener,
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

fn any_port() -> Endpoint {
    Endpoint::Tcp("127.0.0.1".into(), 0)
}

async fn server(bounds: PeerLimits) -> (Endpoint, DropGuard) {
    let listener = listen(&any_port()).await;
    let (endpoint, shutdown) = (listener.endpoint().clone(), CancellationToken::new());
    tokio::spawn(Router::serve(listener, Arc::new(Echo), 4, limits(), Bounds::new(bounds), shutdown.clone()));
    (endpoint, shutdown.drop_guard())
}

async fn publisher() -> (Publisher, Endpoint, DropGuard) {
    let listener = listen(&any_port()).await;
    let (endpoint, shutdown) = (listener.endpoint().clone(), CancellationToken::new());
    let publisher = Publisher::with_framing(Framing::Salt);
    tokio::spawn(publisher.clone().serve(listener, Bounds::default(), shutdown.clone()));
    (publisher, endpoint, shutdown.drop_guard())
}

async fn connect(endpoint: &Endpoint, source: &str) -> TcpStream {
    let Endpoint::Tcp(host, port) = endpoint else { unreachable!() };
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
    socket.connect(format!("{host}:{port}").parse().unwrap()).await.unwrap()
}

/// Encodes a request as Salt's minions do.
fn request(id: &str, body: &[u8]) -> Vec<u8> {
    [START, &packed(map! {"mid" => id}), BODY, body].concat()
}

/// Reads until the server closes the connection.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    _ = tokio::time::timeout(LONG, stream.read_to_end(&mut rest)).await.expect("the server closes the connection");
    rest
}

async fn reply(stream: &mut TcpStream, expected: &[u8]) {
    let mut reply = vec![0; expected.len()];
    tokio::time::timeout(LONG, stream.read_exact(&mut reply)).await.unwrap().unwrap();
    assert!(reply == expected, "{:?}", Bytes::from(reply));
}

#[tokio::test]
async fn concurrent_requests_get_their_own_replies() {
    let (endpoint, _guard) = server(PeerLimits::default()).await;
    let client = RequestClient::new(endpoint, limits());
    let asked = (0..100).map(|n| {
        let (client, request) = (client.clone(), packed(format!("number {n}")));
        async move { client.request(request.clone(), LONG).await.unwrap() == request }
    });
    assert!(futures::future::join_all(asked).await.into_iter().all(|is_own| is_own));
    let large = packed(Value::Bytes(vec![7; 3_000_000]));
    assert_eq!(client.request(large.clone(), LONG).await.unwrap(), large);
    let error = client.request(packed("silence"), Duration::from_millis(30)).await.unwrap_err();
    assert!(matches!(error, TransportError::TimedOut { .. }), "{error}");
    assert_eq!(client.request(packed("word"), LONG).await.unwrap(), packed("word"));
}

#[tokio::test]
async fn a_client_connects_again_after_the_server_came_back() {
    let listener = listen(&any_port()).await;
    let endpoint = listener.endpoint().clone();
    let client = RequestClient::new(endpoint.clone(), limits());
    let mut next = Some(listener);
    for _ in 0..3 {
        let listener = match next.take() {
            Some(listener) => listener,
            None => listen(&endpoint).await,
        };
        let (bounds, shutdown) = (Bounds::default(), CancellationToken::new());
        let serving = tokio::spawn(Router::serve(listener, Arc::new(Echo), 4, limits(), bounds, shutdown.clone()));
        let replied = match client.request(packed("word"), LONG).await {
            // The client has not noticed the end of the previous server yet.
            Err(TransportError::Unanswered { .. }) => client.request(packed("word"), LONG).await,
            replied => replied,
        };
        assert_eq!(replied.unwrap(), packed("word"));
        shutdown.cancel();
        serving.await.unwrap();
    }
}

#[tokio::test]
async fn a_reply_repeats_the_head_of_its_request() {
    let (endpoint, _guard) = server(PeerLimits::default()).await;
    let mut peer = connect(&endpoint, REMOTE).await;
    // Several requests on one connection, in parts.
    let both = [request("0f8a-17", &packed("first")), request("2", &packed(map! {"enc" => "clear"}))].concat();
    for part in both.chunks(7) {
        peer.write_all(part).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut replies = vec![0; both.len()];
    tokio::time::timeout(LONG, peer.read_exact(&mut replies)).await.unwrap().unwrap();
    // Requests are handled concurrently.
    let half = both.len() - request("2", &packed(map! {"enc" => "clear"})).len();
    let swapped = [&both[half..], &both[..half]].concat();
    assert!(replies == both || replies == swapped, "{:?}", Bytes::from(replies));
}

#[tokio::test]
async fn subscribers_receive_the_publishes_of_their_topics() {
    let (publisher, endpoint, _guard) = publisher().await;
    let mut named = Subscriber::connect(&endpoint, &[b"gcm"], limits()).await.unwrap();
    let minion = packed(map! {"enc" => "aes", "load" => Value::Bytes(vec![7; 300]), "version" => 3});
    let mut all = Subscriber::identify(&endpoint, &minion, limits()).await.unwrap();
    while publisher.connections() < 2 {
        tokio::task::yield_now().await;
    }
    publisher.publish_under(vec!["broadcast".into()], &"for all".into());
    publisher.publish_by_name(&["gcm".into(), "by name".into()]);
    publisher.publish(&["gcm".into(), "by topic".into()]);
    for (subscriber, expected) in [(&mut named, ["by name", "by topic"]), (&mut all, ["for all", "by topic"])] {
        for content in expected {
            let frames = tokio::time::timeout(LONG, subscriber.recv()).await.unwrap().unwrap();
            assert_eq!(frames, [content]);
        }
    }
}

#[tokio::test]
async fn a_peer_with_another_transport_is_named() {
    let (endpoint, _guard) = server(PeerLimits::default()).await;
    let error = RequestClient::new(endpoint, Limits::default()).request("word", LONG).await.unwrap_err();
    assert!(error.to_string().contains("`transport: tcp`: set the same transport"), "{error}");
    let listener = listen(&any_port()).await;
    let (endpoint, shutdown) = (listener.endpoint().clone(), CancellationToken::new());
    let bounds = Bounds::default();
    tokio::spawn(Router::serve(listener, Arc::new(Echo), 4, Limits::default(), bounds, shutdown.clone()));
    let _guard = shutdown.drop_guard();
    let error = RequestClient::new(endpoint.clone(), limits()).request(packed("word"), LONG).await.unwrap_err();
    assert!(error.to_string().contains("the peer speaks ZeroMQ"), "{error}");
    let mut subscriber = Subscriber::connect(&endpoint, &[b""], limits()).await.unwrap();
    assert!(matches!(subscriber.recv().await, Err(TransportError::SpeaksZeroMq)));
}

#[tokio::test]
async fn large_message_of_an_unknown_address_is_refused_without_buffering() {
    let (endpoint, _guard) = server(PeerLimits::default()).await;
    let before = metrics::MESSAGES_DROPPED.get();
    let large = request("1", &packed(Value::Bytes(vec![7; 3 << 20])));
    let mut peer = connect(&endpoint, REMOTE).await;
    peer.write_all(&large).await.unwrap();
    reply(&mut peer, &request("1", &packed("bad load"))).await;
    // Nested lists announce no size in advance.
    let nested = request("2", &[vec![0x91; 3 << 20], vec![0xc0]].concat());
    peer.write_all(&nested).await.unwrap();
    reply(&mut peer, &request("2", &packed("bad load"))).await;
    assert!(metrics::MESSAGES_DROPPED.get() >= before + 2);
    // The connection stays open, and once its address has authenticated all of its connections may send more.
    peer.write_all(&request("3", &packed("prove"))).await.unwrap();
    reply(&mut peer, &request("3", &packed("prove"))).await;
    let many = request("4", &packed((0..300_000).map(Value::from).collect::<Vec<_>>()));
    for mut peer in [peer, connect(&endpoint, REMOTE).await] {
        for request in [&large, &nested, &many] {
            let (mut reading, mut writing) = peer.split();
            let mut reply = vec![0; request.len()];
            let (written, read) = tokio::join!(writing.write_all(request), reading.read_exact(&mut reply));
            assert!(written.is_ok() && read.is_ok() && reply == *request);
        }
    }
}

#[tokio::test]
async fn announced_sizes_above_the_limit_close_the_connection() {
    let (endpoint, _guard) = server(PeerLimits::default()).await;
    let before = metrics::CONNECTIONS_REFUSED.get();
    let start = request("1", b"");
    for body in [
        b"\xc6\xff\xff\xff\xff".to_vec(),
        b"\xdd\xff\xff\xff\xff".to_vec(),
        b"\xdf\xff\xff\xff\xff\xc0".to_vec(),
        b"\xdd\xff\xff\xff\xff".repeat(1000),
    ] {
        for source in [REMOTE, "127.0.0.1"] {
            let mut peer = connect(&endpoint, source).await;
            peer.write_all(&[&start[..], &body].concat()).await.unwrap();
            assert_eq!(rest(&mut peer).await, b"");
        }
    }
    assert!(metrics::CONNECTIONS_REFUSED.get() >= before + 8);
}

#[tokio::test]
async fn unauthenticated_connections_share_one_bound_of_memory() {
    let (endpoint, _guard) = server(PeerLimits { unauthenticated_memory: 1 << 20, ..PeerLimits::default() }).await;
    let mut holder = connect(&endpoint, "127.0.0.1").await;
    let large = request("1", &packed(Value::Bytes(vec![7; 1_000_000])));
    holder.write_all(&large[..100_000]).await.unwrap();
    let mut late = connect(&endpoint, "127.0.0.1").await;
    let medium = request("2", &packed(Value::Bytes(vec![7; 100_000])));
    let refused = request("2", &packed("bad load"));
    // Until the server has received the beginning of the large message, it accepts the other one.
    loop {
        late.write_all(&medium).await.unwrap();
        let mut first = vec![0; refused.len()];
        late.read_exact(&mut first).await.unwrap();
        if first == refused {
            break;
        }
        late.read_exact(&mut vec![0; medium.len() - refused.len()]).await.unwrap();
    }
    // An authentication, which is small, is always received.
    let small = request("3", &packed("x".repeat(3900)));
    late.write_all(&small).await.unwrap();
    reply(&mut late, &small).await;
}

/// Each address has 128 MB for messages of authenticated connections.
#[tokio::test]
async fn a_growing_message_beyond_the_share_of_its_address_is_dropped() {
    let (endpoint, _guard) = server(PeerLimits::default()).await;
    let proof = request("1", &packed("prove"));
    let nested = request("2", &vec![0x91; 45 << 20]);
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut peer = connect(&endpoint, REMOTE).await;
        peer.write_all(&proof).await.unwrap();
        reply(&mut peer, &proof).await;
        peer.write_all(&nested).await.unwrap();
        open.push(peer);
    }
    let mut last = open.pop().unwrap();
    last.write_all(b"\xc0").await.unwrap();
    reply(&mut last, &request("2", &packed("bad load"))).await;
}

#[tokio::test]
async fn incomplete_messages_time_out_and_idle_connections_stay_open() {
    let (endpoint, _guard) =
        server(PeerLimits { message_time: Duration::from_millis(300), ..PeerLimits::default() }).await;
    let mut silent = connect(&endpoint, REMOTE).await;
    let whole = request("1", &packed(Value::Bytes(vec![7; 3 << 20])));
    // The last one is dropped while it is received.
    for (source, sent) in [(REMOTE, 1), (REMOTE, 8), ("127.0.0.1", 100_000), (REMOTE, 2 << 20)] {
        let mut peer = connect(&endpoint, source).await;
        peer.write_all(&whole[..sent]).await.unwrap();
        assert_eq!(rest(&mut peer).await, b"", "{sent}");
    }
    // One byte at a time does not extend the time.
    let mut slow = connect(&endpoint, REMOTE).await;
    let begun = std::time::Instant::now();
    for byte in &whole {
        if slow.write_all(&[*byte]).await.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(begun.elapsed() < LONG, "the connection stays open");
    }
    silent.write_all(&request("1", &packed("word"))).await.unwrap();
    reply(&mut silent, &request("1", &packed("word"))).await;
}

#[tokio::test]
async fn a_reply_that_is_not_read_closes_its_connection() {
    let (endpoint, _guard) =
        server(PeerLimits { message_time: Duration::from_millis(300), ..PeerLimits::default() }).await;
    let before = metrics::REPLIES_LOST.get();
    let mut peer = connect(&endpoint, REMOTE).await;
    peer.write_all(&request("1", &packed("large"))).await.unwrap();
    while metrics::REPLIES_LOST.get() == before {
        tokio::task::yield_now().await;
    }
    assert!(rest(&mut peer).await.len() < 32 << 20);
}

#[tokio::test]
async fn connections_beyond_the_bounds_are_closed_at_once() {
    let (endpoint, _guard) = server(PeerLimits { connections: 100, per_address: 3, ..PeerLimits::default() }).await;
    let word = request("1", &packed("word"));
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut peer = connect(&endpoint, REMOTE).await;
        peer.write_all(&word).await.unwrap();
        reply(&mut peer, &word).await;
        open.push(peer);
    }
    assert_eq!(rest(&mut connect(&endpoint, REMOTE).await).await, b"");
    let mut other = connect(&endpoint, "127.0.0.3").await;
    other.write_all(&word).await.unwrap();
    reply(&mut other, &word).await;
}

#[tokio::test]
async fn a_subscriber_that_does_not_read_is_disconnected_and_others_miss_nothing() {
    let (publisher, endpoint, _guard) = publisher().await;
    let before = metrics::SUBSCRIBERS_DROPPED.get();
    let mut reads = Subscriber::connect(&endpoint, &[b""], limits()).await.unwrap();
    let mut slow = connect(&endpoint, REMOTE).await;
    let identified = [START, b"\x80", BODY, &packed(map! {"enc" => "aes"})].concat();
    slow.write_all(&identified).await.unwrap();
    while publisher.connections() < 2 {
        tokio::task::yield_now().await;
    }
    // A hundred messages of a megabyte: more than the send buffer holds.
    for n in 0..100u8 {
        publisher.publish_under(vec!["broadcast".into()], &Bytes::from(vec![n; 1 << 20]));
        let frames = tokio::time::timeout(LONG, reads.recv()).await.unwrap().unwrap();
        assert_eq!((frames.len(), frames[0].len(), frames[0][0]), (1, 1 << 20, n));
    }
    while publisher.connections() > 1 {
        tokio::task::yield_now().await;
    }
    assert!(metrics::SUBSCRIBERS_DROPPED.get() > before);
    assert!(rest(&mut slow).await.len() < 64 << 20);
}

#[tokio::test]
async fn subscribers_send_no_large_messages() {
    let (publisher, endpoint, _guard) = publisher().await;
    for body in [&packed(Value::Bytes(vec![7; 5000]))[..], b"\xc6\xff\xff\xff\xff", &[0x91; 5000]] {
        let mut peer = connect(&endpoint, REMOTE).await;
        peer.write_all(&[START, b"\x80", BODY, body].concat()).await.unwrap();
        assert_eq!(rest(&mut peer).await, b"");
    }
    assert_eq!(publisher.connections(), 0);
}

#[tokio::test]
async fn a_server_that_sends_an_endless_message_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::Tcp("127.0.0.1".into(), listener.local_addr().unwrap().port());
    let sending = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        _ = stream.write_all(&[START, b"\x80", BODY].concat()).await;
        let mut sent = 0;
        let nested = vec![0x91; 1 << 16];
        while stream.write_all(&nested).await.is_ok() {
            sent += 1 << 16;
        }
        sent
    });
    let limits = Limits { message: 1 << 20, ..limits() };
    let error = RequestClient::new(endpoint, limits).request(packed("word"), LONG).await.unwrap_err();
    assert!(error.to_string().contains("the limit is 1048576"), "{error}");
    // The rest is in the buffers of the system.
    assert!(sending.await.unwrap() < 32 << 20);
}

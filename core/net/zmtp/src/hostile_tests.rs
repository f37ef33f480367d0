//! Peers that send too much or too slowly, or that do not read: each loses only its own connection.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::*;
use crate::metrics;

const LONG: Duration = Duration::from_secs(60);
/// Two loopback addresses other than the server's: peers of other hosts, to the server.
const REMOTE: [&str; 2] = ["127.0.0.2", "127.0.0.3"];
const THIRD: &str = "127.0.0.4";

/// A raw peer for tests.
struct Raw(TcpStream);

impl Raw {
    async fn tcp(endpoint: &Endpoint, source: &str) -> TcpStream {
        let Endpoint::Tcp(host, port) = endpoint else { unreachable!() };
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
        socket.connect(format!("{host}:{port}").parse().unwrap()).await.unwrap()
    }

    /// Connects and completes the handshake; `None` if the server closes the connection.
    async fn connect(endpoint: &Endpoint, source: &str, socket_type: &str) -> Option<Self> {
        let mut stream = Self::tcp(endpoint, source).await;
        let mut greeting = [0; 64];
        (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
        greeting[12..16].copy_from_slice(b"NULL");
        let mut ready = BytesMut::from(&b"\x05READY\x0bSocket-Type\x00\x00\x00"[..]);
        ready.extend_from_slice(&[u8::try_from(socket_type.len()).unwrap()]);
        ready.extend_from_slice(socket_type.as_bytes());
        let mut hello = BytesMut::from(&greeting[..]);
        zmtp::put_frame(&mut hello, &ready, 4);
        _ = stream.write_all(&hello).await;
        let mut theirs = [0; 64];
        stream.read_exact(&mut theirs).await.ok()?;
        let mut raw = Raw(stream);
        raw.frame().await?;
        Some(raw)
    }

    /// Sends a request frame after an empty one.
    async fn send(&mut self, content: &[u8]) {
        let mut frames = BytesMut::new();
        zmtp::put_frame(&mut frames, b"", 1);
        zmtp::put_frame(&mut frames, content, 0);
        self.0.write_all(&frames).await.unwrap();
    }

    /// Sends the header of a request of this size, with the first `sent` bytes of its content.
    async fn begin(&mut self, size: usize, sent: usize) {
        let mut start = BytesMut::new();
        zmtp::put_frame(&mut start, b"", 1);
        zmtp::put_header(&mut start, size, 0);
        start.extend_from_slice(&vec![7; sent]);
        self.0.write_all(&start).await.unwrap();
    }

    /// Returns the next frame; `None` at the end of the connection.
    async fn frame(&mut self) -> Option<Vec<u8>> {
        let flags = self.0.read_u8().await.ok()?;
        let size = if flags & 2 == 0 { self.0.read_u8().await.ok()?.into() } else { self.0.read_u64().await.ok()? };
        let mut content = vec![0; usize::try_from(size).unwrap()];
        self.0.read_exact(&mut content).await.ok()?;
        Some(content)
    }

    /// Returns the reply: a frame after an empty one.
    async fn reply(&mut self) -> Option<Vec<u8>> {
        assert_eq!(self.frame().await?, b"");
        self.frame().await
    }

    async fn is_alive(&mut self) -> bool {
        let ping = b"\x04\x0a\x04PING\x00\x00abc".to_vec();
        self.0.write_all(&ping).await.is_ok() && self.frame().await == Some(b"\x04PONGabc".to_vec())
    }
}

/// Echoes; authenticates the peer on `prove`, panics on `panic`, and answers `large` with 32 MB.
struct EchoHandler(tokio::sync::mpsc::UnboundedSender<Peer>);

impl Handler for EchoHandler {
    async fn handle(&self, peer: Peer, request: Bytes, _: Worker) -> Option<Bytes> {
        _ = self.0.send(peer.clone());
        match &request[..] {
            b"prove" => peer.authenticate(),
            b"panic" => panic!("as the test wants"),
            b"large" => return Some(vec![0; 32 << 20].into()),
            _ => {}
        }
        Some(request)
    }

    fn refuse(&self, _: &Peer) -> Option<Bytes> {
        Some("bad load".into())
    }
}

struct TestServer {
    endpoint: Endpoint,
    peers: tokio::sync::mpsc::UnboundedReceiver<Peer>,
    _guard: DropGuard,
}

impl TestServer {
    async fn start(limits: PeerLimits) -> Self {
        let listener = Listener::bind(&Endpoint::Tcp("127.0.0.1".into(), 0)).await.unwrap();
        let (endpoint, shutdown) = (listener.endpoint().clone(), CancellationToken::new());
        let (sender, peers) = tokio::sync::mpsc::unbounded_channel();
        let (handler, bounds) = (Arc::new(EchoHandler(sender)), Bounds::new(limits));
        tokio::spawn(Router::serve(listener, handler, 4, Limits::default(), bounds, shutdown.clone()));
        TestServer { endpoint, peers, _guard: shutdown.drop_guard() }
    }

    async fn peer(&self, source: &str) -> Raw {
        Raw::connect(&self.endpoint, source, "REQ").await.unwrap()
    }
}

fn in_time(millis: u64) -> PeerLimits {
    PeerLimits { message_time: Duration::from_millis(millis), ..PeerLimits::default() }
}

#[tokio::test]
async fn large_message_of_an_unknown_address_is_refused_without_buffering() {
    let server = TestServer::start(PeerLimits::default()).await;
    let before = metrics::MESSAGES_DROPPED.get();
    let large = vec![7; 3 << 20];
    let mut peer = server.peer(REMOTE[0]).await;
    peer.send(&large).await;
    assert_eq!(peer.reply().await.unwrap(), b"bad load");
    assert!(metrics::MESSAGES_DROPPED.get() > before);
    // The connection stays open, and once its address has authenticated all of its connections may send more.
    peer.send(&large[..60_000]).await;
    assert_eq!(peer.reply().await.unwrap().len(), 60_000);
    peer.send(b"prove").await;
    assert_eq!(peer.reply().await.unwrap(), b"prove");
    for mut peer in [peer, server.peer(REMOTE[0]).await, server.peer("127.0.0.1").await] {
        peer.send(&large).await;
        assert_eq!(peer.reply().await.unwrap().len(), large.len());
    }
    let mut other = server.peer(REMOTE[1]).await;
    other.send(&large).await;
    assert_eq!(other.reply().await.unwrap(), b"bad load");
}

#[tokio::test]
async fn unauthenticated_connections_share_one_bound_of_memory() {
    let server = TestServer::start(PeerLimits { unauthenticated_memory: 1 << 20, ..PeerLimits::default() }).await;
    let mut holder = server.peer("127.0.0.1").await;
    holder.begin(1 << 20, 100_000).await;
    assert!(holder.is_silent().await);
    let mut late = server.peer("127.0.0.1").await;
    late.send(&vec![7; 100_000]).await;
    assert_eq!(late.reply().await.unwrap(), b"bad load");
    // An authentication, which is small, is always received.
    late.send(&vec![7; 4000]).await;
    assert_eq!(late.reply().await.unwrap().len(), 4000);
    // Messages of an authenticated connection are accounted separately.
    late.send(b"prove").await;
    late.reply().await.unwrap();
    late.send(&vec![7; 100_000]).await;
    assert_eq!(late.reply().await.unwrap().len(), 100_000);
}

/// Each address has 128 MB for messages of authenticated connections.
#[tokio::test]
async fn a_message_that_grows_beyond_the_share_of_its_address_is_dropped() {
    let server = TestServer::start(PeerLimits::default()).await;
    let mut start = BytesMut::new();
    zmtp::put_frame(&mut start, b"", 1);
    zmtp::put_frame(&mut start, &vec![7; 20 << 20], 1);
    zmtp::put_header(&mut start, 25 << 20, 0);
    let (part, rest) = (vec![7; 20 << 20], vec![7; 5 << 20]);
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut peer = server.peer(REMOTE[0]).await;
        peer.send(b"prove").await;
        peer.reply().await.unwrap();
        // More than the buffers of the system take: the server has read the second header.
        peer.0.write_all(&start).await.unwrap();
        peer.0.write_all(&part).await.unwrap();
        open.push(peer);
    }
    let mut last = open.pop().unwrap();
    last.0.write_all(&rest).await.unwrap();
    // A request with two frames of content is malformed, whether or not it was dropped.
    assert_eq!(last.frame().await, None);
}

impl Raw {
    /// Whether the server has received everything that was sent.
    async fn is_silent(&mut self) -> bool {
        let mut byte = [0];
        tokio::time::timeout(Duration::from_millis(100), self.0.peek(&mut byte)).await.is_err()
    }
}

#[tokio::test]
async fn incomplete_messages_time_out_and_idle_connections_stay_open() {
    let server = TestServer::start(in_time(300)).await;
    let mut silent = server.peer(REMOTE[0]).await;
    for (source, size, sent) in [
        (REMOTE[0], 1000, 10),
        (REMOTE[0], 60_000, 50_000),
        // A message that is dropped while it is received.
        (REMOTE[0], 3 << 20, 2 << 20),
        ("127.0.0.1", 3 << 20, 2 << 20),
    ] {
        let mut peer = server.peer(source).await;
        peer.begin(size, sent).await;
        let ended = tokio::time::timeout(LONG, peer.frame()).await;
        assert_eq!(ended.expect("the server closes the connection"), None, "{sent} of {size} bytes");
    }
    assert!(silent.is_alive().await);
}

#[tokio::test]
async fn connections_beyond_the_bounds_are_closed_at_once() {
    let server = TestServer::start(PeerLimits { connections: 100, per_address: 3, ..PeerLimits::default() }).await;
    let before = metrics::CONNECTIONS_LIMITED.get();
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(server.peer(REMOTE[0]).await);
    }
    assert!(Raw::connect(&server.endpoint, REMOTE[0], "REQ").await.is_none());
    assert!(metrics::CONNECTIONS_LIMITED.get() > before);
    let mut other = server.peer(REMOTE[1]).await;
    other.send(b"word").await;
    assert_eq!(other.reply().await.unwrap(), b"word");
    open.pop();
    // There is room once the server has noticed the end of a connection.
    while Raw::connect(&server.endpoint, REMOTE[0], "REQ").await.is_none() {}
}

#[tokio::test]
async fn connections_of_a_flood_are_evicted_for_another_address() {
    let server = TestServer::start(PeerLimits { connections: 16, ..PeerLimits::default() }).await;
    let before = metrics::CONNECTIONS_EVICTED.get();
    let mut flood = Vec::new();
    for source in REMOTE.iter().cycle().take(8) {
        flood.push(server.peer(source).await);
    }
    let mut honest = server.peer(THIRD).await;
    assert!(metrics::CONNECTIONS_EVICTED.get() > before);
    for source in REMOTE.iter().cycle().take(40) {
        // Each new connection evicts another one, which is closed.
        flood.extend(Raw::connect(&server.endpoint, source, "REQ").await);
    }
    for word in [&b"word"[..], b"prove"] {
        honest.send(word).await;
        assert_eq!(honest.reply().await.unwrap(), word);
    }
    // The address is known now: its connections evict none of the flood's.
    let mut more = Vec::new();
    for _ in 0..7 {
        more.push(server.peer(THIRD).await);
    }
    assert!(honest.is_alive().await);
    let mut alive = 0;
    for peer in &mut flood {
        alive += usize::from(peer.is_alive().await);
    }
    // One of the flood's connections was evicted by the honest peer before its address was known.
    assert_eq!(alive, 7);
}

#[tokio::test]
async fn a_reply_that_is_not_read_closes_its_connection() {
    let mut server = TestServer::start(in_time(300)).await;
    let before = metrics::REPLIES_LOST.get();
    let mut peer = server.peer(REMOTE[0]).await;
    peer.send(b"large").await;
    let connection = server.peers.recv().await.unwrap().connection;
    // Heartbeats are answered, although nothing is written.
    while connection.strong_count() > 0 {
        _ = peer.0.write_all(b"\x04\x0a\x04PING\x00\x00abc").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(metrics::REPLIES_LOST.get() > before);
    // A part of the reply was sent; no other frame follows it.
    let mut rest = Vec::new();
    _ = peer.0.read_to_end(&mut rest).await;
    assert!(rest.len() < 32 << 20 && !rest.windows(4).any(|bytes| bytes == b"PONG"));
}

#[tokio::test]
async fn a_handler_that_panics_is_reported_and_its_request_refused() {
    let server = TestServer::start(PeerLimits::default()).await;
    let before = metrics::TASKS_PANICKED.get();
    let mut peer = server.peer(REMOTE[0]).await;
    peer.send(b"panic").await;
    assert_eq!(peer.reply().await.unwrap(), b"bad load");
    assert!(metrics::TASKS_PANICKED.get() > before);
    peer.send(b"word").await;
    assert_eq!(peer.reply().await.unwrap(), b"word");
}

#[tokio::test]
async fn a_client_reads_replies_while_its_requests_are_written() {
    let server = TestServer::start(PeerLimits::default()).await;
    let client = RequestClient::new(server.endpoint.clone(), Limits::default());
    let first = client.request("prove", LONG).await.unwrap();
    assert_eq!(first, "prove");
    let requests = (0..100u8).map(|n| {
        let client = client.clone();
        async move { client.request(vec![n; 1 << 19], LONG).await.unwrap() == vec![n; 1 << 19] }
    });
    assert!(futures::future::join_all(requests).await.into_iter().all(|is_own| is_own));
}

/// A request server of another kind, without the property about the order of replies. Completes one handshake.
async fn salt_server(stream: TcpStream) -> Raw {
    let mut raw = Raw(stream);
    let mut hello = BytesMut::zeroed(64);
    (hello[0], hello[9], hello[10]) = (0xff, 0x7f, 3);
    hello[12..16].copy_from_slice(b"NULL");
    zmtp::put_frame(&mut hello, b"\x05READY\x0bSocket-Type\x00\x00\x00\x06ROUTER", 4);
    raw.0.write_all(&hello).await.unwrap();
    let mut theirs = [0; 64];
    raw.0.read_exact(&mut theirs).await.unwrap();
    raw.frame().await.unwrap();
    raw
}

#[tokio::test]
async fn a_request_does_not_wait_until_another_has_connected() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::Tcp("127.0.0.1".into(), listener.local_addr().unwrap().port());
    let client = RequestClient::new(endpoint, Limits::default());
    let answer = async |raw: &mut Raw| {
        let request = raw.reply().await.unwrap();
        raw.send(&request).await;
    };
    let first = async {
        let mut raw = salt_server(listener.accept().await.unwrap().0).await;
        answer(&mut raw).await;
        raw
    };
    let (reply, mut connection) = tokio::join!(client.request("one", LONG), first);
    assert_eq!(reply.unwrap(), "one");
    // The first of three takes the existing connection; the second one's is never answered.
    let third = async {
        let stuck = listener.accept().await.unwrap();
        let mut raw = salt_server(listener.accept().await.unwrap().0).await;
        answer(&mut raw).await;
        answer(&mut connection).await;
        stuck
    };
    let mut requests: futures::stream::FuturesUnordered<_> = (0..3).map(|_| client.request("word", LONG)).collect();
    let replies = async {
        for _ in 0..2 {
            let reply = futures::StreamExt::next(&mut requests).await.unwrap();
            assert_eq!(reply.unwrap(), "word");
        }
    };
    tokio::join!(replies, third);
}

#[tokio::test]
async fn a_subscriber_that_does_not_read_is_disconnected_and_others_miss_nothing() {
    let listener = Listener::bind(&Endpoint::Tcp("127.0.0.1".into(), 0)).await.unwrap();
    let (endpoint, shutdown) = (listener.endpoint().clone(), CancellationToken::new());
    let publisher = Publisher::new();
    tokio::spawn(publisher.clone().serve(listener, Bounds::default(), shutdown.clone()));
    let _guard = shutdown.drop_guard();
    let before = metrics::SUBSCRIBERS_DROPPED.get();
    let mut reads = Subscriber::connect(&endpoint, &[b""], Limits::default()).await.unwrap();
    let mut slow = Raw::connect(&endpoint, REMOTE[0], "SUB").await.unwrap();
    slow.0.write_all(b"\x00\x01\x01").await.unwrap();
    assert!(slow.is_alive().await);
    // A hundred messages of a megabyte: more than the send buffer holds.
    let large = Bytes::from(vec![1; 1 << 20]);
    for n in 0..100u8 {
        publisher.publish(&[Bytes::from(vec![n]), large.clone()]);
        let frames = tokio::time::timeout(LONG, reads.recv()).await.unwrap().unwrap();
        assert_eq!(frames[0], vec![n]);
    }
    while publisher.connections() > 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(metrics::SUBSCRIBERS_DROPPED.get() > before);
    let mut rest = Vec::new();
    _ = slow.0.read_to_end(&mut rest).await;
    assert!(rest.len() < 64 << 20);
}

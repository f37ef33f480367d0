//! ZMTP, and Salt's framing over TCP: any bytes of a peer, from the first byte or after the handshake, are messages or end
//! the connection.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use brine_zmtp::{
    Bounds, Endpoint, Framing, Handler, Limits, Listener, Peer, Router, SocketType, TransportError, Worker, connect,
};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::fingerprint;

/// The timeout of a connection after its peer has closed it.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A greeting.
const GREETING: &[u8] = b"\xff\0\0\0\0\0\0\0\0\x7f\x03\0NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
const PUBLISHER_READY: &[u8] = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03PUB";
const REQUESTER_READY: &[u8] = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03REQ";

/// The attacked ends: a request server, and a listener in the role of a publisher.
struct Ends {
    runtime: Runtime,
    router: Endpoint,
    /// A request server with Salt's framing.
    salt_router: Endpoint,
    publisher: UnixListener,
    publisher_endpoint: Endpoint,
}

/// Answers a request with its length, as msgpack.
struct Length;

impl Handler for Length {
    async fn handle(&self, _: Peer, request: Bytes, _: Worker) -> Option<Bytes> {
        Some(brine_value::msgpack::pack(&request.len().to_string().into()).into())
    }
}

static ENDS: LazyLock<Ends> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let path = |name: &str| std::env::temp_dir().join(format!("brine-fuzz-{}-{name}.ipc", std::process::id()));
    let (router, salt_router) = (Endpoint::Ipc(path("router")), Endpoint::Ipc(path("salt-router")));
    let publisher = path("publisher");
    let publisher_endpoint = Endpoint::Ipc(publisher.clone());
    for (endpoint, framing) in [(&router, Framing::Zmtp), (&salt_router, Framing::Salt)] {
        let listener = runtime.block_on(Listener::bind(endpoint)).expect("binding a socket in the temporary directory");
        let (bounds, shutdown) = (Bounds::default(), CancellationToken::new());
        runtime.spawn(Router::serve(listener, Arc::new(Length), 4, limits(framing), bounds, shutdown));
    }
    let publisher = runtime.block_on(async { UnixListener::bind(publisher) });
    let publisher = publisher.expect("binding a socket in the temporary directory");
    Ends { runtime, router, salt_router, publisher, publisher_endpoint }
});

fn limits(framing: Framing) -> Limits {
    Limits { framing, message: 1 << 20, ..Limits::default() }
}

/// As [`run`], with Salt's framing.
pub fn salt(bytes: &[u8]) -> u64 {
    let mut bytes = bytes.to_vec();
    if let Some(mode) = bytes.first_mut() {
        *mode |= 4;
    }
    run(&bytes)
}

/// The first byte selects the attacked end, whether the handshake precedes the input, and the framing.
pub fn run(bytes: &[u8]) -> u64 {
    let Some((mode, bytes)) = bytes.split_first() else { return 0 };
    let ends = &*ENDS;
    let ended = ends.runtime.block_on(async {
        let attack = async {
            let framing = if mode & 4 == 0 { Framing::Zmtp } else { Framing::Salt };
            let after_handshake = mode & 1 == 1 && framing == Framing::Zmtp;
            if mode & 2 == 0 {
                as_publisher(ends, framing, after_handshake, bytes).await
            } else {
                as_requester(ends, framing, after_handshake, bytes).await
            }
        };
        tokio::time::timeout(TIMEOUT, attack).await
    });
    assert!(ended.is_ok(), "the connection stays open after its peer has closed it");
    ended.unwrap_or_default()
}

/// Sends bytes to a subscriber.
async fn as_publisher(ends: &Ends, framing: Framing, after_handshake: bool, bytes: &[u8]) -> u64 {
    let sends = async {
        let (mut peer, _) = ends.publisher.accept().await.expect("the subscriber connects");
        if after_handshake {
            _ = peer.write_all(&[GREETING, PUBLISHER_READY].concat()).await;
        }
        // The subscriber may have closed the connection.
        _ = peer.write_all(bytes).await;
        _ = peer.shutdown().await;
        peer
    };
    let reads = async {
        let (mut reader, _writer) = connect(&ends.publisher_endpoint, SocketType::Sub, limits(framing)).await?;
        loop {
            reader.read().await?;
        }
        #[expect(unreachable_code, reason = "names the type of the error")]
        Ok::<(), TransportError>(())
    };
    fingerprint(u8::from(after_handshake), tokio::join!(sends, reads).1)
}

/// Sends bytes to a request server.
async fn as_requester(ends: &Ends, framing: Framing, after_handshake: bool, bytes: &[u8]) -> u64 {
    let router = if framing == Framing::Salt { &ends.salt_router } else { &ends.router };
    let Endpoint::Ipc(path) = router else { return 0 };
    let mut peer = UnixStream::connect(path).await.expect("the request server listens");
    if after_handshake {
        _ = peer.write_all(&[GREETING, REQUESTER_READY].concat()).await;
    }
    _ = peer.write_all(bytes).await;
    _ = peer.shutdown().await;
    let mut answer = Vec::new();
    _ = peer.read_to_end(&mut answer).await;
    fingerprint(2 + u8::from(answer.len() / 64 > 1), Ok::<(), TransportError>(()))
}

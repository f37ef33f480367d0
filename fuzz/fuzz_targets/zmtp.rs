//! Whatever a peer says, from its first byte or once hands are shaken, is messages or ends the connection.
#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use brine_core::transport::{Endpoint, Limits, SocketType, connect};
use libfuzzer_sys::fuzz_target;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use tokio::runtime::{Builder, Runtime};

/// The peer that is connected to, and the runtime that its listener lives in.
static PEER: LazyLock<(Runtime, UnixListener, Endpoint)> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("brine-fuzz-{}.ipc", std::process::id()));
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let listener = runtime.block_on(async { UnixListener::bind(&path) }).expect("the temporary folder takes a socket");
    let endpoint = format!("ipc://{}", path.display()).parse().expect("a path is an endpoint");
    (runtime, listener, endpoint)
});

/// A greeting and the command that a publisher is ready.
const SHAKEN: &[u8] = b"\xff\0\0\0\0\0\0\0\0\x7f\x03\0NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \x04\x19\x05READY\x0bSocket-Type\0\0\0\x03PUB";

fuzz_target!(|input: (bool, &[u8])| {
    let (is_shaken, bytes) = input;
    let (runtime, listener, endpoint) = &*PEER;
    let limits = Limits { message: 1 << 20, frames: 16 };
    runtime.block_on(async {
        let says = async {
            let (mut peer, _) = listener.accept().await.expect("the connection is there");
            let greeting = if is_shaken { SHAKEN } else { b"" };
            // Whoever has heard enough closes the connection.
            let _ = peer.write_all(greeting).await;
            let _ = peer.write_all(bytes).await;
            let _ = peer.shutdown().await;
            peer
        };
        let hears = async {
            let (mut reader, _writer) = connect(endpoint, SocketType::Sub, limits).await?;
            loop {
                reader.read().await?;
            }
            #[allow(unreachable_code)]
            Ok::<(), brine_core::transport::TransportError>(())
        };
        let ended = tokio::time::timeout(Duration::from_secs(5), async { tokio::join!(says, hears).1 }).await;
        assert!(ended.is_ok(), "a connection that was closed is still read");
    });
});

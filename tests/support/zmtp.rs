//! A peer that speaks ZMTP byte by byte, so that a test can send incomplete messages and not read, from a chosen
//! address.

use std::path::Path;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, UnixStream};

/// An address of this host other than the master's: the master treats its connections as remote.
pub const REMOTE: &str = "127.0.0.2";

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection after its handshake.
pub struct Peer(Box<dyn Stream>);

impl Peer {
    /// Connects from an address to a port of this host; `None` if the connection is closed before it has begun.
    pub async fn tcp(source: &str, port: u16, socket_type: &str) -> Option<Self> {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
        let stream = socket.connect(([127, 0, 0, 1], port).into()).await.unwrap();
        Self::greet(Box::new(stream), socket_type).await
    }

    pub async fn unix(path: &Path, socket_type: &str) -> Option<Self> {
        Self::greet(Box::new(UnixStream::connect(path).await.unwrap()), socket_type).await
    }

    async fn greet(mut stream: Box<dyn Stream>, socket_type: &str) -> Option<Self> {
        let mut hello = vec![0; 64];
        (hello[0], hello[9], hello[10]) = (0xff, 0x7f, 3);
        hello[12..16].copy_from_slice(b"NULL");
        let length = u8::try_from(socket_type.len()).unwrap();
        hello.extend_from_slice(&[4, 22 + length]);
        hello.extend_from_slice(b"\x05READY\x0bSocket-Type\x00\x00\x00");
        hello.push(length);
        hello.extend_from_slice(socket_type.as_bytes());
        stream.write_all(&hello).await.ok()?;
        stream.read_exact(&mut [0; 64]).await.ok()?;
        let mut peer = Peer(stream);
        peer.frame().await?;
        Some(peer)
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    /// Sends the start of a request of this size, with this many bytes of its content.
    pub async fn begin(&mut self, size: u64, sent: usize) {
        let mut start = vec![1, 0, 2];
        start.extend_from_slice(&size.to_be_bytes());
        start.resize(start.len() + sent, 7);
        self.write(&start).await;
    }

    /// Sends a request and returns its reply; `None` if the connection is closed instead.
    pub async fn request(&mut self, content: &[u8]) -> Option<Vec<u8>> {
        let mut start = vec![1, 0, 2];
        start.extend_from_slice(&(content.len() as u64).to_be_bytes());
        self.0.write_all(&start).await.ok()?;
        self.0.write_all(content).await.ok()?;
        assert_eq!(self.frame().await?, b"");
        self.frame().await
    }

    /// Reads a frame; `None` at the end of the connection.
    pub async fn frame(&mut self) -> Option<Vec<u8>> {
        let flags = self.0.read_u8().await.ok()?;
        let size = if flags & 2 == 0 { self.0.read_u8().await.ok()?.into() } else { self.0.read_u64().await.ok()? };
        let mut content = vec![0; usize::try_from(size).unwrap()];
        self.0.read_exact(&mut content).await.ok()?;
        Some(content)
    }

    /// Sends a heartbeat and returns whether its answer comes next.
    pub async fn answers_ping(&mut self) -> bool {
        self.write(b"\x04\x0a\x04PING\x00\x00abc").await;
        self.frame().await.as_deref() == Some(b"\x04PONGabc")
    }
}

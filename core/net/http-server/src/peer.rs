//! The stream of a connection: TCP, or TLS over it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// The stream of a connection.
pub enum Peer {
    /// A connection without TLS.
    Plain(TcpStream),
    /// A connection by TLS. Boxed: its state has over a kilobyte.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Peer {
    /// Limits the kernel's buffer for sent data, in bytes.
    pub fn limit_send_buffer(&self, bytes: usize) {
        let stream = match self {
            Peer::Plain(stream) => stream,
            Peer::Tls(stream) => stream.get_ref().0,
        };
        if let Err(error) = SockRef::from(stream).set_send_buffer_size(bytes) {
            tracing::debug!(%error, "setting the size of a send buffer failed");
        }
    }
}

macro_rules! each {
    ($peer:expr, $stream:ident => $result:expr) => {
        match $peer.get_mut() {
            Peer::Plain(stream) => {
                let $stream = Pin::new(stream);
                $result
            }
            Peer::Tls(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $result
            }
        }
    };
}

impl AsyncRead for Peer {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_read(context, buffer))
    }
}

impl AsyncWrite for Peer {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, stream => stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => stream.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_shutdown(context))
    }
}

//! A stream wrapper that fails when its peer does not read for too long, so that slow clients cannot occupy resources
//! indefinitely.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The limit on blocked writes.
pub struct WriteLimit {
    /// The maximum time for which a write may be blocked.
    pub timeout: Duration,
    /// Counts a stream that has exceeded it.
    pub count: fn(),
}

/// A stream with a timeout of blocked writes. Small: thousands of streams may be open.
pub struct WriteTimeout<S> {
    stream: S,
    limit: &'static WriteLimit,
    /// The timeout, running while a write is blocked.
    blocked: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    /// Limits the blocked writes of a stream.
    pub fn new(stream: S, limit: &'static WriteLimit) -> Self {
        WriteTimeout { stream, limit, blocked: None }
    }

    /// Returns the stream.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// Returns the result of a write, or an error once writes have been blocked for longer than the limit.
    fn with_timeout<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.blocked = None;
            return written;
        }
        let limit = self.limit;
        let blocked = self.blocked.get_or_insert_with(|| Box::pin(sleep(limit.timeout)));
        if blocked.as_mut().poll(context).is_ready() {
            (limit.count)();
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")));
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.with_timeout(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.with_timeout(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.with_timeout(context, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let ended = Pin::new(&mut this.stream).poll_shutdown(context);
        this.with_timeout(context, ended)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_peer_that_does_not_read_ends_the_stream() {
        static LIMIT: WriteLimit =
            WriteLimit { timeout: Duration::from_millis(20), count: || _ = COUNTED.fetch_add(1, Ordering::Relaxed) };
        static COUNTED: AtomicU64 = AtomicU64::new(0);
        let (near, mut far) = tokio::io::duplex(8);
        let mut near = WriteTimeout::new(near, &LIMIT);
        near.write_all(b"12345678").await.unwrap();
        let error = near.write_all(b"9").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(COUNTED.load(Ordering::Relaxed), 1);
        let mut read = [0; 8];
        far.read_exact(&mut read).await.unwrap();
        // A peer that reads resets the timeout.
        near.blocked = None;
        near.write_all(b"9").await.unwrap();
    }
}

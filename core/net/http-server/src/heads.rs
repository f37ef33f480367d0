//! The heads of requests, collected before hyper reads them.
//!
//! A head reaches hyper when it is complete, so that a client that sends a head slowly costs no buffer of hyper. Lines
//! must end with CR LF: other servers and proxies on the way could split a head with bare LF differently. Where a head
//! begins is known from hyper, which reports the length of each body ([`Heads::expect`]).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};

/// The number of bytes that are read at once.
const CHUNK: usize = 2 << 10;

/// What follows the head of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Following {
    /// A body of this many bytes, and then the next head.
    Body(u64),
    /// Data of another protocol, or a body of unknown length, after which the connection is closed.
    Data,
}

/// The state of the scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In a head, of which this many bytes have been scanned.
    Head(usize),
    /// In a body with this many bytes left.
    Body(u64),
    /// Nothing is scanned.
    Data,
}

/// Collects the heads of one connection.
pub struct Heads {
    state: State,
    /// Received bytes that have not been passed on.
    received: BytesMut,
    /// A complete head that has not been passed on as a whole.
    complete: Bytes,
    /// The maximum size of a head.
    max: usize,
}

impl Heads {
    /// Collects heads of at most this size, in bytes; larger ones are passed on as they are, for hyper to refuse.
    pub fn new(max: usize) -> Self {
        Heads { state: State::Head(0), received: BytesMut::new(), complete: Bytes::new(), max }
    }

    /// Sets what follows the head that was passed on last.
    pub fn expect(&mut self, following: Following) {
        self.state = match following {
            Following::Body(0) => State::Head(0),
            Following::Body(length) => State::Body(length),
            Following::Data => State::Data,
        };
    }

    /// Scans received bytes for the end of the head. Moves the head to `complete` when it has ended, is too large, or
    /// has a bare LF, which is replaced by a byte that no head may contain.
    fn scan(&mut self, from: usize) {
        let mut start = from;
        // Empty lines before a request are ignored, as by other servers.
        while self.received.starts_with(b"\r\n") {
            self.received.advance(2);
            start = 0;
        }
        while let Some(at) = self.received[start..].iter().position(|byte| *byte == b'\n').map(|at| start + at) {
            if at == 0 || self.received[at - 1] != b'\r' {
                self.received[at] = 0;
                self.state = State::Data;
                self.complete = self.received.split().freeze();
                return;
            }
            if self.received[..at - 1].ends_with(b"\r\n") {
                // Nothing is scanned until the service reports what follows.
                self.state = State::Data;
                self.complete = self.received.split_to(at + 1).freeze();
                return;
            }
            start = at + 1;
        }
        if self.received.len() > self.max {
            self.state = State::Data;
            self.complete = self.received.split().freeze();
            return;
        }
        self.state = State::Head(self.received.len());
    }

    /// Passes on bytes that have been received. Returns whether there were any.
    fn pass(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        if self.complete.is_empty()
            && let State::Head(scanned) = self.state
            && scanned < self.received.len()
        {
            self.scan(scanned);
        }
        if !self.complete.is_empty() {
            let count = self.complete.len().min(buffer.remaining());
            buffer.put_slice(&self.complete.split_to(count));
            return count > 0;
        }
        let most = match self.state {
            State::Head(_) => 0,
            State::Body(left) => usize::try_from(left).unwrap_or(usize::MAX),
            State::Data => usize::MAX,
        };
        let count = self.received.len().min(buffer.remaining()).min(most);
        buffer.put_slice(&self.received.split_to(count));
        self.passed(count);
        if self.received.is_empty() {
            self.received = BytesMut::new();
        }
        count > 0
    }

    /// Counts bytes of a body that have been passed on.
    fn passed(&mut self, count: usize) {
        if let State::Body(left) = &mut self.state {
            *left -= count as u64;
            if *left == 0 {
                self.state = State::Head(0);
            }
        }
    }

    /// Reads from a stream: a head when it is complete, then what follows.
    pub fn poll_read<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if buffer.remaining() == 0 || self.pass(buffer) {
                return Poll::Ready(Ok(()));
            }
            match self.state {
                State::Head(_) => {
                    let mut chunk = [0; CHUNK];
                    let mut chunk = ReadBuf::new(&mut chunk);
                    ready!(Pin::new(&mut *stream).poll_read(context, &mut chunk))?;
                    if chunk.filled().is_empty() {
                        // The end of the connection: hyper decides what a part of a head means.
                        self.state = State::Data;
                        self.pass(buffer);
                        return Poll::Ready(Ok(()));
                    }
                    self.received.extend_from_slice(chunk.filled());
                }
                State::Body(left) => {
                    let most = buffer.remaining().min(usize::try_from(left).unwrap_or(usize::MAX));
                    let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
                    ready!(Pin::new(&mut *stream).poll_read(context, &mut part))?;
                    let count = part.filled().len();
                    buffer.advance(count);
                    self.passed(count);
                    return Poll::Ready(Ok(()));
                }
                State::Data => return Pin::new(&mut *stream).poll_read(context, buffer),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Passes on one read of a stream that receives these pieces.
    async fn read(heads: &mut Heads, stream: &mut (impl AsyncRead + Unpin)) -> String {
        let mut bytes = [0; 100];
        let mut buffer = ReadBuf::new(&mut bytes);
        poll_fn(|context| heads.poll_read(stream, context, &mut buffer)).await.unwrap();
        String::from_utf8_lossy(buffer.filled()).into_owned()
    }

    #[tokio::test]
    async fn heads_are_passed_on_when_they_are_complete() {
        let first = "POST / HTTP/1.1\r\nHost: a\r\n\r\n";
        let second = "GET / HTTP/1.1\r\n\r\n";
        let sent = format!("\r\n\r\n{first}a\nb\n\r\n{second}{second}");
        for size in [1, 2, 3, 7, sent.len()] {
            let mut builder = in_pieces(&sent, size);
            let mut heads = Heads::new(50);
            assert_eq!(read(&mut heads, &mut builder).await, first, "{size}");
            heads.expect(Following::Body(6));
            let mut body = String::new();
            while body.len() < 6 {
                body += &read(&mut heads, &mut builder).await;
            }
            assert_eq!(body, "a\nb\n\r\n", "{size}");
            for _ in 0..2 {
                assert_eq!(read(&mut heads, &mut builder).await, second, "{size}");
                heads.expect(Following::Body(0));
            }
            assert_eq!(read(&mut heads, &mut builder).await, "", "{size}");
        }
    }

    #[tokio::test]
    async fn heads_with_a_bare_line_feed_are_made_invalid() {
        for sent in
            ["GET / HTTP/1.1\n\n", "GET / HTTP/1.1\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n", "\n"]
        {
            let mut heads = Heads::new(50);
            let passed = read(&mut heads, &mut sent.as_bytes()).await;
            assert!(passed.contains('\0'), "{sent:?} {passed:?}");
        }
    }

    #[tokio::test]
    async fn large_heads_and_other_data_are_passed_on() {
        let large = format!("GET / HTTP/1.1\r\nA: {}", "x".repeat(50));
        let mut heads = Heads::new(50);
        assert_eq!(read(&mut heads, &mut large.as_bytes()).await, large);
        let mut heads = Heads::new(50);
        let mut stream = in_pieces("GET / HTTP/1.1\r\n\r\ndata\nand\nmore", 30);
        assert_eq!(read(&mut heads, &mut stream).await, "GET / HTTP/1.1\r\n\r\n");
        heads.expect(Following::Data);
        let mut data = String::new();
        while data.len() < 13 {
            data += &read(&mut heads, &mut stream).await;
        }
        assert_eq!(data, "data\nand\nmore");
        // An incomplete head at the end of the connection.
        let mut heads = Heads::new(50);
        assert_eq!(read(&mut heads, &mut &b"GET /"[..]).await, "GET /");
    }

    /// A stream that delivers a text in pieces.
    struct Pieces(Vec<Vec<u8>>);

    impl AsyncRead for Pieces {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            let this = self.get_mut();
            if let Some(piece) = this.0.first_mut() {
                let count = piece.len().min(buffer.remaining());
                buffer.put_slice(&piece[..count]);
                piece.drain(..count);
                this.0.retain(|piece| !piece.is_empty());
            }
            Poll::Ready(Ok(()))
        }
    }

    fn in_pieces(text: &str, size: usize) -> Pieces {
        Pieces(text.as_bytes().chunks(size).map(<[u8]>::to_vec).collect())
    }
}

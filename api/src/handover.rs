//! Server-sent events outside of hyper, whose buffers would cost each idle subscriber 16 kB.
//!
//! hyper writes the head of the response and the first chunk. When these are flushed, the body fails on purpose
//! ([`Handover::body`]), hyper drops the connection ([`HandoverConnection`]), and a small task takes it over and sends
//! events ([`run`]).

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::Version;
use brine_http_server::{Heads, Peer, Slot, WriteTimeout};
use bytes::{Buf as _, Bytes};
use futures::future::BoxFuture;
use futures::stream;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::sync::Notify;

use crate::hub::Item;
use crate::stream::{Next, Stream};

/// The first lines, which set the delay in milliseconds before a browser reconnects.
const RETRY_DELAY: &[u8] = b"retry: 400\n";
/// The limits of one write: the number of events, and the size in bytes from which no further event is added.
const MAX_BATCH: usize = 32;
const BATCH_BYTES: usize = 64 << 10;

/// The size of the kernel's buffer for sent events, in bytes: there may be thousands of streams whose clients do not read.
const SEND_BUFFER: usize = 64 << 10;

/// The last chunk of a chunked body.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The connection of an event stream subscriber.
pub(crate) type Connection = WriteTimeout<Peer>;

/// A stream of events that takes over a connection.
pub(crate) struct EventWriter {
    stream: Stream,
    /// Whether the body is chunked, which it is for all clients except those of HTTP/1.0.
    is_chunked: bool,
}

/// The meeting point of a connection that hyper releases and the stream that takes it over.
pub(crate) struct Handover {
    /// The heads of the connection's requests.
    pub heads: Mutex<Heads>,
    connection: Mutex<Option<Connection>>,
    writer: Mutex<Option<EventWriter>>,
    /// Whether the stream takes over after the next flush.
    is_awaited: AtomicBool,
    flushed: Notify,
}

/// The intentional error of a body, which makes hyper release the connection.
#[derive(Debug, thiserror::Error)]
#[error("the connection is handed over")]
struct HandedOver;

impl Handover {
    /// Creates the meeting point of a connection whose heads have at most this size.
    pub fn new(max_head: usize) -> Self {
        Handover {
            heads: Mutex::new(Heads::new(max_head)),
            connection: Mutex::default(),
            writer: Mutex::default(),
            is_awaited: AtomicBool::default(),
            flushed: Notify::default(),
        }
    }

    /// Returns the body that starts a stream and then initiates the handover of the connection.
    pub fn body(self: &Arc<Self>, stream: Stream, version: Version) -> Body {
        let writer = EventWriter { stream, is_chunked: version != Version::HTTP_10 };
        let handover = Arc::clone(self);
        let first = stream::once(async { Ok(Bytes::from_static(RETRY_DELAY)) });
        let last = stream::once(async move {
            handover.is_awaited.store(true, Ordering::Release);
            handover.flushed.notified().await;
            *handover.writer.lock() = Some(writer);
            Err(HandedOver)
        });
        Body::from_stream(stream::StreamExt::chain(first, last))
    }

    /// Returns the connection and its follower, if the stream takes over. Call it after hyper has ended.
    pub fn take(&self) -> Option<(Connection, EventWriter)> {
        let writer = self.writer.lock().take()?;
        Some((self.connection.lock().take()?, writer))
    }
}

/// The connection that hyper uses. It moves to the [`Handover`] when hyper drops it.
pub(crate) struct HandoverConnection {
    /// `None` only while it is dropped.
    connection: Option<Connection>,
    handover: Arc<Handover>,
}

impl HandoverConnection {
    pub fn new(connection: Connection, handover: Arc<Handover>) -> Self {
        HandoverConnection { connection: Some(connection), handover }
    }

    fn connection(self: Pin<&mut Self>) -> io::Result<Pin<&mut Connection>> {
        self.get_mut().connection.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Drop for HandoverConnection {
    fn drop(&mut self) {
        *self.handover.connection.lock() = self.connection.take();
    }
}

impl AsyncRead for HandoverConnection {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let Some(connection) = &mut this.connection else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        this.handover.heads.lock().poll_read(connection, context, buffer)
    }
}

impl AsyncWrite for HandoverConnection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.connection()?.poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.connection()?.poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    /// Flushes the connection, which hyper does after it has written all pending data, and notifies a waiting handover.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.as_mut().connection()?.poll_flush(context);
        if matches!(flushed, Poll::Ready(Ok(()))) && self.handover.is_awaited.swap(false, Ordering::AcqRel) {
            self.handover.flushed.notify_one();
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection()?.poll_shutdown(context)
    }
}

/// Sends events until the stream ends or the client disconnects. `slot` is the connection's slot, held until then.
pub(crate) fn run(
    connection: Connection,
    writer: EventWriter,
    slot: Arc<Slot>,
) -> impl Future<Output = ()> + Send + 'static {
    connection.get_ref().limit_send_buffer(SEND_BUFFER);
    let mut parts = (connection, writer, slot);
    // By reference: a value that is moved within a future takes up its size twice.
    async move {
        let (connection, EventWriter { stream, is_chunked }, _) = &mut parts;
        let is_chunked = *is_chunked;
        loop {
            let next = poll_fn(|context| {
                if is_closed(connection, context) {
                    return Poll::Ready(None);
                }
                stream.poll(context).map(Some)
            });
            let next = match next.await {
                None => return,
                Some(Some(next)) => Some(next),
                Some(None) => Box::pin(stream.work()).await,
            };
            let mut batch = match next {
                None => continue,
                Some(next) => batch(next, stream, is_chunked),
            };
            let is_last = batch.last().is_none_or(|last| last.bytes == LAST_CHUNK);
            if write(connection, stream, &mut batch, is_last).await.is_err() || is_last {
                _ = connection.shutdown().await;
                return;
            }
        }
    }
}

/// Bytes to send.
#[derive(Debug, PartialEq)]
struct Part {
    bytes: Bytes,
    /// The number of the event; `None` for other bytes.
    seq: Option<u64>,
}

/// Returns the bytes to send: an event together with all further ready events, a keep-alive comment, or the last chunk.
/// The batch is empty at the end of a body that is not chunked.
fn batch(next: Next, stream: &mut Stream, is_chunked: bool) -> Vec<Part> {
    let mut batch = Vec::new();
    let other = |bytes: &'static [u8]| Part { bytes: Bytes::from_static(bytes), seq: None };
    match next {
        Next::Event(item) => collect(item, stream, is_chunked, &mut batch),
        Next::Silence => batch.push(other(if is_chunked { b"3\r\n:\n\n\r\n" } else { b":\n\n" })),
        Next::End => batch.extend(is_chunked.then(|| other(LAST_CHUNK))),
    }
    batch
}

/// Adds an event, and further ones that are ready, up to the limits of a batch.
fn collect(first: Arc<Item>, stream: &mut Stream, is_chunked: bool, batch: &mut Vec<Part>) {
    let (mut next, mut bytes) = (Some(first), 0);
    while let Some(item) = next {
        let text = if is_chunked { item.chunk() } else { item.server_sent() };
        bytes += text.len();
        batch.push(Part { bytes: text, seq: Some(item.seq) });
        next = if batch.len() < MAX_BATCH && bytes < BATCH_BYTES { stream.ready() } else { None };
    }
}

/// Whether the client has closed the connection. Data that it sends is discarded.
fn is_closed(connection: &mut Connection, context: &mut Context<'_>) -> bool {
    loop {
        let mut bytes = [0; 256];
        let mut buffer = ReadBuf::new(&mut bytes);
        match Pin::new(&mut *connection).poll_read(context, &mut buffer) {
            Poll::Pending => return false,
            Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {}
            Poll::Ready(_) => return true,
        }
    }
}

/// Writes a batch. If the stream ends, a blocked write is aborted, unless the batch is the last one. A blocked write keeps
/// one event: the others are released, and taken again later.
async fn write(
    connection: &mut Connection,
    stream: &mut Stream,
    batch: &mut Vec<Part>,
    is_last: bool,
) -> io::Result<()> {
    let mut held: Option<BoxFuture<'static, ()>> = None;
    poll_fn(|context| {
        while !batch.is_empty() {
            let mut slices = [IoSlice::new(&[]); MAX_BATCH];
            let count = batch.len().min(MAX_BATCH);
            for (slice, part) in slices.iter_mut().zip(batch.iter()) {
                *slice = IoSlice::new(&part.bytes);
            }
            match Pin::new(&mut *connection).poll_write_vectored(context, &slices[..count]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => advance(batch, written),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending if stream.is_ended(context) && !is_last => {
                    return Poll::Ready(Err(io::ErrorKind::Interrupted.into()));
                }
                Poll::Pending => {
                    if held.is_none() {
                        if let Some(seq) = keep_first(batch) {
                            stream.rewind(seq);
                        }
                        held = stream.hold(batch.iter().map(|part| part.bytes.len()).sum());
                    }
                    let ends = held.as_mut().is_none_or(|held| held.as_mut().poll(context).is_ready());
                    return if ends { Poll::Ready(Err(io::ErrorKind::QuotaExceeded.into())) } else { Poll::Pending };
                }
            }
        }
        Pin::new(&mut *connection).poll_flush(context)
    })
    .await
}

/// Drops all events of a batch but the first one. Returns its number, after which the stream continues.
fn keep_first(batch: &mut Vec<Part>) -> Option<u64> {
    let seq = batch.first()?.seq?;
    batch.truncate(1);
    Some(seq)
}

/// Removes the bytes that have been written from a batch.
fn advance(batch: &mut Vec<Part>, mut written: usize) {
    let whole = batch.iter().take_while(|part| match written.checked_sub(part.bytes.len()) {
        Some(rest) => {
            written = rest;
            true
        }
        None => false,
    });
    let whole = whole.count();
    batch.drain(..whole);
    if let Some(first) = batch.first_mut() {
        first.bytes.advance(written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the size of the futures that a function creates.
    fn size<F>(_: impl Fn(Connection, EventWriter, Arc<Slot>) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn an_idle_stream_is_small() {
        // A task has a header of under 136 bytes and is allocated in a size class of 512.
        assert!(size(run) <= 376, "{} {}", size(run), size_of::<Stream>());
    }

    #[test]
    fn written_bytes_leave_a_batch() {
        let batch = || -> Vec<Part> {
            let parts = [b"abc".as_slice(), b"de", b"f"].into_iter().zip(5..);
            parts.map(|(bytes, seq)| Part { bytes: Bytes::from_static(bytes), seq: Some(seq) }).collect()
        };
        for (written, expected) in
            [(0, &["abc", "de", "f"][..]), (2, &["c", "de", "f"]), (3, &["de", "f"]), (4, &["e", "f"]), (6, &[])]
        {
            let mut batch = batch();
            advance(&mut batch, written);
            assert_eq!(batch.iter().map(|part| part.bytes.clone()).collect::<Vec<_>>(), expected, "{written}");
        }
        // A blocked write keeps the event that has begun, and continues after it.
        let mut batch = batch();
        advance(&mut batch, 4);
        assert_eq!(keep_first(&mut batch), Some(6));
        assert_eq!(batch, [Part { bytes: Bytes::from_static(b"e"), seq: Some(6) }]);
        assert_eq!(keep_first(&mut vec![Part { bytes: Bytes::new(), seq: None }]), None);
    }
}

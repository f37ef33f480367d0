//! An established connection: reads and writes concurrently, so that messages of a peer that does not read are still
//! received. Answers heartbeats for every kind of socket.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use brine_value::msgpack;
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::TransportError;
use super::bounds::Memory;
use super::io::{Reader, Writer};
use super::zmtp::{self, Framing, Message, put_frame};

/// The maximum bytes of heartbeat replies that wait for a peer that does not read.
const PONGS: usize = 4 << 10;

/// An established connection.
pub struct Connection {
    /// Receives the peer's messages.
    pub incoming: Incoming,
    /// Sends messages to the peer.
    pub outgoing: Outgoing,
}

/// The reading half of a connection.
pub struct Incoming {
    reader: Reader,
    pongs: Arc<Pongs>,
    time: Option<Duration>,
}

/// The writing half of a connection.
pub struct Outgoing {
    writer: Writer,
    pongs: Arc<Pongs>,
    time: Option<Duration>,
}

/// The heartbeat replies to send.
#[derive(Default)]
struct Pongs {
    frames: Mutex<BytesMut>,
    ready: Notify,
}

/// Supplies the messages for a peer.
pub trait Source: Send {
    /// Waits for messages and appends them for the next flush; `false` ends the connection. Must be cancel safe. It is
    /// called again only after everything appended by the previous call has been written.
    fn next(&mut self, out: &mut Writer) -> impl Future<Output = Result<bool, TransportError>> + Send;

    /// Waits until the pending write is obsolete, and returns the error that ends the connection.
    fn stale(&mut self) -> impl Future<Output = TransportError> + Send {
        std::future::pending()
    }
}

/// The source of a socket that only receives.
pub(super) struct Silent;

impl Source for Silent {
    async fn next(&mut self, _: &mut Writer) -> Result<bool, TransportError> {
        std::future::pending().await
    }
}

impl Connection {
    /// Joins the two sides of a connection. `time` is the timeout for a message that has begun, in either direction.
    pub fn new(reader: Reader, writer: Writer, time: Option<Duration>) -> Self {
        let pongs = Arc::new(Pongs::default());
        Connection {
            incoming: Incoming { reader, pongs: Arc::clone(&pongs), time },
            outgoing: Outgoing { writer, pongs, time },
        }
    }
}

impl Incoming {
    /// Returns the next message other than a heartbeat.
    pub async fn read(&mut self) -> Result<Message, TransportError> {
        loop {
            let message = self.reader.read_within(self.time).await?;
            if let Some(message) = self.pongs.answer(message)? {
                return Ok(message);
            }
        }
    }

    /// Returns the next message other than a heartbeat if it is already buffered.
    pub fn buffered(&mut self) -> Result<Option<Message>, TransportError> {
        while let Some(message) = self.reader.buffered()? {
            if let Some(message) = self.pongs.answer(message)? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Returns the framing of messages.
    pub fn framing(&self) -> Framing {
        self.reader.framing()
    }

    /// Returns the published frames of a message: with Salt's framing, the content of the body.
    pub(super) fn contents(&self, frames: Vec<Bytes>) -> Vec<Bytes> {
        match (self.framing(), frames.last()) {
            (Framing::Salt, Some(body)) => {
                vec![msgpack::content(body).map_or_else(|| body.clone(), |content| body.slice_ref(content))]
            }
            _ => frames,
        }
    }

    /// Takes the memory reservation of the last message, to be held as long as the message.
    pub fn take_memory(&mut self) -> Option<Memory> {
        self.reader.take_memory()
    }
}

impl Pongs {
    /// Answers a heartbeat; returns any other message.
    fn answer(&self, message: Message) -> Result<Option<Message>, TransportError> {
        let Message::Command(command) = &message else { return Ok(Some(message)) };
        let Some(pong) = zmtp::pong(command) else { return Ok(Some(message)) };
        let mut frames = self.frames.lock();
        put_frame(&mut frames, &pong, 4);
        if frames.len() > PONGS {
            return Err(TransportError::Malformed("it sends heartbeats without reading the replies"));
        }
        self.ready.notify_one();
        Ok(None)
    }
}

impl Outgoing {
    /// Writes the source's messages until it ends or the peer exceeds the timeout. A failed write may leave a partial
    /// frame, so it ends the connection.
    pub async fn run(mut self, mut source: impl Source) -> Result<(), TransportError> {
        loop {
            let continues = tokio::select! {
                biased;
                () = self.pongs.ready.notified() => {
                    let frames = std::mem::take(&mut *self.pongs.frames.lock());
                    self.writer.push_raw(&frames);
                    true
                }
                next = source.next(&mut self.writer) => next?,
            };
            let flush = async {
                match self.time {
                    Some(time) => tokio::time::timeout(time, self.writer.flush())
                        .await
                        .map_err(|_| TransportError::NotRead { after: time })?,
                    None => self.writer.flush().await,
                }
            };
            tokio::select! {
                biased;
                flushed = flush => flushed?,
                error = source.stale() => return Err(error),
            }
            if !continues {
                return Ok(());
            }
        }
    }
}

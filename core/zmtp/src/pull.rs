//! The pull server and the push client: one-way messages from many to one, with backpressure.

use std::future::Future;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, Incoming, Silent};
use super::server::{Remote, Server, Service};
use super::zmtp::{self, Limits, Message, SocketType};
use super::{Endpoint, Listener, TransportError, Writer};

/// The maximum number of messages in a batch.
const BATCH: usize = 512;

/// The pull server.
pub struct Pull;

impl Pull {
    /// Serves until `shutdown`. Calls `take` with batches of one-frame messages in the order of each connection; reads
    /// the connection again when it returns.
    pub async fn serve<F>(
        listener: Listener,
        take: impl Fn(Vec<Bytes>) -> F + Send + Sync + 'static,
        limits: Limits,
        shutdown: CancellationToken,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let server = Server { listener, role: SocketType::Pull, limits, bounds: None };
        server.run(Taking(take), shutdown).await;
    }
}

struct Taking<T>(T);

impl<T, F> Service for Taking<T>
where
    T: Fn(Vec<Bytes>) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    type Session = ();

    fn accepted(&self) -> Option<()> {
        Some(())
    }

    async fn serve(&self, (): (), _: Remote, connection: Connection) -> Result<(), TransportError> {
        tokio::select! {
            ended = self.take_all(connection.incoming) => ended,
            ended = connection.outgoing.run(Silent) => ended,
        }
    }
}

impl<T, F> Taking<T>
where
    T: Fn(Vec<Bytes>) -> F,
    F: Future<Output = ()>,
{
    async fn take_all(&self, mut incoming: Incoming) -> Result<(), TransportError> {
        loop {
            let mut batch = Vec::new();
            let mut next = Some(incoming.read().await?);
            while let Some(message) = next {
                if let Message::Frames(mut frames) = message {
                    if frames.len() != 1 {
                        return Err(TransportError::Malformed("a pushed message has one frame"));
                    }
                    batch.append(&mut frames);
                }
                next = if batch.len() < BATCH { incoming.buffered()? } else { None };
            }
            (self.0)(batch).await;
        }
    }
}

/// The push client.
pub struct Push {
    writer: Writer,
}

impl Push {
    /// Connects.
    pub async fn connect(endpoint: &Endpoint) -> Result<Self, TransportError> {
        let (_, writer) = zmtp::connect(endpoint, SocketType::Push, Limits::default()).await?;
        Ok(Push { writer })
    }

    /// Sends a message; waits while the server applies backpressure.
    pub async fn send(&mut self, message: &[u8]) -> Result<(), TransportError> {
        self.writer.send(&[message]).await
    }

    /// Appends a message for the next [`flush`](Push::flush).
    pub fn push(&mut self, message: &[u8]) {
        self.writer.push(&[message]);
    }

    /// Returns the number of bytes that wait for the next flush.
    pub fn waiting(&self) -> usize {
        self.writer.waiting()
    }

    /// Sends all appended messages.
    pub async fn flush(&mut self) -> Result<(), TransportError> {
        self.writer.flush().await
    }
}

//! The pull server and the push client: messages one way, from many to one, with back-pressure: a
//! server that does not take more makes its clients wait.

use std::future::Future;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, Incoming, Silent};
use super::server::{Remote, Server, Service};
use super::zmtp::{self, Limits, Message, SocketType};
use super::{Endpoint, Listener, TransportError, Writer};

/// How many messages are handed over at once at most.
const BATCH: usize = 512;

/// The pull server.
pub struct Pull;

impl Pull {
    /// Serves until `shutdown`. `take` gets messages of one frame in the order of each connection, as
    /// many as have come; the connection is not read from until it is done.
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

    /// Sends a message; waits while the server does not take more.
    pub async fn send(&mut self, message: &[u8]) -> Result<(), TransportError> {
        self.writer.send(&[message]).await
    }

    /// Appends a message to what the next [`flush`](Push::flush) sends.
    pub fn push(&mut self, message: &[u8]) {
        self.writer.push(&[message]);
    }

    /// How many bytes wait for the next flush.
    pub fn waiting(&self) -> usize {
        self.writer.waiting()
    }

    /// Sends what has been appended.
    pub async fn flush(&mut self) -> Result<(), TransportError> {
        self.writer.flush().await
    }
}

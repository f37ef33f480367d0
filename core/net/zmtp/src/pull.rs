//! The pull server and the push client: one-way messages from many to one, with backpressure.

use std::future::Future;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, Incoming, Silent};
use super::foreign::{ForeignStream, SilenceTimeout};
use super::handshake::{self, SocketType};
use super::server::{Remote, Server, Service};
use super::zmtp::{Limits, Message};
use super::{Endpoint, Listener, TransportError, Writer};

/// The maximum number of messages in a batch.
const BATCH: usize = 512;

/// The pull server.
pub struct Pull;

impl Pull {
    /// Serves until `shutdown`. Calls `take` with batches of one-frame messages, in the order of each connection, and
    /// reads the connection again when the call has ended.
    pub async fn serve<F>(
        listener: Listener,
        take: impl Fn(Vec<Bytes>) -> F + Send + Sync + 'static,
        limits: Limits,
        shutdown: CancellationToken,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let refuse = |_| std::future::ready(Err(TransportError::Handshake("it sent no ZMTP greeting")));
        let server = Server { listener, role: SocketType::Pull, limits, bounds: None };
        server.run(PullService { take, foreign: refuse, is_open: false }, shutdown).await;
    }

    /// Serves like [`Pull::serve`]; peers that do not speak ZeroMQ are passed to `foreign`.
    pub async fn serve_any<F, G>(
        listener: Listener,
        take: impl Fn(Vec<Bytes>) -> F + Send + Sync + 'static,
        foreign: impl Fn(ForeignStream) -> G + Send + Sync + 'static,
        limits: Limits,
        shutdown: CancellationToken,
    ) where
        F: Future<Output = ()> + Send + 'static,
        G: Future<Output = Result<(), TransportError>> + Send + 'static,
    {
        let server = Server { listener, role: SocketType::Pull, limits, bounds: None };
        server.run(PullService { take, foreign, is_open: true }, shutdown).await;
    }
}

struct PullService<T, U> {
    take: T,
    /// Serves peers that do not speak ZeroMQ; called only if `is_open`.
    foreign: U,
    /// Whether peers that do not speak ZeroMQ are accepted.
    is_open: bool,
}

impl<T, F, U, G> Service for PullService<T, U>
where
    T: Fn(Vec<Bytes>) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
    U: Fn(ForeignStream) -> G + Send + Sync + 'static,
    G: Future<Output = Result<(), TransportError>> + Send + 'static,
{
    type Session = ();

    fn accepted(&self) -> Option<()> {
        Some(())
    }

    async fn silence_timeout(&self, _: Option<i32>) -> Option<SilenceTimeout> {
        self.is_open.then_some(SilenceTimeout::Never)
    }

    async fn serve_foreign(&self, (): (), _: Option<i32>, peer: ForeignStream) -> Result<(), TransportError> {
        (self.foreign)(peer).await
    }

    async fn serve(&self, (): (), _: Remote, connection: Connection) -> Result<(), TransportError> {
        tokio::select! {
            ended = self.take_all(connection.incoming) => ended,
            ended = connection.outgoing.run(Silent) => ended,
        }
    }
}

impl<T, F, U> PullService<T, U>
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
                        return Err(TransportError::Malformed("a pushed message must have one frame"));
                    }
                    batch.append(&mut frames);
                }
                next = if batch.len() < BATCH { incoming.buffered()? } else { None };
            }
            (self.take)(batch).await;
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
        let (_, writer) = handshake::connect(endpoint, SocketType::Push, Limits::default()).await?;
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

//! The pull server and the push client: messages one way, from many to one, with back-pressure: a
//! server that does not take more makes its clients wait.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::zmtp::{self, Limits, Message, SocketType, Writer};
use super::{Endpoint, Listener, TransportError};
use crate::metrics;

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
        F: Future<Output = ()> + Send,
    {
        let take = Arc::new(take);
        loop {
            let accepted = tokio::select! {
                accepted = zmtp::accept_raw(&listener) => accepted,
                () = shutdown.cancelled() => return,
            };
            let (take, shutdown) = (Arc::clone(&take), shutdown.clone());
            tokio::spawn(async move {
                let address = accepted.address.clone();
                let served = async {
                    let (mut reader, writer) = accepted.handshake(SocketType::Pull, limits).await?;
                    let _open = writer;
                    loop {
                        let mut batch = Vec::new();
                        let mut next = Some(reader.read().await?);
                        while let Some(message) = next {
                            if let Message::Frames(mut frames) = message {
                                if frames.len() != 1 {
                                    return Err(TransportError::Malformed("a pushed message has one frame"));
                                }
                                batch.append(&mut frames);
                            }
                            next = if batch.len() < BATCH { reader.buffered()? } else { None };
                        }
                        take(batch).await;
                    }
                };
                let result: Result<(), TransportError> = tokio::select! {
                    result = served => result,
                    () = shutdown.cancelled() => Ok(()),
                };
                match result {
                    Ok(()) | Err(TransportError::Closed) => {}
                    Err(error) => {
                        metrics::CONNECTIONS_REFUSED.add(1);
                        tracing::warn!(peer = %address, %error, "a pushing connection is closed");
                    }
                }
            });
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

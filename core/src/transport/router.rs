//! The request server: takes requests from many peers, has a bounded number handled at a time, and
//! sends each reply to who asked.

use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::zmtp::{self, Limits, Message, Reader, SocketType, Writer};
use super::{Listener, TransportError};
use crate::metrics;

/// How long a peer may take to read a reply before it is given up.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// How many requests of one peer may be under way: beyond them it is not read from.
const PER_PEER: usize = 64;

/// Who sent a request.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its address, or `local`.
    pub address: Arc<str>,
    /// Its connection: this can be upgraded for as long as that is open.
    pub connection: Weak<()>,
}

/// The place of a request among those that are handled at a time. It is given back when this is dropped: early by who
/// only waits from then on, for a disk or for other requests, and would keep these from being handled.
pub struct Worker {
    _permit: OwnedSemaphorePermit,
}

/// What handles requests.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request. What it gives back is sent; nothing sends nothing.
    fn handle(&self, peer: Peer, request: Bytes, worker: Worker) -> impl Future<Output = Option<Bytes>> + Send;
}

/// The request server.
pub struct Router;

impl Router {
    /// Serves until `shutdown`, with at most `workers` requests being handled at a time.
    pub async fn serve(
        listener: Listener,
        handler: Arc<impl Handler>,
        workers: usize,
        limits: Limits,
        shutdown: CancellationToken,
    ) {
        let workers = Arc::new(Semaphore::new(workers.max(1)));
        loop {
            let accepted = tokio::select! {
                accepted = zmtp::accept_raw(&listener) => accepted,
                () = shutdown.cancelled() => return,
            };
            let (handler, workers, shutdown) = (Arc::clone(&handler), Arc::clone(&workers), shutdown.clone());
            tokio::spawn(async move {
                let open = Arc::new(());
                let peer = Peer { address: accepted.address.as_str().into(), connection: Arc::downgrade(&open) };
                let served = async {
                    let (reader, writer) = accepted.handshake(SocketType::Router, limits).await?;
                    serve_peer(reader, writer, &peer, &handler, &workers).await
                };
                tokio::select! {
                    result = served => report(&peer, result),
                    () = shutdown.cancelled() => {}
                }
            });
        }
    }
}

fn report(peer: &Peer, result: Result<(), TransportError>) {
    match result {
        Ok(()) | Err(TransportError::Closed) => {}
        Err(error) => {
            metrics::CONNECTIONS_REFUSED.add(1);
            tracing::warn!(peer = %peer.address, %error, "a request connection is closed");
        }
    }
}

async fn serve_peer(
    mut reader: Reader,
    writer: Writer,
    peer: &Peer,
    handler: &Arc<impl Handler>,
    workers: &Arc<Semaphore>,
) -> Result<(), TransportError> {
    let writer = Arc::new(Mutex::new(writer));
    let own = Arc::new(Semaphore::new(PER_PEER));
    loop {
        let mut frames = match reader.read().await? {
            Message::Frames(frames) => frames,
            Message::Command(command) => {
                if let Some(pong) = zmtp::pong(&command) {
                    let mut writer = writer.lock().await;
                    writer.push_command(&pong);
                    writer.flush().await?;
                }
                continue;
            }
        };
        // The way back: all frames up to the empty one. A REQ socket sends only that one.
        let Some(delimiter) = frames.iter().position(Bytes::is_empty) else {
            return Err(TransportError::Malformed("a request has no empty frame in front of it"));
        };
        if frames.len() != delimiter + 2 {
            return Err(TransportError::Malformed("a request has one frame behind the empty one"));
        }
        let request = frames.split_off(delimiter + 1).swap_remove(0);
        // Neither semaphore is ever closed.
        let (Ok(slot), Ok(worker)) =
            (Arc::clone(&own).acquire_owned().await, Arc::clone(workers).acquire_owned().await)
        else {
            return Err(TransportError::Closed);
        };
        metrics::REQUESTS.add(1);
        let (handler, writer, peer) = (Arc::clone(handler), Arc::clone(&writer), peer.clone());
        tokio::spawn(async move {
            // A peer that reads its reply slowly holds no worker any more.
            let reply = handler.handle(peer.clone(), request, Worker { _permit: worker }).await;
            if let Some(reply) = reply {
                frames.push(reply);
                let write = async { writer.lock().await.send(&frames).await };
                if !matches!(tokio::time::timeout(WRITE_TIME, write).await, Ok(Ok(()))) {
                    metrics::REPLIES_LOST.add(1);
                    tracing::info!(peer = %peer.address, "a peer went away before its reply");
                }
            }
            drop(slot);
        });
    }
}

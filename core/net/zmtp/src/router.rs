//! The request server: receives requests of many peers, handles a bounded number concurrently, and routes each reply to
//! its sender.

use std::collections::VecDeque;
use std::future::Future;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::bounds::{Bounds, Memory, Trust};
use super::connection::{Connection, Incoming, Source};
use super::handshake::SocketType;
use super::server::{Remote, Server, Service};
use super::zmtp::{Limits, Message};
use super::{Listener, TransportError, Writer};
use crate::metrics;

/// The maximum number of requests in progress of one peer: beyond it, the connection is not read.
const PER_PEER: usize = 64;
/// The grace period of requests in progress after the connections have ended.
const STOP_TIME: Duration = Duration::from_secs(1);

/// The sender of a request.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The address, or `local`.
    pub address: Arc<str>,
    /// The connection: upgradable while it is open.
    pub connection: Weak<()>,
    trust: Option<Arc<Trust>>,
}

impl Peer {
    /// Creates the peer of a connection without limits.
    pub fn new(address: &str, connection: Weak<()>) -> Self {
        Peer { address: address.into(), connection, trust: None }
    }

    /// Returns the sender of a request that this peer forwards for an address. Both share the connection and its limits.
    #[must_use]
    pub fn forwarding(&self, address: IpAddr) -> Self {
        Peer { address: address.to_string().into(), connection: self.connection.clone(), trust: self.trust.clone() }
    }

    /// Lifts the limits of unauthenticated peers from this connection: it has delivered a request that authenticates
    /// its sender. The peer's address may send large messages from now on.
    pub fn authenticate(&self) {
        if let Some(trust) = &self.trust {
            trust.authenticate();
        }
    }

    /// Lets this peer's address send large messages: an accepted key was presented, whose owner will send requests on
    /// other connections.
    pub fn remember_address(&self) {
        if let Some(trust) = &self.trust {
            trust.remember_address();
        }
    }

    /// Whether this connection has delivered a request that authenticates its sender.
    pub fn is_authenticated(&self) -> bool {
        self.trust.as_ref().is_none_or(|trust| trust.is_authenticated())
    }
}

/// A slot among the concurrently handled requests, with the memory of its request; released on drop. Handlers drop it
/// before they wait for a disk or for other requests, which could starve otherwise.
pub struct Worker {
    _permit: OwnedSemaphorePermit,
    _memory: Option<Memory>,
}

/// Handles requests.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request; `None` sends no reply.
    fn handle(&self, peer: Peer, request: Bytes, worker: Worker) -> impl Future<Output = Option<Bytes>> + Send;

    /// Returns the reply to a request that exceeds its peer's limit or whose handler panicked; `None` closes the
    /// connection.
    fn refuse(&self, _peer: &Peer) -> Option<Bytes> {
        None
    }
}

/// The request server.
pub struct Router;

impl Router {
    /// Serves until `shutdown`, handling at most `workers` requests concurrently.
    pub async fn serve(
        listener: Listener,
        handler: Arc<impl Handler>,
        workers: usize,
        limits: Limits,
        bounds: Bounds,
        shutdown: CancellationToken,
    ) {
        let handled = TaskTracker::new();
        let workers = Arc::new(Semaphore::new(workers.max(1)));
        let server = Server { listener, role: SocketType::Router, limits, bounds: Some(bounds) };
        server.run(Serving { handler, workers, handled: handled.clone() }, shutdown).await;
        handled.close();
        if tokio::time::timeout(STOP_TIME, handled.wait()).await.is_err() {
            tracing::info!(requests = handled.len(), "requests still in progress at shutdown");
        }
    }
}

struct Serving<H> {
    handler: Arc<H>,
    workers: Arc<Semaphore>,
    handled: TaskTracker,
}

impl<H: Handler> Service for Serving<H> {
    type Session = ();

    fn accepted(&self) -> Option<()> {
        Some(())
    }

    async fn serve(&self, (): (), remote: Remote, connection: Connection) -> Result<(), TransportError> {
        let open = Arc::new(());
        let peer = Peer { address: remote.address, connection: Arc::downgrade(&open), trust: remote.trust };
        let replies = Replies::default();
        let writing =
            ReplyWriter { replies: Arc::clone(&replies.0), peer: Arc::clone(&peer.address), written: Vec::new() };
        tokio::select! {
            ended = self.take_requests(connection.incoming, &peer, &replies) => ended,
            ended = connection.outgoing.run(writing) => ended,
        }
    }
}

impl<H: Handler> Serving<H> {
    async fn take_requests(
        &self,
        mut incoming: Incoming,
        peer: &Peer,
        replies: &Replies,
    ) -> Result<(), TransportError> {
        let own = Arc::new(Semaphore::new(PER_PEER));
        loop {
            let (mut frames, is_whole) = match incoming.read().await? {
                Message::Frames(frames) => (frames, true),
                Message::Dropped(frames) => (frames, false),
                Message::Command(_) => continue,
            };
            let memory = incoming.take_memory();
            // The return route: all frames up to the empty one. A REQ socket sends only that one.
            let Some(delimiter) = frames.iter().position(Bytes::is_empty) else {
                return Err(TransportError::Malformed("a request has no empty delimiter frame"));
            };
            if frames.len() != delimiter + 1 + usize::from(is_whole) {
                return Err(TransportError::Malformed("a request must have one frame after the empty delimiter"));
            }
            // Neither semaphore is ever closed.
            let Ok(slot) = Arc::clone(&own).acquire_owned().await else { return Err(TransportError::Closed) };
            if !is_whole {
                metrics::MESSAGES_DROPPED.add(1);
                let Some(reply) = self.handler.refuse(peer) else {
                    return Err(TransportError::Malformed("a message is larger than an unauthenticated peer may send"));
                };
                replies.send(Reply { route: frames, reply, slot });
                continue;
            }
            let request = frames.split_off(delimiter + 1).swap_remove(0);
            let Ok(permit) = Arc::clone(&self.workers).acquire_owned().await else {
                return Err(TransportError::Closed);
            };
            let worker = Worker { _permit: permit, _memory: memory };
            metrics::REQUESTS.add(1);
            let (handler, peer, replies) = (Arc::clone(&self.handler), peer.clone(), replies.clone());
            self.handled.spawn(async move {
                // A peer that reads its reply slowly must not hold a worker.
                let handled = AssertUnwindSafe(handler.handle(peer.clone(), request, worker)).catch_unwind().await;
                let reply = handled.unwrap_or_else(|_| {
                    metrics::TASKS_PANICKED.add(1);
                    tracing::error!(peer = %peer.address, "request handler panicked: this is a defect, please report it");
                    handler.refuse(&peer)
                });
                if let Some(reply) = reply {
                    replies.send(Reply { route: frames, reply, slot });
                }
            });
        }
    }
}

/// A reply with its peer's slot, which is released once it has been written.
struct Reply {
    route: Vec<Bytes>,
    reply: Bytes,
    slot: OwnedSemaphorePermit,
}

/// The replies that wait to be written to one peer.
#[derive(Clone, Default)]
struct Replies(Arc<ReplyQueue>);

#[derive(Default)]
struct ReplyQueue {
    queue: Mutex<Queue>,
    ready: Notify,
}

#[derive(Default)]
struct Queue {
    replies: VecDeque<Reply>,
    is_closed: bool,
}

impl Replies {
    fn send(&self, reply: Reply) {
        let mut queue = self.0.queue.lock();
        if queue.is_closed {
            drop(queue);
            metrics::REPLIES_LOST.add(1);
            tracing::info!("reply dropped: the peer has disconnected");
            return;
        }
        queue.replies.push_back(reply);
        drop(queue);
        self.0.ready.notify_one();
    }
}

/// Writes to one peer.
struct ReplyWriter {
    replies: Arc<ReplyQueue>,
    peer: Arc<str>,
    /// The slots of the replies that have been appended to the writer.
    written: Vec<OwnedSemaphorePermit>,
}

impl Source for ReplyWriter {
    async fn next(&mut self, out: &mut Writer) -> Result<bool, TransportError> {
        self.written.clear();
        loop {
            while let Some(reply) = self.pop() {
                let is_full = out.push_content(&reply.route, &reply.reply);
                self.written.push(reply.slot);
                if is_full {
                    return Ok(true);
                }
            }
            if !self.written.is_empty() {
                return Ok(true);
            }
            self.replies.ready.notified().await;
        }
    }
}

impl ReplyWriter {
    fn pop(&self) -> Option<Reply> {
        let mut queue = self.replies.queue.lock();
        let reply = queue.replies.pop_front();
        if reply.is_none() {
            // An idle connection holds no queue.
            queue.replies = VecDeque::new();
        }
        reply
    }
}

impl Drop for ReplyWriter {
    fn drop(&mut self) {
        let mut queue = self.replies.queue.lock();
        queue.is_closed = true;
        let lost = queue.replies.len() + self.written.len();
        queue.replies.clear();
        drop(queue);
        if lost > 0 {
            metrics::REPLIES_LOST.add(lost as u64);
            tracing::info!(peer = %self.peer, lost, "replies dropped: the peer has disconnected");
        }
    }
}

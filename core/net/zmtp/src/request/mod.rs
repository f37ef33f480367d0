//! The request client: concurrent requests, each matched to its reply.
//!
//! Brine's servers take all requests over one connection: a request carries a number in front of the empty frame, the
//! server returns it, and replies come in any order. Other servers get one request per connection at a time: not all of
//! them accept further frames in front, and their replies do not identify the request. With Salt's framing a request has
//! an id of its own, but a server with `transport: tcp` may answer the requests of a connection one after the other, and
//! a request may wait for another one: it gets one request per connection, too.
//!
//! A task reads each connection for its whole life, with or without a request in progress: it answers heartbeats and
//! notices when the server closes the connection.

mod routing;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use brine_runtime::supervisor;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use self::routing::Routing;
use super::connection::{Connection, Incoming, Source};
use super::handshake::{self, SocketType};
use super::zmtp::{Limits, Message};
use super::{Endpoint, Reader, TransportError, Writer};

type Reply = oneshot::Sender<Result<Bytes, TransportError>>;
type Queue = mpsc::Sender<(Bytes, Reply)>;

/// The maximum number of idle connections kept for further requests.
const IDLE: usize = 8;
/// The maximum number of connections with a request in progress, one each; further requests wait. A minion runs 256
/// jobs concurrently, and these may depend on requests of their own.
const CONNECTIONS: usize = 512;
/// The maximum number of requests that wait to be written to a shared connection.
const QUEUED: usize = 256;
/// The number of connections that a request tries if they end before anything was sent.
const TRIES: usize = 3;
/// The timeout for reading or writing a message once it has begun.
const MESSAGE_TIME: Duration = Duration::from_secs(60);

/// The outcome of the first connection.
type Attempt = watch::Receiver<Option<Result<(), TransportError>>>;

/// The pool of connections, by the kind of the server.
#[derive(Default)]
enum Pool {
    /// The kind is unknown, or the shared connection has ended.
    #[default]
    Empty,
    /// A connection is being opened that may serve all waiting requests.
    Connecting(Attempt),
    /// One connection for all requests.
    Shared(Queue),
    /// One connection for each request: the idle ones.
    Single(Vec<Queue>),
}

/// The pool's offer for a request.
enum Offer {
    Shared(Queue),
    /// A connection for this request alone, from the pool or new.
    Single,
    /// The connection that is being opened.
    Wait(Attempt),
}

/// A client of a request server. Connects on first use, and again after the connection has ended.
#[derive(Clone)]
pub struct RequestClient(Arc<Client>);

struct Client {
    endpoint: Endpoint,
    limits: Limits,
    pool: Mutex<Pool>,
    permits: Arc<Semaphore>,
}

impl RequestClient {
    /// Creates a client of the server at this address.
    pub fn new(endpoint: Endpoint, limits: Limits) -> Self {
        Self::with_connections(endpoint, limits, CONNECTIONS)
    }

    fn with_connections(endpoint: Endpoint, limits: Limits, most: usize) -> Self {
        let permits = Arc::new(Semaphore::new(most));
        RequestClient(Arc::new(Client { endpoint, limits, pool: Mutex::default(), permits }))
    }

    /// Returns the address of the server.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// Sends a request and returns its reply.
    ///
    /// # Errors
    /// [`TransportError::Unanswered`] if the connection ended after the request was sent: whether the server has
    /// carried it out is unknown, and only the caller knows whether it may be repeated. An unsent request is retried
    /// over another connection.
    pub async fn request(&self, request: impl Into<Bytes>, timeout: Duration) -> Result<Bytes, TransportError> {
        let request = request.into();
        let exchange = async {
            for _ in 0..TRIES {
                if let Some(replied) = self.lease().await?.exchange(&request).await {
                    return replied;
                }
            }
            Err(TransportError::Closed)
        };
        let timed_out = |_| TransportError::TimedOut { endpoint: self.endpoint().to_string(), after: timeout };
        tokio::time::timeout(timeout, exchange).await.map_err(timed_out)?
    }

    /// Takes a connection, and opens one if none is idle. Requests that arrive before the kind of the server is known
    /// wait for the same first connection and share its failure.
    async fn lease(&self) -> Result<Lease, TransportError> {
        loop {
            match self.offer() {
                Offer::Shared(queue) => return Ok(Lease { queue, single: None }),
                Offer::Wait(mut attempt) => {
                    let outcome = attempt.wait_for(Option::is_some).await.map_err(|_| TransportError::Closed)?;
                    if let Some(Err(error)) = &*outcome {
                        return Err(error.clone());
                    }
                }
                Offer::Single => {
                    // The semaphore is never closed.
                    let permit =
                        Arc::clone(&self.0.permits).acquire_owned().await.map_err(|_| TransportError::Closed)?;
                    if let Some(lease) = self.single(permit).await? {
                        return Ok(lease);
                    }
                }
            }
        }
    }

    fn offer(&self) -> Offer {
        let mut pool = self.0.pool.lock();
        match &*pool {
            Pool::Shared(queue) if !queue.is_closed() => return Offer::Shared(queue.clone()),
            Pool::Single(_) => return Offer::Single,
            // The sender is dropped with the outcome; without one, the runtime of the attempt has ended.
            Pool::Connecting(attempt) if attempt.has_changed().is_ok() => return Offer::Wait(attempt.clone()),
            _ => {}
        }
        let (outcome, attempt) = watch::channel(None);
        *pool = Pool::Connecting(attempt.clone());
        let this = self.clone();
        // In a task of its own: the attempt continues for others if the caller is cancelled.
        supervisor::spawn("connecting", async move {
            let connected = this.connect().await;
            let mut pool = this.0.pool.lock();
            outcome.send_replace(Some(match connected {
                Ok((queue, pipelines_requests)) => {
                    *pool = if pipelines_requests { Pool::Shared(queue) } else { Pool::Single(vec![queue]) };
                    Ok(())
                }
                Err(error) => {
                    *pool = Pool::Empty;
                    Err(error)
                }
            }));
        });
        Offer::Wait(attempt)
    }

    /// Takes a connection for one request, or `None` if the server turns out to share one.
    async fn single(&self, permit: OwnedSemaphorePermit) -> Result<Option<Lease>, TransportError> {
        let idle = match &mut *self.0.pool.lock() {
            Pool::Single(idle) => {
                // When a server has stopped, all of its idle connections have ended.
                idle.retain(|queue| !queue.is_closed());
                idle.pop()
            }
            _ => return Ok(None),
        };
        let queue = match idle {
            Some(queue) => queue,
            None => match self.connect().await? {
                (queue, false) => queue,
                (queue, true) => {
                    *self.0.pool.lock() = Pool::Shared(queue);
                    return Ok(None);
                }
            },
        };
        Ok(Some(Lease { queue, single: Some((Arc::clone(&self.0), permit)) }))
    }

    /// Connects. Returns the connection and whether it takes any number of requests.
    async fn connect(&self) -> Result<(Queue, bool), TransportError> {
        let (reader, writer) = handshake::connect(&self.0.endpoint, SocketType::Dealer, self.0.limits).await?;
        let pipelines_requests = reader.pipelines_requests();
        let (queue, requests) = mpsc::channel(if pipelines_requests { QUEUED } else { 1 });
        let routing = Routing::new(self.0.limits.framing, pipelines_requests);
        supervisor::spawn("connection for requests", serve(reader, writer, requests, routing));
        Ok((queue, pipelines_requests))
    }
}

/// The connection of one request. If the request is cancelled, the connection ends, unless it is shared.
struct Lease {
    queue: Queue,
    /// The pool that an unshared connection returns to.
    single: Option<(Arc<Client>, OwnedSemaphorePermit)>,
}

impl Lease {
    /// Sends a request and returns its reply; `None` if the connection ended before the request was sent.
    async fn exchange(self, request: &Bytes) -> Option<Result<Bytes, TransportError>> {
        let (reply, answer) = oneshot::channel();
        self.queue.send((request.clone(), reply)).await.ok()?;
        let replied = answer.await.ok()?;
        if let (Ok(_), Some((client, _permit))) = (&replied, self.single)
            && let Pool::Single(idle) = &mut *client.pool.lock()
            && idle.len() < IDLE
        {
            idle.push(self.queue);
        }
        Some(replied)
    }
}

/// The requests without a reply by number.
type Waiting = Mutex<HashMap<u32, Reply>>;

/// Serves one connection until it ends or its queue is dropped.
async fn serve(reader: Reader, writer: Writer, requests: mpsc::Receiver<(Bytes, Reply)>, routing: Routing) {
    let waiting = Waiting::default();
    let connection = Connection::new(reader, writer, Some(MESSAGE_TIME));
    let asking = RequestWriter { requests, waiting: &waiting, number: 0, routing };
    let ended = tokio::select! {
        ended = take_replies(connection.incoming, &waiting, routing) => ended,
        ended = connection.outgoing.run(asking) => ended,
    };
    let reason = ended.err().unwrap_or(TransportError::Closed);
    tracing::debug!(%reason, "a request connection ended");
    // Queued requests were not sent: dropping their reply channels makes the callers retry.
    for (_, reply) in waiting.lock().drain() {
        // The caller may have been cancelled.
        _ = reply.send(Err(TransportError::Unanswered { reason: Arc::new(reason.clone()) }));
    }
}

/// Writes the requests.
struct RequestWriter<'a> {
    requests: mpsc::Receiver<(Bytes, Reply)>,
    waiting: &'a Waiting,
    number: u32,
    routing: Routing,
}

impl Source for RequestWriter<'_> {
    async fn next(&mut self, out: &mut Writer) -> Result<bool, TransportError> {
        let Some(mut request) = self.requests.recv().await else { return Ok(false) };
        // Cancelled requests are removed: they would stay for ever if the server never answered.
        self.waiting.lock().retain(|_, reply| !reply.is_closed());
        loop {
            let (content, reply) = request;
            self.number = self.routing.next(self.number);
            self.waiting.lock().insert(self.number, reply);
            if out.push_content(&self.routing.frames(self.number), &content) {
                return Ok(true);
            }
            match self.requests.try_recv() {
                Ok(next) => request = next,
                Err(_) => return Ok(true),
            }
        }
    }
}

async fn take_replies(mut incoming: Incoming, waiting: &Waiting, routing: Routing) -> Result<(), TransportError> {
    loop {
        let Message::Frames(frames) = incoming.read().await? else { continue };
        let Some((number, reply)) = routing.reply(&frames) else {
            return Err(TransportError::Malformed("a reply has different routing frames than its request"));
        };
        match waiting.lock().remove(&number) {
            // The caller may have been cancelled.
            Some(waiter) => _ = waiter.send(Ok(reply.clone())),
            None if routing == Routing::Numbered => {}
            // An unexpected reply could be mistaken for the reply to the next request.
            None => return Err(TransportError::Malformed("a reply came without a request")),
        }
    }
}

#[cfg(test)]
mod tests;

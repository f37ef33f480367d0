//! The request client: many requests at a time, each matched to its reply.
//!
//! With a server of Brine all go over one connection. A request carries a number in front of the empty frame,
//! the server sends back whatever stands there, and replies may come in any order. Other servers have a
//! connection for each request that is under way: not all of them take what stands there, and their replies
//! tell nothing of what they answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::connection::{Connection, Incoming, Source};
use super::zmtp::{self, Limits, Message, SocketType};
use super::{Endpoint, Reader, TransportError, Writer};

type Reply = oneshot::Sender<Bytes>;
type Queue = mpsc::Sender<(Bytes, Reply)>;

/// How many connections without a request are kept for the next ones.
const IDLE: usize = 8;
/// How long the server may take to read what is sent to it.
const MESSAGE_TIME: Duration = Duration::from_secs(60);

/// The connections, by the kind of the server.
enum Live {
    /// One for all requests.
    Shared(Queue),
    /// Those that have no request under way.
    Single(Vec<(Reader, Writer)>),
}

/// A connection that a request can go out on.
enum Taken {
    Shared(Queue),
    Single(Box<(Reader, Writer)>),
}

/// A client of a request server. Connects when it is first used, and again after the connection broke.
#[derive(Clone)]
pub struct RequestClient {
    endpoint: Endpoint,
    limits: Limits,
    live: Arc<Mutex<Option<Live>>>,
    /// Held while connecting to a server that may take all requests over one connection.
    connecting: Arc<tokio::sync::Mutex<()>>,
}

impl RequestClient {
    /// A client of the server at this address.
    pub fn new(endpoint: Endpoint, limits: Limits) -> Self {
        RequestClient { endpoint, limits, live: Arc::default(), connecting: Arc::default() }
    }

    /// Returns the address of the server.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a request and waits for its reply.
    pub async fn request(&self, request: impl Into<Bytes>, timeout: Duration) -> Result<Bytes, TransportError> {
        let exchange = async {
            match self.connected().await? {
                Taken::Shared(queue) => {
                    let (reply, answer) = oneshot::channel();
                    queue.send((request.into(), reply)).await.map_err(|_| TransportError::Closed)?;
                    answer.await.map_err(|_| TransportError::Closed)
                }
                Taken::Single(connection) => self.exchange_alone(*connection, &request.into()).await,
            }
        };
        let timed_out = |_| TransportError::TimedOut { endpoint: self.endpoint.to_string(), after: timeout };
        tokio::time::timeout(timeout, exchange).await.map_err(timed_out)?
    }

    async fn connected(&self) -> Result<Taken, TransportError> {
        if let Some(taken) = self.take() {
            return Ok(taken);
        }
        if matches!(*self.live.lock(), Some(Live::Single(_))) {
            // Each request has a connection of its own: none waits for that of another.
            return self.connect().await;
        }
        let _one_at_a_time = self.connecting.lock().await;
        match self.take() {
            Some(taken) => Ok(taken),
            None => self.connect().await,
        }
    }

    /// Takes a connection that is there.
    fn take(&self) -> Option<Taken> {
        match self.live.lock().as_mut()? {
            Live::Shared(queue) if !queue.is_closed() => Some(Taken::Shared(queue.clone())),
            Live::Shared(_) => None,
            Live::Single(idle) => idle.pop().map(|connection| Taken::Single(Box::new(connection))),
        }
    }

    async fn connect(&self) -> Result<Taken, TransportError> {
        let (reader, writer) = zmtp::connect(&self.endpoint, SocketType::Dealer, self.limits).await?;
        let mut live = self.live.lock();
        if !reader.any_order() {
            if !matches!(*live, Some(Live::Single(_))) {
                *live = Some(Live::Single(Vec::new()));
            }
            return Ok(Taken::Single(Box::new((reader, writer))));
        }
        let (queue, requests) = mpsc::channel(256);
        tokio::spawn(async move {
            // Whoever waits for a reply sees its channel closed.
            let endpoint_lost = exchange(reader, writer, requests).await;
            tracing::debug!(reason = ?endpoint_lost, "a request connection ended");
        });
        *live = Some(Live::Shared(queue.clone()));
        Ok(Taken::Shared(queue))
    }

    /// Sends a request over a connection of its own. Whoever gives up waiting drops the connection, and with it
    /// the reply.
    async fn exchange_alone(
        &self,
        (mut reader, mut writer): (Reader, Writer),
        request: &Bytes,
    ) -> Result<Bytes, TransportError> {
        writer.push(&[&b""[..], request]);
        let reply = async {
            loop {
                writer.flush().await?;
                match reader.read().await? {
                    Message::Frames(frames) => match &frames[..] {
                        [empty, reply] if empty.is_empty() => return Ok(reply.clone()),
                        _ => return Err(TransportError::Malformed("a reply has two frames")),
                    },
                    Message::Command(command) => {
                        if let Some(pong) = zmtp::pong(&command) {
                            writer.push_command(&pong);
                        }
                    }
                    Message::Dropped(_) => return Err(TransportError::Malformed("a reply is too large")),
                }
            }
        };
        let reply: Result<Bytes, TransportError> = reply.await;
        if let Some(Live::Single(idle)) = self.live.lock().as_mut() {
            match &reply {
                Ok(_) if idle.len() < IDLE => idle.push((reader, writer)),
                Ok(_) => {}
                // The others will have gone the same way.
                Err(_) => idle.clear(),
            }
        }
        reply
    }
}

/// The requests that wait for a reply, by their number.
type Waiting = Mutex<HashMap<u32, Reply>>;

async fn exchange(
    reader: Reader,
    writer: Writer,
    requests: mpsc::Receiver<(Bytes, Reply)>,
) -> Result<(), TransportError> {
    let waiting = Waiting::default();
    let connection = Connection::new(reader, writer, Some(MESSAGE_TIME));
    let asking = Asking { requests, waiting: &waiting, number: 0 };
    tokio::select! {
        ended = take_replies(connection.incoming, &waiting) => ended,
        ended = connection.outgoing.run(asking) => ended,
    }
}

/// The requests as they are written.
struct Asking<'a> {
    requests: mpsc::Receiver<(Bytes, Reply)>,
    waiting: &'a Waiting,
    number: u32,
}

impl Source for Asking<'_> {
    async fn next(&mut self, out: &mut Writer) -> Result<bool, TransportError> {
        let Some(mut request) = self.requests.recv().await else { return Ok(false) };
        // Who gave up waiting would stay here for ever if the server never answered.
        self.waiting.lock().retain(|_, reply| !reply.is_closed());
        loop {
            let (content, reply) = request;
            self.number = self.number.wrapping_add(1);
            self.waiting.lock().insert(self.number, reply);
            let number = Bytes::copy_from_slice(&self.number.to_be_bytes());
            if out.push_content(&[number, Bytes::new()], &content) {
                return Ok(true);
            }
            match self.requests.try_recv() {
                Ok(next) => request = next,
                Err(_) => return Ok(true),
            }
        }
    }
}

async fn take_replies(mut incoming: Incoming, waiting: &Waiting) -> Result<(), TransportError> {
    loop {
        let Message::Frames(frames) = incoming.read().await? else { continue };
        let [number, empty, reply] = &frames[..] else {
            return Err(TransportError::Malformed("a reply has three frames"));
        };
        let number = number[..].try_into().map(u32::from_be_bytes);
        if let (Ok(number), true) = (number, empty.is_empty()) {
            // The one who asked may have given up.
            let waiter = waiting.lock().remove(&number);
            waiter.map(|waiter| waiter.send(reply.clone()));
        }
    }
}

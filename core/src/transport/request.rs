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
use tokio::sync::{Mutex, mpsc, oneshot};

use super::zmtp::{self, Limits, Message, Reader, SocketType, Writer};
use super::{Endpoint, TransportError};

type Reply = oneshot::Sender<Bytes>;
type Queue = mpsc::Sender<(Bytes, Reply)>;

/// How many connections without a request are kept for the next ones.
const IDLE: usize = 8;

/// What there is of connections.
enum Live {
    /// One for all requests.
    Shared(Queue),
    /// Those that have no request under way.
    Single(Vec<(Reader, Writer)>),
}

/// A connection that a request can go out on.
enum Connection {
    Shared(Queue),
    Single(Box<(Reader, Writer)>),
}

/// A client of a request server. Connects when it is first used, and again after the connection broke.
#[derive(Clone)]
pub struct RequestClient {
    endpoint: Endpoint,
    limits: Limits,
    live: Arc<Mutex<Option<Live>>>,
}

impl RequestClient {
    /// A client of the server at this address.
    pub fn new(endpoint: Endpoint, limits: Limits) -> Self {
        RequestClient { endpoint, limits, live: Arc::default() }
    }

    /// Where the server is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a request and waits for its reply.
    pub async fn request(&self, request: impl Into<Bytes>, timeout: Duration) -> Result<Bytes, TransportError> {
        let exchange = async {
            match self.connected().await? {
                Connection::Shared(queue) => {
                    let (reply, answer) = oneshot::channel();
                    queue.send((request.into(), reply)).await.map_err(|_| TransportError::Closed)?;
                    answer.await.map_err(|_| TransportError::Closed)
                }
                Connection::Single(connection) => self.exchange_alone(*connection, &request.into()).await,
            }
        };
        let timed_out = |_| TransportError::TimedOut { endpoint: self.endpoint.to_string(), after: timeout };
        tokio::time::timeout(timeout, exchange).await.map_err(timed_out)?
    }

    /// Closes the connections that there are: the next request makes a new one.
    pub async fn disconnect(&self) {
        self.live.lock().await.take();
    }

    async fn connected(&self) -> Result<Connection, TransportError> {
        let mut live = self.live.lock().await;
        match live.as_mut() {
            Some(Live::Shared(queue)) if !queue.is_closed() => return Ok(Connection::Shared(queue.clone())),
            Some(Live::Single(idle)) => {
                if let Some(connection) = idle.pop() {
                    return Ok(Connection::Single(Box::new(connection)));
                }
            }
            _ => {}
        }
        let (reader, writer) = zmtp::connect(&self.endpoint, SocketType::Dealer, self.limits).await?;
        if !reader.any_order() {
            if !matches!(*live, Some(Live::Single(_))) {
                *live = Some(Live::Single(Vec::new()));
            }
            return Ok(Connection::Single(Box::new((reader, writer))));
        }
        let (queue, requests) = mpsc::channel(256);
        tokio::spawn(async move {
            // Whoever waits for a reply sees its channel closed.
            let endpoint_lost = exchange(reader, writer, requests).await;
            tracing::debug!(reason = ?endpoint_lost, "a request connection ended");
        });
        *live = Some(Live::Shared(queue.clone()));
        Ok(Connection::Shared(queue))
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
            writer.flush().await?;
            loop {
                match reader.read().await? {
                    Message::Frames(frames) => match &frames[..] {
                        [empty, reply] if empty.is_empty() => return Ok(reply.clone()),
                        _ => return Err(TransportError::Malformed("a reply has two frames")),
                    },
                    Message::Command(command) => {
                        if let Some(pong) = zmtp::pong(&command) {
                            writer.push_command(&pong);
                            writer.flush().await?;
                        }
                    }
                }
            }
        };
        let reply: Result<Bytes, TransportError> = reply.await;
        let mut live = self.live.lock().await;
        match (&reply, live.as_mut()) {
            (Ok(_), Some(Live::Single(idle))) if idle.len() < IDLE => idle.push((reader, writer)),
            (Ok(_), _) => {}
            // The others will have gone the same way.
            (Err(_), _) => _ = live.take(),
        }
        reply
    }
}

async fn exchange(
    mut reader: Reader,
    mut writer: Writer,
    mut requests: mpsc::Receiver<(Bytes, Reply)>,
) -> Result<(), TransportError> {
    let mut waiting: HashMap<u32, Reply> = HashMap::new();
    let mut number = 0u32;
    loop {
        tokio::select! {
            request = requests.recv() => {
                let Some(mut request) = request else { return Ok(()) };
                loop {
                    number = number.wrapping_add(1);
                    waiting.insert(number, request.1);
                    writer.push(&[&number.to_be_bytes()[..], b"", &request.0]);
                    match requests.try_recv() {
                        Ok(next) => request = next,
                        Err(_) => break,
                    }
                }
                // Who gave up waiting would stay here for ever if the server never answered.
                waiting.retain(|_, reply| !reply.is_closed());
                writer.flush().await?;
            }
            message = reader.read() => {
                let Message::Frames(frames) = message? else { continue };
                let [number, empty, reply] = &frames[..] else {
                    return Err(TransportError::Malformed("a reply has three frames"));
                };
                let number = number[..].try_into().map(u32::from_be_bytes);
                if let (Ok(number), true) = (number, empty.is_empty()) {
                    // The one who asked may have given up.
                    waiting.remove(&number).map(|waiter| waiter.send(reply.clone()));
                }
            }
        }
    }
}

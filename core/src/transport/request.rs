//! The request client: many requests at a time over one connection, each matched to its reply.
//!
//! A request carries a number in front of the empty frame; request servers send back whatever stands
//! there, so replies may come in any order.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, mpsc, oneshot};

use super::zmtp::{self, Limits, Message, Reader, SocketType, Writer};
use super::{Endpoint, TransportError};

type Reply = oneshot::Sender<Bytes>;
type Queue = mpsc::Sender<(Bytes, Reply)>;

/// A client of a request server. Connects when it is first used, and again after the connection broke.
#[derive(Clone)]
pub struct RequestClient {
    endpoint: Endpoint,
    limits: Limits,
    live: Arc<Mutex<Option<Queue>>>,
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
            let (reply, answer) = oneshot::channel();
            let queue = self.connected().await?;
            queue.send((request.into(), reply)).await.map_err(|_| TransportError::Closed)?;
            answer.await.map_err(|_| TransportError::Closed)
        };
        let timed_out = |_| TransportError::TimedOut { endpoint: self.endpoint.to_string(), after: timeout };
        tokio::time::timeout(timeout, exchange).await.map_err(timed_out)?
    }

    /// Closes the connection, if there is one: the next request makes a new one.
    pub async fn disconnect(&self) {
        self.live.lock().await.take();
    }

    async fn connected(&self) -> Result<Queue, TransportError> {
        let mut live = self.live.lock().await;
        if let Some(queue) = live.as_ref().filter(|queue| !queue.is_closed()) {
            return Ok(queue.clone());
        }
        let (reader, writer) = zmtp::connect(&self.endpoint, SocketType::Dealer, self.limits).await?;
        let (queue, requests) = mpsc::channel(256);
        tokio::spawn(async move {
            // Whoever waits for a reply sees its channel closed.
            let endpoint_lost = exchange(reader, writer, requests).await;
            tracing::debug!(reason = ?endpoint_lost, "a request connection ended");
        });
        *live = Some(queue.clone());
        Ok(queue)
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

//! The publisher: one message to all who subscribe, encoded once.
//!
//! A subscriber that does not keep up misses messages, as ZeroMQ's PUB has it, but it is counted and
//! logged. What must not be lost does not rest on this; the event bus serves its own subscribers.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;

use super::zmtp::{self, Limits, Reader, SocketType, Writer};
use super::{Listener, TransportError};
use crate::metrics;

/// How many messages a subscriber may be behind.
const BEHIND: usize = 1024;

#[derive(Debug, Clone)]
struct Published {
    topic: Bytes,
    frames: Bytes,
    /// Only for who has asked for this topic by name.
    by_name: bool,
}

/// Sends messages to all subscribers.
#[derive(Debug, Clone)]
pub struct Publisher {
    channel: broadcast::Sender<Published>,
    hosts: Hosts,
}

/// How many subscribers there are at each address.
type Hosts = Arc<Mutex<HashMap<IpAddr, usize>>>;

impl Default for Publisher {
    fn default() -> Self {
        Self::new()
    }
}

impl Publisher {
    /// A publisher without subscribers.
    pub fn new() -> Self {
        Publisher { channel: broadcast::channel(BEHIND).0, hosts: Hosts::default() }
    }

    /// Publishes a message of one or more frames; subscriptions look at the first. Says how many
    /// connections there are.
    pub fn publish(&self, frames: &[Bytes]) -> usize {
        self.send(frames, false)
    }

    /// As [`Publisher::publish`], but only to who has subscribed to some of the topic: not to who has subscribed
    /// to everything, as Salt's minions do, which take each frame of a message for one of its own.
    pub fn publish_by_name(&self, frames: &[Bytes]) -> usize {
        self.send(frames, true)
    }

    fn send(&self, frames: &[Bytes], by_name: bool) -> usize {
        let Some(topic) = frames.first() else { return 0 };
        let mut encoded = BytesMut::with_capacity(frames.iter().map(|frame| frame.len() + 9).sum());
        for (i, frame) in frames.iter().enumerate() {
            zmtp::put_frame(&mut encoded, frame, u8::from(i + 1 < frames.len()));
        }
        // An error says that nobody is connected.
        self.channel.send(Published { topic: topic.clone(), frames: encoded.freeze(), by_name }).unwrap_or(0)
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.channel.receiver_count()
    }

    /// How many connections there are from each address of another machine, or of this one's loopback.
    pub fn hosts(&self) -> HashMap<IpAddr, usize> {
        self.hosts.lock().clone()
    }

    /// Serves subscribers until `shutdown`.
    pub async fn serve(self, listener: Listener, shutdown: CancellationToken) {
        // Subscribers send nothing but their subscriptions.
        let limits = Limits { message: 4096, frames: 1 };
        loop {
            let accepted = tokio::select! {
                accepted = zmtp::accept_raw(&listener) => accepted,
                () = shutdown.cancelled() => return,
            };
            let (messages, shutdown, hosts) = (self.channel.subscribe(), shutdown.clone(), Arc::clone(&self.hosts));
            tokio::spawn(async move {
                let address = accepted.address.clone();
                let served = async {
                    let (reader, writer) = accepted.handshake(SocketType::Pub, limits).await?;
                    let _counted = Counted::new(hosts, &address);
                    serve_subscriber(reader, writer, messages, &address).await
                };
                let result = tokio::select! {
                    result = served => result,
                    () = shutdown.cancelled() => Ok(()),
                };
                match result {
                    Ok(()) | Err(TransportError::Closed) => {}
                    Err(error) => {
                        metrics::CONNECTIONS_REFUSED.add(1);
                        tracing::warn!(peer = %address, %error, "a subscriber's connection is closed");
                    }
                }
            });
        }
    }
}

/// One subscriber in [`Publisher::hosts`], for as long as it is connected.
struct Counted {
    hosts: Hosts,
    host: Option<IpAddr>,
}

impl Counted {
    fn new(hosts: Hosts, address: &str) -> Self {
        // Who comes by a unix socket has no address.
        let host = address.parse().ok().map(|address: SocketAddr| address.ip().to_canonical());
        if let Some(host) = host {
            *hosts.lock().entry(host).or_default() += 1;
        }
        Counted { hosts, host }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Some(host) = self.host else { return };
        let mut hosts = self.hosts.lock();
        if let Some(count) = hosts.get_mut(&host) {
            *count -= 1;
            if *count == 0 {
                hosts.remove(&host);
            }
        }
    }
}

async fn serve_subscriber(
    mut reader: Reader,
    mut writer: Writer,
    mut messages: broadcast::Receiver<Published>,
    address: &str,
) -> Result<(), TransportError> {
    let mut wanted = zmtp::Subscriptions::default();
    // What is published before the first subscription has arrived waits for it.
    while wanted.0.is_empty() {
        wanted.change(&reader.read().await?);
    }
    loop {
        tokio::select! {
            message = messages.recv() => match message {
                Ok(message) if wanted.wants(&message.topic, message.by_name) => writer.write_raw(&message.frames).await?,
                Ok(_) => {}
                Err(RecvError::Lagged(count)) => {
                    metrics::PUBLISHES_LOST.add(count);
                    tracing::warn!(peer = %address, count, "a subscriber is too slow and missed publishes");
                }
                Err(RecvError::Closed) => return Ok(()),
            },
            message = reader.read() => wanted.change(&message?),
        }
    }
}

//! The publisher: one message to all who subscribe, encoded once.
//!
//! A subscriber that does not keep up is disconnected, counted and logged: it connects again and knows that it may have
//! missed something. What must not be lost does not rest on this; the event bus serves its own subscribers.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::audience::{Audience, Delivery};
use super::backlog::{Backlog, Behind, Place, Published};
use super::bounds::Bounds;
use super::connection::{Connection, Source};
use super::server::{Remote, Server, Service};
use super::subscriptions::Subscribed;
use super::zmtp::{self, Limits, SocketType};
use super::{Listener, TransportError, Writer};
use crate::metrics;

/// How long what is published is kept for a connection whose first subscription has not arrived.
const SUBSCRIBE_TIME: Duration = Duration::from_secs(10);

/// Sends messages to all subscribers.
#[derive(Debug, Clone, Default)]
pub struct Publisher {
    backlog: Arc<Backlog>,
    hosts: Hosts,
}

/// How many subscribers there are at each address.
type Hosts = Arc<Mutex<HashMap<IpAddr, usize>>>;

impl Publisher {
    /// Creates a publisher without subscribers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Publishes a message of one or more frames; subscriptions look at the first. Returns how many
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
        self.backlog
            .push(Published { audience: Audience::Topic { topic: topic.clone(), by_name }, frames: encode(frames) })
    }

    /// Publishes a message of one frame to the subscribers of some topics, each of which gets it once: behind a frame with
    /// the topic, as Salt's minions with `zmq_filtering` do, or alone, if the subscriber subscribes to everything, as
    /// minions without that option do. Returns how many connections there are.
    pub fn publish_under(&self, topics: Vec<Bytes>, content: &Bytes) -> usize {
        let frames = encode(std::slice::from_ref(content));
        self.backlog.push(Published { audience: Audience::of_topics(topics), frames })
    }

    /// Returns how many connections there are.
    pub fn connections(&self) -> usize {
        self.backlog.places()
    }

    /// Returns how many connections there are from each address of another machine, or of this one's loopback.
    pub fn hosts(&self) -> HashMap<IpAddr, usize> {
        self.hosts.lock().clone()
    }

    /// Serves subscribers until `shutdown`.
    pub async fn serve(self, listener: Listener, bounds: Bounds, shutdown: CancellationToken) {
        // Subscribers send nothing but their subscriptions.
        let limits = Limits { message: 4096, frames: 1 };
        let server = Server { listener, role: SocketType::Pub, limits, bounds: Some(bounds) };
        server.run(self, shutdown).await;
    }
}

impl Service for Publisher {
    type Session = Place;

    /// What is published from here on reaches the subscriber.
    fn accepted(&self) -> Option<Place> {
        Some(self.backlog.place())
    }

    async fn serve(&self, place: Place, remote: Remote, connection: Connection) -> Result<(), TransportError> {
        let _counted = Counted::new(Arc::clone(&self.hosts), &remote);
        let wanted = Subscribed::default();
        let publishing = Publishing { place, wanted: &wanted, is_writing: false };
        let result = tokio::select! {
            error = wanted.follow(connection.incoming) => Err(error),
            ended = connection.outgoing.run(publishing) => ended,
        };
        if let Err(TransportError::Behind { count }) = result {
            metrics::SUBSCRIBERS_DROPPED.add(1);
            metrics::PUBLISHES_LOST.add(count);
        }
        result
    }
}

/// Returns a message as it is written.
fn encode(frames: &[Bytes]) -> Bytes {
    let mut encoded = BytesMut::with_capacity(frames.iter().map(|frame| frame.len() + 9).sum());
    for (i, frame) in frames.iter().enumerate() {
        zmtp::put_frame(&mut encoded, frame, u8::from(i + 1 < frames.len()));
    }
    encoded.freeze()
}

/// What is written to one subscriber.
struct Publishing<'a> {
    place: Place,
    wanted: &'a Subscribed,
    /// The message of the place is with the writer.
    is_writing: bool,
}

impl Publishing<'_> {
    /// What is published before the first subscription has arrived waits for it, but not for ever.
    async fn subscribed(&mut self) {
        let first = async {
            while self.wanted.is_empty() {
                self.wanted.changed().await;
            }
        };
        if tokio::time::timeout(SUBSCRIBE_TIME, first).await.is_ok() {
            return;
        }
        while self.wanted.is_empty() {
            self.place.skip_all();
            tokio::select! {
                () = self.wanted.changed() => {}
                // Nothing is kept for it, and it does not fall behind.
                _ = self.place.message() => {}
            }
        }
    }
}

impl Source for Publishing<'_> {
    async fn next(&mut self, out: &mut Writer) -> Result<bool, TransportError> {
        if std::mem::take(&mut self.is_writing) {
            self.place.advance();
        }
        if self.wanted.is_empty() {
            self.subscribed().await;
        }
        loop {
            let message = self.place.message().await.map_err(|Behind(count)| TransportError::Behind { count })?;
            match self.wanted.delivery(&message.audience) {
                Delivery::Not => {
                    self.place.advance();
                    continue;
                }
                Delivery::Plain => {}
                Delivery::Under(topic) => out.push_more(topic),
            }
            out.push_shared(&message.frames);
            self.is_writing = true;
            return Ok(true);
        }
    }

    async fn stale(&mut self) -> TransportError {
        let Behind(count) = self.place.left_behind().await;
        TransportError::Behind { count }
    }
}

/// One subscriber in [`Publisher::hosts`], for as long as it is connected.
struct Counted {
    hosts: Hosts,
    host: Option<IpAddr>,
}

impl Counted {
    fn new(hosts: Hosts, remote: &Remote) -> Self {
        // Who comes by a unix socket has no address.
        let host = remote.socket.map(|address| address.ip().to_canonical());
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

//! The publisher: sends one message, encoded once, to all matching subscribers.
//!
//! A subscriber that lags too far behind is disconnected, counted and logged. When it reconnects, it knows that it may
//! have missed messages. Delivery that must be reliable does not rely on this socket; the event bus serves its own
//! subscribers.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::audience::{Audience, Delivery};
use super::backlog::{Backlog, Cursor, Lagged, Published};
use super::bounds::Bounds;
use super::connection::{Connection, Source};
use super::handshake::SocketType;
use super::salt_tcp;
use super::server::{Remote, Server, Service};
use super::subscribed::Subscribed;
use super::zmtp::{self, Framing, Limits};
use super::{Listener, TransportError, Writer};
use crate::metrics;

/// The time for which messages are buffered for a connection without a subscription.
const SUBSCRIBE_TIME: Duration = Duration::from_secs(10);

/// Sends messages to all subscribers.
#[derive(Debug, Clone, Default)]
pub struct Publisher {
    framing: Framing,
    backlog: Arc<Backlog>,
    hosts: Hosts,
}

/// The number of subscribers of each address.
type Hosts = Arc<Mutex<HashMap<IpAddr, usize>>>;

impl Publisher {
    /// Creates a publisher without subscribers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a publisher whose subscribers expect this framing. With Salt's framing they receive only the last frame
    /// of a message, and no topics.
    pub fn with_framing(framing: Framing) -> Self {
        Publisher { framing, ..Self::default() }
    }

    /// Publishes a message of one or more frames; subscriptions match the first. Returns the number of connections.
    pub fn publish(&self, frames: &[Bytes]) -> usize {
        self.send(frames, false)
    }

    /// Publishes like [`Publisher::publish`], but only to subscribers of a non-empty prefix of the topic. Subscribers
    /// of everything are skipped: Salt's minions are such, and treat each frame as a message.
    pub fn publish_by_name(&self, frames: &[Bytes]) -> usize {
        self.send(frames, true)
    }

    fn send(&self, frames: &[Bytes], by_name: bool) -> usize {
        let Some(topic) = frames.first() else { return 0 };
        let audience = Audience::Topic { topic: topic.clone(), by_name };
        self.backlog.push(Published { audience, frames: self.encode(frames) })
    }

    /// Publishes a message of one frame to the subscribers of these topics. Each gets it once: after a frame with the
    /// topic (Salt's minions with `zmq_filtering`), or alone if it subscribes to everything (minions without that
    /// option). Returns the number of connections.
    pub fn publish_under(&self, topics: Vec<Bytes>, content: &Bytes) -> usize {
        let frames = self.encode(std::slice::from_ref(content));
        self.backlog.push(Published { audience: Audience::of_topics(topics), frames })
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        self.backlog.cursors()
    }

    /// Returns the number of connections from each network address, including loopback.
    pub fn hosts(&self) -> HashMap<IpAddr, usize> {
        self.hosts.lock().clone()
    }

    /// Serves subscribers until `shutdown`.
    pub async fn serve(self, listener: Listener, bounds: Bounds, shutdown: CancellationToken) {
        // Subscribers send only subscriptions.
        let limits = Limits { framing: self.framing, message: 4096, frames: 1, ..Limits::default() };
        let server = Server { listener, role: SocketType::Pub, limits, bounds: Some(bounds) };
        server.run(self, shutdown).await;
    }

    /// Encodes a message.
    fn encode(&self, frames: &[Bytes]) -> Bytes {
        match self.framing {
            Framing::Zmtp => encode_frames(frames),
            Framing::Salt => salt_tcp::encode(frames.last().map_or(&[], Bytes::as_ref)),
        }
    }
}

impl Service for Publisher {
    type Session = Cursor;

    /// Opens a cursor for the subscriber: it receives everything published from now on.
    fn accepted(&self) -> Option<Cursor> {
        Some(self.backlog.open_cursor())
    }

    async fn serve(&self, cursor: Cursor, remote: Remote, connection: Connection) -> Result<(), TransportError> {
        let _counted = Counted::new(Arc::clone(&self.hosts), &remote);
        let topics = Subscribed::default();
        let publishing = Publishing { cursor, wanted: &topics, is_writing: false };
        let result = tokio::select! {
            error = topics.follow(connection.incoming) => Err(error),
            ended = connection.outgoing.run(publishing) => ended,
        };
        if let Err(TransportError::Lagged { count }) = result {
            metrics::SUBSCRIBERS_DROPPED.add(1);
            metrics::PUBLISHES_LOST.add(count);
        }
        result
    }
}

/// Encodes a message of ZMTP.
fn encode_frames(frames: &[Bytes]) -> Bytes {
    let mut encoded = BytesMut::with_capacity(frames.iter().map(|frame| frame.len() + 9).sum());
    for (i, frame) in frames.iter().enumerate() {
        zmtp::put_frame(&mut encoded, frame, u8::from(i + 1 < frames.len()));
    }
    encoded.freeze()
}

/// Writes publishes to one subscriber.
struct Publishing<'a> {
    cursor: Cursor,
    wanted: &'a Subscribed,
    /// Whether the message at the cursor was passed to the writer.
    is_writing: bool,
}

impl Publishing<'_> {
    /// Waits for the first subscription. Messages published meanwhile are buffered for [`SUBSCRIBE_TIME`], and skipped
    /// afterwards.
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
            self.cursor.skip_all();
            tokio::select! {
                () = self.wanted.changed() => {}
                // Without subscriptions, no message is buffered for it, and it never counts as lagging.
                _ = self.cursor.message() => {}
            }
        }
    }
}

impl Source for Publishing<'_> {
    async fn next(&mut self, out: &mut Writer) -> Result<bool, TransportError> {
        if std::mem::take(&mut self.is_writing) {
            self.cursor.advance();
        }
        if self.wanted.is_empty() {
            self.subscribed().await;
        }
        loop {
            let message = self.cursor.message().await.map_err(|Lagged(count)| TransportError::Lagged { count })?;
            match self.wanted.delivery(&message.audience) {
                Delivery::Skip => {
                    self.cursor.advance();
                    continue;
                }
                Delivery::WithoutTopic => {}
                Delivery::WithTopic(topic) => out.push_more(topic),
            }
            out.push_shared(&message.frames);
            self.is_writing = true;
            return Ok(true);
        }
    }

    async fn stale(&mut self) -> TransportError {
        let Lagged(count) = self.cursor.dropped().await;
        TransportError::Lagged { count }
    }
}

/// Counts one subscriber in [`Publisher::hosts`] until dropped.
struct Counted {
    hosts: Hosts,
    host: Option<IpAddr>,
}

impl Counted {
    fn new(hosts: Hosts, remote: &Remote) -> Self {
        // Peers on a unix socket have no address.
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

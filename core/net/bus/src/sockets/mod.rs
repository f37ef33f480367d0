//! The bus on ZeroMQ sockets: a process that may open `*_event_pull.ipc` can publish, one that may open
//! `*_event_pub.ipc` can subscribe. Salt's own clients use the same files, see `salt_clients`.
//!
//! Each connection is a subscription of the bus: a slow one lags and reads from the journal; no event is dropped.

mod salt_clients;

use std::path::Path;

use brine_event::Event;
use brine_runtime::executors::Executor;
use brine_zmtp::{
    Connection, Endpoint, ForeignStream, Limits, Listener, Pull, Remote, Server, Service, SilenceTimeout, SocketType,
    Source, Subscribed, TransportError, Writer,
};
use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::metrics;
use crate::{Bus, BusError, Filter, Start, Subscription};

/// The names of the two sockets below `sock_dir`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketNames {
    /// The socket on which events are received.
    pub pull: String,
    /// The socket on which events are published.
    pub publish: String,
}

impl SocketNames {
    /// Returns the names of the master's sockets.
    pub fn master() -> Self {
        SocketNames { pull: "master_event_pull.ipc".into(), publish: "master_event_pub.ipc".into() }
    }

    /// Returns the names of a minion's sockets: they contain the first ten digits of the SHA-256 of its id.
    pub fn minion(id: &str) -> Self {
        use sha2::Digest;
        let digest = sha2::Sha256::digest(id.as_bytes());
        let hash = format!("{:010x}", digest.iter().take(5).fold(0u64, |hash, byte| hash << 8 | u64::from(*byte)));
        SocketNames { pull: format!("minion_event_{hash}_pull.ipc"), publish: format!("minion_event_{hash}_pub.ipc") }
    }

    /// Returns the address of the socket on which events are received.
    pub fn pull_endpoint(&self, sock_dir: &Path) -> Endpoint {
        Endpoint::Ipc(sock_dir.join(&self.pull))
    }

    /// Returns the address of the socket on which events are published.
    pub fn publish_endpoint(&self, sock_dir: &Path) -> Endpoint {
        Endpoint::Ipc(sock_dir.join(&self.publish))
    }
}

/// The two listening sockets.
pub struct EventSockets {
    pull: Listener,
    publish: Listener,
}

impl EventSockets {
    /// Binds both sockets below `sock_dir`.
    pub async fn bind(sock_dir: &Path, names: &SocketNames) -> Result<Self, TransportError> {
        Ok(EventSockets {
            pull: Listener::bind(&names.pull_endpoint(sock_dir)).await?,
            publish: Listener::bind(&names.publish_endpoint(sock_dir)).await?,
        })
    }

    /// Serves both sockets until `shutdown`.
    pub async fn serve(self, bus: Bus, shutdown: CancellationToken) {
        let publishing = bus.clone();
        let receive = move |frames| publish_received(publishing.clone(), frames);
        let limits = Limits { message: bus.inner.limits.event, frames: 1, ..Limits::default() };
        let subscriptions = Limits { message: 8192, frames: 1, ..Limits::default() };
        let publisher = Server { listener: self.publish, role: SocketType::Pub, limits: subscriptions, bounds: None };
        let own = bus.clone();
        let receive_foreign = move |peer| salt_clients::receive(own.clone(), peer);
        tokio::join!(
            Pull::serve_any(self.pull, receive, receive_foreign, limits, shutdown.clone()),
            publisher.run(Subscribers::new(bus), shutdown),
        );
    }
}

/// Publishes received events, one directly after the other. Invalid events are counted and logged.
pub(crate) async fn publish_received(bus: Bus, frames: Vec<Bytes>) {
    let mut events = Vec::with_capacity(frames.len());
    for frame in frames {
        match Event::from_frame(frame) {
            Ok(event) => events.push(event),
            Err(error) => {
                metrics::EVENTS_REFUSED.add(1);
                tracing::warn!(%error, "received event refused");
            }
        }
    }
    for result in bus.fire_each(&events).await {
        match result {
            Ok(_) | Err(BusError::Closed | BusError::NotPersisted(_)) => {}
            // The bus counts the events that it refuses.
            Err(error) => tracing::warn!(%error, "received event refused"),
        }
    }
}

/// The prefix with which a subscriber requests earlier events: followed by the sequence number of the first one in
/// decimal digits, and subscribed to before any other prefix. No tag begins with it.
pub const SINCE: &[u8] = b"\0since/";

/// Serves subscribers on the publishing socket. The lag of a slow subscriber is not limited in time: it is a program on
/// this host with access to the socket.
struct Subscribers {
    bus: Bus,
    /// Reads the files of subscribers' processes. They may be on a file system of such a process, which can hang: no
    /// other work waits for these threads.
    files: Executor,
}

/// The threads and the queue of the executor `subscribers`.
const FILE_THREADS: usize = 4;
const FILE_QUEUE: usize = 1024;

impl Subscribers {
    fn new(bus: Bus) -> Self {
        Subscribers { bus, files: Executor::new("subscribers", FILE_THREADS, FILE_QUEUE) }
    }
}

impl Service for Subscribers {
    type Session = Subscription;

    /// The subscription starts before the handshake: events published after the subscriber is connected will reach it,
    /// even if its subscription message is still in transit.
    fn accepted(&self) -> Option<Subscription> {
        self.bus.subscribe(Filter::Prefixes(Vec::new()), Start::Now).ok()
    }

    async fn silence_timeout(&self, process: Option<i32>) -> Option<SilenceTimeout> {
        Some(salt_clients::silence_timeout(process, &self.files).await)
    }

    async fn serve_foreign(
        &self,
        subscription: Subscription,
        process: Option<i32>,
        peer: ForeignStream,
    ) -> Result<(), TransportError> {
        metrics::SUBSCRIBERS.add(1);
        let _counted = Counted;
        salt_clients::follow(subscription, process, peer, &self.files).await
    }

    async fn serve(&self, subscription: Subscription, _: Remote, connection: Connection) -> Result<(), TransportError> {
        metrics::SUBSCRIBERS.add(1);
        let _counted = Counted;
        let subscribed = Subscribed::default();
        let source = EventSource { subscription, subscribed: &subscribed, has_begun: false };
        tokio::select! {
            error = subscribed.follow(connection.incoming) => Err(error),
            ended = connection.outgoing.run(source) => ended,
        }
    }
}

/// Counts one subscriber in [`metrics::SUBSCRIBERS`] until dropped.
struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        metrics::SUBSCRIBERS.sub(1);
    }
}

/// Sends events to one subscriber.
struct EventSource<'a> {
    subscription: Subscription,
    subscribed: &'a Subscribed,
    /// Whether the peer has subscribed to any prefix yet.
    has_begun: bool,
}

impl EventSource<'_> {
    /// Applies the peer's prefixes to the filter. Until the peer has subscribed to any, a number after [`SINCE`] sets
    /// the first event.
    fn follow(&mut self) {
        let prefixes = self.subscribed.prefixes();
        if !self.has_begun
            && let Some(seq) = prefixes.iter().find_map(|prefix| since(prefix))
        {
            self.subscription.begin_at(seq);
        }
        self.has_begun = !prefixes.is_empty();
        self.subscription.set_filter(Filter::Prefixes(prefixes));
    }
}

/// Returns the number of the first event that a peer requests with this prefix.
fn since(prefix: &[u8]) -> Option<u64> {
    std::str::from_utf8(prefix.strip_prefix(SINCE)?).ok()?.parse().ok()
}

impl Source for EventSource<'_> {
    async fn next(&mut self, out: &mut Writer) -> Result<bool, TransportError> {
        loop {
            let is_subscribed = !self.subscribed.is_empty();
            tokio::select! {
                biased;
                () = self.subscribed.changed() => self.follow(),
                events = self.subscription.recv_many(), if is_subscribed => {
                    let Some(events) = events else { return Ok(false) };
                    for event in &events {
                        out.push(&[event.frame()]);
                    }
                    return Ok(true);
                }
            }
        }
    }
}

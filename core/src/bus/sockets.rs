//! The bus on ZeroMQ sockets: whoever may open `*_event_pull.ipc` can fire, whoever may open
//! `*_event_pub.ipc` can follow.
//!
//! Each follower is a subscription of the bus: one that reads slowly lags, and reads on from the
//! journal; nothing is dropped on the way.

use std::path::Path;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::{Bus, BusError, Filter, Start, Subscription};
use crate::event::Event;
use crate::metrics;
use crate::transport::{self, Endpoint, Limits, Listener, Pull, SocketType, Subscriptions, TransportError};

/// The names of the two sockets below `sock_dir`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketNames {
    /// Where events are pushed to.
    pub pull: String,
    /// Where events can be followed.
    pub publish: String,
}

impl SocketNames {
    /// The master's.
    pub fn master() -> Self {
        SocketNames { pull: "master_event_pull.ipc".into(), publish: "master_event_pub.ipc".into() }
    }

    /// A minion's: they carry the first ten digits of the SHA-256 of its id.
    pub fn minion(id: &str) -> Self {
        use sha2::Digest;
        let digest = sha2::Sha256::digest(id.as_bytes());
        let hash = format!("{:010x}", digest.iter().take(5).fold(0u64, |hash, byte| hash << 8 | u64::from(*byte)));
        SocketNames { pull: format!("minion_event_{hash}_pull.ipc"), publish: format!("minion_event_{hash}_pub.ipc") }
    }

    /// Where events are pushed to.
    pub fn pull_endpoint(&self, sock_dir: &Path) -> Endpoint {
        Endpoint::Ipc(sock_dir.join(&self.pull))
    }

    /// Where events can be followed.
    pub fn publish_endpoint(&self, sock_dir: &Path) -> Endpoint {
        Endpoint::Ipc(sock_dir.join(&self.publish))
    }
}

/// The two sockets, listening.
pub struct EventSockets {
    pull: Listener,
    publish: Listener,
}

impl EventSockets {
    /// Listens below `sock_dir`.
    pub async fn bind(sock_dir: &Path, names: &SocketNames) -> Result<Self, TransportError> {
        Ok(EventSockets {
            pull: Listener::bind(&names.pull_endpoint(sock_dir)).await?,
            publish: Listener::bind(&names.publish_endpoint(sock_dir)).await?,
        })
    }

    /// Serves both until `shutdown`.
    pub async fn serve(self, bus: Bus, shutdown: CancellationToken) {
        let taking = bus.clone();
        let take = move |frames| take(taking.clone(), frames);
        let limits = Limits { message: bus.inner.limits.event, frames: 1 };
        tokio::join!(
            Pull::serve(self.pull, take, limits, shutdown.clone()),
            serve_followers(self.publish, bus, shutdown),
        );
    }
}

async fn take(bus: Bus, frames: Vec<Bytes>) {
    for frame in frames {
        let result = match Event::from_frame(frame) {
            Ok(event) => bus.fire_event(event).await.map(|_| ()),
            Err(error) => Err(error.into()),
        };
        match result {
            Ok(()) | Err(BusError::Closed | BusError::NotKept(_)) => {}
            Err(error) => {
                metrics::EVENTS_REFUSED.add(1);
                tracing::warn!(%error, "a pushed event is refused");
            }
        }
    }
}

async fn serve_followers(listener: Listener, bus: Bus, shutdown: CancellationToken) {
    loop {
        // The place on the bus is taken before the handshake: what is fired once the follower knows that it
        // is connected will reach it, even if its subscription is still on the way.
        let accepted = tokio::select! {
            accepted = transport::accept_raw(&listener) => accepted,
            () = shutdown.cancelled() => return,
        };
        let Ok(subscription) = bus.subscribe(Filter::Prefixes(Vec::new()), Start::Now) else { continue };
        let shutdown = shutdown.clone();
        tokio::spawn(async move {
            metrics::SUBSCRIBERS.add(1);
            let result = tokio::select! {
                result = follow(accepted, subscription) => result,
                () = shutdown.cancelled() => Ok(()),
            };
            metrics::SUBSCRIBERS.sub(1);
            match result {
                Ok(()) | Err(TransportError::Closed) => {}
                Err(error) => {
                    metrics::CONNECTIONS_REFUSED.add(1);
                    tracing::warn!(%error, "a follower's connection is closed");
                }
            }
        });
    }
}

async fn follow(accepted: transport::Accepted, mut subscription: Subscription) -> Result<(), TransportError> {
    let (mut reader, mut writer) = accepted.handshake(SocketType::Pub, Limits { message: 8192, frames: 1 }).await?;
    let mut wanted = Subscriptions::default();
    loop {
        let message = if wanted.0.is_empty() {
            Some(reader.read().await?)
        } else {
            tokio::select! {
                biased;
                message = reader.read() => Some(message?),
                events = subscription.recv_many() => {
                    let Some(events) = events else { return Ok(()) };
                    for event in &events {
                        writer.push(&[event.frame()]);
                    }
                    writer.flush().await?;
                    None
                }
            }
        };
        if let Some(message) = message {
            wanted.change(&message);
            subscription.set_filter(Filter::Prefixes(wanted.0.clone()));
        }
    }
}

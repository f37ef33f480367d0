//! The minion's own event bus, from the daemon itself or from a `salt-call`.

use std::path::PathBuf;
use std::time::Duration;

use brine_bus::store::StoreError;
use brine_bus::{Bus, BusError, Filter, SocketNames, Start};
use brine_event::{Event, EventError};
use brine_ids::Jid;
use brine_value::Map;
use brine_zmtp::{Limits, Push, Subscriber, TransportError};
use bytes::Bytes;
use tokio::runtime::Handle;

/// The field that correlates a reply with its query. Salt's functions accept the first reply, which may belong to
/// another process.
pub const QUESTION: &str = "__question";

/// The tag of the event after the pillar was refreshed, with `complete`.
pub const PILLAR_REFRESHED: &str = "/salt/minion/minion_pillar_refresh_complete";

/// The tag of the event after custom modules were refreshed with `notify`, with `complete`.
pub const MODULES_REFRESHED: &str = "/salt/minion/minion_mod_refresh_complete";

/// The error of publishing on the minion's bus.
#[derive(Debug, thiserror::Error)]
pub enum LocalBusError {
    /// No minion is running with this `sock_dir`.
    #[error("connecting to the minion's event bus failed: {0}; check that salt-minion is running")]
    Unreachable(#[from] TransportError),
    /// The event is invalid.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The bus refuses the event.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// Subscribing to the bus failed.
    #[error(transparent)]
    Follow(#[from] StoreError),
    /// Creating a runtime failed.
    #[error("creating a runtime for the minion's event bus failed: {0}")]
    Runtime(#[from] std::io::Error),
}

/// A client of the minion's own bus, for threads that may block.
#[derive(Debug, Clone)]
pub enum LocalBus {
    /// The bus of this process.
    Own {
        /// The bus.
        bus: Bus,
        /// The runtime to block on.
        runtime: Handle,
    },
    /// The bus of the minion with its sockets in this directory.
    Sockets {
        /// `sock_dir`.
        directory: PathBuf,
        /// The names of the sockets.
        names: SocketNames,
    },
}

impl LocalBus {
    /// Publishes an event.
    pub fn fire(&self, tag: &str, data: &Map) -> Result<(), LocalBusError> {
        match self {
            LocalBus::Own { bus, runtime } => {
                runtime.block_on(bus.fire(tag, data))?;
                Ok(())
            }
            LocalBus::Sockets { .. } => {
                let event = Event::from_map(tag, data)?;
                waiting()?.block_on(self.push(&event))
            }
        }
    }

    /// Publishes an event and waits for its reply, an event with the tag `answer`; returns `None` after the timeout.
    pub fn ask(&self, tag: &str, mut data: Map, answer: &str, timeout: Duration) -> Result<Option<Map>, LocalBusError> {
        let question = Jid::new();
        data.insert(QUESTION.into(), question.as_str().into());
        let question = question.as_str();
        match self {
            LocalBus::Own { bus, runtime } => runtime.block_on(async {
                let mut answers = bus.subscribe(Filter::prefix(&format!("{answer}\n\n")), Start::Now)?;
                bus.fire(tag, &data).await?;
                let heard = async {
                    while let Some(event) = answers.recv().await {
                        if let Some(answer) = answers_to(&event, question) {
                            return Some(answer);
                        }
                    }
                    None
                };
                Ok(tokio::time::timeout(timeout, heard).await.unwrap_or_default())
            }),
            LocalBus::Sockets { directory, names } => waiting()?.block_on(async {
                let event = Event::from_map(tag, &data)?;
                let prefix = format!("{answer}\n\n");
                let endpoint = names.publish_endpoint(directory);
                let mut answers = Subscriber::connect(&endpoint, &[prefix.as_bytes()], Limits::default()).await?;
                self.push(&event).await?;
                let heard = async {
                    loop {
                        for frame in answers.recv().await? {
                            if let Some(answer) = answered(frame, question) {
                                return Ok(Some(answer));
                            }
                        }
                    }
                };
                tokio::time::timeout(timeout, heard).await.unwrap_or(Ok(None))
            }),
        }
    }

    async fn push(&self, event: &Event) -> Result<(), LocalBusError> {
        if let LocalBus::Sockets { directory, names } = self {
            Push::connect(&names.pull_endpoint(directory)).await?.send(event.frame()).await?;
        }
        Ok(())
    }
}

fn waiting() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn answered(frame: Bytes, question: &str) -> Option<Map> {
    Event::from_frame(frame).ok().and_then(|event| answers_to(&event, question))
}

fn answers_to(event: &Event, question: &str) -> Option<Map> {
    let data = event.data();
    (data.get(QUESTION).is_some_and(|of| of.as_str() == Some(question))).then_some(data)
}

#[cfg(test)]
mod tests;

//! The gate of the reactor, with the state of rules over time that the next leader resumes.

use std::pin::Pin;
use std::sync::Arc;

use brine_event::Event;
use brine_reactor::{Admission, Gate, Position};
use brine_value::{Value, map, msgpack};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::shared::{Shared, SharedError};
use crate::state::State;

/// The key of the state.
const KEY: &str = "rules";
/// The pause before the state is written again.
const RETRY_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);

/// The gate of a member.
pub(crate) struct RuleGate {
    pub state: Arc<State>,
    pub shared: Arc<Shared>,
    offered: watch::Sender<Option<Vec<u8>>>,
}

impl RuleGate {
    pub fn new(state: Arc<State>, shared: Arc<Shared>) -> Self {
        RuleGate { state, shared, offered: watch::Sender::new(None) }
    }

    /// Writes the latest state of the reactor's rules whenever it changes, while this member leads, until `shutdown`.
    pub async fn write(self: Arc<Self>, shutdown: CancellationToken) {
        let mut offered = self.offered.subscribe();
        let mut is_large = false;
        loop {
            tokio::select! {
                _ = offered.changed() => {}
                () = shutdown.cancelled() => return,
            }
            let Some(state) = offered.borrow_and_update().clone() else { continue };
            if !self.state.leads() {
                continue;
            }
            match self.shared.replace(KEY, &self.pack(&state)).await {
                Ok(()) => is_large = false,
                Err(error @ SharedError::TooLarge { .. }) => {
                    if !std::mem::replace(&mut is_large, true) {
                        tracing::warn!(%error, "storing the state of rules failed: a new leader counts anew");
                        // A stale state would be worse than none.
                        _ = self.shared.replace(KEY, &self.pack(&[])).await;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "writing the state of rules failed: retrying");
                    offered.mark_changed();
                    tokio::select! {
                        () = tokio::time::sleep(RETRY_INTERVAL) => {}
                        () = shutdown.cancelled() => return,
                    }
                }
            }
        }
    }

    fn pack(&self, state: &[u8]) -> Vec<u8> {
        msgpack::pack_map(&map! {"member" => self.state.member(), "state" => Value::Bytes(state.to_vec())})
    }
}

/// Returns the state that another member has written. Returns `None` if it is empty, or if this member wrote it: its
/// own store is newer.
fn of_other(packed: &[u8], own: &str) -> Option<Vec<u8>> {
    let fields = msgpack::unpack_map(packed).ok()?;
    let state = fields.get("state")?.as_bytes()?;
    (fields.get("member")?.as_str()? != own && !state.is_empty()).then(|| state.to_vec())
}

impl Gate for RuleGate {
    fn admit<'a>(&'a self, event: &'a Event) -> Pin<Box<dyn Future<Output = Admission> + Send + 'a>> {
        self.state.admit(event)
    }

    fn is_leader(&self) -> bool {
        self.state.is_leader()
    }

    fn term(&self) -> Option<u64> {
        self.state.term()
    }

    fn position(&self, event: &Event) -> Position {
        event.origin().unwrap_or_else(|| (self.state.member().to_owned(), event.seq()))
    }

    fn positions(&self, seq: u64) -> Vec<Position> {
        self.state.with_positions(|positions| positions.up_to(self.state.member(), seq))
    }

    fn rule_state(&self) -> Pin<Box<dyn Future<Output = Option<Vec<u8>>> + Send + '_>> {
        Box::pin(async {
            match self.shared.get(KEY).await {
                Ok(stored) => of_other(&stored?.value, self.state.member()),
                Err(error) => {
                    tracing::warn!(%error, "reading the state of rules failed: they count anew");
                    None
                }
            }
        })
    }

    fn offer_rule_state(&self, state: Vec<u8>) {
        self.offered.send_replace(Some(state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_resumes_only_the_state_of_others() {
        let stored = |member: &str, state: &[u8]| {
            msgpack::pack_map(&map! {"member" => member, "state" => Value::Bytes(state.to_vec())})
        };
        assert_eq!(of_other(&stored("m2", b"s"), "m1"), Some(b"s".to_vec()));
        for packed in [stored("m1", b"s"), stored("m2", b""), b"junk".to_vec()] {
            assert_eq!(of_other(&packed, "m1"), None);
        }
    }
}

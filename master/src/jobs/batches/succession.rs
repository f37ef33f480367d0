//! The batches of a cluster: each has one owner, and a successor when that one dies.
//!
//! The state of a batch is a value of the cluster, `batch.<job id>`. The owner replaces it before each publish, under the
//! condition that nobody else has: a former owner that was cut off publishes nothing more. The successor has the returns of
//! the time before in its job cache.

use std::sync::Arc;

use brine_runtime::backoff::Backoff;
use brine_value::{Map, Value, map, msgpack};

use super::{BatchRun, State};
use crate::cluster::{Members, Shared, SharedError};
use crate::jobs::Jobs;

/// The prefix of the keys of batches.
const PREFIX: &str = "batch.";

/// The ownership of a batch in a cluster.
pub(super) struct Ownership {
    shared: Arc<Shared>,
    /// Distinguishes the processes of one member.
    process: String,
    revision: u64,
}

/// A batch as the cluster has it.
struct Owned {
    member: String,
    process: String,
    revision: u64,
    state: State,
}

fn key(jid: &str) -> String {
    format!("{PREFIX}{jid}")
}

fn pack(member: &str, process: &str, state: &State) -> Vec<u8> {
    msgpack::pack_map(&map! {"member" => member, "process" => process, "state" => state.to_map()})
}

/// Parses the value of a batch: member, process and state.
fn unpack(packed: &[u8]) -> Option<(String, String, State)> {
    let fields: Map = msgpack::unpack_map(packed).ok()?;
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    Some((text("member")?, text("process")?, State::from_map(fields.get("state")?.as_map()?)?))
}

async fn read(shared: &Shared, key: &str) -> Result<Option<Owned>, SharedError> {
    let Some(stored) = shared.get(key).await? else { return Ok(None) };
    match unpack(&stored.value) {
        Some((member, process, state)) if key.strip_prefix(PREFIX) == Some(state.jid.as_str()) => {
            Ok(Some(Owned { member, process, revision: stored.revision, state }))
        }
        _ => {
            tracing::error!(key, "a batch of the cluster has an unknown form: is another master newer?");
            Ok(None)
        }
    }
}

impl Ownership {
    /// Makes a new batch one of the cluster. `None` if the cluster does not answer or the batch is too large: it then has no
    /// successor.
    pub async fn begin(shared: &Arc<Shared>, process: &str, state: &State) -> Option<Self> {
        let packed = pack(shared.member(), process, state);
        match shared.put(&key(state.jid.as_str()), &packed, 0).await {
            Ok(revision) => Some(Ownership { shared: Arc::clone(shared), process: process.to_owned(), revision }),
            Err(error) => {
                tracing::warn!(jid = %state.jid, %error, "a batch has no successor: it ends with this master");
                None
            }
        }
    }

    /// Stores a state. Waits while the cluster does not answer: without it nobody knows who goes on. Returns false if
    /// another member owns the batch now.
    pub async fn hold(&mut self, state: &State) -> bool {
        let (mut backoff, mut was_away) = (Backoff::default(), false);
        loop {
            let packed = pack(self.shared.member(), &self.process, state);
            let error = match self.shared.put(&key(state.jid.as_str()), &packed, self.revision).await {
                Ok(revision) => {
                    self.revision = revision;
                    return true;
                }
                // An earlier attempt may have succeeded without an answer.
                Err(SharedError::Changed) => match self.current(state).await {
                    Ok(Some(revision)) => {
                        self.revision = revision;
                        continue;
                    }
                    Ok(None) => return false,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if !was_away {
                tracing::warn!(jid = %state.jid, %error, "a batch waits for the cluster");
            }
            was_away = true;
            backoff.wait().await;
        }
    }

    /// Returns the revision of the batch in the cluster, if this process owns it.
    async fn current(&self, state: &State) -> Result<Option<u64>, SharedError> {
        let found = read(&self.shared, &key(state.jid.as_str())).await?;
        let own = |owned: &Owned| owned.member == self.shared.member() && owned.process == self.process;
        Ok(found.filter(own).map(|owned| owned.revision))
    }

    /// Removes a batch that has ended.
    pub async fn end(self, state: &State) {
        let mut backoff = Backoff::default();
        let mut revision = self.revision;
        loop {
            if let Ok(true) = self.shared.remove(revision).await {
                return;
            }
            match self.current(state).await {
                Ok(Some(current)) => revision = current,
                Ok(None) => return,
                Err(_) => {}
            }
            backoff.wait().await;
        }
    }
}

impl Jobs {
    /// Resumes the batches of this member's earlier process that the cluster does not know: they were started without it.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub async fn resume_own_batches(self: &Arc<Self>, shared: &Shared) -> Result<(), SharedError> {
        let known = shared.keys(PREFIX).await?;
        for state in self.batches.active() {
            let jid = state.jid.to_string();
            if self.batches.is_running(&jid) || known.contains(&key(&jid)) {
                continue;
            }
            if state.is_shared {
                // Another member has ended it.
                self.batches.forget(&jid);
                continue;
            }
            tracing::info!(jid, "batch resumed after the restart");
            if let Err(error) = self.spawn_batch(state, None) {
                tracing::error!(jid, error, "resuming a batch failed");
            }
        }
        Ok(())
    }

    /// Goes on with the batches whose owner is dead, if this member leads, and with those of its own earlier process.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub async fn adopt_batches(self: &Arc<Self>, shared: &Arc<Shared>, members: &Members) -> Result<(), SharedError> {
        for key in shared.keys(PREFIX).await? {
            let jid = key.strip_prefix(PREFIX).unwrap_or_default();
            if self.batches.is_running(jid) {
                continue;
            }
            let Some(Owned { member, process, revision, mut state }) = read(shared, &key).await? else { continue };
            let is_own = member == shared.member();
            if is_own && process == self.batches.process {
                // It has just ended.
                continue;
            }
            let is_orphan = members.is_known && shared.leads() && !members.alive.contains(&member);
            if !is_own && !is_orphan {
                continue;
            }
            state.is_shared = true;
            let packed = pack(shared.member(), &self.batches.process, &state);
            let revision = match shared.put(&key, &packed, revision).await {
                Ok(revision) => revision,
                Err(SharedError::Changed) => continue,
                Err(error) => return Err(error),
            };
            tracing::info!(jid, from = member, "batch taken over");
            drop(self.batches.store(&state));
            let process = self.batches.process.clone();
            let ownership = Ownership { shared: Arc::clone(shared), process, revision };
            if let Err(error) = self.spawn_batch(state, Some(ownership)) {
                tracing::error!(jid, error, "taking over a batch failed");
            }
        }
        Ok(())
    }

    /// Returns the running batches of other members.
    pub async fn batches_elsewhere(&self) -> Vec<State> {
        let Some(shared) = self.cluster.get() else { return Vec::new() };
        let mut states = Vec::new();
        let keys = shared.keys(PREFIX).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the batches of other masters are not known");
            Vec::new()
        });
        for key in keys {
            if !self.batches.is_running(key.strip_prefix(PREFIX).unwrap_or_default())
                && let Ok(Some(owned)) = read(shared, &key).await
            {
                states.push(owned.state);
            }
        }
        states
    }
}

impl BatchRun {
    /// Stops without an end: another member goes on with the batch.
    pub(super) fn hand_over(&self) {
        tracing::warn!(jid = %self.state.jid, "another master of the cluster goes on with a batch");
        self.jobs.batches.forget(self.state.jid.as_str());
    }
}

#[cfg(test)]
mod tests {
    use brine_ids::Jid;
    use brine_wire::PublishRequest;

    use super::*;
    use crate::jobs::batches::BatchRequest;

    #[test]
    fn a_batch_is_read_back_and_garbage_is_not_one() {
        let request = PublishRequest::new("*", "test.ping", "root");
        let wanted = BatchRequest { request, size: "1".into(), failhard: false, wait: 0.0, timeout: 5 };
        let state = State::new(&Jid::new(), wanted, vec!["a".into(), "b".into()], 1);
        let packed = pack("m1", "p", &state);
        assert_eq!(unpack(&packed), Some(("m1".into(), "p".into(), state)));
        for junk in [&b""[..], b"junk", &packed[..packed.len() - 1], &msgpack::pack_map(&map! {"member" => "m1"})] {
            assert_eq!(unpack(junk), None);
        }
    }
}

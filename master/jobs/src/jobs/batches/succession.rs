//! Batches in a cluster: each has one owner, and a successor takes over when the owner dies.
//!
//! The state of a batch is a value of the cluster, `batch.<jid>`, stored before each publish. The successor reads
//! earlier returns from its own job cache.

use std::sync::Arc;

use brine_master_store::shared::{Members, Owned, Ownership, Shared, SharedError};

use super::{BatchRun, State};
use crate::jobs::Jobs;

/// The prefix of the keys of batches in the cluster.
const PREFIX: &str = "batch.";

/// Returns the key of a batch in the cluster.
pub(super) fn key(jid: &str) -> String {
    format!("{PREFIX}{jid}")
}

/// Returns the state of the batch that is stored under a key.
fn state_of(key: &str, owned: &Owned) -> Option<State> {
    let state = owned.state.as_ref().and_then(State::from_map);
    let state = state.filter(|state| key.strip_prefix(PREFIX) == Some(state.jid.as_str()));
    if state.is_none() && owned.state.is_some() {
        tracing::error!(key, "a batch of the cluster has an unknown format: is another master newer?");
    }
    state
}

impl Jobs {
    /// Resumes batches of this member's earlier process that are not in the cluster, because they were started while it
    /// was away.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub async fn resume_own_batches(self: &Arc<Self>, shared: &Shared) -> Result<(), SharedError> {
        let keys = shared.keys(PREFIX).await?;
        for state in self.batches.active() {
            let jid = state.jid.to_string();
            if self.batches.is_running(&jid) || keys.contains(&key(&jid)) {
                continue;
            }
            if state.is_shared {
                // Another member has finished it.
                self.batches.forget(&jid);
                continue;
            }
            tracing::info!(jid, "batch resumed after the restart");
            if let Err(error) = self.spawn_batch(state, None) {
                tracing::error!(jid, %error, "resuming a batch failed");
            }
        }
        Ok(())
    }

    /// Resumes batches whose owner is dead, if this member leads, and those of this member's earlier process.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub async fn adopt_batches(self: &Arc<Self>, shared: &Arc<Shared>, members: &Members) -> Result<(), SharedError> {
        for key in shared.keys(PREFIX).await? {
            let jid = key.strip_prefix(PREFIX).unwrap_or_default();
            if self.batches.is_running(jid) {
                continue;
            }
            let Some(owned) = Owned::read(shared, &key).await? else { continue };
            if !owned.is_due(shared, &self.process, members) {
                continue;
            }
            if owned.state.is_none() && shared.remove(owned.revision).await? {
                tracing::error!(jid, from = owned.member, "the servers have lost a large batch: it is not resumed");
            }
            let Some(mut state) = state_of(&key, &owned) else { continue };
            state.is_shared = true;
            let taken = Ownership::take_over(shared, &key, &self.process, &state.to_map(), owned.revision).await?;
            let Some(ownership) = taken else { continue };
            tracing::info!(jid, from = owned.member, "batch taken over");
            drop(self.batches.store(&state));
            if let Err(error) = self.spawn_batch(state, Some(ownership)) {
                tracing::error!(jid, %error, "taking over a batch failed");
            }
        }
        Ok(())
    }

    /// Returns the running batches of other members.
    pub async fn batches_elsewhere(&self) -> Vec<State> {
        let Some(shared) = self.cluster.get() else { return Vec::new() };
        let mut states = Vec::new();
        let keys = shared.keys(PREFIX).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "listing the batches of other masters failed");
            Vec::new()
        });
        for key in keys {
            if !self.batches.is_running(key.strip_prefix(PREFIX).unwrap_or_default())
                && let Ok(Some(owned)) = Owned::read(shared, &key).await
            {
                states.extend(state_of(&key, &owned));
            }
        }
        states
    }
}

impl BatchRun {
    /// Stops without publishing the end: another member has taken over the batch.
    pub(super) fn hand_over(&self) {
        tracing::warn!(jid = %self.state.jid, "another master of the cluster has taken over a batch");
        self.jobs.batches.forget(self.state.jid.as_str());
    }
}

#[cfg(test)]
mod tests {
    use brine_ids::Jid;
    use brine_value::map;
    use brine_wire::PublishRequest;

    use super::*;
    use crate::jobs::batches::BatchRequest;

    #[test]
    fn a_batch_round_trips_and_invalid_data_is_rejected() {
        let request = PublishRequest::new("*", "test.ping", "root");
        let batch = BatchRequest { request, size: "1".into(), failhard: false, wait: 0.0, timeout: 5 };
        let state = State::new(&Jid::new(), batch, vec!["a".into(), "b".into()], 1);
        let key = key(state.jid.as_str());
        let mut owned = Owned { member: "m1".into(), process: "p".into(), revision: 1, state: Some(state.to_map()) };
        assert_eq!(state_of(&key, &owned), Some(state));
        assert_eq!(state_of("batch.20261120235852025555", &owned), None, "of another job");
        owned.state = Some(map! {"jid" => "x"});
        assert_eq!(state_of(&key, &owned), None);
    }
}

//! The progress of an orchestration in a cluster: the results of its states so far, with which another member goes on when
//! this one dies.
//!
//! It is a value of the cluster, `orchestration.<job id>`, stored after each state and before each job. The state that was
//! interrupted runs again; a job that it had published is not published again, its returns are awaited.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brine_ids::Jid;
use brine_value::{Map, Value, map, msgpack};
use brine_wire::PublishRequest;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Jobs;
use crate::cluster::{Held, Owned, Ownership};

/// The prefix of the keys of orchestrations.
pub(crate) const PREFIX: &str = "orchestration.";
/// The fields of the value: the runner call, the results by tag, the job ids by request, and whether the results were too large.
pub(crate) const CALL: &str = "call";
const RESULTS: &str = "results";
const JOBS: &str = "jobs";
pub(crate) const TOO_LARGE: &str = "too_large";

/// The maximum wait for minions to reconnect to another member, and the polling interval.
const RECONNECT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

/// The progress of an orchestration that runs in this process.
pub(crate) struct Checkpoint {
    /// Results and jobs of an earlier process.
    earlier: Map,
    earlier_jobs: Map,
    /// The ownership and the stored state; `None` once there is nothing to be stored any more. Writes are in sequence.
    own: Mutex<Option<(Ownership, Map)>>,
    is_elsewhere: AtomicBool,
}

/// Returns the key of an orchestration.
pub(crate) fn key(jid: &Jid) -> String {
    format!("{PREFIX}{jid}")
}

/// Returns the name of a request among the jobs of an orchestration.
fn name_of(request: &PublishRequest) -> String {
    let parts =
        [request.tgt.clone(), request.tgt_type.as_str().into(), request.fun.clone(), request.arg.clone().into()];
    let packed = msgpack::pack(&Value::List(parts.into()));
    brine_digest::hex(brine_digest::Digest::Sha256.of(&packed))
}

fn part(state: &Map, name: &str) -> Map {
    state.get(name).and_then(Value::as_map).cloned().unwrap_or_default()
}

impl Checkpoint {
    /// Starts to store the progress of a call, and goes on with that of an earlier process. `None` without a cluster, or if it
    /// does not answer: the orchestration then ends with this master.
    pub async fn open(jobs: &Arc<Jobs>, jid: &Jid, call: Map) -> Option<Self> {
        let shared = jobs.cluster.get()?;
        let key = key(jid);
        let found = Owned::read(shared, &key).await.unwrap_or_else(|error| {
            tracing::warn!(%jid, %error, "the progress of an orchestration cannot be read");
            None
        });
        let (ownership, state) = match found {
            None => {
                let state = map! {CALL => call, RESULTS => map! {}, JOBS => map! {}};
                (Ownership::begin(shared, &key, &jobs.process, &state).await?, state)
            }
            Some(owned) => {
                let taken = Ownership::take(shared, &key, &jobs.process, &owned.state, owned.revision).await;
                (taken.ok().flatten()?, owned.state)
            }
        };
        let (earlier, earlier_jobs) = (part(&state, RESULTS), part(&state, JOBS));
        let own = Mutex::new(Some((ownership, state)));
        Some(Checkpoint { earlier, earlier_jobs, own, is_elsewhere: AtomicBool::new(false) })
    }

    /// Returns the result of a state in an earlier process.
    pub fn earlier(&self, tag: &str) -> Option<Map> {
        self.earlier.get(tag).and_then(Value::as_map).cloned()
    }

    /// Returns the id of the job of this request that an earlier process has published, if it has.
    pub fn earlier_job(&self, request: &PublishRequest) -> Option<Jid> {
        self.earlier_jobs.get(name_of(request).as_str())?.as_str()?.parse().ok()
    }

    /// Returns the ids of all jobs of an earlier process.
    fn earlier_jids(&self) -> Vec<Jid> {
        self.earlier_jobs.values().filter_map(|jid| jid.as_str()?.parse().ok()).collect()
    }

    /// Returns whether another member goes on with the orchestration.
    pub fn is_elsewhere(&self) -> bool {
        self.is_elsewhere.load(Ordering::Acquire)
    }

    /// Stores the result of a state. Returns false if another member goes on with the orchestration.
    pub async fn keep(&self, tag: &str, result: &Map) -> bool {
        self.store(RESULTS, tag, result.clone().into()).await
    }

    /// Stores the id of a job before it is published. Returns false if another member goes on with the orchestration.
    pub async fn keep_job(&self, request: &PublishRequest, jid: &Jid) -> bool {
        self.store(JOBS, &name_of(request), jid.into()).await
    }

    async fn store(&self, part: &str, name: &str, value: Value) -> bool {
        let mut own = self.own.lock().await;
        let Some((ownership, state)) = &mut *own else { return !self.is_elsewhere() };
        if let Some(Value::Map(part)) = state.get_mut(part) {
            part.insert(name.into(), value);
        }
        match ownership.hold(state).await {
            Held::Own => return true,
            Held::Elsewhere => self.is_elsewhere.store(true, Ordering::Release),
            Held::TooLarge => {
                tracing::warn!(
                    key = name,
                    "the results of an orchestration are too large for the cluster: it has no successor"
                );
                let marker = map! {CALL => map! {}, TOO_LARGE => true};
                if ownership.hold(&marker).await == Held::Own {
                    *state = marker;
                    return true;
                }
                self.is_elsewhere.store(true, Ordering::Release);
            }
        }
        *own = None;
        false
    }

    /// Removes the progress of an orchestration that has ended.
    pub async fn end(&self) {
        if let Some((ownership, _)) = self.own.lock().await.take() {
            ownership.end().await;
        }
    }
}

impl Jobs {
    /// Waits a while until the minions of the jobs of an earlier process are connected: what is published before is lost to
    /// them.
    pub async fn wait_for_minions_of(&self, checkpoint: &Checkpoint) {
        let jids = checkpoint.earlier_jids();
        if jids.is_empty() {
            return;
        }
        let loads = self.storage.run(move |storage| {
            let loads = jids.iter().filter_map(|jid| storage.job_cache.get_load(jid).ok().flatten());
            loads.flat_map(|load| load.minions()).map(|id| id.to_string()).collect::<BTreeSet<String>>()
        });
        let Ok(expected) = loads.await else { return };
        let deadline = Instant::now() + RECONNECT;
        while Instant::now() < deadline {
            let present: BTreeSet<String> = self.facts.present().iter().map(ToString::to_string).collect();
            if expected.is_subset(&present) {
                break;
            }
            tokio::time::sleep(POLL).await;
        }
        self.events.job_cache_caught_up(Duration::from_secs(5)).await;
    }

    /// Returns the minions of a job in the job cache; `None` if it was not published.
    pub async fn published_minions(&self, jid: &Jid) -> Option<Vec<String>> {
        let jid = jid.clone();
        let load = self.storage.run(move |storage| storage.job_cache.get_load(&jid)).await.ok()?.ok()??;
        Some(load.minions().iter().map(ToString::to_string).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_known_by_their_request() {
        let request = PublishRequest::new("web*", "test.ping", "root");
        let other = PublishRequest { arg: vec![1.into()], ..request.clone() };
        let later = PublishRequest { jid: Some(Jid::new()), ..request.clone() };
        assert_eq!(name_of(&request), name_of(&later));
        assert_ne!(name_of(&request), name_of(&other));
    }
}

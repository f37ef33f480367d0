//! The progress of an orchestration in a cluster: the results of its states so far, from which another member resumes
//! it when this one dies.
//!
//! The progress is a value of the cluster, `orchestration.<jid>`, stored after each state and before each job. A state
//! that was interrupted runs again. If it had already published its job, the job is not published again; its returns
//! are awaited.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brine_ids::Jid;
use brine_master_store::events::JOB_CACHE_TIMEOUT;
use brine_master_store::shared::{Owned, Ownership, Shared, SharedError, StoreOutcome};
use brine_value::{Map, Value, map, msgpack};
use brine_wire::PublishRequest;
use tokio::sync::Mutex;

use super::Jobs;

/// The prefix of the keys of orchestrations in the cluster.
pub const PREFIX: &str = "orchestration.";
/// The fields of the value: the runner call, the results by tag, the digests of requests by jid (empty once the state
/// of the job has ended), and whether the results were too large.
pub const CALL: &str = "call";
const RESULTS: &str = "results";
const JOBS: &str = "jobs";
const TOO_LARGE: &str = "too_large";

/// The progress of an orchestration that runs in this process.
pub struct Checkpoint {
    /// The results of states that an earlier process has run, by tag.
    earlier: Map,
    /// The jobs that an earlier process has published.
    earlier_jobs: Vec<Jid>,
    /// The earlier jobs whose states have not ended, with the digests of their requests. Entries are removed when they
    /// are taken.
    interrupted: parking_lot::Mutex<Vec<(String, Jid)>>,
    /// The jobs that have ended since the last result was stored.
    ended: parking_lot::Mutex<Vec<Jid>>,
    /// The ownership and the stored state; `None` once nothing is stored any more. The lock serializes writes.
    own: Mutex<Option<(Ownership, Map)>>,
    is_elsewhere: AtomicBool,
}

/// Returns the key of an orchestration in the cluster.
pub fn key(jid: &Jid) -> String {
    format!("{PREFIX}{jid}")
}

/// Returns the usable progress in a state; `None` if it was too large, or the servers have discarded it.
pub fn progress(state: Option<Map>) -> Option<Map> {
    state.filter(|state| !state.contains_key(TOO_LARGE))
}

/// Returns the digest that identifies a request among the jobs of an orchestration. Several states may have the same
/// request.
fn name_of(request: &PublishRequest) -> String {
    let parts =
        [request.tgt.clone(), request.tgt_type.as_str().into(), request.fun.clone(), request.arg.clone().into()];
    let packed = msgpack::pack(&Value::List(parts.into()));
    brine_digest::hex(brine_digest::Digest::Sha256.of(&packed))
}

impl Checkpoint {
    fn new(own: Option<(Ownership, Map)>, state: &Map) -> Self {
        let part = |name: &str| state.get(name).and_then(Value::as_map).cloned().unwrap_or_default();
        let jobs = part(JOBS);
        let jobs = jobs.iter().filter_map(|(jid, name)| Some((name.as_str()?.to_owned(), jid.as_str()?.parse().ok()?)));
        let jobs: Vec<(String, Jid)> = jobs.collect();
        Checkpoint {
            earlier: part(RESULTS),
            earlier_jobs: jobs.iter().map(|(_, jid)| jid.clone()).collect(),
            interrupted: parking_lot::Mutex::new(jobs.into_iter().filter(|(name, _)| !name.is_empty()).collect()),
            ended: parking_lot::Mutex::default(),
            own: Mutex::new(own),
            is_elsewhere: AtomicBool::new(false),
        }
    }

    /// Starts to store the progress of a call, or continues that of an earlier process. Returns `None` without a
    /// cluster, or if it does not answer: the orchestration then ends with this master.
    pub async fn open(jobs: &Arc<Jobs>, jid: &Jid, call: Map) -> Option<Self> {
        let shared = jobs.cluster.get()?;
        let key = key(jid);
        let owned = Owned::read(shared, &key).await.unwrap_or_else(|error| {
            tracing::warn!(%jid, %error, "reading the progress of an orchestration failed");
            None
        });
        let state = map! {CALL => call, RESULTS => map! {}, JOBS => map! {}};
        if let Some(owned) = owned {
            let state = progress(owned.state).unwrap_or(state);
            return Self::adopt(shared, &key, &jobs.process, state, owned.revision).await.ok().flatten();
        }
        let ownership = Ownership::begin(shared, &key, &jobs.process, &state).await?;
        Some(Self::new(Some((ownership, state.clone())), &state))
    }

    /// Continues the progress of an earlier process. Returns `None` if another process has changed it since it was
    /// read.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub async fn adopt(
        shared: &Arc<Shared>,
        key: &str,
        process: &str,
        state: Map,
        revision: u64,
    ) -> Result<Option<Self>, SharedError> {
        let taken = Ownership::take_over(shared, key, process, &state, revision).await?;
        Ok(taken.map(|ownership| Self::new(Some((ownership, state.clone())), &state)))
    }

    /// Returns the result of a state that an earlier process has completed.
    pub fn earlier(&self, tag: &str) -> Option<Map> {
        self.earlier.get(tag).and_then(Value::as_map).cloned()
    }

    /// Takes the jid of an earlier job for this request: one that an earlier process was about to publish for a state
    /// that has not ended.
    pub fn take_interrupted_job(&self, request: &PublishRequest) -> Option<Jid> {
        let mut interrupted = self.interrupted.lock();
        let name = name_of(request);
        let at = interrupted.iter().position(|(other, _)| *other == name)?;
        Some(interrupted.remove(at).1)
    }

    /// Whether another member has taken over the orchestration.
    pub fn is_elsewhere(&self) -> bool {
        self.is_elsewhere.load(Ordering::Acquire)
    }

    /// Stores the result of a state. Returns `false` if another member has taken over the orchestration.
    pub async fn store_result(&self, tag: &str, result: &Map) -> bool {
        let ended = std::mem::take(&mut *self.ended.lock());
        let ended = ended.iter().map(|jid| (jid.into(), "".into()));
        self.store(|part| {
            part(RESULTS, (tag.into(), result.clone().into()));
            ended.for_each(|job| part(JOBS, job));
        })
        .await
    }

    /// Stores the jid of a job before it is published. Returns `false` if another member has taken over the
    /// orchestration.
    pub async fn store_job(&self, request: &PublishRequest, jid: &Jid) -> bool {
        self.store(|part| part(JOBS, (jid.into(), name_of(request).into()))).await
    }

    /// Records the end of a job. It is stored with the next result, so that a successor does not wait for the job any
    /// more.
    pub fn job_ended(&self, jid: Jid) {
        self.ended.lock().push(jid);
    }

    /// Applies a change, which inserts items into parts of the state, and stores the state.
    async fn store(&self, change: impl FnOnce(&mut dyn FnMut(&str, (Value, Value)))) -> bool {
        let mut own = self.own.lock().await;
        let Some((ownership, state)) = &mut *own else { return !self.is_elsewhere() };
        change(&mut |part, (name, value)| {
            if let Some(Value::Map(part)) = state.get_mut(part) {
                part.insert(name, value);
            }
        });
        match ownership.store_state(state).await {
            StoreOutcome::Stored => return true,
            StoreOutcome::Elsewhere => self.is_elsewhere.store(true, Ordering::Release),
            StoreOutcome::TooLarge => {
                tracing::warn!("the results of an orchestration are too large for the cluster: it has no successor");
                let marker = map! {CALL => map! {}, TOO_LARGE => true};
                if ownership.store_state(&marker).await == StoreOutcome::Stored {
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
    /// Waits until the minions of an earlier process's jobs are connected, like [`Jobs::wait_for_minions`].
    pub async fn wait_for_minions_of(&self, checkpoint: &Checkpoint) {
        if checkpoint.earlier_jobs.is_empty() {
            return;
        }
        let jids = checkpoint.earlier_jobs.clone();
        let loads = self.storage.run(move |storage| {
            let loads = jids.iter().filter_map(|jid| storage.job_cache.get_load(jid).ok().flatten());
            loads.flat_map(|load| load.minions()).map(|id| id.to_string()).collect()
        });
        if let Ok(expected) = loads.await {
            self.wait_for_minions(&expected).await;
        }
    }

    /// Returns the minions of a job from the job cache, once it has stored all events up to now; `None` if the job was not
    /// published.
    pub async fn published_minions(&self, jid: &Jid) -> Option<Vec<String>> {
        self.events.job_cache_caught_up(JOB_CACHE_TIMEOUT).await;
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

    #[test]
    fn an_interrupted_job_is_resumed_at_most_once() {
        let request = PublishRequest::new("web*", "test.ping", "root");
        let jids: Vec<Jid> = ["20261126100000000001", "20261126100000000002", "20261126100000000003"]
            .map(|jid| jid.parse().unwrap())
            .into();
        let jobs = map! {&jids[0] => "", &jids[1] => name_of(&request), &jids[2] => name_of(&request)};
        let state = map! {CALL => map! {}, RESULTS => map! {"tag" => map! {"result" => true}}, JOBS => jobs};
        let checkpoint = Checkpoint::new(None, &state);
        assert_eq!(checkpoint.earlier("tag"), Some(map! {"result" => true}));
        let take = || checkpoint.take_interrupted_job(&request);
        assert_eq!([take(), take(), take()], [Some(jids[1].clone()), Some(jids[2].clone()), None]);
        assert_eq!(checkpoint.earlier_jobs, jids, "the minions of all of them are awaited");
    }
}

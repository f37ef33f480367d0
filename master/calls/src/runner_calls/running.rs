//! The calls that are running in this process.

use std::collections::BTreeMap;
use std::sync::Arc;

use brine_event::{STAMP, stamp};
use brine_ids::Jid;
use brine_master_jobs::checkpoint::Checkpoint;
use brine_value::{Map, map};
use parking_lot::Mutex;

use super::call::{NewCall, REACTION};

/// The running calls by jid.
#[derive(Default)]
pub(super) struct Running(Mutex<BTreeMap<Jid, RunningEntry>>);

/// A running call.
struct RunningEntry {
    body: Map,
    /// The time of its start.
    start: String,
    /// Whether it is nested in another call.
    is_nested: bool,
    /// The call of a top-level orchestration.
    orchestration: Option<Map>,
    /// The progress of a resumed orchestration.
    checkpoint: Option<Arc<Checkpoint>>,
    /// Whether another member of the cluster has taken over the call.
    is_elsewhere: bool,
}

/// A guard that removes a running call on drop, even if the call panics.
pub(super) struct RunningCall<'a>(&'a Running, Jid);

impl Running {
    /// Returns the bodies of at most `limit` calls that are not nested in another call, oldest first.
    pub fn bodies(&self, limit: usize) -> Vec<Map> {
        let running = self.0.lock();
        let on_their_own = running.values().filter(|entry| !entry.is_nested);
        on_their_own.take(limit).map(|entry| entry.body.clone()).collect()
    }

    /// Returns all calls in the form of `jobs.master`, oldest first.
    pub fn listed(&self) -> Vec<Map> {
        let with_process = |entry: &RunningEntry| {
            let mut call = entry.body.clone();
            call.extend(map! {STAMP => &entry.start, "pid" => std::process::id()});
            call
        };
        self.0.lock().values().map(with_process).collect()
    }

    /// Whether a call is running.
    pub fn has(&self, jid: &Jid) -> bool {
        self.0.lock().contains_key(jid)
    }

    /// Returns the call of a top-level orchestration, and the progress that it was resumed with.
    pub fn orchestration(&self, jid: &Jid) -> Option<(Map, Option<Arc<Checkpoint>>)> {
        let running = self.0.lock();
        let entry = running.get(jid)?;
        Some((entry.orchestration.clone()?, entry.checkpoint.clone()))
    }

    /// Marks a call as taken over by another member of the cluster.
    pub fn hand_over(&self, jid: &Jid) {
        if let Some(entry) = self.0.lock().get_mut(jid) {
            entry.is_elsewhere = true;
        }
    }

    pub fn enter(&self, call: &NewCall) -> RunningCall<'_> {
        let orchestration = (call.is_orchestration() && !call.is_nested).then(|| {
            map! {
                "fun" => call.function.as_str(),
                "arg" => call.args.positional.clone(),
                "kwarg" => call.args.keyword.clone(),
                "user" => call.user.as_str(),
                REACTION => !call.cause.is_empty(),
            }
        });
        let (body, is_nested, checkpoint) = (call.body.clone(), call.is_nested, call.checkpoint.clone());
        let entry = RunningEntry { body, start: stamp(), is_nested, orchestration, checkpoint, is_elsewhere: false };
        self.0.lock().insert(call.jid.clone(), entry);
        RunningCall(self, call.jid.clone())
    }
}

impl RunningCall<'_> {
    /// Removes the call. Returns whether another member of the cluster has taken it over.
    pub fn end(self) -> bool {
        self.0.0.lock().get(&self.1).is_some_and(|entry| entry.is_elsewhere)
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.0.0.lock().remove(&self.1);
    }
}

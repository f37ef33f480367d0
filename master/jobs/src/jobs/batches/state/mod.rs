//! The state of a batch that the master runs, and its events.

use std::collections::{BTreeSet, VecDeque};
use std::time::{SystemTime, UNIX_EPOCH};

use brine_ids::Jid;
use brine_job::Driver;
use brine_value::{FromValue, Map, Value, map};
use brine_wire::PublishRequest;

use super::BatchRequest;

/// Returns the time in seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// The state of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// The jid, which is the same on all minions.
    pub jid: Jid,
    /// The job, with the requested target.
    pub request: PublishRequest,
    /// The maximum number of concurrent minions.
    pub size: usize,
    /// The pause after each minion, in seconds.
    pub wait: f64,
    /// Whether a failed return halts the batch.
    pub failhard: bool,
    /// The timeout after which silent minions are polled, in seconds.
    pub timeout: u64,
    /// The number of minions.
    pub total: usize,
    /// The minions that have not yet received the job.
    pub pending: VecDeque<String>,
    /// The minions that are running the job.
    pub active: BTreeSet<String>,
    /// The number of minions that have finished, including failed ones.
    pub completed: usize,
    /// The number of minions that failed or did not return.
    pub failed: usize,
    /// The time of the start, in seconds since 1970.
    pub created: f64,
    /// The time of the last progress, in seconds since 1970.
    pub last_progress: f64,
    /// The reason why the batch was halted.
    pub halted: Option<String>,
    /// Whether the batch has ended.
    pub ended: bool,
    /// Whether the state is stored in the cluster.
    pub is_shared: bool,
}

/// The stage of a batch that an event reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    New,
    Progress,
    End,
}

/// The value of `driver` in events; for `salt -b` it is `cli`.
const DRIVER: &str = "master";

impl State {
    /// Creates the state of a batch that has not begun. `size` is the number of minions at a time.
    pub fn new(jid: &Jid, batch: BatchRequest, minions: Vec<String>, size: usize) -> Self {
        let BatchRequest { request, failhard, wait, timeout, .. } = batch;
        let created = now();
        State {
            jid: jid.clone(),
            request,
            size,
            wait,
            failhard,
            timeout,
            total: minions.len(),
            pending: minions.into(),
            active: BTreeSet::new(),
            completed: 0,
            failed: 0,
            created,
            last_progress: created,
            halted: None,
            ended: false,
            is_shared: false,
        }
    }

    /// Parses a stored state; `None` if it is invalid.
    pub(super) fn from_map(map: &Map) -> Option<Self> {
        fn field<T: FromValue>(map: &Map, name: &str) -> Option<T> {
            T::from_value(map.get(name)?)
        }
        Some(State {
            jid: field::<String>(map, "jid")?.parse().ok()?,
            request: PublishRequest::from_map(map.get("request")?.as_map()?).ok()?,
            size: field(map, "size")?,
            wait: field(map, "wait")?,
            failhard: field(map, "failhard")?,
            timeout: field(map, "timeout")?,
            total: field(map, "total")?,
            pending: field::<Vec<String>>(map, "pending")?.into(),
            active: field::<Vec<String>>(map, "active")?.into_iter().collect(),
            completed: field(map, "completed")?,
            failed: field(map, "failed")?,
            created: field(map, "created")?,
            last_progress: field(map, "last_progress")?,
            halted: field(map, "halted")?,
            ended: field(map, "ended")?,
            is_shared: field(map, "is_shared").unwrap_or_default(),
        })
    }

    /// Returns the stored form of the state.
    pub(super) fn to_map(&self) -> Map {
        map! {
            "jid" => &self.jid,
            "request" => self.request.to_map(),
            "size" => self.size,
            "wait" => self.wait,
            "failhard" => self.failhard,
            "timeout" => self.timeout,
            "total" => self.total,
            "pending" => names(&self.pending),
            "active" => names(&self.active),
            "completed" => self.completed,
            "failed" => self.failed,
            "created" => self.created,
            "last_progress" => self.last_progress,
            "halted" => self.halted.clone(),
            "ended" => self.ended,
            "is_shared" => self.is_shared,
        }
    }

    /// Records the progress of the driver.
    pub(super) fn record(&mut self, driver: &Driver) {
        self.pending.clone_from(driver.pending());
        self.active = driver.active().cloned().collect();
        self.halted = driver.halted().map(|halt| halt.reason().to_owned());
    }

    /// Records that a minion has returned.
    pub(super) fn minion_returned(&mut self, failed: bool) {
        self.completed += 1;
        self.failed += usize::from(failed);
        self.last_progress = now();
    }

    /// Records that minions will not return.
    pub(super) fn minions_failed(&mut self, count: usize) {
        self.completed += count;
        self.failed += count;
        self.last_progress = now();
    }

    /// Returns the fields that all events share.
    fn common(&self) -> Map {
        let PublishRequest { fun, tgt, tgt_type, user, .. } = &self.request;
        map! {"jid" => &self.jid, "fun" => fun.clone(), "tgt" => tgt.clone(), "tgt_type" => tgt_type, "user" => user}
    }

    /// Returns the event of a stage: the last part of its tag, and its body.
    pub(super) fn event(&self, stage: Stage) -> (&'static str, Map) {
        let mut body = self.common();
        let counts = map! {"completed" => self.completed, "failed" => self.failed};
        let duration = map! {"duration" => now() - self.created};
        let word = match (stage, &self.halted) {
            (Stage::New, _) => {
                body.extend(map! {
                    "batch_size" => self.size,
                    "created" => self.created,
                    "driver" => DRIVER,
                    "total_minions" => self.total,
                });
                "new"
            }
            (Stage::Progress, _) => {
                body.extend(counts);
                body.extend(map! {
                    "active" => self.active.len(),
                    "pending" => self.pending.len(),
                    "total" => self.total,
                    "iter" => Value::Nil,
                    "last_progress" => self.last_progress,
                });
                "progress"
            }
            (Stage::End, Some(reason)) => {
                body.extend(counts);
                body.extend(duration);
                body.extend(map! {
                    "reason" => reason,
                    "abandoned_active" => names(&self.active),
                    "abandoned_pending" => names(&self.pending),
                });
                "halted"
            }
            (Stage::End, None) => {
                body.extend(counts);
                body.extend(duration);
                body.insert("total_minions".into(), self.total.into());
                "complete"
            }
        };
        (word, body)
    }

    /// Returns the summary for `batch.status`.
    pub fn summary(&self) -> Map {
        let mut summary = self.common();
        summary.extend(map! {
            "batch_size" => self.size,
            "halted" => self.halted.is_some(),
            "halted_reason" => self.halted.clone(),
            "driver" => DRIVER,
            "created" => self.created,
            "last_progress" => self.last_progress,
            "total" => self.total,
            "completed" => self.completed,
            "active" => self.active.len(),
            "pending" => self.pending.len(),
            "failed" => self.failed,
            "age_seconds" => now() - self.last_progress,
        });
        summary
    }

    /// Returns a request that kills the job on the minions that run it.
    pub fn kill_request(&self, user: &str) -> PublishRequest {
        PublishRequest {
            tgt: names(&self.active),
            tgt_type: "list".to_owned(),
            arg: vec![Value::from(&self.jid)],
            ..PublishRequest::new("", "saltutil.kill_job", user)
        }
    }
}

fn names<'a>(names: impl IntoIterator<Item = &'a String>) -> Value {
    names.into_iter().map(String::as_str).collect()
}

#[cfg(test)]
mod tests;

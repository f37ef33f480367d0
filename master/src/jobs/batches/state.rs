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
pub(crate) struct State {
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
    pub(super) fn new(jid: &Jid, wanted: BatchRequest, minions: Vec<String>, size: usize) -> Self {
        let BatchRequest { request, failhard, wait, timeout, .. } = wanted;
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
mod tests {
    use std::time::Duration;

    use brine_job::{Batch, Step, Times};
    use tokio::time::Instant;

    use super::*;

    fn state(size: usize, failhard: bool) -> State {
        let request = PublishRequest::new("*", "test.ping", "root");
        let wanted = BatchRequest { request, size: size.to_string(), failhard, wait: 0.0, timeout: 5 };
        State::new(&Jid::new(), wanted, ["a", "b", "c"].map(str::to_owned).to_vec(), size)
    }

    fn driver(state: &State) -> Driver {
        let (jid, minions) = (state.jid.clone(), state.pending.iter().cloned().collect());
        let batch = Batch { size: state.size, wait: Duration::ZERO, failhard: state.failhard };
        let times =
            Times { timeout: Duration::from_secs(5), gather: Duration::from_secs(10), find_job: "saltutil.find_job" };
        Driver::in_batches(jid, "root", minions, batch, times, Instant::now())
    }

    /// Publishes the next part to all of its minions.
    fn publish(driver: &mut Driver) {
        let Step::Publish(minions) = driver.next(Instant::now()) else { panic!("no part is due") };
        driver.published(&minions, Instant::now());
    }

    #[test]
    fn the_summary_counts_the_minions_of_the_driver() {
        let mut state = state(2, false);
        let mut driver = driver(&state);
        publish(&mut driver);
        driver.returned("b", &map! {"return" => true, "retcode" => 0}, Instant::now());
        state.minion_returned(false);
        publish(&mut driver);
        driver.returned("a", &map! {"retcode" => 1}, Instant::now());
        state.minions_failed(1);
        state.record(&driver);
        let summary = state.summary();
        for (name, is) in [("total", 3), ("completed", 2), ("active", 1), ("pending", 0), ("failed", 1)] {
            assert_eq!(summary.get(name), Some(&is.into()), "{name}");
        }
        assert_eq!(state.halted, None);
    }

    #[test]
    fn the_event_of_a_halted_batch_names_reason_and_abandoned_minions() {
        let mut state = state(1, true);
        let mut driver = driver(&state);
        publish(&mut driver);
        driver.returned("a", &map! {"return" => false, "retcode" => 1}, Instant::now());
        state.record(&driver);
        let (word, body) = state.event(Stage::End);
        assert_eq!((word, body.get("reason")), ("halted", Some(&"failhard".into())));
        assert_eq!(body.get("abandoned_pending").map(ToString::to_string), Some("['b', 'c']".into()));
    }

    #[test]
    fn a_stored_state_is_read_back() {
        let mut state = state(2, true);
        let mut driver = driver(&state);
        publish(&mut driver);
        state.record(&driver);
        state.minions_failed(1);
        assert_eq!(State::from_map(&state.to_map()), Some(state));
        assert_eq!(State::from_map(&map! {"jid" => "x"}), None);
    }
}

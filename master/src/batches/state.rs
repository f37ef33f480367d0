//! What is known of a batch, and the events about it.

use std::collections::{BTreeSet, VecDeque};
use std::time::{SystemTime, UNIX_EPOCH};

use brine_ids::Jid;
use brine_value::{FromValue, Map, Value, map};
use brine_wire::PublishRequest;

use super::Wanted;

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// All that is known of a batch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    /// The id of its job, on all minions.
    pub jid: Jid,
    /// The job, with the target as it was asked for.
    pub request: PublishRequest,
    /// How many minions at a time.
    pub size: usize,
    /// Seconds between a return and the next minion that is asked.
    pub wait: f64,
    /// Whether a failure keeps further minions from being asked.
    pub failhard: bool,
    /// Seconds until silent minions are asked whether they still work.
    pub timeout: u64,
    /// How many minions take part.
    pub total: usize,
    /// Who is to be asked.
    pub pending: VecDeque<String>,
    /// Who works on it.
    pub active: BTreeSet<String>,
    /// How many are through, those that have failed included.
    pub completed: usize,
    /// How many have failed, or have not returned.
    pub failed: usize,
    /// When it began, in seconds since 1970.
    pub created: f64,
    /// When a minion was asked or returned last, in seconds since 1970.
    pub last_progress: f64,
    /// Why no more minions are asked.
    pub halted: Option<String>,
    /// Whether nobody works on it any more.
    pub ended: bool,
}

/// Where in its life a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    New,
    Progress,
    End,
}

/// Who starts and drives it: `salt -b` does it by itself, and says `cli` there.
const DRIVER: &str = "master";

impl State {
    pub(super) fn new(jid: &Jid, wanted: Wanted, minions: Vec<String>, size: usize) -> Self {
        let Wanted { request, failhard, wait, timeout, .. } = wanted;
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
        }
    }

    /// As [`State::to_map`] has written it; nothing if it is something else.
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
        })
    }

    /// For the store.
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
        }
    }

    /// As many of those that wait as there is room for, with so many places taken by pauses (`batch_wait`). They are
    /// active from now on.
    pub(super) fn next(&mut self, pauses: usize) -> Vec<String> {
        let room = self.size.saturating_sub(self.active.len() + pauses).min(self.pending.len());
        let next: Vec<String> = self.pending.drain(..room).collect();
        self.active.extend(next.iter().cloned());
        next
    }

    /// A minion has returned, or will not.
    pub(super) fn take(&mut self, id: &str, returned: Option<&Map>) {
        let retcode = |returned: &Map| returned.get("retcode").is_none_or(Value::is_truthy);
        let failed = returned.is_none_or(retcode);
        self.active.remove(id);
        self.completed += 1;
        self.failed += usize::from(failed);
        self.last_progress = now();
        if failed && self.failhard {
            self.halted = Some("failhard".to_owned());
        }
    }

    /// What every event of it says.
    fn common(&self) -> Map {
        let PublishRequest { fun, tgt, tgt_type, user, .. } = &self.request;
        map! {"jid" => &self.jid, "fun" => fun.clone(), "tgt" => tgt.clone(), "tgt_type" => tgt_type, "user" => user}
    }

    /// The tag's last word and the body of the event about where it is now.
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

    /// What `batch.status` tells.
    pub fn summary(&self) -> Map {
        let mut told = self.common();
        told.extend(map! {
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
        told
    }

    /// Ends its job on those that work on it.
    pub fn kill_request(&self, user: &str) -> PublishRequest {
        PublishRequest {
            tgt: names(&self.active),
            tgt_type: "list".to_owned(),
            arg: vec![Value::from(&self.jid)],
            ..PublishRequest::new("", "saltutil.kill_job", user)
        }
    }

    /// Its job, for these.
    pub(super) fn request_for(&self, minions: &[String]) -> PublishRequest {
        PublishRequest {
            tgt: names(minions),
            tgt_type: "list".to_owned(),
            jid: Some(self.jid.clone()),
            ..self.request.clone()
        }
    }
}

fn names<'a>(names: impl IntoIterator<Item = &'a String>) -> Value {
    names.into_iter().map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(size: usize, failhard: bool) -> State {
        let request = PublishRequest::new("*", "test.ping", "root");
        let wanted = Wanted { request, size: size.to_string(), failhard, wait: 0.0, timeout: 5 };
        State::new(&Jid::new(), wanted, ["a", "b", "c"].map(str::to_owned).to_vec(), size)
    }

    #[test]
    fn as_many_as_there_is_room_for_are_asked() {
        let mut state = state(2, false);
        assert_eq!(state.next(0), ["a", "b"]);
        assert_eq!(state.next(0), Vec::<String>::new());
        state.take("b", Some(&map! {"return" => true, "retcode" => 0}));
        // The place of a minion that has returned stays taken for batch_wait.
        assert_eq!(state.next(1), Vec::<String>::new());
        assert_eq!(state.next(0), ["c"]);
        state.take("a", None);
        let summary = state.summary();
        for (name, is) in [("total", 3), ("completed", 2), ("active", 1), ("pending", 0), ("failed", 1)] {
            assert_eq!(summary.get(name), Some(&is.into()), "{name}");
        }
        assert_eq!(state.halted, None);
    }

    #[test]
    fn a_failure_ends_a_hard_one() {
        let mut state = state(1, true);
        state.next(0);
        state.take("a", Some(&map! {"return" => false, "retcode" => 1}));
        assert!(state.halted.is_some());
        let (word, body) = state.event(Stage::End);
        assert_eq!((word, body.get("reason")), ("halted", Some(&"failhard".into())));
        assert_eq!(body.get("abandoned_pending").map(ToString::to_string), Some("['b', 'c']".into()));
    }

    #[test]
    fn it_comes_back_from_the_store_as_it_was() {
        let mut state = state(2, true);
        state.next(0);
        state.take("a", None);
        assert_eq!(State::from_map(&state.to_map()), Some(state));
        assert_eq!(State::from_map(&map! {"jid" => "x"}), None);
    }
}

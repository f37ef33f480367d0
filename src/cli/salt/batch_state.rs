//! The progress of a job in batches, published as `salt/batch/<jid>/new`, `progress` and `complete` or `halted`, with
//! the whole state in each, without secrets. The job id is that of the job on all minions.

use std::time::{SystemTime, UNIX_EPOCH};

use brine_context::Mask;
use brine_event::Event;
use brine_ids::Jid;
use brine_job::{Return, Times};
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;

use super::super::client::MasterClient;

/// The stage of a batch that an event reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The minions are known.
    New,
    /// Minions have received the job, or have returned.
    Progress,
    /// All minions have ended.
    Complete,
    /// The batch was halted.
    Halted,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Stage::New => "new",
            Stage::Progress => "progress",
            Stage::Complete => "complete",
            Stage::Halted => "halted",
        }
    }
}

/// The state of a batch, as its events report it.
pub(super) struct BatchState {
    jid: Jid,
    /// The constant fields.
    fixed: Map,
    active: Map,
    done: Map,
    failed: Map,
    pending: Vec<String>,
    created: f64,
    last_progress: f64,
    halted: Option<String>,
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

impl BatchState {
    /// Creates the state of a batch. `wait` is the pause after each minion, in seconds.
    pub(super) fn new(
        request: &PublishRequest,
        minions: &[String],
        size: usize,
        wait: f64,
        failhard: bool,
        times: Times,
        mask: &Mask,
    ) -> Self {
        let mut fixed = map! {
            "all_minions" => minions.to_vec(),
            "arg" => request.arg.clone(),
            "batch_size" => size,
            "batch_wait" => wait,
            "driver" => "cli",
            "failhard" => failhard,
            "fun" => request.fun.clone(),
            "gather_job_timeout" => times.gather.as_secs(),
            "kwargs" => request.kwargs.clone(),
            "ret" => &request.ret,
            "tgt" => request.tgt.clone(),
            "tgt_type" => &request.tgt_type,
            "timeout" => times.timeout.as_secs(),
            "user" => &request.user,
        };
        let masked = mask.record(&fixed);
        fixed.extend(masked);
        let created = now();
        BatchState {
            jid: Jid::new(),
            fixed,
            active: Map::new(),
            done: Map::new(),
            failed: Map::new(),
            pending: minions.to_vec(),
            created,
            last_progress: created,
            halted: None,
        }
    }

    /// Records minions that have received the job.
    pub(super) fn published(&mut self, minions: &[String]) {
        self.last_progress = now();
        self.pending.retain(|id| !minions.contains(id));
        self.active.extend(minions.iter().map(|id| (id.into(), Value::from(self.last_progress))));
    }

    /// Records a return.
    pub(super) fn returned(&mut self, one: &Return) {
        let report = map! {"jid" => one.jid(), "ret" => one.value().clone(), "retcode" => one.retcode()};
        self.ended(one.id().as_str(), report, one.retcode() != 0);
    }

    /// Records a minion that does not return.
    pub(super) fn missing(&mut self, id: &str) {
        self.ended(id, map! {"ret" => Value::Nil, "retcode" => 1}, true);
    }

    fn ended(&mut self, id: &str, returned: Map, failed: bool) {
        self.last_progress = now();
        self.active.shift_remove(id);
        if failed {
            self.failed.insert(id.into(), returned.clone().into());
        }
        self.done.insert(id.into(), returned.into());
    }

    /// Records the reason for halting the batch.
    pub(super) fn halt(&mut self, reason: &str) {
        self.halted = Some(reason.to_owned());
    }

    /// Returns the job id, which is the same on all minions.
    pub(super) fn jid(&self) -> &Jid {
        &self.jid
    }

    /// Returns the tag of an event of the batch.
    pub(super) fn tag(&self, word: &str) -> String {
        format!("salt/batch/{}/{word}", self.jid)
    }

    /// Publishes the event of a stage. A failure does not end the batch.
    pub(super) async fn publish_stage(&self, client: &MasterClient, stage: Stage) {
        let tag = self.tag(stage.name());
        let fired = match Event::from_map(&tag, &self.body()) {
            Ok(event) => client.fire(&event).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = fired {
            tracing::debug!(tag, error, "publishing an event of a batch failed");
        }
    }

    fn body(&self) -> Map {
        let mut state = self.fixed.clone();
        state.extend(map! {
            "jid" => &self.jid,
            "active" => self.active.clone(),
            "done" => self.done.clone(),
            "failed" => self.failed.clone(),
            "pending" => self.pending.clone(),
            "wait" => Vec::<Value>::new(),
            "created" => self.created,
            "last_progress" => self.last_progress,
            "halted" => self.halted.is_some(),
            "halted_reason" => self.halted.clone(),
        });
        let mut body = map! {"jid" => &self.jid};
        for name in ["fun", "tgt", "tgt_type", "user", "driver"] {
            body.extend(self.fixed.get(name).map(|value| (name.into(), value.clone())));
        }
        body.insert("state".into(), state.into());
        body
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn minions_go_from_pending_by_active_to_done() {
        let request = PublishRequest::new("*", "test.ping", "root");
        let minions = ["a".to_owned(), "b".to_owned()];
        let times =
            Times { timeout: Duration::from_secs(5), gather: Duration::from_secs(10), find_job: "saltutil.find_job" };
        let mut state = BatchState::new(&request, &minions, 1, 0.0, false, times, &Mask::default());
        state.published(&minions[..1]);
        let of = |state: &BatchState, name: &str| state.body().get("state").and_then(|state| state.get(name)).cloned();
        assert_eq!(of(&state, "pending"), Some(vec!["b".to_owned()].into()));
        assert!(of(&state, "active").unwrap().get("a").is_some());
        let one = Return::from_map(map! {"jid" => &Jid::new(), "id" => "a", "return" => true, "retcode" => 0}).unwrap();
        state.returned(&one);
        state.missing("b");
        assert_eq!(of(&state, "active"), Some(Value::map()));
        assert_eq!(of(&state, "done").and_then(|result| result.get("a")?.get("ret").cloned()), Some(true.into()));
        assert_eq!(of(&state, "failed").unwrap().as_map().unwrap().len(), 1);
    }

    #[test]
    fn secrets_are_masked_in_the_events() {
        let mut request = PublishRequest::new("*", "test.arg", "root");
        request.arg = vec!["password=marker".into(), map! {"__kwarg__" => true, "token" => "marker"}.into()];
        request.kwargs = map! {"ret_kwargs" => map! {"db_password" => "marker"}};
        let times =
            Times { timeout: Duration::from_secs(5), gather: Duration::from_secs(10), find_job: "saltutil.find_job" };
        let state = BatchState::new(&request, &["a".to_owned()], 1, 0.0, false, times, &Mask::default());
        let body = format!("{:?}", state.body());
        assert!(!body.contains("marker") && body.contains("**********"), "{body}");
    }
}

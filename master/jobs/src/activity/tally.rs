//! The counts of an [`Activity`](super::Activity).

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use brine_event::{Event, FROM};
use brine_job::{retcode, return_tag};
use brine_value::{Map, Value};

use super::states::{StateRun, highstate};

/// The maximum numbers of jobs, minions and states that are counted.
const MAX_JOBS: usize = 20_000;
const MAX_MINIONS: usize = 100_000;
const MAX_STATES: usize = 500;
/// The minions of all failed states together.
const MAX_MINIONS_OF_STATES: usize = 200_000;
/// The maximum length of a text that is kept, in characters.
const MAX_TEXT: usize = 300;
const MINUTE: u64 = 60_000_000;
/// The prefix of the functions of orchestrations, as events of calls name them.
pub const ORCHESTRATIONS: &str = "runner.state.orch";

/// The outcome of a job so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobOutcome {
    /// The function.
    pub function: String,
    /// The target.
    pub target: String,
    /// The time of its first event, in microseconds since 1970.
    pub started: u64,
    /// The time of its last return.
    pub last: u64,
    /// The number of minions that are expected to return.
    pub asked: u32,
    /// The number of minions that returned success.
    pub done: u32,
    /// The number of minions that returned a failure.
    pub failed: u32,
}

impl JobOutcome {
    /// Returns the number of minions that have not returned.
    pub fn missing(&self) -> u32 {
        self.asked.saturating_sub(self.done + self.failed)
    }
}

/// The last signs of a minion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MinionActivity {
    /// The time of its last event or return, in microseconds since 1970.
    pub seen: u64,
    /// Its last highstate.
    pub highstate: Option<StateRun>,
}

/// A state that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailedState {
    /// The id of the state.
    pub id: String,
    /// Its function, such as `file.managed`.
    pub function: String,
    /// Its SLS.
    pub sls: String,
    /// The comment of the last failure.
    pub comment: String,
    /// The job of the last failure.
    pub jid: String,
    /// The minion of the last failure.
    pub minion: String,
    /// The time of the last failure, in microseconds since 1970.
    pub last: u64,
    /// The number of minions.
    pub minions: usize,
}

/// The number of events in a minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Minute {
    /// The number of the minute since 1970.
    pub minute: u64,
    /// The number of events.
    pub events: u64,
}

/// The counts.
#[derive(Default)]
pub struct Tally {
    jobs: BTreeMap<String, JobOutcome>,
    minions: HashMap<String, MinionActivity>,
    states: HashMap<(String, String), (FailedState, HashSet<String>)>,
    /// The minions of all failed states together.
    minions_of_states: usize,
    minutes: VecDeque<Minute>,
}

impl Tally {
    /// Returns the outcomes of the jobs by id, oldest first.
    pub fn jobs(&self) -> &BTreeMap<String, JobOutcome> {
        &self.jobs
    }

    /// Returns the last signs of a minion.
    pub fn minion(&self, id: &str) -> Option<&MinionActivity> {
        self.minions.get(id)
    }

    /// Returns the states that failed, those on most minions first.
    pub fn failed_states(&self) -> Vec<FailedState> {
        let states = self.states.values();
        let mut states: Vec<_> =
            states.map(|(state, minions)| FailedState { minions: minions.len(), ..state.clone() }).collect();
        states.sort_by(|one, other| other.minions.cmp(&one.minions).then(other.last.cmp(&one.last)));
        states
    }

    /// Returns the minutes that had events, oldest first.
    pub fn minutes(&self) -> impl Iterator<Item = &Minute> {
        self.minutes.iter()
    }

    /// Counts an event.
    pub(super) fn count(&mut self, event: &Event) {
        let tag = event.tag();
        let time = event.time().unwrap_or(0);
        self.count_minute(time / MINUTE);
        if let Some((jid, id)) = return_tag(tag) {
            self.count_return(jid, id, time, &event.data());
        } else if let Some(jid) = tag.strip_prefix("salt/job/").and_then(|rest| rest.strip_suffix("/new")) {
            self.count_new(jid, time, &event.data());
        } else if let Some(rest) = tag.strip_prefix("salt/run/") {
            if let Some(jid) = rest.strip_suffix("/ret") {
                self.count_call(jid, time, &event.data());
            }
        } else if tag == "salt/auth" {
            let data = event.data();
            let accepted = data.get("act").and_then(Value::as_str) == Some("accept");
            if let Some(id) = data.get("id").and_then(Value::as_str).filter(|_| accepted) {
                self.see(id, time);
            }
        } else if (tag.starts_with("salt/minion/") || tag.starts_with("salt/beacon/"))
            && let Some(id) = event.data().get(FROM).and_then(Value::as_str)
        {
            self.see(id, time);
        }
    }

    fn count_minute(&mut self, minute: u64) {
        match self.minutes.back_mut() {
            Some(last) if last.minute >= minute => last.events += 1,
            _ => self.minutes.push_back(Minute { minute, events: 1 }),
        }
    }

    fn see(&mut self, id: &str, time: u64) -> Option<&mut MinionActivity> {
        if self.minions.len() >= MAX_MINIONS && !self.minions.contains_key(id) {
            return None;
        }
        let minion = self.minions.entry(id.to_owned()).or_default();
        minion.seen = minion.seen.max(time);
        Some(minion)
    }

    fn job(&mut self, jid: &str, time: u64, data: &Map) -> &mut JobOutcome {
        while self.jobs.len() >= MAX_JOBS && !self.jobs.contains_key(jid) {
            self.jobs.pop_first();
        }
        let job = self.jobs.entry(jid.to_owned()).or_default();
        if job.started == 0 {
            job.started = time;
            job.function = text(data, "fun");
            job.target = text(data, "tgt");
        }
        job
    }

    fn count_new(&mut self, jid: &str, time: u64, data: &Map) {
        if data.contains_key(FROM) {
            return;
        }
        let minions = data.get("minions").and_then(Value::as_list).map_or(0, <[Value]>::len);
        let job = self.job(jid, time, data);
        // The parts of a batch add their minions.
        job.asked = job.asked.saturating_add(u32::try_from(minions).unwrap_or(u32::MAX));
    }

    fn count_return(&mut self, jid: &str, id: &str, time: u64, data: &Map) {
        let is_good = is_good(data);
        let function = data.get("fun").and_then(Value::as_str).unwrap_or_default();
        // Minions run many jobs on their own: successful ones must not displace others.
        let is_own = is_good && self.jobs.len() >= MAX_JOBS / 2 && !self.jobs.contains_key(jid);
        if !is_own {
            let job = self.job(jid, time, data);
            if job.target.is_empty() {
                id.clone_into(&mut job.target);
            }
            job.last = job.last.max(time);
            if is_good {
                job.done += 1;
            } else {
                job.failed += 1;
            }
            job.asked = job.asked.max(job.done + job.failed);
        }
        let mut run = None;
        if function.starts_with("state.") && data.get("return").is_some_and(|value| value.as_map().is_some()) {
            let mut counted = StateRun { jid: jid.to_owned(), time, is_good, ..StateRun::default() };
            counted.add(data.get("return").unwrap_or(&Value::Nil), |key, state| {
                self.count_failed_state(jid, id, time, key, state);
            });
            run = Some(counted);
        }
        let arguments = data.get("fun_args").and_then(Value::as_list).unwrap_or_default();
        let is_test = highstate(function, arguments);
        let Some(minion) = self.see(id, time) else { return };
        if let Some(is_test) = is_test {
            let run = run.unwrap_or_else(|| StateRun { jid: jid.to_owned(), time, is_good, ..StateRun::default() });
            minion.highstate = Some(StateRun { is_test, ..run });
        }
    }

    fn count_failed_state(&mut self, jid: &str, minion: &str, time: u64, key: &str, state: &Map) {
        let parts: Vec<&str> = key.split("_|-").collect();
        let (module, function) = (parts[0], parts.last().copied().unwrap_or_default());
        let id = match text(state, "__id__") {
            id if id.is_empty() => clipped(parts.get(1).copied().unwrap_or_default()),
            id => id,
        };
        let name = (id.clone(), clipped(&format!("{module}.{function}")));
        if self.states.len() >= MAX_STATES && !self.states.contains_key(&name) {
            return;
        }
        let (failed, minions) = self.states.entry(name.clone()).or_default();
        *failed = FailedState {
            id,
            function: name.1,
            sls: text(state, "__sls__"),
            comment: text(state, "comment"),
            jid: jid.to_owned(),
            minion: minion.to_owned(),
            last: time,
            minions: 0,
        };
        if self.minions_of_states < MAX_MINIONS_OF_STATES && minions.insert(minion.to_owned()) {
            self.minions_of_states += 1;
        }
    }

    /// Counts the end of an orchestration. Other runner calls are questions to the master.
    fn count_call(&mut self, jid: &str, time: u64, data: &Map) {
        let function = data.get("fun").and_then(Value::as_str).unwrap_or_default();
        if data.contains_key(FROM) || !function.starts_with(ORCHESTRATIONS) {
            return;
        }
        let is_good = data.get("success").is_none_or(Value::is_truthy);
        let job = self.job(jid, time, data);
        (job.last, job.asked) = (time, 1);
        (job.done, job.failed) = (u32::from(is_good), u32::from(!is_good));
    }

    /// Removes jobs, minutes and failed states before this time.
    pub(super) fn forget_before(&mut self, time: u64) {
        while self.jobs.first_key_value().is_some_and(|(_, job)| job.started.max(job.last) < time) {
            self.jobs.pop_first();
        }
        while self.minutes.front().is_some_and(|first| first.minute < time / MINUTE) {
            self.minutes.pop_front();
        }
        self.states.retain(|_, (state, _)| state.last >= time);
        self.minions_of_states = self.states.values().map(|(_, minions)| minions.len()).sum();
    }
}

/// Whether a return is a success.
fn is_good(data: &Map) -> bool {
    retcode(data) == 0 && data.get("success").is_none_or(Value::is_truthy)
}

/// Returns a field as a bounded text; the names of a list with commas.
fn text(data: &Map, field: &str) -> String {
    match data.get(field) {
        None | Some(Value::Nil) => String::new(),
        Some(Value::Str(text)) => clipped(text),
        Some(Value::List(all)) => {
            let names: Vec<String> = all.iter().take(50).map(ToString::to_string).collect();
            clipped(&names.join(","))
        }
        Some(other) => clipped(&other.to_string()),
    }
}

fn clipped(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

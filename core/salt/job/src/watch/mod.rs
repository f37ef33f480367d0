//! Tracks the minions that have not returned. Minions that are silent for the timeout are asked whether they still run
//! the job; minions without a reply count as missing.
//!
//! A watch has no sockets or clock: its owner passes events and times to it, and publishes its requests.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use brine_event::Event;
use brine_ids::Jid;
use brine_value::{Map, Value};
use brine_wire::PublishRequest;
use tokio::time::Instant;

use super::return_tag;

/// The fraction of the timeout within which minions that are about to become silent are included in a request: the
/// minions of a batch start at different times, and each request is a job of its own.
const AHEAD: u32 = 5;

/// The minions whose returns of a job are outstanding.
#[derive(Debug)]
pub struct Watch {
    jid: Jid,
    times: Times,
    /// The outstanding minions, each with the time after which it counts as silent.
    waiting: BTreeMap<String, Instant>,
    /// The same, sorted by time.
    by_time: BTreeSet<(Instant, String)>,
    asking: Option<FindJob>,
}

/// The timeouts of a job, and the function that queries silent minions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The time after which a silent minion is asked whether it still runs the job: Salt's `timeout`, at least a
    /// second.
    pub timeout: Duration,
    /// The timeout of the answer: Salt's `gather_job_timeout`.
    pub gather: Duration,
    /// The function that asks: given a job id, it returns that job if the minion runs it, or an empty mapping.
    pub find_job: &'static str,
}

/// A request to silent minions.
#[derive(Debug)]
struct FindJob {
    jid: Option<Jid>,
    asked: BTreeSet<String>,
    /// The minions of `asked` that have neither answered nor returned.
    silent: BTreeSet<String>,
    deadline: Instant,
}

/// The action that is due at the [deadline](Watch::deadline).
#[derive(Debug, PartialEq)]
pub enum Due {
    /// Publish this request and pass its job id to [`Watch::asked`].
    Ask(Box<PublishRequest>),
    /// These minions have neither returned nor answered.
    Missing(BTreeSet<String>),
}

impl Watch {
    /// Creates a watch of minions to which the job has just been published.
    pub fn new(jid: Jid, minions: impl IntoIterator<Item = String>, times: Times, now: Instant) -> Self {
        let times = Times { timeout: times.timeout.max(Duration::from_secs(1)), ..times };
        let mut watch = Watch { jid, times, waiting: BTreeMap::new(), by_time: BTreeSet::new(), asking: None };
        watch.add(minions, now);
        watch
    }

    /// Returns the job id.
    pub fn jid(&self) -> &Jid {
        &self.jid
    }

    /// Adds minions to which the job has just been published.
    pub fn add(&mut self, minions: impl IntoIterator<Item = String>, now: Instant) {
        let silent_from = now + self.times.timeout;
        for id in minions {
            self.remove(&id);
            self.by_time.insert((silent_from, id.clone()));
            self.waiting.insert(id, silent_from);
        }
    }

    /// Removes a minion. Returns whether it was outstanding.
    pub fn remove(&mut self, id: &str) -> bool {
        let Some((id, silent_from)) = self.waiting.remove_entry(id) else { return false };
        self.by_time.remove(&(silent_from, id));
        true
    }

    /// Whether a minion is outstanding.
    pub fn waits_for(&self, id: &str) -> bool {
        self.waiting.contains_key(id)
    }

    /// Returns the outstanding minions.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &String> {
        self.waiting.keys()
    }

    /// Whether no minion is outstanding.
    pub fn is_over(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the time at which to call [`Watch::on_deadline`]; `None` if no minion is outstanding.
    pub fn deadline(&self) -> Option<Instant> {
        let silent_from = self.by_time.first()?.0;
        Some(self.asking.as_ref().map_or(silent_from, |asking| asking.deadline))
    }

    /// Processes an event. Returns the minion and its return, if the event is the return of an outstanding minion.
    pub fn process(&mut self, event: &Event, now: Instant) -> Option<(String, Map)> {
        let (jid, id) = return_tag(event.tag())?;
        let is_return = jid == self.jid.as_str();
        let is_answer = |asking: &FindJob| asking.jid.as_ref().is_some_and(|asked| asked.as_str() == jid);
        if let Some(asking) = &mut self.asking
            && (is_return || is_answer(asking) && event.data().get("return").is_some_and(Value::is_truthy))
            && asking.silent.remove(id)
            && asking.silent.is_empty()
        {
            self.end_asking(now);
        }
        (is_return && self.remove(id)).then(|| (id.to_owned(), event.data()))
    }

    /// Returns the action that is due at the deadline: first a request to the silent minions in the name of `user`, at
    /// the next deadline the minions that did not answer it.
    pub fn on_deadline(&mut self, user: &str, now: Instant) -> Due {
        if let Some(missing) = self.end_asking(now) {
            return Due::Missing(missing);
        }
        let until = now + self.times.timeout / AHEAD;
        let silent = self.by_time.iter().take_while(|(silent_from, _)| *silent_from <= until);
        let silent: BTreeSet<String> = silent.map(|(_, id)| id.clone()).collect();
        let request = PublishRequest {
            tgt: silent.iter().map(String::as_str).collect(),
            tgt_type: "list".to_owned(),
            arg: vec![Value::from(&self.jid)],
            ..PublishRequest::new("", self.times.find_job, user)
        };
        self.asking = Some(FindJob { jid: None, asked: silent.clone(), silent, deadline: now + self.times.gather });
        Due::Ask(Box::new(request))
    }

    /// Removes and returns the minions that did not answer the request. Restarts the timeouts of all others.
    fn end_asking(&mut self, now: Instant) -> Option<BTreeSet<String>> {
        let FindJob { asked, silent, .. } = self.asking.take()?;
        let missing = silent.into_iter().filter(|id| self.remove(id)).collect();
        let running: Vec<String> = asked.into_iter().filter(|id| self.waits_for(id)).collect();
        self.add(running, now);
        Some(missing)
    }

    /// Sets the job id of the published request; `None` if it was not published.
    pub fn asked(&mut self, jid: Option<Jid>, now: Instant) {
        if let Some(asking) = &mut self.asking {
            asking.jid = jid;
            asking.deadline = now + self.times.gather;
        }
    }
}

#[cfg(test)]
mod tests;

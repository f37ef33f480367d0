//! The minions of the masters below that are expected to return. A master with syndics learns them from the syndics'
//! events.
//!
//! A syndic passes on its master's event of a new job as `syndic/<id>/salt/job/<jid>/new`, with the matching `minions`.
//! A Brine syndic adds `syndics`, the ids of the syndics below its master, whose events arrive as
//! `syndic/<id>/syndic/<below>/...`. A Salt syndic does not, so that further reports may follow at any time.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use brine_event::Event;
use brine_ids::Jid;
use brine_value::Value;
use tokio::time::Instant;

/// The syndics that received a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportingSyndics {
    /// Their ids.
    pub ids: Vec<String>,
    /// The timeout of their reports: Salt's `syndic_wait`.
    pub wait: Duration,
}

/// The reports of the syndics about one job.
#[derive(Debug)]
pub(crate) struct Reports {
    /// The syndics that have not reported, each as the path `id` or `id/below`.
    pending: BTreeSet<String>,
    /// Whether a syndic has reported without listing the syndics below its master.
    may_follow: bool,
    until: Instant,
    /// The minions that are expected to return or have returned.
    known: HashSet<String>,
}

impl Reports {
    /// Creates the reports of a job that was published to these syndics and, directly, to these minions.
    pub fn new(syndics: ReportingSyndics, minions: impl IntoIterator<Item = String>, now: Instant) -> Self {
        Reports {
            pending: syndics.ids.into_iter().collect(),
            may_follow: false,
            until: now + syndics.wait,
            known: minions.into_iter().collect(),
        }
    }

    /// Returns the deadline of the reports; `None` if all have arrived or the deadline has passed.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        let is_waiting = (!self.pending.is_empty() || self.may_follow) && self.until > now;
        is_waiting.then_some(self.until)
    }

    /// Removes and returns the syndics that have not reported.
    pub fn take_silent(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.pending)
    }

    /// Whether a minion is expected to return or has returned.
    pub fn knows(&self, id: &str) -> bool {
        self.known.contains(id)
    }

    /// Records the return of a minion. Returns whether it was not known before.
    pub fn returned(&mut self, id: &str) -> bool {
        self.known.insert(id.to_owned())
    }

    /// Processes an event. Returns the minions that a report adds; `None` if the event is not a report about this job.
    pub fn process(&mut self, event: &Event, jid: &Jid) -> Option<Vec<String>> {
        let path = reporter(event.tag(), jid.as_str())?;
        let data = event.data();
        self.pending.remove(&path);
        match data.get("syndics").and_then(Value::as_list) {
            Some(ids) => self.pending.extend(ids.iter().map(|id| format!("{path}/{id}"))),
            None => self.may_follow = true,
        }
        let minions = data.get("minions").and_then(Value::as_list).unwrap_or_default();
        Some(minions.iter().map(ToString::to_string).filter(|id| self.known.insert(id.clone())).collect())
    }
}

/// Returns the path of the syndic that reports about this job with this tag.
fn reporter(tag: &str, jid: &str) -> Option<String> {
    let (syndics, job) = tag.split_once("/salt/job/")?;
    let (of, what) = job.split_once('/')?;
    if of != jid || !matches!(what, "new" | "error") {
        return None;
    }
    let mut path = Vec::new();
    let mut rest = syndics;
    while let Some(after) = rest.strip_prefix("syndic/") {
        let (id, more) = after.split_once('/').unwrap_or((after, ""));
        path.push(id);
        rest = more;
    }
    (rest.is_empty() && !path.is_empty()).then(|| path.join("/"))
}

#[cfg(test)]
mod tests;

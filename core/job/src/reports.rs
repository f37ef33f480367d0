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
mod tests {
    use brine_value::{list, map};

    use super::*;

    const JID: &str = "20261124083000000000";

    fn event(tag: &str, data: brine_value::Map) -> Event {
        Event::from_map(tag, &data).unwrap()
    }

    #[test]
    fn a_report_names_its_syndic_and_its_job() {
        for (tag, expected) in [
            ("syndic/s1/salt/job/20261124083000000000/new", Some("s1")),
            ("syndic/s1/salt/job/20261124083000000000/error", Some("s1")),
            ("syndic/s1/syndic/s2/salt/job/20261124083000000000/new", Some("s1/s2")),
            ("syndic/s1/salt/job/20261124083000000001/new", None),
            ("syndic/s1/salt/job/20261124083000000000/ret/m1", None),
            ("salt/job/20261124083000000000/new", None),
            ("other/s1/salt/job/20261124083000000000/new", None),
        ] {
            assert_eq!(reporter(tag, JID).as_deref(), expected, "{tag}");
        }
    }

    #[test]
    fn all_reports_are_awaited_including_those_of_nested_syndics() {
        let (now, jid) = (Instant::now(), JID.parse::<Jid>().unwrap());
        let syndics = ReportingSyndics { ids: vec!["s1".into(), "s2".into()], wait: Duration::from_secs(5) };
        let mut reports = Reports::new(syndics, ["own".to_owned()], now);
        assert_eq!(reports.deadline(now), Some(now + Duration::from_secs(5)));
        assert!(reports.returned("early"));
        let of = |path: &str, data| event(&format!("syndic/{path}/salt/job/{JID}/new"), data);
        let report = of("s1", map! {"minions" => list!["a", "early", "own"], "syndics" => list!["deep"]});
        assert_eq!(reports.process(&report, &jid), Some(vec!["a".to_owned()]));
        let report = of("s2", map! {"minions" => list!["b"], "syndics" => list![]});
        assert_eq!(reports.process(&report, &jid), Some(vec!["b".to_owned()]));
        assert_eq!(reports.pending, ["s1/deep".to_owned()].into());
        assert!(reports.deadline(now).is_some());
        let report = of("s1/syndic/deep", map! {"minions" => list!["c", "b"], "syndics" => list![]});
        assert_eq!(reports.process(&report, &jid), Some(vec!["c".to_owned()]));
        assert_eq!(reports.deadline(now), None);
        assert!(reports.knows("c") && !reports.knows("d") && !reports.returned("early"));
    }

    #[test]
    fn a_syndic_of_salt_may_be_followed_by_others() {
        let (now, jid) = (Instant::now(), JID.parse::<Jid>().unwrap());
        let wait = Duration::from_secs(5);
        let mut reports = Reports::new(ReportingSyndics { ids: vec!["s1".into()], wait }, [], now);
        let report = event(&format!("syndic/s1/salt/job/{JID}/new"), map! {"minions" => list!["a"]});
        assert_eq!(reports.process(&report, &jid), Some(vec!["a".to_owned()]));
        assert_eq!(reports.deadline(now), Some(now + wait));
        assert_eq!(reports.deadline(now + wait), None);
    }
}

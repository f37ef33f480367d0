//! The report of a replay: differences counted by entry, with a few examples each.

use std::sync::Arc;

use brine_rules::excerpt;
use brine_value::{Map, Value, map};
use indexmap::IndexMap;

use super::side::{Reactions, shown};
use crate::plan::PlannedReaction;

/// The maximum number of entries that are counted, and of problems of each.
const ENTRIES: usize = 10_000;
const PROBLEMS: usize = 5;
/// The maximum length of the data of an example's event, in characters.
const DATA: usize = 2_000;

#[derive(Default)]
struct Count {
    /// Events for which its reactions are certainly the same.
    unchanged: u64,
    same: u64,
    added: u64,
    lost: u64,
    changed: u64,
    errors: u64,
    examples: Vec<(&'static str, Value)>,
    problems: Vec<Value>,
}

pub(super) struct Report {
    examples: usize,
    events: u64,
    matched: u64,
    first: Option<(u64, Option<u64>)>,
    last: Option<(u64, Option<u64>)>,
    entries: IndexMap<Arc<str>, Count>,
    errors: Vec<String>,
}

impl Report {
    pub fn new(examples: usize, before: Vec<String>, after: Vec<String>) -> Self {
        let mut errors: Vec<String> = before.iter().map(|error| format!("before: {error}")).collect();
        errors.extend(after.iter().map(|error| format!("after: {error}")));
        let (events, matched, first, last) = (0, 0, None, None);
        Report { examples, events, matched, first, last, entries: IndexMap::new(), errors }
    }

    pub fn events(&self) -> u64 {
        self.events
    }

    pub fn count(&mut self, seq: u64, time: Option<u64>) {
        self.events += 1;
        self.first.get_or_insert((seq, time));
        self.last = Some((seq, time));
    }

    pub fn matched(&mut self) {
        self.matched += 1;
    }

    pub fn unchanged(&mut self, entry: &Arc<str>) {
        if let Some(count) = self.entry(entry) {
            count.unchanged += 1;
        }
    }

    fn entry(&mut self, entry: &Arc<str>) -> Option<&mut Count> {
        if self.entries.len() >= ENTRIES && !self.entries.contains_key(entry) {
            return None;
        }
        Some(self.entries.entry(Arc::clone(entry)).or_default())
    }

    /// Compares the reactions to one event: equal ones with each other, then those with the same label.
    pub fn compare(&mut self, seq: u64, tag: &str, data: &Map, before: &Reactions, after: &Reactions) {
        let mut old: Vec<Option<&PlannedReaction>> = before.steps.iter().map(Some).collect();
        let mut new: Vec<Option<&PlannedReaction>> = after.steps.iter().map(Some).collect();
        for (_, new) in pairs(&mut old, &mut new, |old, new| old.reaction == new.reaction) {
            if let Some(count) = self.entry(&new.entry) {
                count.same += 1;
            }
        }
        let event = || event(seq, tag, data);
        for (old, new) in pairs(&mut old, &mut new, |old, new| old.label == new.label) {
            let example =
                || map! {"change" => "changed", "event" => event(), "before" => shown(old), "after" => shown(new)};
            self.difference(&new.entry, "changed", example);
        }
        for (steps, change, side) in [(old, "lost", "before"), (new, "added", "after")] {
            for step in steps.into_iter().flatten() {
                let example = || map! {"change" => change, "event" => event(), side => shown(step)};
                self.difference(&step.entry, change, example);
            }
        }
        // Errors that both sides have are no difference.
        for (problems, others, side) in
            [(&before.problems, &after.problems, "before"), (&after.problems, &before.problems, "after")]
        {
            let only = problems.iter().filter(|(_, message)| !others.iter().any(|(_, other)| other == message));
            for (entry, message) in only {
                let Some(count) = self.entry(entry) else { continue };
                count.errors += 1;
                if count.problems.len() < PROBLEMS {
                    count.problems.push(map! {side => excerpt(message), "seq" => seq}.into());
                }
            }
        }
    }

    fn difference(&mut self, entry: &Arc<str>, change: &'static str, example: impl Fn() -> Map) {
        let limit = self.examples;
        let Some(count) = self.entry(entry) else { return };
        match change {
            "changed" => count.changed += 1,
            "lost" => count.lost += 1,
            _ => count.added += 1,
        }
        if count.examples.iter().filter(|(other, _)| *other == change).count() < limit {
            count.examples.push((change, example().into()));
        }
    }

    pub fn finish(self, is_complete: bool, refused: &[String]) -> Value {
        let sum = |of: fn(&Count) -> u64| self.entries.values().map(of).sum::<u64>();
        let mut report = map! {
            "events" => self.events,
            "matched" => self.matched,
            "complete" => is_complete,
            "added" => sum(|one| one.added),
            "lost" => sum(|one| one.lost),
            "changed" => sum(|one| one.changed),
            "errors" => sum(|one| one.errors),
        };
        for (name, place) in [("first", self.first), ("last", self.last)] {
            if let Some((seq, time)) = place {
                let time = time.map(stamp);
                report.insert(name.into(), map! {"seq" => seq, "time" => time}.into());
            }
        }
        if !self.errors.is_empty() {
            report.insert("configuration_errors".into(), self.errors.into());
        }
        if !refused.is_empty() {
            report.insert("refused_functions".into(), refused.to_vec().into());
        }
        let one = |(entry, count): (Arc<str>, Count)| {
            let mut summary = map! {
                "unchanged_events" => count.unchanged, "same" => count.same, "added" => count.added,
                "lost" => count.lost, "changed" => count.changed,
            };
            if count.errors > 0 {
                summary.insert("errors".into(), count.errors.into());
                summary.insert("problems".into(), count.problems.into());
            }
            if !count.examples.is_empty() {
                let examples = count.examples.into_iter().map(|(_, example)| example).collect::<Vec<_>>();
                summary.insert("examples".into(), examples.into());
            }
            (Value::from(&*entry), Value::from(summary))
        };
        report.insert("entries".into(), Value::Map(self.entries.into_iter().map(one).collect()));
        report.into()
    }
}

/// Takes the pairs that fit together out of two lists.
fn pairs<'a>(
    old: &mut [Option<&'a PlannedReaction>],
    new: &mut [Option<&'a PlannedReaction>],
    fits: fn(&PlannedReaction, &PlannedReaction) -> bool,
) -> Vec<(&'a PlannedReaction, &'a PlannedReaction)> {
    let mut pairs = Vec::new();
    for one in old {
        let Some(step) = *one else { continue };
        let other = new.iter_mut().find(|other| other.is_some_and(|other| fits(step, other)));
        if let Some(other) = other.and_then(Option::take) {
            *one = None;
            pairs.push((step, other));
        }
    }
    pairs
}

/// Returns a time in microseconds since 1970 as a stamp.
fn stamp(time: u64) -> String {
    brine_event::stamp_of(jiff::Timestamp::from_microsecond(time.cast_signed()).unwrap_or_default())
}

/// Returns an event for a report, with its data or the beginning of it.
fn event(seq: u64, tag: &str, data: &Map) -> Value {
    let value = Value::Map(data.clone());
    let text = value.to_string();
    let data = match text.char_indices().nth(DATA) {
        None => value,
        Some((end, _)) => format!("{}...", &text[..end]).into(),
    };
    map! {"seq" => seq, "tag" => tag, "data" => data}.into()
}

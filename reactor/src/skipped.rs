//! Skipped reactions: what was matched and has no reaction, with the cause, for `reactor.explain` and
//! `reactor.history`. A bounded number, in memory: after a restart the records begin anew.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

/// How many skips are recorded; beyond them those of the oldest event leave.
const MOST: usize = 10_000;
/// How many characters of a text from an event are recorded.
const TEXT: usize = 120;

/// A reaction that an event did not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skip {
    /// The entry's pattern, or the rule's id; empty if it is about all of them.
    pub entry: Arc<str>,
    /// The SLS file, if it is about one.
    pub file: Option<Arc<str>>,
    pub reason: Reason,
}

/// Why a reaction was skipped. Times are bus time, in microseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A limit leaves it out.
    Limited { option: &'static str, key: String, until: u64 },
    /// `reactor_debounce` holds it.
    Held { key: String, until: u64 },
    /// A later event of the same burst has the reaction.
    Superseded { by: u64 },
    /// The file rendered to no reaction.
    Empty,
    /// The target of the job matches no accepted minion.
    NoMinion { reaction: String, target: String },
    /// The reactor was switched off.
    Off,
}

/// The skips of the most recent events, by the event's number.
#[derive(Debug, Default)]
pub(crate) struct Skipped(Mutex<Records>);

#[derive(Debug, Default)]
struct Records {
    events: BTreeMap<u64, Vec<Skip>>,
    count: usize,
}

/// Cuts a text from an event to what is recorded, on one line.
pub(crate) fn cut(text: &str) -> String {
    let mut cut: String = text.chars().take(TEXT).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(TEXT).is_some() {
        cut.push_str("...");
    }
    cut
}

impl Skipped {
    /// Records a skip.
    pub fn add(&self, seq: u64, skip: Skip) {
        // A timer has no event.
        if seq == 0 {
            return;
        }
        let mut records = self.0.lock();
        let skips = records.events.entry(seq).or_default();
        // Worked on again after a crash or by a retry, an event comes to the same.
        if skips.contains(&skip) {
            return;
        }
        skips.push(skip);
        records.count += 1;
        while records.count > MOST
            && let Some((_, oldest)) = records.events.pop_first()
        {
            records.count -= oldest.len();
        }
    }

    /// Removes the record that an event is held for this entry: it has its reaction, or another record.
    pub fn release(&self, seq: u64, entry: &str) {
        let mut records = self.0.lock();
        let Some(skips) = records.events.get_mut(&seq) else { return };
        let before = skips.len();
        skips.retain(|skip| !(&*skip.entry == entry && matches!(skip.reason, Reason::Held { .. })));
        let (removed, is_empty) = (before - skips.len(), skips.is_empty());
        if is_empty {
            records.events.remove(&seq);
        }
        records.count -= removed;
    }

    /// Returns the skips of an event.
    pub fn of(&self, seq: u64) -> Vec<Skip> {
        self.0.lock().events.get(&seq).cloned().unwrap_or_default()
    }

    /// Returns the numbers of the events in this range that have skips.
    pub fn events(&self, range: Range<u64>) -> Vec<u64> {
        self.0.lock().events.range(range).map(|(seq, _)| *seq).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(entry: &str, reason: Reason) -> Skip {
        Skip { entry: entry.into(), file: None, reason }
    }

    #[test]
    fn the_number_of_records_is_bounded() {
        let skipped = Skipped::default();
        for seq in 1..=2 * MOST as u64 {
            skipped.add(seq, skip("a", Reason::Empty));
            skipped.add(seq, skip("a", Reason::Empty));
        }
        assert_eq!(skipped.of(MOST as u64), []);
        assert_eq!(skipped.of(MOST as u64 + 1).len(), 1);
        assert_eq!(skipped.events(0..u64::MAX).len(), MOST);
        skipped.add(0, skip("a", Reason::Off));
        assert_eq!(skipped.of(0), []);
    }

    #[test]
    fn a_held_event_that_has_its_reaction_leaves_no_record() {
        let skipped = Skipped::default();
        let held = || Reason::Held { key: "web1".into(), until: 5 };
        skipped.add(7, skip("a", held()));
        skipped.add(7, skip("b", held()));
        skipped.release(7, "a");
        assert_eq!(skipped.of(7), [skip("b", held())]);
        skipped.release(7, "b");
        assert_eq!(skipped.events(0..u64::MAX), [0; 0]);
    }

    #[test]
    fn texts_of_events_are_cut() {
        assert_eq!((cut("web1"), cut("a\n\x1b[31mb")), ("web1".to_owned(), "a  [31mb".to_owned()));
        assert_eq!(cut(&"é".repeat(1000)), format!("{}...", "é".repeat(TEXT)));
    }
}

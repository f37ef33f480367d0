//! Records skipped reactions with their causes, for `reactor.explain` and `reactor.history`: a bounded number, in
//! memory only.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

/// The maximum number of records; beyond it those of the oldest event are dropped.
const CAPACITY: usize = 10_000;

/// A skipped reaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skip {
    /// The entry's pattern, or the rule's id; empty for all of them.
    pub entry: Arc<str>,
    /// The SLS file, if one caused the skip.
    pub file: Option<Arc<str>>,
    pub reason: Reason,
}

/// The cause of a skip. Times are bus time, in microseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A limit was exceeded.
    Limited { option: &'static str, key: String, until: u64 },
    /// The event is debounced (`reactor_debounce`).
    Debounced { key: String, until: u64 },
    /// A later event of the same burst replaced it.
    Superseded { by: u64 },
    /// The file rendered to no reaction.
    Empty,
    /// The target of the job matches no accepted minion.
    NoMinion { reaction: String, target: String },
    /// The reactor was not the leader.
    Off,
    /// Another master of the cluster has carried out the reactions.
    OtherMaster,
}

/// The skips of the newest events, by sequence number.
#[derive(Debug, Default)]
pub(crate) struct Skipped(Mutex<Records>);

#[derive(Debug, Default)]
struct Records {
    events: BTreeMap<u64, Vec<Skip>>,
    count: usize,
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
        // Repeated work after a crash, or a retry, records the same skips.
        if skips.contains(&skip) {
            return;
        }
        skips.push(skip);
        records.count += 1;
        while records.count > CAPACITY
            && let Some((_, oldest)) = records.events.pop_first()
        {
            records.count -= oldest.len();
        }
    }

    /// Removes the record that an event is debounced for an entry: the event is processed now, or gets another record.
    pub fn release(&self, seq: u64, entry: &str) {
        let mut records = self.0.lock();
        let Some(skips) = records.events.get_mut(&seq) else { return };
        let before = skips.len();
        skips.retain(|skip| !(&*skip.entry == entry && matches!(skip.reason, Reason::Debounced { .. })));
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

    /// Returns the sequence numbers of the events in a range that have skips.
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
        for seq in 1..=2 * CAPACITY as u64 {
            skipped.add(seq, skip("a", Reason::Empty));
            skipped.add(seq, skip("a", Reason::Empty));
        }
        assert_eq!(skipped.of(CAPACITY as u64), []);
        assert_eq!(skipped.of(CAPACITY as u64 + 1).len(), 1);
        assert_eq!(skipped.events(0..u64::MAX).len(), CAPACITY);
        skipped.add(0, skip("a", Reason::Off));
        assert_eq!(skipped.of(0), []);
    }

    #[test]
    fn a_debounced_event_that_has_its_reaction_leaves_no_record() {
        let skipped = Skipped::default();
        let debounced = || Reason::Debounced { key: "web1".into(), until: 5 };
        skipped.add(7, skip("a", debounced()));
        skipped.add(7, skip("b", debounced()));
        skipped.release(7, "a");
        assert_eq!(skipped.of(7), [skip("b", debounced())]);
        skipped.release(7, "b");
        assert_eq!(skipped.events(0..u64::MAX), [0; 0]);
    }
}

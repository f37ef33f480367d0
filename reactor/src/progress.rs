//! The reactor's progress: the sequence number up to which every event has been handled.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The sequence number of work that does not hold the cursor: firings of rules are persisted separately.
pub(crate) const NO_EVENT: u64 = u64::MAX;

/// The events with open work. The cursor never passes one of them.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    open: BTreeMap<u64, Open>,
    seen: u64,
    /// The number of work items begun so far.
    begun: u64,
}

#[derive(Debug)]
struct Open {
    /// The number of open work items of the event.
    work_items: usize,
    /// [`Progress::begun`] before the event's first work item.
    begun_before: u64,
}

impl Progress {
    /// Creates the progress of a reactor that has handled all events up to this one.
    pub fn new(seen: u64) -> Self {
        Progress { seen, ..Progress::default() }
    }

    /// Records that an event has been read.
    pub fn record_read(&mut self, seq: u64) {
        self.seen = self.seen.max(seq);
    }

    /// Records that work for an event begins.
    pub fn begin(&mut self, seq: u64) {
        let begun_before = self.begun;
        self.begun += 1;
        self.open.entry(seq).or_insert(Open { work_items: 0, begun_before }).work_items += 1;
    }

    /// Records that work for an event has ended.
    pub fn end(&mut self, seq: u64) {
        if let Entry::Occupied(mut open) = self.open.entry(seq) {
            open.get_mut().work_items -= 1;
            if open.get().work_items == 0 {
                open.remove();
            }
        }
    }

    /// Returns the sequence number of the last event read.
    pub fn last_read(&self) -> u64 {
        self.seen
    }

    /// Returns whether no work is open.
    pub fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the sequence number that the cursor may be committed at: this event and all before it have been handled.
    pub fn reached(&self) -> u64 {
        self.open.first_key_value().map_or(self.seen, |(oldest, _)| self.seen.min(oldest - 1))
    }

    /// Returns the number of work items begun since the oldest open one. They are repeated after a crash.
    pub fn behind(&self) -> u64 {
        match self.open.first_key_value() {
            Some((seq, oldest)) if *seq != NO_EVENT => self.begun - oldest.begun_before,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_stays_behind_the_oldest_open_event() {
        let mut progress = Progress::new(10);
        for seq in [11, 12, 13] {
            progress.record_read(seq);
        }
        progress.begin(12);
        progress.begin(12);
        progress.begin(13);
        progress.begin(NO_EVENT);
        assert_eq!((progress.reached(), progress.behind()), (11, 4));
        progress.end(12);
        progress.end(13);
        assert_eq!((progress.reached(), progress.behind()), (11, 4));
        progress.end(12);
        assert_eq!((progress.reached(), progress.behind(), progress.is_idle()), (13, 0, false));
        progress.end(NO_EVENT);
        assert!(progress.is_idle());
    }
}

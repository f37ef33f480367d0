//! Retention of the journal: disk use and age of events, and when to remove them.

use std::time::{Duration, Instant};

use crate::store::Pages;

/// The maximum interval between checks for trimming.
const TRIM_INTERVAL: Duration = Duration::from_secs(60);
const INDEX_INTERVAL_MICROS: u64 = 1_000_000;
/// The maximum bytes removed in one commit, since later commits must wait for it.
pub(super) const TRIM_AT_ONCE: u64 = 64 << 20;

/// The limits of the journal.
#[derive(Debug, Clone, Copy)]
pub struct JournalLimits {
    /// The age at which events are removed.
    pub age: Duration,
    /// The bytes on disk beyond which the oldest events are removed.
    pub bytes: u64,
}

impl Default for JournalLimits {
    fn default() -> Self {
        JournalLimits { age: Duration::from_secs(24 * 3600), bytes: 1 << 30 }
    }
}

/// The written, indexed and trimmed parts of the journal.
pub(super) struct Progress {
    /// The disk space of all events so far.
    pages: Pages,
    indexed: Option<(u64, u64)>,
    trimmed: Option<(Instant, u64)>,
    clock: Clock,
}

impl Progress {
    /// Continues after the last index entry: its time, and the bytes written before it.
    pub fn new(last: Option<(u64, u64)>) -> Self {
        let (time, bytes) = last.unwrap_or_default();
        Progress { pages: Pages::after(bytes), indexed: None, trimmed: None, clock: Clock::new(now_micros(), time) }
    }

    /// Returns the bytes on disk of all events so far.
    pub fn bytes(&self) -> u64 {
        self.pages.bytes
    }

    /// Adds the disk space of a row.
    pub fn add(&mut self, key_and_value: usize) {
        self.pages.add(key_and_value);
    }

    /// Returns the time of a new index entry, if one is due now, in microseconds since 1970.
    pub fn index(&mut self, now: u64, limits: &JournalLimits) -> Option<u64> {
        let due = self.indexed.is_none_or(|(time, bytes)| {
            now.abs_diff(time) >= INDEX_INTERVAL_MICROS || self.bytes() >= bytes + limits.step() / 2
        });
        due.then(|| {
            self.indexed = Some((now, self.bytes()));
            self.clock.index(now)
        })
    }

    /// Returns the cut if trimming is due.
    pub fn trim(&mut self, limits: &JournalLimits) -> Option<Cut> {
        let due = self
            .trimmed
            .is_none_or(|(at, bytes)| at.elapsed() >= TRIM_INTERVAL || self.bytes() >= bytes + limits.step());
        due.then(|| {
            self.trimmed = Some((Instant::now(), self.bytes()));
            Cut { now: self.clock.age(), written: self.bytes() }
        })
    }

    /// Resets the byte count to `bytes` after a failed write.
    pub fn reset_to(&mut self, bytes: u64) {
        (self.pages, self.indexed) = (Pages::after(bytes), None);
    }

    /// Makes trimming due with the next write.
    pub fn trim_again(&mut self) {
        self.trimmed = None;
    }
}

/// The reference for trimming: the time, in microseconds since 1970, and the bytes written so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub now: u64,
    pub written: u64,
}

impl JournalLimits {
    /// Returns the number of bytes between two trims.
    fn step(&self) -> u64 {
        (self.bytes / 16).clamp(1, 16 << 20)
    }
}

/// The clock for the age of events. It follows the monotonic clock, so that setting the wall clock forward while the
/// process runs does not age earlier events. Times in the index never decrease.
struct Clock {
    opened: Instant,
    wall_at_open: u64,
    last: u64,
}

impl Clock {
    fn new(wall: u64, last: u64) -> Self {
        Clock { opened: Instant::now(), wall_at_open: wall, last }
    }

    fn age(&self) -> u64 {
        self.wall_at_open + u64::try_from(self.opened.elapsed().as_micros()).unwrap_or(u64::MAX / 2)
    }

    fn index(&mut self, wall: u64) -> u64 {
        self.last = wall.max(self.last + 1);
        self.last
    }
}

/// Returns the wall clock's time in microseconds since 1970.
pub(super) fn now_micros() -> u64 {
    jiff::Timestamp::now().as_microsecond().max(0).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_set_forward_does_not_age_events() {
        let mut clock = Clock::new(1_000_000, 0);
        assert_eq!(clock.index(1_000_000), 1_000_000);
        // 25 hours forward, and back again.
        assert_eq!(clock.index(90_001_000_000), 90_001_000_000);
        assert!(clock.age() < 60_000_000);
        assert_eq!(clock.index(2_000_000), 90_001_000_001);
    }
}

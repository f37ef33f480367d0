//! The readings of the wall clock in the life of the process, by the monotonic clock.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

/// The difference from which on a change of the wall clock counts as set, not as slewed.
const SET: SignedDuration = SignedDuration::from_secs(2);
/// The maximum number of recorded settings; beyond it, the oldest are forgotten.
const SETTINGS: usize = 64;

/// From a time of the monotonic clock on, the wall clock ran from this reading.
#[derive(Debug, Clone, Copy)]
struct Setting {
    monotonic: SignedDuration,
    wall: Timestamp,
}

impl Setting {
    /// Returns the reading of the wall clock at a time of the monotonic one.
    fn at(&self, monotonic: SignedDuration) -> Timestamp {
        self.wall.checked_add(monotonic.saturating_sub(self.monotonic)).unwrap_or(self.wall)
    }
}

/// The settings of the wall clock, oldest first. Times of the monotonic clock count from any point.
#[derive(Debug, Default)]
pub(crate) struct History(VecDeque<Setting>);

impl History {
    /// Records the present reading.
    pub fn observe(&mut self, monotonic: SignedDuration, wall: Timestamp) {
        let is_set = self
            .0
            .back()
            .is_none_or(|last| wall.duration_since(last.at(monotonic)).unsigned_abs() > SET.unsigned_abs());
        if is_set {
            self.0.push_back(Setting { monotonic, wall });
        }
        if self.0.len() > SETTINGS {
            self.0.pop_front();
        }
    }

    /// Returns the reading at a time of the monotonic clock; before the first observation, it ran evenly.
    pub fn reading(&self, monotonic: SignedDuration) -> Option<Timestamp> {
        let setting = self.0.iter().rfind(|setting| setting.monotonic <= monotonic).or_else(|| self.0.front());
        setting.map(|setting| setting.at(monotonic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: i64) -> SignedDuration {
        SignedDuration::from_secs(seconds)
    }

    #[test]
    fn readings_follow_the_settings_of_the_clock() {
        let mut history = History::default();
        assert_eq!(history.reading(seconds(0)), None);
        let wall = |at| Timestamp::from_second(at).unwrap();
        // Started at 1,000,000; set forward by 25 hours after 100 s, and back after 200 s.
        for (monotonic, reading) in
            [(0, 1_000_000), (50, 1_000_050), (100, 1_090_100), (150, 1_090_150), (200, 1_000_200), (300, 1_000_301)]
        {
            history.observe(seconds(monotonic), wall(reading));
        }
        for (monotonic, reading) in [
            (-3600, 996_400),
            (0, 1_000_000),
            (99, 1_000_099),
            (100, 1_090_100),
            (199, 1_090_199),
            (200, 1_000_200),
            (400, 1_000_400),
        ] {
            assert_eq!(history.reading(seconds(monotonic)), Some(wall(reading)), "{monotonic}");
        }
        for n in 0..1000 {
            history.observe(seconds(1000 + n), wall(n * 1000));
        }
        assert_eq!(history.0.len(), SETTINGS);
    }
}

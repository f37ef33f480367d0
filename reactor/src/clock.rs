//! Bus time: the reactor's clock, which does not jump with the wall clock.
//!
//! Bus time is the wall clock when the reactor was created, plus the monotonic time since then, in microseconds since
//! 1970. Limits, timers and rules over time use it alone.
//!
//! An event's time is bus time minus the event's age, never later than now and never earlier than the event before it.
//! The age is the wall clock minus the event's stamp, so that events of a backlog keep the intervals between them. A
//! jump of the wall clock only changes the times of events that were published before and are read after it, and they
//! stay between the event before them and now.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_rules::duration::micros;
use parking_lot::Mutex;

/// The reactor's clock. Clones share it.
#[derive(Clone)]
pub(crate) struct Clock {
    started: u64,
    wall: Arc<dyn Fn() -> u64 + Send + Sync>,
    elapsed: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// The time of the latest event.
    latest: Arc<Mutex<u64>>,
}

impl Clock {
    /// Creates a clock from the machine's wall clock and monotonic clock.
    pub fn system() -> Self {
        let start = Instant::now();
        Self::new(wall_micros, move || start.elapsed())
    }

    /// Creates a clock from a wall clock, in microseconds since 1970, and a monotonic clock.
    pub fn new(
        wall: impl Fn() -> u64 + Send + Sync + 'static,
        elapsed: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        let started = wall().saturating_sub(micros(elapsed()));
        Clock { started, wall: Arc::new(wall), elapsed: Arc::new(elapsed), latest: Arc::default() }
    }

    /// Returns the bus time.
    pub fn now(&self) -> u64 {
        self.started + micros((self.elapsed)())
    }

    /// Returns the difference of the wall clock to bus time, in microseconds: positive if the wall clock is ahead.
    pub fn wall_offset(&self) -> i64 {
        (self.wall)().cast_signed() - self.now().cast_signed()
    }

    /// Returns the bus time of the next event, from its stamp in microseconds since 1970.
    pub fn time_of(&self, stamp: Option<u64>) -> u64 {
        let age = stamp.map_or(0, |stamp| (self.wall)().saturating_sub(stamp));
        let mut latest = self.latest.lock();
        *latest = latest.max(self.now().saturating_sub(age));
        *latest
    }
}

fn wall_micros() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    micros(now)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    pub const SECOND: u64 = 1_000_000;
    pub const BEGIN: u64 = 2_000_000_000 * SECOND;

    /// The clocks of a test, in seconds: both advance together, and the wall clock jumps.
    #[derive(Clone)]
    pub struct ManualClock {
        wall: Arc<AtomicU64>,
        elapsed: Arc<AtomicU64>,
    }

    impl ManualClock {
        pub fn new() -> Self {
            ManualClock { wall: Arc::new((BEGIN / SECOND).into()), elapsed: Arc::default() }
        }

        pub fn clock(&self) -> Clock {
            let ManualClock { wall, elapsed } = self.clone();
            Clock::new(move || wall.load(Relaxed) * SECOND, move || Duration::from_secs(elapsed.load(Relaxed)))
        }

        pub fn pass(&self, seconds: u64) {
            self.wall.fetch_add(seconds, Relaxed);
            self.elapsed.fetch_add(seconds, Relaxed);
        }

        pub fn jump(&self, seconds: i64) {
            self.wall.fetch_add(seconds.cast_unsigned(), Relaxed);
        }

        /// Returns the stamp of an event that is published now, in microseconds.
        pub fn stamp(&self) -> u64 {
            self.wall.load(Relaxed) * SECOND
        }
    }

    /// Jumps of an hour back, a day and an hour forward, and a year back.
    pub const JUMPS: [i64; 3] = [-3600, 25 * 3600, -365 * 86_400];

    #[test]
    fn jumps_of_the_wall_clock_do_not_move_bus_time() {
        for jump in JUMPS {
            let hands = ManualClock::new();
            let clock = hands.clock();
            hands.pass(10);
            hands.jump(jump);
            assert_eq!((clock.now(), clock.wall_offset()), (BEGIN + 10 * SECOND, jump * SECOND.cast_signed()));
            hands.pass(5);
            assert_eq!(clock.now(), BEGIN + 15 * SECOND);
            assert_eq!(clock.time_of(Some(hands.stamp())), BEGIN + 15 * SECOND, "an event after the jump is now");
        }
    }

    #[test]
    fn events_of_a_backlog_keep_their_distances() {
        let hands = ManualClock::new();
        let stamps: Vec<u64> = [0, 60, 200].map(|second| hands.stamp() + second * SECOND).into();
        hands.pass(300);
        let clock = hands.clock();
        let times: Vec<u64> = stamps.iter().map(|stamp| clock.time_of(Some(*stamp))).collect();
        assert_eq!(times, stamps);
    }

    #[test]
    fn event_times_never_fall_and_are_never_later_than_now() {
        for jump in JUMPS {
            let hands = ManualClock::new();
            let clock = hands.clock();
            let (mut latest, before) = (0, [hands.stamp(), hands.stamp() + 3 * SECOND]);
            hands.pass(5);
            hands.jump(jump);
            let forged = [Some(0), Some(u64::MAX), None];
            for stamp in before.map(Some).into_iter().chain(forged).chain([Some(hands.stamp())]) {
                let time = clock.time_of(stamp);
                assert!(latest <= time && time <= clock.now(), "{jump} {stamp:?} {time}");
                latest = time;
            }
            assert_eq!(latest, clock.now());
        }
    }
}

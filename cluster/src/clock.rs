//! The clock of the NATS servers: the one by which members judge the age of each other's messages, however their own
//! clocks are set.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// The clock of the servers, which all members share however their own clocks are set.
#[derive(Debug)]
pub(crate) struct ServerClock {
    started: Instant,
    /// The time of the servers at `started`, in milliseconds since 1970.
    offset: AtomicI64,
}

impl ServerClock {
    /// Starts with the clock of this host, until the servers have answered.
    pub fn new() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        ServerClock { started: Instant::now(), offset: AtomicI64::new(millis(now)) }
    }

    /// Returns the time since 1970 by the clock of the servers.
    pub fn now(&self) -> Duration {
        let now = self.offset.load(Ordering::Relaxed).saturating_add(millis(self.started.elapsed()));
        Duration::from_millis(now.max(0).unsigned_abs())
    }

    /// Records that the servers stored a message at `stored` that was sent at `sent`.
    pub fn set(&self, sent: Instant, stored: Duration) {
        let elapsed = sent.saturating_duration_since(self.started);
        self.offset.store(millis(stored).saturating_sub(millis(elapsed)), Ordering::Relaxed);
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Returns a timestamp of the servers, given in nanoseconds since 1970, as the time since 1970.
pub(crate) fn server_time(nanos: i128) -> Duration {
    u64::try_from(nanos).map(Duration::from_nanos).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_that_of_the_servers_once_they_have_stored_a_message() {
        let clock = ServerClock::new();
        let stored = Duration::from_secs(1_000_000);
        clock.set(clock.started, stored);
        assert!((stored..stored + Duration::from_mins(1)).contains(&clock.now()));
        assert_eq!((server_time(-1), server_time(1_000_000)), (Duration::ZERO, Duration::from_millis(1)));
    }
}

//! Polling at an interval.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// Ticks at an interval as long as a daemon runs, the first one at once. A slow poll delays the next one.
pub struct PollInterval {
    interval: Interval,
    shutdown: CancellationToken,
}

impl PollInterval {
    /// Begins at once. It must be called within a runtime; `every` must not be zero.
    pub fn new(every: Duration, shutdown: CancellationToken) -> Self {
        let mut interval = tokio::time::interval(every);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        PollInterval { interval, shutdown }
    }

    /// Begins once `ready` is true, or at once. Returns `None` if the daemon ends before.
    pub async fn begin(
        at_once: bool,
        mut ready: watch::Receiver<bool>,
        every: Duration,
        shutdown: CancellationToken,
    ) -> Option<Self> {
        if !at_once {
            let connected = tokio::select! {
                connected = ready.wait_for(|ready| *ready) => connected.is_ok(),
                () = shutdown.cancelled() => false,
            };
            if !connected {
                return None;
            }
        }
        Some(PollInterval::new(every, shutdown))
    }

    /// Returns the interval.
    pub fn interval(&self) -> Duration {
        self.interval.period()
    }

    /// Waits until the next poll is due. Returns false when the daemon ends.
    pub async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.interval.tick() => true,
            () = self.shutdown.cancelled() => false,
        }
    }
}

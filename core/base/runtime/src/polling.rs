//! Polling at an interval.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// An interval for polling, which ends with the daemon. The first poll is due at once. A slow poll delays the next one.
pub struct PollInterval {
    interval: Interval,
    shutdown: CancellationToken,
}

impl PollInterval {
    /// Starts the interval. Must be called within a runtime; `every` must not be zero.
    pub fn new(every: Duration, shutdown: CancellationToken) -> Self {
        let mut interval = tokio::time::interval(every);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        PollInterval { interval, shutdown }
    }

    /// Starts the interval when `ready` becomes true, or now if `at_once` is set. Returns `None` if the daemon stops
    /// first.
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

    /// Waits until the next poll is due. Returns false when the daemon stops.
    pub async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.interval.tick() => true,
            () = self.shutdown.cancelled() => false,
        }
    }
}

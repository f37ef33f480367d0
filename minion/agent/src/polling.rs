//! The polling of beacons and the schedule.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// Polls at an interval as long as the minion runs. A slow poll delays the next one.
pub(crate) struct Ticks {
    interval: Interval,
    shutdown: CancellationToken,
}

impl Ticks {
    /// Begins once the minion is ready, or at once. Returns `None` if the minion ends before.
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
        let mut interval = tokio::time::interval(every);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Some(Ticks { interval, shutdown })
    }

    /// Waits until the next poll is due. Returns false when the minion ends.
    pub async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.interval.tick() => true,
            () = self.shutdown.cancelled() => false,
        }
    }
}

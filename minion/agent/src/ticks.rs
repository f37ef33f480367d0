//! When beacons and the schedule are looked at.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// Looks again and again, as long as the minion runs. A look that takes long puts off the next one.
pub(crate) struct Ticks {
    interval: Interval,
    shutdown: CancellationToken,
}

impl Ticks {
    /// Begins once the minion is ready, or at once. Nothing if the minion ends before.
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

    /// Waits until it is time to look. False when the minion ends.
    pub async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.interval.tick() => true,
            () = self.shutdown.cancelled() => false,
        }
    }
}

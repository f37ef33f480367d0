//! Deadlines of reactions, and their cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// The deadline of the reactions to one event. Clones share its cancellation.
///
/// Cancellation is cooperative: rendering checks [`Deadline::flag`], asynchronous code waits for [`Deadline::over`].
#[derive(Debug, Clone)]
pub struct Deadline {
    at: Instant,
    flag: Arc<AtomicBool>,
    token: CancellationToken,
}

impl Deadline {
    /// Creates a deadline this long from now, by the monotonic clock.
    pub fn after(time: Duration) -> Self {
        let now = Instant::now();
        // On overflow of the clock, a year is as good as for ever.
        let at = now.checked_add(time).unwrap_or(now + Duration::from_secs(365 * 86_400));
        Deadline { at, flag: Arc::default(), token: CancellationToken::new() }
    }

    /// Cancels the work.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
        self.token.cancel();
    }

    /// Returns the time of the deadline.
    pub fn at(&self) -> Instant {
        self.at
    }

    /// Returns the flag that is set on cancellation, for synchronous code.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// Returns whether the work is cancelled or the deadline has passed.
    pub fn is_over(&self) -> bool {
        self.flag.load(Ordering::Relaxed) || Instant::now() >= self.at
    }

    /// Waits until the work is cancelled or the deadline has passed.
    pub async fn over(&self) {
        tokio::select! {
            () = self.token.cancelled() => {}
            () = tokio::time::sleep_until(self.at.into()) => {}
        }
    }
}

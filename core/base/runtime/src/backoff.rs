//! Exponential backoff: the pauses between the attempts of one operation.

use std::time::Duration;

/// Pauses that double up to a limit, each with random jitter, so that ten thousand minions do not reconnect at the same
/// moment.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    next: Duration,
}

impl Default for Backoff {
    /// From 100 milliseconds up to 10 seconds.
    fn default() -> Self {
        Backoff::new(Duration::from_millis(100), Duration::from_secs(10))
    }
}

impl Backoff {
    /// Creates a backoff with pauses from `first` up to `max`.
    pub fn new(first: Duration, max: Duration) -> Self {
        let first = first.max(Duration::from_millis(1));
        Backoff { first, max: max.max(first), next: first }
    }

    /// Returns the next pause: between half of the step and the whole of it.
    pub fn next_wait(&mut self) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(self.max);
        step.mul_f64(rand::random_range(0.5..1.0))
    }

    /// Resets to the first step after a success.
    pub fn reset(&mut self) {
        self.next = self.first;
    }

    /// Waits for the next pause.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.next_wait()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(350));
        for step in [100u64, 200, 350, 350] {
            let wait = backoff.next_wait();
            assert!(wait >= Duration::from_millis(step / 2) && wait <= Duration::from_millis(step), "{wait:?}");
        }
        backoff.reset();
        assert!(backoff.next_wait() <= Duration::from_millis(100));
    }
}

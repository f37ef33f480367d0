//! Limits concurrent authentications. Brine minions beyond a short queue are deferred to a time slot.
//!
//! After a rotation of the keys or a restart of the master, the whole fleet authenticates at once. Each authentication
//! takes RSA operations, so only as many run concurrently as keep the processors busy. A minion whose turn comes after
//! its timeout would retry, which would waste the work. It is given a time slot instead; slots follow each other at the
//! rate at which authentications complete.

use std::time::{Duration, Instant};

use brine_wire::MAX_DEFERRAL;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The longest time in the queue; minions wait five seconds for the reply (`auth_timeout`).
const MAX_QUEUE: Duration = Duration::from_secs(1);
/// The assumed time of an authentication before any has been measured.
const INITIAL_AVERAGE: Duration = Duration::from_millis(2);
/// The weight of the latest authentication in the moving average of their durations.
const WEIGHT: f64 = 1.0 / 16.0;

/// The queue of authentications, and the limit of concurrent ones.
pub(super) struct AuthQueue {
    /// The maximum number of concurrent authentications.
    concurrency: u32,
    running: Semaphore,
    state: Mutex<State>,
}

struct State {
    /// The number of running and waiting authentications.
    queued: u32,
    /// The average duration of an authentication.
    average: Duration,
    /// The last time slot given to a minion.
    booked: Instant,
}

/// The permit of an authentication, released on drop.
pub(super) struct Permit<'a> {
    _queued: Queued<'a>,
    _permit: Option<SemaphorePermit<'a>>,
}

/// An entry in the queue, also removed if the request is dropped while it waits.
struct Queued<'a> {
    queue: &'a AuthQueue,
    began: Option<Instant>,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        state.queued = state.queued.saturating_sub(1);
        if let Some(began) = self.began {
            state.average = state.average.mul_f64(1.0 - WEIGHT) + began.elapsed().mul_f64(WEIGHT);
        }
    }
}

impl AuthQueue {
    /// Creates the limits for this number of concurrent authentications.
    pub fn new(concurrency: usize) -> Self {
        let concurrency = concurrency.clamp(1, 1024);
        let state = State { queued: 0, average: INITIAL_AVERAGE, booked: Instant::now() };
        AuthQueue { concurrency: concurrency as u32, running: Semaphore::new(concurrency), state: Mutex::new(state) }
    }

    /// Waits for a permit.
    ///
    /// # Errors
    /// The queue is full. The error is the time after which to retry, for minions that support deferral
    /// (`supports_deferral`). Other minions wait.
    pub async fn acquire(&self, supports_deferral: bool) -> Result<Permit<'_>, Duration> {
        self.enter(supports_deferral, Instant::now())?;
        let mut queued = Queued { queue: self, began: None };
        // The semaphore is never closed.
        let permit = self.running.acquire().await.ok();
        queued.began = Some(Instant::now());
        Ok(Permit { _queued: queued, _permit: permit })
    }

    /// Enters the queue, or reserves a time slot.
    fn enter(&self, supports_deferral: bool, now: Instant) -> Result<(), Duration> {
        let mut state = self.state.lock();
        let each = state.average / self.concurrency;
        if supports_deferral && each.saturating_mul(state.queued) > MAX_QUEUE {
            let next = state.booked.max(now + MAX_QUEUE) + each;
            state.booked = next.min(now + MAX_DEFERRAL);
            return Err(state.booked.saturating_duration_since(now));
        }
        state.queued += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn minions_beyond_the_queue_get_successive_slots() {
        let queue = AuthQueue::new(2);
        let now = Instant::now();
        // A millisecond each: a thousand fit into the queue.
        let entered = (0..2000).map_while(|_| queue.enter(true, now).ok()).count();
        assert_eq!(entered, 1001);
        let slots: Vec<_> = (0..3).map(|_| queue.enter(true, now).unwrap_err().as_millis()).collect();
        // The first slot was given to the one that ended the loop.
        assert_eq!(slots, [1002, 1003, 1004]);
        // Minions that do not support deferral wait.
        assert_eq!(queue.enter(false, now), Ok(()));
        for _ in 0..50_000 {
            assert!(queue.enter(true, now).unwrap_err() <= MAX_DEFERRAL);
        }
        assert_eq!(queue.enter(true, now), Err(MAX_DEFERRAL));
        // Later, these slots have passed.
        let later = now + MAX_DEFERRAL;
        assert_eq!(queue.enter(true, later).unwrap_err().as_millis(), 1001);
    }

    #[tokio::test]
    async fn a_dropped_request_leaves_the_queue_and_durations_are_averaged() {
        let queue = AuthQueue::new(1);
        let first = queue.acquire(true).await.unwrap();
        // A request that is dropped while it waits leaves the queue.
        assert!(tokio::time::timeout(Duration::from_millis(20), queue.acquire(true)).await.is_err());
        assert_eq!(queue.state.lock().queued, 1);
        drop(first);
        assert_eq!(queue.state.lock().queued, 0);
        let average = queue.state.lock().average;
        assert!(average > INITIAL_AVERAGE, "{average:?}");
        drop(queue.acquire(true).await.unwrap());
        assert!(queue.state.lock().average < average);
    }
}

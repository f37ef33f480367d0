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
const ASSUMED: Duration = Duration::from_millis(2);
/// The weight of the latest authentication in the moving average of their durations.
const WEIGHT: f64 = 1.0 / 16.0;

/// The turns of all authentications.
pub(super) struct Turns {
    /// The maximum number of concurrent authentications.
    at_once: u32,
    running: Semaphore,
    state: Mutex<State>,
}

struct State {
    /// The number of running and waiting authentications.
    queued: u32,
    /// The average duration of an authentication.
    took: Duration,
    /// The last time slot given to a minion.
    booked: Instant,
}

/// The permit of an authentication, released on drop.
pub(super) struct Turn<'a> {
    _queued: Queued<'a>,
    _permit: Option<SemaphorePermit<'a>>,
}

/// An entry in the queue, also removed if the request is dropped while it waits.
struct Queued<'a> {
    turns: &'a Turns,
    began: Option<Instant>,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock();
        state.queued = state.queued.saturating_sub(1);
        if let Some(began) = self.began {
            state.took = state.took.mul_f64(1.0 - WEIGHT) + began.elapsed().mul_f64(WEIGHT);
        }
    }
}

impl Turns {
    /// Creates the limits for this number of concurrent authentications.
    pub fn new(at_once: usize) -> Self {
        let at_once = at_once.clamp(1, 1024);
        let state = State { queued: 0, took: ASSUMED, booked: Instant::now() };
        Turns { at_once: at_once as u32, running: Semaphore::new(at_once), state: Mutex::new(state) }
    }

    /// Waits for a permit.
    ///
    /// # Errors
    /// The queue is full. The error is the time after which to retry, for minions that support deferral
    /// (`understands`). Other minions wait.
    pub async fn take(&self, understands: bool) -> Result<Turn<'_>, Duration> {
        self.enter(understands, Instant::now())?;
        let mut queued = Queued { turns: self, began: None };
        // The semaphore is never closed.
        let permit = self.running.acquire().await.ok();
        queued.began = Some(Instant::now());
        Ok(Turn { _queued: queued, _permit: permit })
    }

    /// Enters the queue, or reserves a time slot.
    fn enter(&self, understands: bool, now: Instant) -> Result<(), Duration> {
        let mut state = self.state.lock();
        let each = state.took / self.at_once;
        if understands && each.saturating_mul(state.queued) > MAX_QUEUE {
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
    async fn minions_beyond_the_queue_get_slots_one_after_the_other() {
        let turns = Turns::new(2);
        let now = Instant::now();
        // A millisecond each: a thousand fit into the queue.
        let entered = (0..2000).map_while(|_| turns.enter(true, now).ok()).count();
        assert_eq!(entered, 1001);
        let slots: Vec<_> = (0..3).map(|_| turns.enter(true, now).unwrap_err().as_millis()).collect();
        // The first slot was given to the one that ended the loop.
        assert_eq!(slots, [1002, 1003, 1004]);
        // Minions that do not support deferral wait.
        assert_eq!(turns.enter(false, now), Ok(()));
        for _ in 0..50_000 {
            assert!(turns.enter(true, now).unwrap_err() <= MAX_DEFERRAL);
        }
        assert_eq!(turns.enter(true, now), Err(MAX_DEFERRAL));
        // Later, these slots have passed.
        let later = now + MAX_DEFERRAL;
        assert_eq!(turns.enter(true, later).unwrap_err().as_millis(), 1001);
    }

    #[tokio::test]
    async fn a_turn_ends_with_its_request_and_its_time_counts() {
        let turns = Turns::new(1);
        let first = turns.take(true).await.unwrap();
        // A request that is dropped while it waits leaves the queue.
        assert!(tokio::time::timeout(Duration::from_millis(20), turns.take(true)).await.is_err());
        assert_eq!(turns.state.lock().queued, 1);
        drop(first);
        assert_eq!(turns.state.lock().queued, 0);
        let took = turns.state.lock().took;
        assert!(took > ASSUMED, "{took:?}");
        drop(turns.take(true).await.unwrap());
        assert!(turns.state.lock().took < took);
    }
}

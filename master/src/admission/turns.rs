//! Turns of authentications: some at a time; Brine minions beyond a short queue get a time to try again.
//!
//! After a rotation of the keys or a restart of the master the whole fleet authenticates at once. Each authentication takes
//! RSA operations, so only as many run at a time as keep the processors busy. A minion whose turn would come later than its
//! timeout would ask again, and the work for it be in vain: it gets a slot of its own instead, one after the other at the rate
//! at which authentications end.

use std::time::{Duration, Instant};

use brine_wire::MAX_DEFERRAL;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The longest time in the queue; minions wait five seconds for the reply (`auth_timeout`).
const MAX_QUEUE: Duration = Duration::from_secs(1);
/// The assumed time of an authentication before any has been measured.
const ASSUMED: Duration = Duration::from_millis(2);
/// The weight of the last authentication in the average of their times.
const WEIGHT: f64 = 1.0 / 16.0;

/// The turns of all authentications.
pub(super) struct Turns {
    /// The number of authentications at a time.
    at_once: u32,
    running: Semaphore,
    state: Mutex<State>,
}

struct State {
    /// The authentications that run or wait.
    queued: u32,
    /// The average time of an authentication.
    took: Duration,
    /// The last slot that a minion has got.
    booked: Instant,
}

/// The turn of an authentication: it ends when this is dropped.
pub(super) struct Turn<'a> {
    _queued: Queued<'a>,
    _permit: Option<SemaphorePermit<'a>>,
}

/// A place in the queue, also if the request is dropped meanwhile.
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
    /// Creates turns for a master that authenticates this many minions at a time.
    pub fn new(at_once: usize) -> Self {
        let at_once = at_once.clamp(1, 1024);
        let state = State { queued: 0, took: ASSUMED, booked: Instant::now() };
        Turns { at_once: at_once as u32, running: Semaphore::new(at_once), state: Mutex::new(state) }
    }

    /// Waits for the turn of an authentication.
    ///
    /// # Errors
    /// The time after which to try again, if the queue is full and the minion `understands` that. Others wait.
    pub async fn take(&self, understands: bool) -> Result<Turn<'_>, Duration> {
        self.enter(understands, Instant::now())?;
        let mut queued = Queued { turns: self, began: None };
        // Never closed.
        let permit = self.running.acquire().await.ok();
        queued.began = Some(Instant::now());
        Ok(Turn { _queued: queued, _permit: permit })
    }

    /// Enters the queue, or books a slot.
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
        // Others wait.
        assert_eq!(turns.enter(false, now), Ok(()));
        for _ in 0..50_000 {
            assert!(turns.enter(true, now).unwrap_err() <= MAX_DEFERRAL);
        }
        assert_eq!(turns.enter(true, now), Err(MAX_DEFERRAL));
        // Later the slots are over.
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

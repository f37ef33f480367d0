//! Memory that clients occupy, within a limit and fair shares.
//!
//! A request that finds no memory waits. If the memory is held by bodies that arrive slowly, the slowest of the owner
//! with the most memory is ended in its favour. What cannot wait ends the slowest at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Owner;

/// The time that a body has to arrive before it may be ended in favour of others.
const GRACE: Duration = Duration::from_secs(1);

/// Memory with a limit.
pub(crate) struct Memory {
    limit: usize,
    /// The limit of one owner.
    share: usize,
    state: Mutex<State>,
    released: Notify,
}

#[derive(Default)]
struct State {
    used: usize,
    owners: HashMap<Owner, usize>,
    /// The reservations by id; ids ascend with age.
    reservations: BTreeMap<u64, Reserved>,
    next: u64,
}

struct Reserved {
    owner: Owner,
    bytes: usize,
    since: Instant,
    /// Whether the body is still arriving.
    is_arriving: bool,
    ended: CancellationToken,
}

impl State {
    fn set(&mut self, id: u64, bytes: usize) {
        let Some(reserved) = self.reservations.get_mut(&id) else { return };
        let before = std::mem::replace(&mut reserved.bytes, bytes);
        self.used = self.used - before + bytes;
        let held = self.owners.entry(reserved.owner.clone()).or_default();
        *held = *held - before + bytes;
        if *held == 0 {
            self.owners.remove(&reserved.owner);
        }
    }

    fn remove(&mut self, id: u64) -> Option<Reserved> {
        self.set(id, 0);
        self.reservations.remove(&id)
    }

    /// Returns the slow reservation, older than `grace`, to end in favour of `own`: the oldest one of the owner with the
    /// most memory, or of this owner alone.
    fn slowest(&self, own: u64, only: Option<&Owner>, grace: Duration) -> Option<u64> {
        let held = |owner: &Owner| self.owners.get(owner).copied().unwrap_or(0);
        let slow = self.reservations.iter().filter(|(id, reserved)| {
            let is_slow = reserved.is_arriving && reserved.bytes > 0 && reserved.since.elapsed() >= grace;
            is_slow && **id != own && only.is_none_or(|only| *only == reserved.owner)
        });
        slow.max_by_key(|(id, reserved)| (held(&reserved.owner), std::cmp::Reverse(**id))).map(|(id, _)| *id)
    }
}

impl Memory {
    pub fn new(limit: usize, share: usize) -> Arc<Self> {
        Arc::new(Memory { limit, share, state: Mutex::default(), released: Notify::new() })
    }

    /// Begins an empty reservation, for a body that arrives.
    pub fn begin(self: &Arc<Self>, owner: Owner) -> Reservation {
        let mut state = self.state.lock();
        let (id, ended) = (state.next, CancellationToken::new());
        state.next += 1;
        let since = Instant::now();
        let reserved = Reserved { owner, bytes: 0, since, is_arriving: true, ended: ended.clone() };
        state.reservations.insert(id, reserved);
        drop(state);
        Reservation { memory: Arc::clone(self), id, ended }
    }

    /// Returns the bytes in use.
    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.state.lock().used
    }
}

/// A part of the memory, until it is dropped.
pub(crate) struct Reservation {
    memory: Arc<Memory>,
    id: u64,
    ended: CancellationToken,
}

impl Reservation {
    /// Changes the size if there is memory for it.
    pub fn try_resize(&self, bytes: usize) -> bool {
        let mut state = self.memory.state.lock();
        let Some(reserved) = state.reservations.get(&self.id) else { return false };
        let added = bytes.saturating_sub(reserved.bytes);
        let is_in_limit = state.used + added <= self.memory.limit;
        if added > 0 && (!is_in_limit || self.exceeds_share(&state, reserved, added)) {
            return false;
        }
        let is_less = bytes < reserved.bytes;
        state.set(self.id, bytes);
        drop(state);
        if is_less {
            self.memory.released.notify_waiters();
        }
        true
    }

    fn exceeds_share(&self, state: &State, reserved: &Reserved, added: usize) -> bool {
        let held = state.owners.get(&reserved.owner).copied().unwrap_or(0);
        held + added > self.memory.share && !reserved.owner.is_shared()
    }

    /// Changes the size, and waits until there is memory for it. A body that arrives slowly is ended if nothing else
    /// releases memory. What is larger than a share counts as one.
    pub async fn resize(&self, bytes: usize) {
        let bytes = bytes.min(self.memory.share);
        let mut wait = Duration::from_millis(50);
        loop {
            let released = self.memory.released.notified();
            let mut released = std::pin::pin!(released);
            released.as_mut().enable();
            if self.try_resize(bytes) {
                return;
            }
            if tokio::time::timeout(wait, released).await.is_err() {
                if self.end_slowest(bytes, GRACE) {
                    crate::metrics::BODIES_ENDED.add(1);
                }
                wait = (wait * 2).min(GRACE);
            }
        }
    }

    /// Changes the size, and ends the slowest reservations for it. Returns whether the memory is reserved; a size above the
    /// share never is.
    pub fn resize_at_once(&self, bytes: usize) -> bool {
        if bytes > self.memory.share {
            return false;
        }
        while !self.try_resize(bytes) {
            if !self.end_slowest(bytes, Duration::ZERO) {
                return false;
            }
        }
        true
    }

    /// Records that the body has arrived: it is no longer ended in favour of others.
    pub fn arrived(&self) {
        if let Some(reserved) = self.memory.state.lock().reservations.get_mut(&self.id) {
            reserved.is_arriving = false;
        }
    }

    /// Waits until the reservation is ended in favour of others.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Ends the slowest reservation that is older than `grace`. Returns whether there was one.
    fn end_slowest(&self, bytes: usize, grace: Duration) -> bool {
        let mut state = self.memory.state.lock();
        let Some(reserved) = state.reservations.get(&self.id) else { return false };
        // If its own share is used up, others cannot help.
        let exceeds_share = self.exceeds_share(&state, reserved, bytes.saturating_sub(reserved.bytes));
        let slowest = state.slowest(self.id, exceeds_share.then_some(&reserved.owner), grace);
        let Some(ended) = slowest.and_then(|id| state.remove(id)) else { return false };
        drop(state);
        ended.ended.cancel();
        self.memory.released.notify_waiters();
        true
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let removed = self.memory.state.lock().remove(self.id);
        if removed.is_some_and(|removed| !removed.ended.is_cancelled()) {
            self.memory.released.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn owner(number: u8) -> Owner {
        Owner::of_address(IpAddr::from([10, 0, 0, number]))
    }

    #[test]
    fn memory_has_a_limit_and_shares() {
        let memory = Memory::new(100, 60);
        let (one, other) = (memory.begin(owner(1)), memory.begin(owner(1)));
        assert!(one.try_resize(40) && other.try_resize(20));
        assert!(!other.try_resize(21), "the share of the owner is exceeded");
        let second = memory.begin(owner(2));
        assert!(second.try_resize(40) && !second.try_resize(41));
        drop(one);
        assert!(second.try_resize(60));
        assert!(second.try_resize(10));
        assert_eq!(memory.used(), 30);
        let own = memory.begin(Owner::of_address(IpAddr::from([127, 0, 0, 1])));
        assert!(own.try_resize(70), "a proxy of this host has no share");
        drop((other, second, own));
        assert_eq!(memory.used(), 0);
        assert!(memory.state.lock().owners.is_empty());
    }

    #[test]
    fn what_cannot_wait_ends_what_has_been_slow_for_longest() {
        let memory = Memory::new(100, 40);
        let user = |name: &str| Owner::User(name.into());
        let idle: Vec<Reservation> = (0..4).map(|_| memory.begin(user("fred"))).collect();
        let other = memory.begin(user("eve"));
        assert!(idle.iter().chain([&other]).all(|stream| stream.resize_at_once(10)));
        let new = memory.begin(user("fred"));
        assert!(new.resize_at_once(15));
        let ended: Vec<bool> = idle.iter().map(|stream| stream.ended.is_cancelled()).collect();
        assert_eq!(ended, [true, true, false, false], "the oldest ones of this user");
        assert!(!other.ended.is_cancelled());
        assert!(!new.resize_at_once(41) && !idle[2].ended.is_cancelled(), "more than the share");
        // The memory of all is used up: the user with the most gives way.
        let (third, fourth) = (memory.begin(user("ann")), memory.begin(user("bob")));
        assert!(third.resize_at_once(40) && fourth.resize_at_once(40));
        assert!(third.ended.is_cancelled() && !idle[2].ended.is_cancelled() && !other.ended.is_cancelled());
        assert_eq!(memory.used(), 85);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_memory_and_slow_bodies_of_the_largest_owner_are_ended() {
        let memory = Memory::new(100, 90);
        let hogs: Vec<Reservation> = (0..8).map(|_| memory.begin(owner(1))).collect();
        let small = memory.begin(owner(2));
        assert!(hogs.iter().all(|hog| hog.try_resize(10)) && small.try_resize(20));
        let finished = memory.begin(owner(1));
        finished.arrived();
        let new = memory.begin(owner(3));
        // Real time: the grace is measured by the clock of the system.
        std::thread::sleep(GRACE);
        new.resize(15).await;
        assert!(hogs[0].ended.is_cancelled() && hogs[1].ended.is_cancelled() && !hogs[2].ended.is_cancelled());
        assert!(!small.ended.is_cancelled() && !finished.ended.is_cancelled());
        assert!(!hogs[0].try_resize(5), "an ended reservation holds nothing");
        drop(hogs);
        assert_eq!(memory.used(), 35);
        // An owner whose share is used up waits for itself alone.
        let (own, next) = (memory.begin(owner(3)), memory.begin(owner(3)));
        assert!(own.try_resize(60));
        std::thread::sleep(GRACE);
        next.resize(20).await;
        assert!(new.ended.is_cancelled() && !own.ended.is_cancelled() && !small.ended.is_cancelled());
    }
}

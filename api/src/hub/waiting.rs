//! The wakers of waiting subscribers.

use std::task::Waker;

/// The number of subscribers that are woken in one batch.
pub(super) const WAKE_BATCH: usize = 128;

/// The time at which a subscriber is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakePolicy {
    /// At each event; for the few subscribers that wait for the returns of a job.
    Immediate,
    /// In batches, paced by the hub; for event streams, of which there may be thousands.
    Paced,
}

/// The wakers of waiting subscribers, one entry each, so that a waiting subscriber costs only a few bytes.
#[derive(Default)]
pub(super) struct Wakers {
    pub slots: Vec<Option<Waker>>,
    pub free: Vec<u32>,
}

impl Wakers {
    pub fn add(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        })
    }

    pub fn remove(&mut self, index: u32) -> Option<Waker> {
        self.free.push(index);
        self.slots[index as usize].take()
    }

    pub fn set(&mut self, index: u32, waker: &Waker) {
        match &mut self.slots[index as usize] {
            Some(slot) => slot.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// Takes a batch of wakers from index `start` on. Returns them and the index of the next batch.
    pub fn take_from(&mut self, start: usize) -> (Vec<Waker>, Option<usize>) {
        let end = (start + WAKE_BATCH).min(self.slots.len());
        let woken = self.slots[start.min(end)..end].iter_mut().filter_map(Option::take).collect();
        (woken, (end < self.slots.len()).then_some(end))
    }
}

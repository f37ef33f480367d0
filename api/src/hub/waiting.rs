//! The subscribers that wait for an event.

use std::task::Waker;

/// The number of subscribers that are woken at a time.
pub(super) const WOKEN: usize = 128;

/// When a subscriber is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakePolicy {
    /// With each event: few, which wait for the return of a job.
    Immediate,
    /// Paced by the hub: event streams, which may be thousands.
    Paced,
}

/// The wakers of subscribers that wait: one place each, so that a waiting subscriber costs a few bytes.
#[derive(Default)]
pub(super) struct Wakers {
    pub places: Vec<Option<Waker>>,
    pub free: Vec<u32>,
}

impl Wakers {
    pub fn add(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        })
    }

    pub fn remove(&mut self, index: u32) -> Option<Waker> {
        self.free.push(index);
        self.places[index as usize].take()
    }

    pub fn set(&mut self, index: u32, waker: &Waker) {
        match &mut self.places[index as usize] {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// Takes some wakers from this place on. Returns them and the place of the next ones.
    pub fn take_from(&mut self, start: usize) -> (Vec<Waker>, Option<usize>) {
        let end = (start + WOKEN).min(self.places.len());
        let woken = self.places[start.min(end)..end].iter_mut().filter_map(Option::take).collect();
        (woken, (end < self.places.len()).then_some(end))
    }
}

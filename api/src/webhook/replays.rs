//! The signed webhooks that have been published, so that a recorded one is not published again.
//!
//! The number of remembered requests is bounded. When one with a timestamp is forgotten before its time, older timestamps
//! are no longer accepted, so that it cannot be repeated either.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;

use super::Mark;

/// The maximum number of remembered requests.
const MAX_MARKS: usize = 32_768;

/// The remembered requests.
#[derive(Default)]
pub(crate) struct Replays(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    /// Whether each request has been published, or is being published.
    published: HashMap<[u8; 16], bool>,
    /// The published requests, oldest first.
    order: VecDeque<Mark>,
    /// The time up to which requests may have been forgotten.
    forgotten: u64,
}

/// The result of a claim.
pub(crate) enum Claim<'r> {
    /// The request may be published.
    New(Claimed<'r>),
    /// It has been published.
    Published,
    /// It is being published.
    Pending,
    /// Its time is one of requests that have been forgotten.
    TooOld,
}

/// The right to publish a request. It ends when this is dropped, unless the request has been published.
pub(crate) struct Claimed<'r> {
    replays: &'r Replays,
    mark: Mark,
    is_published: bool,
}

impl Replays {
    /// Claims a request.
    pub fn claim(&self, mark: Mark) -> Claim<'_> {
        let mut seen = self.0.lock();
        match seen.published.get(&mark.id) {
            Some(true) => return Claim::Published,
            Some(false) => return Claim::Pending,
            None => {}
        }
        if mark.time.is_some_and(|time| time <= seen.forgotten) {
            return Claim::TooOld;
        }
        seen.published.insert(mark.id, false);
        Claim::New(Claimed { replays: self, mark, is_published: false })
    }
}

impl Claimed<'_> {
    /// Records that the request has been published.
    pub fn published(mut self) {
        self.is_published = true;
        let mut seen = self.replays.0.lock();
        seen.published.insert(self.mark.id, true);
        seen.order.push_back(self.mark);
        while seen.order.len() > MAX_MARKS {
            let Some(oldest) = seen.order.pop_front() else { break };
            seen.published.remove(&oldest.id);
            seen.forgotten = seen.forgotten.max(oldest.time.unwrap_or(0));
        }
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        if !self.is_published {
            self.replays.0.lock().published.remove(&self.mark.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(number: u64, time: Option<u64>) -> Mark {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&number.to_le_bytes());
        Mark { id, time }
    }

    #[test]
    fn a_request_is_published_once() {
        let replays = Replays::default();
        let Claim::New(claimed) = replays.claim(mark(1, None)) else { panic!("it is new") };
        assert!(matches!(replays.claim(mark(1, None)), Claim::Pending));
        assert!(matches!(replays.claim(mark(2, None)), Claim::New(_)));
        // Publishing it failed: the sender may repeat it.
        drop(claimed);
        let Claim::New(claimed) = replays.claim(mark(1, None)) else { panic!("it failed") };
        claimed.published();
        assert!(matches!(replays.claim(mark(1, None)), Claim::Published));
    }

    #[test]
    fn forgotten_requests_are_too_old() {
        let replays = Replays::default();
        let publish = |number, time| match replays.claim(mark(number, time)) {
            Claim::New(claimed) => {
                claimed.published();
                true
            }
            _ => false,
        };
        for number in 0..MAX_MARKS as u64 + 10 {
            assert!(publish(number, Some(1000 + number)));
        }
        assert!(matches!(replays.claim(mark(5, Some(1005))), Claim::TooOld));
        assert!(!publish(MAX_MARKS as u64, Some(1000 + MAX_MARKS as u64)));
        assert!(publish(1_000_000, Some(1010)));
        // Requests without a signed time cannot be told from new ones.
        assert!(publish(5, None));
        let seen = replays.0.lock();
        assert_eq!((seen.published.len(), seen.order.len()), (MAX_MARKS, MAX_MARKS));
    }
}

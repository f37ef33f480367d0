//! The rate of refusal events: unauthenticated peers can cause any number of refusals.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Limits the rate of refusal events; the log has all refusals.
#[derive(Default)]
pub(super) struct Denials(Mutex<Option<(Instant, u32)>>);

impl Denials {
    const PER_SECOND: u32 = 10;

    pub fn admit(&self, now: Instant) -> bool {
        let mut state = self.0.lock();
        let (begun, count) = match *state {
            Some((begun, count)) if now.saturating_duration_since(begun) < Duration::from_secs(1) => (begun, count),
            _ => (now, 0),
        };
        *state = Some((begun, count.saturating_add(1)));
        count < Self::PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_refusal_events_is_limited() {
        let denials = Denials::default();
        let begun = Instant::now();
        let admitted = |at| (0..100).filter(|_| denials.admit(at)).count();
        assert_eq!((admitted(begun), admitted(begun)), (10, 0));
        assert_eq!(admitted(begun + Duration::from_secs(1)), 10);
    }
}

//! Selects the minion that runs the schedule, beacons and the reactor, among the minions for several masters.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use brine_context::Minion;
use tokio::sync::watch;

/// The minion that runs the schedule, beacons and the reactor: the first one that a master serves. When its master is lost,
/// another one takes over and keeps the lead.
#[derive(Clone)]
pub(crate) struct Leader(Arc<Candidates>);

struct Candidates {
    /// Each minion, and whether its master serves it.
    all: Vec<(Arc<Minion>, watch::Receiver<bool>)>,
    current: AtomicUsize,
}

impl Leader {
    /// Creates a leader among these minions, each with whether its master serves it.
    pub fn among(all: Vec<(Arc<Minion>, watch::Receiver<bool>)>) -> Self {
        Leader(Arc::new(Candidates { all, current: AtomicUsize::new(0) }))
    }

    /// Creates a leader without a connection.
    #[cfg(test)]
    pub fn only(minion: &Arc<Minion>) -> Self {
        Leader::among(vec![(Arc::clone(minion), watch::channel(false).1)])
    }

    /// Returns the current leader.
    pub fn minion(&self) -> Arc<Minion> {
        let Candidates { all, current } = &*self.0;
        let is_served = |number: usize| *all[number].1.borrow();
        let now = current.load(Ordering::Relaxed);
        let chosen = if is_served(now) { now } else { (0..all.len()).find(|one| is_served(*one)).unwrap_or(now) };
        current.store(chosen, Ordering::Relaxed);
        Arc::clone(&all[chosen].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn the_first_connected_master_leads_until_it_is_lost() {
        let minions = [testing::minion(&[]), testing::minion(&[]), testing::minion(&[])];
        let served = [watch::Sender::new(false), watch::Sender::new(false), watch::Sender::new(false)];
        let leader = Leader::among(minions.iter().cloned().zip(served.iter().map(watch::Sender::subscribe)).collect());
        for (are_served, expected) in [
            ([false, false, false], 0),
            ([false, false, true], 2),
            // Another connection does not take the lead from one that is served.
            ([true, true, true], 2),
            ([false, true, false], 1),
            // Without any connection, the last leader stays.
            ([false, false, false], 1),
        ] {
            for (sender, is_served) in served.iter().zip(are_served) {
                sender.send_replace(is_served);
            }
            assert!(Arc::ptr_eq(&leader.minion(), &minions[expected]), "{are_served:?}");
        }
    }
}

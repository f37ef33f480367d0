//! The gate in front of the reactor: which master of a cluster carries out the reactions to an event.

use std::pin::Pin;

use brine_event::Event;

/// Where the reactions to an event are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Here. `term` changes whenever the duty passes to this master: reactions that another one has dispatched are then
    /// found in the journal and not repeated.
    Here {
        /// The number of the period.
        term: u64,
    },
    /// They have been carried out elsewhere.
    Elsewhere,
}

/// Decides about each event that has reactions. A master without a gate carries out all of them.
pub trait Gate: Send + Sync {
    /// Waits until it is known where the reactions to this event are carried out. Events are admitted in the order of the
    /// bus. Cancel safe.
    fn admit<'a>(&'a self, event: &'a Event) -> Pin<Box<dyn Future<Output = Admission> + Send + 'a>>;

    /// Returns whether timers of rules start reactions here.
    fn is_leader(&self) -> bool;
}

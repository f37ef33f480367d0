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

    /// Returns the number of the period in which timers of rules start reactions here; `None` if they do not.
    fn term(&self) -> Option<u64> {
        None
    }

    /// Returns the position of an event of this bus that all masters know: the master that published it, and its sequence
    /// number there.
    fn position(&self, event: &Event) -> Position {
        (String::new(), event.seq())
    }

    /// Returns the positions of the last events of each master up to a sequence number of this bus.
    fn positions(&self, _seq: u64) -> Vec<Position> {
        Vec::new()
    }

    /// Returns the state of rules that another master has offered last; `None` if there is none.
    fn rule_state(&self) -> Pin<Box<dyn Future<Output = Option<Vec<u8>>> + Send + '_>> {
        Box::pin(std::future::ready(None))
    }

    /// Offers the state of rules to the master that comes to lead next.
    fn offer_rule_state(&self, _state: Vec<u8>) {}
}

/// The position of an event: a master, and the sequence number there.
pub type Position = (String, u64);

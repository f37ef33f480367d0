//! The gate in front of the reactor: decides which master of a cluster carries out the reactions to an event.

use std::pin::Pin;

use brine_event::Event;

/// The master that carries out the reactions to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// This master. `term` changes whenever this master takes over: reactions that another master has dispatched are
    /// then read from the journal and not repeated.
    ThisMaster {
        /// The number of the term.
        term: u64,
    },
    /// Another master, which has carried them out already.
    OtherMaster,
}

/// Decides which master reacts to each event. A master without a gate carries out all reactions.
pub trait Gate: Send + Sync {
    /// Waits for the decision about an event. Events are admitted in the order of the bus. Cancel safe.
    fn admit<'a>(&'a self, event: &'a Event) -> Pin<Box<dyn Future<Output = Admission> + Send + 'a>>;

    /// Returns whether timers of rules start reactions here.
    fn is_leader(&self) -> bool;

    /// Returns the number of the term in which timers of rules start reactions here; `None` if they do not.
    fn term(&self) -> Option<u64> {
        None
    }

    /// Returns the position of an event of this bus in the cluster: the master that published it, and its sequence
    /// number there.
    fn position(&self, event: &Event) -> Position {
        (String::new(), event.seq())
    }

    /// Returns the positions of the last events of each master up to a sequence number of this bus.
    fn positions(&self, _seq: u64) -> Vec<Position> {
        Vec::new()
    }

    /// Returns the latest state of rules that another master has offered; `None` if there is none.
    fn rule_state(&self) -> Pin<Box<dyn Future<Output = Option<Vec<u8>>> + Send + '_>> {
        Box::pin(std::future::ready(None))
    }

    /// Offers the state of rules to the next leader.
    fn offer_rule_state(&self, _state: Vec<u8>) {}
}

/// The position of an event: a master, and the sequence number there.
pub type Position = (String, u64);

//! Brine's reactor: events in, reactions out.
//!
//! `entries.rs` binds tag patterns to SLS files, `sls.rs` keeps them compiled, `reaction.rs` reads what
//! they render to, and [`Reactor::run`] follows the bus. What a reaction does is not known here: it is
//! handed to a [`Dispatch`].

mod entries;
mod reaction;
mod run;
mod sls;

pub use entries::{Entries, EntryError};
pub use reaction::{LocalReaction, Reaction, ReactionError};
pub use run::{Cause, Dispatch, DispatchError, Options, Reactor};

#[cfg(test)]
mod tests;

//! Plans: what the states of dry runs would change, and the minions that would change in the same way.
//!
//! `states.rs` reads the planned changes of one minion and their digest, `groups.rs` gathers those of many, `request.rs`
//! is the job that applies them.

mod groups;
mod request;
mod states;
#[cfg(test)]
mod tests;

pub use groups::Groups;
pub use request::{InvalidPlan, Plan};
pub use states::{BASIS, Outcome, PLANNING, PlannedStates, digest_of, digest_of_value, is_change};

//! Plans: what the states of dry runs would change, and the minions that would change in the same way.
//!
//! `states.rs` reads the planned changes of one minion and their digest, `dry_run.rs` has the job that is planned, `groups.rs` gathers those of many, `request.rs`
//! is the job that applies them.

mod dry_run;
mod groups;
mod request;
mod states;
mod steps;
#[cfg(test)]
mod tests;

pub use dry_run::{describe, dry_run};
pub use groups::Groups;
use request::FORM;
pub use request::{InvalidPlan, Plan};
pub use states::{BASIS, Outcome, PLANNING, PlannedStates, digest_of, digest_of_value, is_change};
pub use steps::{OrchestrationPlan, Steps};

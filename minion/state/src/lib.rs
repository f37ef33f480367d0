//! The state engine: from top file to low chunks to results. It has the functions that a minion was created with.
//!
//! | file | owns |
//! |---|---|
//! | `top.rs` | which SLS files are for this minion |
//! | `source.rs` | rendering SLS files for the compiler in `brine_sls::compile` |
//! | `highstate.rs` | what a run is told, its pillar, compiling |
//! | `queue.rs` | one run at a time |
//! | `pause.rs` | runs that are held up or ended between two states |
//! | `run/` | running steps in order as their requisites say, and listeners after them |
//! | `parallel` | states with `parallel: True` |
//! | `requisites.rs` | what the requisites of a step come to |
//! | `call.rs` | one call of a state function, with conditions, retries and what every result has |
//! | `conditions.rs` | `onlyif`, `unless`, `creates`, `check_cmd` |
//!
//! The module `state` of the crate `brine-modules` has the functions that people call.

#![warn(clippy::self_named_module_files)]

mod call;
mod conditions;
mod highstate;
mod parallel;
pub mod pause;
mod queue;
mod requisites;
mod run;
mod slots;
mod source;
mod top;

pub use call::unfit;
pub use highstate::{NoPillar, Options, StateRun, errors};
pub use queue::{Queue, only_run};
pub use run::{Settings, run};
pub use source::Source;
pub use top::Top;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

//! The state engine: from top file to low chunks to results, with the functions that a minion was created with.
//!
//! | file | owns |
//! |---|---|
//! | `top.rs` | the SLS files assigned to this minion |
//! | `source.rs` | rendering of SLS files for the compiler in `brine_sls::compile` |
//! | `options.rs` | the options and settings of a run |
//! | `highstate.rs` | a prepared run: its pillar, compilation |
//! | `master_options.rs` | the options that the master sets |
//! | `queue.rs` | mutual exclusion of state runs |
//! | `pause.rs` | pausing and ending runs between two states |
//! | `run/` | running steps in order by their requisites, and listeners after them |
//! | `parallel/` | states with `parallel: True` |
//! | `requisites.rs` | evaluation of the requisites of a step |
//! | `call.rs` | one call of a state function, with conditions and retries |
//! | `own_args.rs` | the arguments that the state engine reads |
//! | `advice.rs` | what to write or to do, beside Salt's messages |
//! | `unknown/` | arguments that a function accepts, but does not know |
//! | `retry.rs` | the argument `retry` |
//! | `result_fields.rs` | the common fields of results |
//! | `sub_states.rs` | the results of states that another state has run itself |
//! | `conditions.rs` | `global_state_conditions`, `onlyif`, `unless`, `creates`, `check_cmd` |
//!
//! The module `state` of the crate `brine-modules` contains the execution functions.

#![warn(clippy::self_named_module_files)]

mod advice;
mod call;
mod conditions;
mod highstate;
mod master_options;
mod options;
mod own_args;
mod parallel;
pub mod pause;
mod queue;
mod requisites;
mod result_fields;
mod retry;
mod run;
mod slots;
mod source;
mod sub_states;
mod top;
mod unknown;

pub use call::call_errors;
pub use highstate::{PillarError, StateRun, errors};
pub use options::{Options, Queue, Settings};
pub use own_args::OWN_ARGS;
pub use queue::{Turn, only_run, other_runs};
pub use run::run;
pub use source::Source;
pub use top::Top;
pub use unknown::{is_known_argument, is_unknown_argument, unknown_argument};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

//! The state run: from top file to low chunks to results.
//!
//! | file | owns |
//! |---|---|
//! | `top.rs` | which SLS files are for this minion |
//! | `source.rs` | rendering SLS files for the compiler in `brine_sls::compile` |
//! | `highstate.rs` | what a run is told, its pillar, compiling |
//! | `queue.rs` | one run at a time |
//! | `pause.rs` | runs that are held up or ended between two states |
//! | `run.rs` | running steps in order as their requisites say |
//! | `beside.rs` | states with `parallel: True` |
//! | `requisites.rs` | what the requisites of a step come to |
//! | `call.rs` | one call of a state function, with conditions, retries and what every result has |
//! | `conditions.rs` | `onlyif`, `unless`, `creates`, `check_cmd` |
//!
//! Nothing here knows a state module by name; `modules/state` has the functions that people call.

pub mod available;
mod beside;
mod call;
mod conditions;
mod function;
mod highstate;
pub mod pause;
mod queue;
mod requisites;
mod run;
mod slots;
pub(crate) mod source;
mod top;

pub use call::unfit;
pub use function::{StateContext, StateReturn};
pub use highstate::{NoPillar, Options, OwnFacts, StateRun, errors};
pub use queue::{Queue, only_run};
pub use run::{Settings, run};
pub use source::Source;
pub use top::Top;

#[cfg(test)]
mod tests;

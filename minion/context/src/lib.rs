//! The context of functions: their minion, their job, and their types.
//!
//! | module | owns |
//! |---|---|
//! | `context` | [`Minion`], [`Job`] and [`Context`]; the traits for access to the master and to files |
//! | `function` | the context and result of state functions: [`StateContext`], [`StateReturn`] |
//! | [`runners`] | the runner functions of this program, by name |
//! | `modules` | the functions of all Salt modules, from the crate that owns them: [`Modules`] |
//! | [`custom`] | custom modules in Python |
//! | `allowed` | the modules that the configuration allows |
//! | `executors`, `sudo` | the executors, which call the function of a job |
//! | `grains` | the grains, collected when they are first read: [`Grains`] |
//! | `identity` | the id of a minion |
//! | [`programs`] | running of programs in a job |
//! | [`jobs`] | function calls in a job; the running jobs of this host |
//! | [`files`] | files under `salt://`, of this host or a web server |
//! | [`state_queue`] | the queue of state runs on this host |
//! | [`local_bus`] | the minion's own event bus, from the daemon or a `salt-call` |
//! | [`template_functions`] | the behaviour of functions in templates |
//! | [`template_host`] | the functions and files for templates |
//! | [`masterless`] | minions without a session |
//! | `facts` | the facts that targets match: [`MinionFacts`] |
//! | [`beacons`], [`schedule`] | the configured beacons and scheduled jobs |
//! | [`redact`] | masking of secrets in logs |
//! | [`suggest`] | suggestions for misspelt names |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::self_named_module_files)]

mod allowed;
pub mod beacons;
mod context;
pub mod custom;
mod executors;
mod facts;
pub mod files;
mod function;
mod grains;
mod identity;
pub mod jobs;
pub mod local_bus;
pub mod masterless;
mod modules;
pub mod programs;
pub mod redact;
pub mod runners;
pub mod schedule;
pub mod state_beacon;
pub mod state_queue;
mod sudo;
pub mod suggest;
pub mod template_functions;
pub mod template_host;

pub use brine_mask::Mask;
pub use context::{Context, FileClient, Job, MINE_FUNCTIONS, MasterEvent, Minion, Upstream};
pub use facts::MinionFacts;
pub use function::{StateContext, StateReturn};
pub use grains::Grains;
pub use identity::{MASTER_KEY, SetupError, id_of_name, known_id, minion_id, store_id};
pub use modules::{Aggregate, Module, Modules};

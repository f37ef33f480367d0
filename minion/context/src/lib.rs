//! The context of functions: their minion, their job, and their types.
//!
//! | module | owns |
//! |---|---|
//! | `context` | [`Context`] and [`StateContext`], with their [`Minion`] and [`Job`]; the functions of all Salt modules, from the crate that owns them: [`Modules`] |
//! | `state_return` | the result of state functions: [`StateReturn`] |
//! | `upstream` | the traits for access to the master and to files: [`Upstream`], [`FileClient`] |
//! | `upstream_errors` | their errors: [`UpstreamError`], [`FetchError`] |
//! | `assembly` | the creation of minions |
//! | [`runners`] | the runner functions of this program, by name |
//! | [`custom`], `custom_calls` | custom modules in Python, and the calls of their functions |
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
mod assembly;
pub mod beacons;
mod context;
pub mod custom;
mod custom_calls;
mod executors;
mod facts;
pub mod files;
mod grains;
mod identity;
pub mod jobs;
pub mod local_bus;
pub mod masterless;
pub mod programs;
pub mod redact;
pub mod runners;
pub mod schedule;
pub mod state_beacon;
pub mod state_queue;
mod state_return;
mod sudo;
pub mod suggest;
pub mod template_functions;
pub mod template_host;
mod upstream;
mod upstream_errors;

pub use brine_mask::Mask;
pub use context::{Aggregate, Context, Job, MINE_FUNCTIONS, Minion, Module, Modules, StateContext};
pub use facts::MinionFacts;
pub use grains::Grains;
pub use identity::{MASTER_KEY, SetupError, id_of_name, known_id, minion_id, store_id};
pub use state_return::StateReturn;
pub use upstream::{FileClient, MasterEvent, Upstream};
pub use upstream_errors::{FetchError, LinkError, UpstreamError};

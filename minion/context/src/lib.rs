//! What a running function sees of its minion and of its job, and the types of functions.
//!
//! | module | owns |
//! |---|---|
//! | `context` | [`Minion`], [`Job`] and [`Context`]; the traits by which functions reach master and files |
//! | `function` | what state functions get and return: [`StateContext`], [`StateReturn`] |
//! | `rooms` | the functions of all Salt modules, handed down by the crate that owns them: [`Rooms`] |
//! | `identity` | the id of a minion |
//! | [`programs`] | running programs in a job |
//! | [`jobs`] | one call in a job; the jobs that run on this host |
//! | [`files`] | files under `salt://`, of this host or a web server |
//! | [`local_bus`] | the minion's own event bus, from here or from a `salt-call` |
//! | [`template_functions`] | how functions behave in templates |
//! | [`template_host`] | the functions and files that templates reach |
//! | [`masterless`] | minions without a session of their own |
//! | `facts` | what targets look at: [`OwnFacts`] |
//! | [`beacons`], [`schedule`] | the configured beacons and scheduled jobs, which functions change |
//! | [`redact`] | text for logs without secrets |
//! | [`suggest`] | suggestions for misspelt names |

#![warn(clippy::self_named_module_files)]

pub mod beacons;
mod context;
mod facts;
pub mod files;
mod function;
mod identity;
pub mod jobs;
pub mod local_bus;
pub mod masterless;
pub mod programs;
pub mod redact;
mod rooms;
pub mod schedule;
pub mod suggest;
pub mod template_functions;
pub mod template_host;

pub use context::{Context, FileClient, Job, MINE_FUNCTIONS, MasterEvent, Minion, Upstream};
pub use facts::OwnFacts;
pub use function::{StateContext, StateReturn};
pub use identity::{MASTER_KEY, SetupError, minion_id};
pub use rooms::{Aggregate, Room, Rooms};

//! The vocabulary that all of Brine shares. Knows nothing of master, minion, reactor or terminals.
//!
//! | module | owns |
//! |---|---|
//! | [`value`] | data: what msgpack, JSON and YAML can say |
//! | [`event`], [`bus`] | events, and the bus that carries, keeps and hands them out |
//! | [`store`] | the one embedded store on disk |
//! | [`wire`], [`crypt`], [`transport`] | what travels between machines, how it is sealed, how it gets there |
//! | [`target`], [`glob`] | which minions are meant |
//! | [`fileserver`] | the files of `file_roots`: found, read, hashed, listed |
//! | [`sls`] | text to data to low chunks |
//! | [`function`] | what can be called by name |
//! | [`schedule`] | when scheduled jobs run |
//! | [`config`], [`check`] | the master's and the minion's configuration, and findings about it |
//! | [`job`], [`jid`], [`minion_id`] | jobs, what minions return for them, and their names |
//! | [`executors`], [`supervisor`], [`backoff`] | named thread pools for work that blocks; the owner of a daemon's tasks; pauses between tries |
//! | [`metrics`], [`files`], [`processes`], [`shell`] | counters, careful file writing, starting programs, quoting |

// The macros of `function` refer to this crate by its name.
#[cfg(test)]
extern crate self as brine_core;

pub mod backoff;
pub mod bus;
pub mod check;
pub mod config;
pub mod crypt;
pub mod event;
pub mod executors;
pub mod files;
pub mod fileserver;
pub mod function;
pub mod glob;
pub mod jid;
pub mod job;
pub mod metrics;
pub mod minion_id;
pub mod nearest;
pub mod orchestration;
pub mod processes;
pub mod schedule;
pub mod seconds;
pub mod shell;
pub mod sls;
pub mod store;
pub mod supervisor;
pub mod target;
pub mod transport;
mod twister;
pub mod value;
pub mod wire;

pub use event::Event;
pub use jid::Jid;
pub use minion_id::{InvalidMinionId, MinionId};
pub use twister::Twister;
pub use value::{Map, Value};

/// The version of Brine.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of Salt that Brine behaves as: what templates and formulas compare.
pub const SALT_VERSION: &str = "3008.3";

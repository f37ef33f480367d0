//! The Brine minion: connects to a master, runs jobs and states, returns what came of them.
//!
//! | module | owns |
//! |---|---|
//! | [`daemon`] | the life of a minion: join, listen, run, return |
//! | [`channel`] | the session with the master |
//! | [`masterless`] | minions without a session of their own |
//! | `upstream` | where events go and the pillar comes from: the master, or this host alone |
//! | [`local_bus`] | the minion's own event bus, from here or from a `salt-call` |
//! | [`context`] | what a running function sees: configuration, grains, pillar, files, its job |
//! | [`jobs`], [`pool`] | jobs under way and their threads |
//! | [`host`] | the host: programs, accounts, web |
//! | `seen_jobs` | the ids of jobs that were received, so that none runs twice |
//! | `outbox` | returns and events that the master has not accepted yet |
//! | [`modules`] | execution and state functions, one folder a Salt module |
//! | [`state`] | the state run |
//! | [`events`] | the minion's own event bus |
//! | [`reactions`] | the minion's own reactor |
//! | `schedule` | jobs that run by themselves |
//! | [`beacons`] | polls of this host that publish events |
//! | `ping` | telling the master now and then that the minion is there |
//! | `check` | what can be said of a minion before it starts |
//! | [`grains`], [`fileclient`], [`file_cache`] | facts about this host; files under `salt://`; copies of files |

#![warn(clippy::self_named_module_files)]

pub mod beacons;
pub mod channel;
mod check;
pub mod context;
pub mod daemon;
pub mod events;
pub mod file_cache;
pub mod fileclient;
pub mod grains;
pub mod host;
pub mod jobs;
pub mod local_bus;
pub mod masterless;
pub mod metrics;
pub mod modules;
mod outbox;
mod ping;
pub mod pool;
pub mod reactions;
mod redact;
pub(crate) mod schedule;
mod seen_jobs;
pub mod state;
pub mod suggest;
mod ticks;
mod upstream;

pub use check::{check, report};

#[cfg(test)]
mod testing;

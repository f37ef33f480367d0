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
//! | [`jobs`], [`pool`], [`process`] | jobs under way, their threads and their child processes |
//! | `seen_jobs` | the ids of jobs that were received, so that none runs twice |
//! | `outbox` | returns and events that the master has not accepted yet |
//! | [`modules`] | execution functions, one file a Salt module |
//! | [`states`], [`state`] | state functions, one file a Salt module, and the state run |
//! | [`events`] | the minion's own event bus |
//! | [`reactions`] | the minion's own reactor |
//! | `schedule` | jobs that run by themselves |
//! | `beacons` | what is watched on this host |
//! | `ping` | telling the master now and then that the minion is there |
//! | `check` | what can be said of a minion before it starts |
//! | [`grains`], [`fileclient`], [`file_cache`] | facts about this host; files under `salt://`; copies of files |

pub(crate) mod beacons;
pub mod channel;
mod check;
pub mod context;
pub mod daemon;
pub mod events;
pub mod file_cache;
pub mod fileclient;
pub mod grains;
pub mod jobs;
pub mod local_bus;
pub mod masterless;
pub mod metrics;
pub mod modules;
mod outbox;
mod ping;
pub mod pool;
pub mod process;
pub mod reactions;
mod redact;
pub(crate) mod schedule;
mod seen_jobs;
pub mod state;
pub mod states;
pub mod suggest;
mod ticks;
mod upstream;
pub mod web;

pub use check::{check, report};

#[cfg(test)]
mod testing;

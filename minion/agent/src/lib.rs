//! The agent: connects to a master, runs jobs, returns their results.
//!
//! | module | owns |
//! |---|---|
//! | [`daemon`] | the life of a minion: join, listen, run, return |
//! | [`channel`] | the session with the master |
//! | `upstream`, `master_files` | events and pillar, and files, by way of the master |
//! | [`jobs`], [`pool`] | published jobs and their threads |
//! | `seen_jobs` | the ids of received jobs, so that none runs twice |
//! | `outbox` | returns and events that the master has not accepted yet |
//! | [`events`] | the minion's own event bus |
//! | [`reactions`] | the minion's own reactor |
//! | `schedule` | jobs that run by themselves |
//! | [`beacons`] | polls of this host that publish events |
//! | `ping` | the regular sign of life for the master |
//! | `check` | findings about a minion before it starts |
//! | [`metrics`] | the metrics of a minion |

#![warn(clippy::self_named_module_files)]

pub mod beacons;
pub mod channel;
mod check;
pub mod daemon;
pub mod events;
pub mod jobs;
mod master_files;
pub mod metrics;
mod outbox;
mod ping;
pub mod pool;
pub mod reactions;
mod schedule;
mod seen_jobs;
mod ticks;
mod upstream;

pub use check::{check, report};

#[cfg(test)]
mod testing;

//! The agent: connects to a master, runs jobs, returns their results.
//!
//! | module | owns |
//! |---|---|
//! | [`daemon`] | the main loop of a minion: connect, subscribe, run, return |
//! | [`channel`] | the session with the master |
//! | [`identity`] | the id of a minion, before its start |
//! | `masters` | which of several masters is used |
//! | `master_link`, `master_files` | events, pillar and files from the master |
//! | [`jobs`], [`pool`] | published jobs and their threads |
//! | `blackout` | the functions that may be called in a blackout |
//! | `seen_jobs` | the ids of received jobs, for deduplication |
//! | `outbox` | returns and events that the master has not accepted yet |
//! | `leader` | the minion that runs the schedule, beacons and the reactor, among those of several masters |
//! | [`events`] | events on the minion's own bus |
//! | [`reactions`] | the minion's own reactor |
//! | `schedule` | the schedule |
//! | [`beacons`] | beacons |
//! | `ping` | `ping_interval` |
//! | `check` | checks before the start |
//! | [`metrics`] | the metrics of a minion |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::self_named_module_files)]

pub mod beacons;
mod blackout;
pub mod channel;
mod check;
pub mod daemon;
mod engines;
pub mod events;
pub mod identity;
pub mod jobs;
mod leader;
pub mod master_files;
mod master_link;
mod masters;
pub mod metrics;
mod outbox;
mod ping;
pub mod pool;
pub mod reactions;
mod schedule;
pub mod seen_jobs;
mod spool;

pub use check::{Answer, Try, check, check_masters, check_options, report, try_masters};

#[cfg(test)]
mod testing;

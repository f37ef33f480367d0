//! What a master keeps on its disk, and the events that tell of it.
//!
//! [`storage::Storage`] gathers what blocks on a disk: keys, files, minion data, mines, queues, cache banks, the job cache,
//! large returns, sealed arguments. Each owner opens its own table of the store. `shared` are the values that a cluster
//! has in common instead.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

pub mod autosign;
pub mod cache_banks;
pub mod delivery;
pub mod events;
pub mod file_requests;
pub mod job_cache;
pub mod job_events;
pub mod keys;
pub mod large_returns;
pub mod metrics;
pub mod mines;
pub mod minion_data;
pub mod plans;
pub mod queues;
pub mod return_events;
pub mod sealed_arguments;
pub mod sealing;
pub mod shared;
pub mod storage;

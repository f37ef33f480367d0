//! Calls of the master's own functions: [`RunnerCalls`] runs runner and wheel functions, built-in or custom, and publishes
//! their events. [`Services`] are the parts of the master that the functions use. The modules themselves are handed in as
//! [`MasterModules`].

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

pub mod job_files;
pub mod key_changes;
pub mod masking;
mod runner_calls;

pub use runner_calls::{
    Caller, MasterModules, REACTION, REACTOR, ReactorHandle, RunnerCalls, RunnerContext, Services, Started,
    WheelContext, WheelHost, custom, orchestration,
};

//! Jobs of a master: [`PublishStream`] encrypts and sends them in order, [`Jobs`] publishes them to the minions of a target
//! and collects their returns, [`batches`] run them in parts, and [`checkpoint`]s let another master continue. [`activity`]
//! is what the fleet did lately.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

pub mod activity;
mod jobs;
pub mod metrics;

pub use jobs::{
    AUTH_LIST, JobReturns, Jobs, MASTER_ID, PublishError, PublishStream, Published, RunError, batches, causality,
    checkpoint,
};

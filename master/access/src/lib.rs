//! Who may use a master: [`admission`] of minions by their keys, and [`access`] of users by keys, passwords and tokens,
//! with the permissions of their calls.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

pub mod access;
pub mod admission;
pub mod metrics;

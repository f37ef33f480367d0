//! States of `ssh`: one file a state module.

pub(crate) mod auth;
pub(crate) mod known_hosts;

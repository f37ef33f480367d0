//! Stub.

pub mod autosign;
pub mod keys;
pub mod wheel;

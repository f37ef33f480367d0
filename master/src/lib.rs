//! Stub.

pub mod autosign;
pub mod keys;

//! The drivers of `sdb`: one file for each.

pub(super) mod env;
pub(super) mod etcd;
pub(super) mod rest;
pub(super) mod sqlite3;
pub(super) mod yaml;

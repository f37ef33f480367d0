//! Execution and state functions of the minion itself, its data and its jobs, one directory a Salt module.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::self_named_module_files)]

pub(crate) mod beacons;
pub(crate) mod brine;
pub(crate) mod config;
pub(crate) mod data;
pub(crate) mod defaults;
pub(crate) mod environ;
pub(crate) mod event;
pub(crate) mod grains;
pub(crate) mod highstate_doc;
pub(crate) mod http;
pub(crate) mod jinja;
pub(crate) mod key;
pub(crate) mod log;
pub(crate) mod r#loop;
pub(crate) mod r#match;
pub(crate) mod mine;
pub(crate) mod minion;
pub(crate) mod module;
pub(crate) mod out;
pub(crate) mod pillar;
pub(crate) mod publish;
pub(crate) mod random;
pub(crate) mod ret;
pub(crate) mod salt;
pub(crate) mod salt_version;
pub(crate) mod saltcheck;
pub(crate) mod saltutil;
pub(crate) mod schedule;
pub(crate) mod sdb;
pub(crate) mod seed;
pub(crate) mod slsutil;
pub(crate) mod sqlite3;
pub(crate) mod state;
pub(crate) mod stateconf;
pub(crate) mod sys;
pub(crate) mod test;

#[cfg(test)]
mod testing;

use brine_context::Module;

pub use mine::mine_result;
pub use salt::state::is_success;
pub use saltutil::sync::sync_types;

/// The modules of this crate. One that is missing here is dead code to the compiler.
pub static MODULES: &[&Module] = &[
    &beacons::MODULE,
    &brine::MODULE,
    &config::MODULE,
    &data::MODULE,
    &defaults::MODULE,
    &environ::MODULE,
    &event::MODULE,
    &grains::MODULE,
    &highstate_doc::MODULE,
    &http::MODULE,
    &jinja::MODULE,
    &key::MODULE,
    &log::MODULE,
    &r#loop::MODULE,
    &r#match::MODULE,
    &mine::MODULE,
    &minion::MODULE,
    &module::MODULE,
    &out::MODULE,
    &pillar::MODULE,
    &publish::MODULE,
    &random::MODULE,
    &ret::MODULE,
    &salt::MODULE,
    &salt_version::MODULE,
    &saltcheck::MODULE,
    &saltutil::MODULE,
    &schedule::MODULE,
    &sdb::MODULE,
    &seed::MODULE,
    &slsutil::MODULE,
    &sqlite3::MODULE,
    &state::MODULE,
    &stateconf::MODULE,
    &sys::MODULE,
    &test::MODULE,
];

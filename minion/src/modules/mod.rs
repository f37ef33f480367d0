//! Execution functions: one file a Salt module, each declared with `brine_core::functions!`.

pub mod accounts;
pub mod archive;
mod beacons;
pub mod cmd;
mod config;
mod defaults;
pub mod environ;
pub(crate) mod event;
mod file;
pub mod git;
mod grains;
pub mod group;
mod http;
mod log;
mod r#match;
mod mine;
mod orchestration;
mod pillar;
pub mod pip;
pub mod pip_versions;
pub mod pkg;
pub mod programs;
mod publish;
mod saltutil;
mod schedule;
pub mod service;
mod slsutil;
mod state;
mod status;
mod sys;
mod test;
pub mod user;
mod virtualenv;

use brine_core::function::Function;

use crate::context::Context;

pub(crate) use orchestration::{arguments, master_of};
pub(crate) use state::names;

/// All execution functions: one line a module.
pub static MODULES: &[&[Function<Context>]] = &[
    archive::FUNCTIONS,
    beacons::FUNCTIONS,
    cmd::FUNCTIONS,
    config::FUNCTIONS,
    defaults::FUNCTIONS,
    environ::FUNCTIONS,
    event::FUNCTIONS,
    file::FUNCTIONS,
    git::FUNCTIONS,
    grains::FUNCTIONS,
    group::FUNCTIONS,
    http::FUNCTIONS,
    log::FUNCTIONS,
    r#match::FUNCTIONS,
    mine::FUNCTIONS,
    orchestration::FUNCTIONS,
    pillar::FUNCTIONS,
    pip::FUNCTIONS,
    pkg::FUNCTIONS,
    pkg::HOLDS,
    pkg::REPOSITORIES,
    publish::FUNCTIONS,
    saltutil::FUNCTIONS,
    schedule::FUNCTIONS,
    service::FUNCTIONS,
    slsutil::FUNCTIONS,
    state::FUNCTIONS,
    status::FUNCTIONS,
    sys::FUNCTIONS,
    test::FUNCTIONS,
    user::FUNCTIONS,
    virtualenv::FUNCTIONS,
];

/// Whether there is an execution function of this full name.
pub fn has(name: &str) -> bool {
    let is = |function: &Function<Context>| {
        name.strip_prefix(function.module).and_then(|rest| rest.strip_prefix('.')) == Some(function.name)
    };
    MODULES.iter().flat_map(|module| module.iter()).any(is)
}

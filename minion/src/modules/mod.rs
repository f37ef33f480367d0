//! Execution functions: one file a Salt module, each declared with `brine_core::functions!`.

pub mod accounts;
pub mod archive;
mod beacons;
pub mod cmd;
mod config;
mod cp;
pub mod cron;
mod defaults;
pub mod environ;
pub(crate) mod event;
mod file;
pub mod git;
mod grains;
pub mod group;
mod hashutil;
pub mod hosts;
mod http;
pub mod ini;
mod log;
mod r#match;
mod mine;
pub mod mount;
mod network;
mod orchestration;
mod pillar;
pub mod pkg;
pub mod programs;
mod publish;
mod random;
mod saltutil;
mod schedule;
pub mod service;
mod slsutil;
pub mod ssh;
mod state;
mod status;
mod sys;
pub mod sysctl;
mod test;
pub mod user;

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
    cp::FUNCTIONS,
    cron::FUNCTIONS,
    defaults::FUNCTIONS,
    environ::FUNCTIONS,
    event::FUNCTIONS,
    file::FUNCTIONS,
    git::FUNCTIONS,
    grains::FUNCTIONS,
    group::FUNCTIONS,
    hashutil::FUNCTIONS,
    hosts::FUNCTIONS,
    http::FUNCTIONS,
    ini::FUNCTIONS,
    log::FUNCTIONS,
    mine::FUNCTIONS,
    mount::FUNCTIONS,
    network::FUNCTIONS,
    r#match::FUNCTIONS,
    orchestration::FUNCTIONS,
    pillar::FUNCTIONS,
    pkg::FUNCTIONS,
    pkg::REPOSITORIES,
    publish::FUNCTIONS,
    random::FUNCTIONS,
    saltutil::FUNCTIONS,
    schedule::FUNCTIONS,
    service::FUNCTIONS,
    slsutil::FUNCTIONS,
    ssh::FUNCTIONS,
    state::FUNCTIONS,
    status::FUNCTIONS,
    sys::FUNCTIONS,
    sysctl::FUNCTIONS,
    test::FUNCTIONS,
    user::FUNCTIONS,
];

/// Whether there is an execution function of this full name.
pub fn has(name: &str) -> bool {
    let is = |function: &Function<Context>| {
        name.strip_prefix(function.module).and_then(|rest| rest.strip_prefix('.')) == Some(function.name)
    };
    MODULES.iter().flat_map(|module| module.iter()).any(is)
}

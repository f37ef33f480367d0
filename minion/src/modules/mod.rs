//! Execution functions: one file a Salt module, each declared with `brine_core::functions!`.

pub mod accounts;
mod beacons;
pub mod cmd;
mod config;
mod defaults;
pub mod environ;
pub(crate) mod event;
mod file;
mod grains;
pub mod group;
mod log;
mod r#match;
mod mine;
mod orchestration;
mod pillar;
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

use brine_core::function::Function;

use crate::context::Context;

pub(crate) use orchestration::{arguments, master_of};
pub(crate) use state::names;

/// All execution functions: one line a module.
pub static MODULES: &[&[Function<Context>]] = &[
    beacons::FUNCTIONS,
    cmd::FUNCTIONS,
    config::FUNCTIONS,
    defaults::FUNCTIONS,
    environ::FUNCTIONS,
    event::FUNCTIONS,
    file::FUNCTIONS,
    grains::FUNCTIONS,
    group::FUNCTIONS,
    log::FUNCTIONS,
    r#match::FUNCTIONS,
    mine::FUNCTIONS,
    orchestration::FUNCTIONS,
    pillar::FUNCTIONS,
    pkg::FUNCTIONS,
    publish::FUNCTIONS,
    saltutil::FUNCTIONS,
    schedule::FUNCTIONS,
    service::FUNCTIONS,
    slsutil::FUNCTIONS,
    state::FUNCTIONS,
    state::disabled::FUNCTIONS,
    status::FUNCTIONS,
    sys::FUNCTIONS,
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

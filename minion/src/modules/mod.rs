//! Execution functions: one file a Salt module, each declared with `brine_function::functions!`.

pub mod accounts;
mod acl;
pub mod aliases;
pub mod alternatives;
mod apache;
pub mod archive;
mod beacons;
pub mod cmd;
mod config;
mod cp;
pub mod cron;
mod data;
mod debconf;
mod defaults;
mod disk;
pub mod environ;
pub(crate) mod event;
pub mod file;
pub mod git;
mod grains;
pub mod group;
mod hashutil;
pub mod hosts;
mod http;
pub mod ini;
mod iptables;
mod jinja;
mod key;
pub mod kmod;
mod lines;
mod locale;
mod log;
pub mod logrotate;
mod r#match;
mod mine;
pub mod mount;
mod network;
mod orchestration;
mod pillar;
pub mod pip;
pub mod pip_versions;
pub mod pkg;
pub mod programs;
mod ps;
mod publish;
mod random;
mod saltutil;
mod schedule;
mod sdb;
pub mod service;
pub mod shadow;
mod slsutil;
pub mod ssh;
mod state;
mod status;
mod sys;
pub mod sysctl;
mod system;
mod test;
mod timezone;
pub mod user;
mod virtualenv;

use brine_function::Function;

use crate::context::Context;

pub(crate) use orchestration::{arguments, master_of};
pub(crate) use state::names;

/// All execution functions: one line a module.
pub static MODULES: &[&[Function<Context>]] = &[
    acl::FUNCTIONS,
    aliases::FUNCTIONS,
    alternatives::FUNCTIONS,
    apache::FUNCTIONS,
    archive::FUNCTIONS,
    beacons::FUNCTIONS,
    cmd::FUNCTIONS,
    config::FUNCTIONS,
    cp::FUNCTIONS,
    cp::push::FUNCTIONS,
    cron::FUNCTIONS,
    data::FUNCTIONS,
    debconf::FUNCTIONS,
    defaults::FUNCTIONS,
    disk::FUNCTIONS,
    environ::FUNCTIONS,
    event::FUNCTIONS,
    file::FUNCTIONS,
    file::backups::FUNCTIONS,
    file::changes::FUNCTIONS,
    file::find::FUNCTIONS,
    file::flags::FUNCTIONS,
    file::owners::FUNCTIONS,
    file::patch::FUNCTIONS,
    file::places::FUNCTIONS,
    git::FUNCTIONS,
    git::config::FUNCTIONS,
    grains::FUNCTIONS,
    group::FUNCTIONS,
    hashutil::FUNCTIONS,
    hosts::FUNCTIONS,
    http::FUNCTIONS,
    ini::FUNCTIONS,
    iptables::FUNCTIONS,
    jinja::FUNCTIONS,
    key::FUNCTIONS,
    kmod::FUNCTIONS,
    locale::FUNCTIONS,
    log::FUNCTIONS,
    logrotate::FUNCTIONS,
    r#match::FUNCTIONS,
    mine::FUNCTIONS,
    mount::FUNCTIONS,
    network::FUNCTIONS,
    network::routes::FUNCTIONS,
    r#match::FUNCTIONS,
    orchestration::FUNCTIONS,
    pillar::FUNCTIONS,
    pip::FUNCTIONS,
    pkg::FUNCTIONS,
    pkg::KEYS,
    pkg::QUERIES,
    pkg::HOLDS,
    pkg::REPOSITORIES,
    ps::FUNCTIONS,
    ps::host::FUNCTIONS,
    publish::FUNCTIONS,
    random::FUNCTIONS,
    saltutil::FUNCTIONS,
    saltutil::refresh::FUNCTIONS,
    schedule::FUNCTIONS,
    sdb::FUNCTIONS,
    service::FUNCTIONS,
    shadow::FUNCTIONS,
    slsutil::FUNCTIONS,
    ssh::FUNCTIONS,
    state::FUNCTIONS,
    state::disabled::FUNCTIONS,
    state::package::FUNCTIONS,
    state::pauses::FUNCTIONS,
    state::requests::FUNCTIONS,
    state::show::FUNCTIONS,
    status::FUNCTIONS,
    status::master::FUNCTIONS,
    status::tables::FUNCTIONS,
    sys::FUNCTIONS,
    sysctl::FUNCTIONS,
    system::FUNCTIONS,
    test::FUNCTIONS,
    timezone::FUNCTIONS,
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

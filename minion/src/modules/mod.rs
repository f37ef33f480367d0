//! Salt's modules, one folder each: `mod.rs` has the execution functions, `state.rs` or `state/` the state functions;
//! backends, tests and transcripts stand beside them.
//!
//! A new module is a folder, and its name in the two lists here: the compiler reports a name that only one has.

pub(crate) mod acl;
pub(crate) mod aliases;
pub(crate) mod alternatives;
pub(crate) mod apache;
pub(crate) mod archive;
pub(crate) mod beacons;
pub(crate) mod cmd;
pub(crate) mod config;
pub(crate) mod cp;
pub(crate) mod cron;
pub(crate) mod data;
pub(crate) mod debconf;
pub(crate) mod defaults;
pub(crate) mod disk;
pub(crate) mod environ;
pub(crate) mod event;
pub(crate) mod file;
pub(crate) mod git;
pub(crate) mod grains;
pub(crate) mod group;
pub(crate) mod hashutil;
pub(crate) mod hosts;
pub(crate) mod http;
pub(crate) mod ini;
pub(crate) mod iptables;
pub(crate) mod jinja;
pub(crate) mod key;
pub(crate) mod kmod;
pub(crate) mod locale;
pub(crate) mod log;
pub(crate) mod logrotate;
pub(crate) mod r#loop;
pub(crate) mod r#match;
pub(crate) mod mine;
pub(crate) mod module;
pub(crate) mod mount;
pub(crate) mod network;
pub(crate) mod pillar;
pub(crate) mod pip;
pub(crate) mod pkg;
pub(crate) mod ps;
pub(crate) mod publish;
pub(crate) mod random;
pub(crate) mod salt;
pub(crate) mod saltutil;
pub(crate) mod schedule;
pub(crate) mod sdb;
pub(crate) mod service;
pub(crate) mod shadow;
pub(crate) mod slsutil;
pub(crate) mod ssh;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod sys;
pub(crate) mod sysctl;
pub(crate) mod system;
pub(crate) mod test;
pub(crate) mod timezone;
pub(crate) mod user;
pub(crate) mod virtualenv;

use brine_function::Function;
use brine_sls::compile::Chunk;

use crate::context::Context;
use crate::state::StateContext;

pub use salt::state::is_success;

static ROOMS: &[&Room] = &[
    &acl::ROOM,
    &aliases::ROOM,
    &alternatives::ROOM,
    &apache::ROOM,
    &archive::ROOM,
    &beacons::ROOM,
    &cmd::ROOM,
    &config::ROOM,
    &cp::ROOM,
    &cron::ROOM,
    &data::ROOM,
    &debconf::ROOM,
    &defaults::ROOM,
    &disk::ROOM,
    &environ::ROOM,
    &event::ROOM,
    &file::ROOM,
    &git::ROOM,
    &grains::ROOM,
    &group::ROOM,
    &hashutil::ROOM,
    &hosts::ROOM,
    &http::ROOM,
    &ini::ROOM,
    &iptables::ROOM,
    &jinja::ROOM,
    &key::ROOM,
    &kmod::ROOM,
    &locale::ROOM,
    &log::ROOM,
    &logrotate::ROOM,
    &r#loop::ROOM,
    &r#match::ROOM,
    &mine::ROOM,
    &module::ROOM,
    &mount::ROOM,
    &network::ROOM,
    &pillar::ROOM,
    &pip::ROOM,
    &pkg::ROOM,
    &ps::ROOM,
    &publish::ROOM,
    &random::ROOM,
    &salt::ROOM,
    &saltutil::ROOM,
    &schedule::ROOM,
    &sdb::ROOM,
    &service::ROOM,
    &shadow::ROOM,
    &slsutil::ROOM,
    &ssh::ROOM,
    &state::ROOM,
    &status::ROOM,
    &sys::ROOM,
    &sysctl::ROOM,
    &system::ROOM,
    &test::ROOM,
    &timezone::ROOM,
    &user::ROOM,
    &virtualenv::ROOM,
];

/// The functions of one folder: of one Salt module, or of several that belong together, such as `pkg` and `pkgrepo`.
struct Room {
    functions: &'static [&'static [Function<Context>]],
    states: &'static [&'static [Function<StateContext>]],
}

impl Room {
    const EMPTY: Room = Room { functions: &[], states: &[] };
}

/// Returns all execution functions, list by list.
pub fn functions() -> Vec<&'static [Function<Context>]> {
    ROOMS.iter().flat_map(|room| room.functions).copied().collect()
}

/// Returns all state functions, list by list.
pub fn states() -> Vec<&'static [Function<StateContext>]> {
    ROOMS.iter().flat_map(|room| room.states).copied().collect()
}

/// Returns whether there is an execution function of this full name.
pub fn has(name: &str) -> bool {
    let is = |function: &Function<Context>| {
        name.strip_prefix(function.module).and_then(|rest| rest.strip_prefix('.')) == Some(function.name)
    };
    ROOMS.iter().flat_map(|room| room.functions).flat_map(|list| list.iter()).any(is)
}

/// Merges another state into a state if they can run as one; returns whether it did.
pub type Aggregate = fn(&mut Chunk, &Chunk) -> bool;

/// The modules with states that run as one: `aggregate`.
static AGGREGATES: &[(&str, Aggregate)] = &[("pkg", pkg::state::aggregate)];

/// Returns how states of a module are merged into one, if they can be.
pub fn aggregate_of(module: &str) -> Option<Aggregate> {
    AGGREGATES.iter().find(|(name, _)| *name == module).map(|(_, aggregate)| *aggregate)
}

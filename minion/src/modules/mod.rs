//! Execution functions: one file a Salt module, each declared with `brine_core::functions!`.

pub mod cmd;
mod config;
mod event;
mod grains;
mod pillar;
pub mod pkg;
mod saltutil;
pub mod service;
mod state;
mod sys;
mod test;
pub mod user;

use brine_core::function::Function;

use crate::context::Context;

/// All execution functions: one line a module.
pub static MODULES: &[&[Function<Context>]] = &[
    cmd::FUNCTIONS,
    config::FUNCTIONS,
    event::FUNCTIONS,
    grains::FUNCTIONS,
    pillar::FUNCTIONS,
    pkg::FUNCTIONS,
    saltutil::FUNCTIONS,
    service::FUNCTIONS,
    state::FUNCTIONS,
    sys::FUNCTIONS,
    test::FUNCTIONS,
    user::FUNCTIONS,
];

//! Execution functions: one file a Salt module, each declared with `brine_core::functions!`.

pub mod cmd;
mod config;
mod event;
mod grains;
mod pillar;
mod saltutil;
mod state;
mod sys;
mod test;

use brine_core::function::Function;

use crate::context::Context;

/// All execution functions: one line a module.
pub static MODULES: &[&[Function<Context>]] = &[
    cmd::FUNCTIONS,
    config::FUNCTIONS,
    event::FUNCTIONS,
    grains::FUNCTIONS,
    pillar::FUNCTIONS,
    saltutil::FUNCTIONS,
    state::FUNCTIONS,
    sys::FUNCTIONS,
    test::FUNCTIONS,
];

//! `module`: state functions only.

pub(crate) mod state;

use brine_context::Module;

pub(super) static MODULE: Module = Module { states: &[&state::FUNCTIONS], ..Module::EMPTY };

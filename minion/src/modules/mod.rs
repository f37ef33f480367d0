//! Execution functions: one file a Salt module, each declared with `brine_core::functions!`.

use brine_core::function::Function;

use crate::context::Context;

/// All execution functions: one line a module.
pub static MODULES: &[&[Function<Context>]] = &[];

//! Execution and state modules for databases and message brokers: one directory per Salt module.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::self_named_module_files)]

pub(crate) mod mysql;
pub(crate) mod postgres;
pub(crate) mod rabbitmq;

#[cfg(test)]
mod testing;

use brine_context::Module;

/// The modules of this crate. One that is missing here is dead code to the compiler.
pub static MODULES: &[&Module] = &[&mysql::MODULE, &postgres::MODULE, &rabbitmq::MODULE];

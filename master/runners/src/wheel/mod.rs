//! Wheel functions, which change the master. Called by `salt-key`, reactions (`wheel.key.accept`) and the API. There is
//! one file for each Salt module, with functions declared by `#[function]`.
//!
//! They block. A [`WheelHost`] provides the services of the master beyond its keys.

pub mod config;
pub mod error;
pub mod file_roots;
pub mod key;
pub mod minions;
pub mod pillar_roots;
mod roots;

use brine_function::Functions;
pub use brine_master_calls::{WheelContext, WheelHost};

/// All wheel functions: one line for each module.
pub static MODULES: &[&Functions<WheelContext>] = &[
    &config::FUNCTIONS,
    &error::FUNCTIONS,
    &file_roots::FUNCTIONS,
    &key::FUNCTIONS,
    &minions::FUNCTIONS,
    &pillar_roots::FUNCTIONS,
];

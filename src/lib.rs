//! The command line tools ([`cli`]), their outputters ([`output`]), the terminal ([`ui`]) and escaping ([`escape`]).

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod cli;
pub mod ui;

pub use brine_output as output;
pub use brine_output::escape;

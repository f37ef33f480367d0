//! The command line tools ([`cli`]), their outputters ([`output`]), the terminal ([`ui`]) and escaping ([`escape`]).

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod cli;
pub mod ui;

pub use brine_output as output;
pub use brine_output::escape;

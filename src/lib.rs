//! The command line tools ([`cli`]), their outputters ([`output`]), the terminal ([`ui`]) and escaping ([`escape`]).

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod cli;
pub mod escape;
pub mod output;
pub mod ui;

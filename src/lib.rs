//! The command line: one file a tool in [`cli`], and how results are shown and text of peers is escaped.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod cli;
pub mod escape;
pub mod output;
pub mod ui;

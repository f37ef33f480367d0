//! The command line: one file a tool in [`cli`], and how results are shown.

pub mod cli;
pub mod output;
pub mod ui;

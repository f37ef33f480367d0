//! The command line without its tools: how results are shown.

pub mod output;
pub mod ui;

//! Access to the host: files and child processes.
//!
//! | module | owns |
//! |---|---|
//! | [`files`] | atomic writes, safe paths, errors with their path |
//! | [`processes`] | child processes with bounded output |

pub mod files;
pub mod metrics;
pub mod processes;

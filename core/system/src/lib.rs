//! Access to the host: files, child processes, and Wake-on-LAN.
//!
//! | module | owns |
//! |---|---|
//! | [`files`] | atomic writes, safe paths, errors with their path |
//! | [`processes`] | child processes with bounded output |
//! | [`wake_on_lan`] | magic packets |

pub mod files;
pub mod metrics;
pub mod processes;
pub mod wake_on_lan;

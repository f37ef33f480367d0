//! Access to the host: files, child processes, ports, and Wake-on-LAN.
//!
//! | module | owns |
//! |---|---|
//! | [`files`] | atomic writes, safe paths, errors with their path |
//! | [`ports`] | free TCP ports |
//! | [`processes`] | child processes with bounded output |
//! | [`wake_on_lan`] | magic packets |

pub mod files;
pub mod metrics;
pub mod ports;
pub mod processes;
pub mod wake_on_lan;

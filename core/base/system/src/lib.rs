//! Access to the host: files, child processes, ports, and Wake-on-LAN.
//!
//! | module | owns |
//! |---|---|
//! | [`files`] | atomic writes, safe paths, errors with their path |
//! | [`user_files`] | `std::fs`'s operations for directories that other users can write |
//! | [`ports`] | free TCP ports |
//! | [`processes`] | child processes with bounded output |
//! | [`wake_on_lan`] | magic packets |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

pub mod files;
pub mod metrics;
pub mod ports;
pub mod processes;
pub mod user_files;
pub mod wake_on_lan;

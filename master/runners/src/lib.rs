//! Runner functions, which `salt-run` calls, and wheel functions, which change the master: one file for each Salt module.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

pub mod runner;
pub mod wheel;

use brine_master_calls::MasterModules;

/// All runner and wheel modules.
pub static MODULES: MasterModules = MasterModules { runners: runner::MODULES, wheels: wheel::MODULES };

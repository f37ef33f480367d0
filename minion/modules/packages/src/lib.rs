//! Execution and state functions of packages, repositories and environments, one directory a Salt module.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::self_named_module_files)]

pub(crate) mod debconf;
pub(crate) mod git;
pub(crate) mod kernelpkg;
pub(crate) mod lowpkg;
pub(crate) mod npm;
pub(crate) mod pip;
pub(crate) mod pkg;
pub(crate) mod pkg_resource;
pub(crate) mod pyenv;
pub(crate) mod restartcheck;
pub(crate) mod virtualenv;

#[cfg(test)]
mod testing;

use brine_context::Module;

// `pub static MODULES: &[&Module]`
include!(concat!(env!("OUT_DIR"), "/modules.rs"));

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

/// The modules of this crate. One that is missing here is dead code to the compiler.
pub static MODULES: &[&Module] = &[
    &debconf::MODULE,
    &git::MODULE,
    &kernelpkg::MODULE,
    &lowpkg::MODULE,
    &npm::MODULE,
    &pip::MODULE,
    &pkg::MODULE,
    &pkg_resource::MODULE,
    &pyenv::MODULE,
    &restartcheck::MODULE,
    &virtualenv::MODULE,
];

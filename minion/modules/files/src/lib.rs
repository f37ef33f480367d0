//! Execution and state modules for files and commands: one directory per Salt module.
//! `checksum`, `file_cache` and `private_copy` are no Salt modules: several share them.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::self_named_module_files)]

pub(crate) mod acl;
pub(crate) mod aliases;
pub(crate) mod alternatives;
pub(crate) mod apache;
pub mod archive;
pub mod cmd;
pub(crate) mod cp;
pub mod file;
pub(crate) mod hashutil;
pub(crate) mod hosts;
pub(crate) mod ini;
pub(crate) mod logrotate;
pub(crate) mod rsync;
pub(crate) mod temp;
pub(crate) mod webutil;
pub(crate) mod xml;

pub mod private_copy;

mod checksum;
mod file_cache;

#[cfg(test)]
mod testing;

use brine_context::Module;

/// The modules of this crate. One that is missing here is dead code to the compiler.
pub static MODULES: &[&Module] = &[
    &acl::MODULE,
    &aliases::MODULE,
    &alternatives::MODULE,
    &apache::MODULE,
    &archive::MODULE,
    &cmd::MODULE,
    &cp::MODULE,
    &file::MODULE,
    &hashutil::MODULE,
    &hosts::MODULE,
    &ini::MODULE,
    &logrotate::MODULE,
    &rsync::MODULE,
    &temp::MODULE,
    &webutil::MODULE,
    &xml::MODULE,
];

//! Execution and state functions of keys, certificates and access control, one directory a Salt module.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::self_named_module_files)]

pub(crate) mod asymmetric;
pub(crate) mod gpg;
pub(crate) mod nacl;
pub(crate) mod pam;
pub(crate) mod selinux;
pub(crate) mod ssh;
pub(crate) mod x509;

#[cfg(test)]
mod testing;

use brine_context::Module;

/// The modules of this crate. One that is missing here is dead code to the compiler.
pub static MODULES: &[&Module] =
    &[&asymmetric::MODULE, &gpg::MODULE, &nacl::MODULE, &pam::MODULE, &selinux::MODULE, &ssh::MODULE, &x509::MODULE];

//! Execution and state modules for the host, such as accounts, services and disks: one directory per Salt module.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::self_named_module_files)]

pub(crate) mod at;
pub(crate) mod blockdev;
pub(crate) mod chroot;
pub(crate) mod cron;
pub(crate) mod cryptdev;
pub(crate) mod devinfo;
pub(crate) mod devmap;
pub(crate) mod disk;
pub(crate) mod extfs;
pub(crate) mod group;
pub(crate) mod incron;
pub(crate) mod keyboard;
pub(crate) mod kmod;
pub(crate) mod locale;
pub(crate) mod locate;
pub(crate) mod lvm;
pub(crate) mod mount;
pub(crate) mod nfs3;
pub(crate) mod partition;
pub(crate) mod ps;
pub(crate) mod puppet;
pub(crate) mod quota;
pub(crate) mod raid;
pub(crate) mod scsi;
pub(crate) mod service;
pub(crate) mod shadow;
pub(crate) mod snapper;
pub(crate) mod status;
pub(crate) mod supervisord;
pub(crate) mod sysctl;
pub(crate) mod sysfs;
pub(crate) mod syslog_ng;
pub(crate) mod system;
pub(crate) mod timezone;
pub(crate) mod udev;
pub mod user;
pub(crate) mod xfs;

#[cfg(test)]
mod testing;

use brine_context::Module;

/// The modules of this crate. One that is missing here is dead code to the compiler.
pub static MODULES: &[&Module] = &[
    &at::MODULE,
    &blockdev::MODULE,
    &chroot::MODULE,
    &cron::MODULE,
    &cryptdev::MODULE,
    &devinfo::MODULE,
    &devmap::MODULE,
    &disk::MODULE,
    &extfs::MODULE,
    &group::MODULE,
    &incron::MODULE,
    &keyboard::MODULE,
    &kmod::MODULE,
    &locale::MODULE,
    &locate::MODULE,
    &lvm::MODULE,
    &mount::MODULE,
    &nfs3::MODULE,
    &partition::MODULE,
    &ps::MODULE,
    &puppet::MODULE,
    &quota::MODULE,
    &raid::MODULE,
    &scsi::MODULE,
    &service::MODULE,
    &shadow::MODULE,
    &snapper::MODULE,
    &status::MODULE,
    &supervisord::MODULE,
    &sysctl::MODULE,
    &sysfs::MODULE,
    &syslog_ng::MODULE,
    &system::MODULE,
    &timezone::MODULE,
    &udev::MODULE,
    &user::MODULE,
    &xfs::MODULE,
];

//! Execution and state functions of the network: interfaces, firewalls, names, one directory a Salt module.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::self_named_module_files)]

pub(crate) mod bridge;
pub(crate) mod dig;
pub(crate) mod dnsutil;
pub(crate) mod ethtool;
pub(crate) mod firewall;
pub(crate) mod firewalld;
pub(crate) mod ip;
pub(crate) mod ipset;
pub(crate) mod iptables;
pub(crate) mod network;
pub(crate) mod nftables;

mod firewalls;
#[cfg(test)]
mod testing;

use brine_context::Module;

/// The modules of this crate. One that is missing here is dead code to the compiler.
pub static MODULES: &[&Module] = &[
    &bridge::MODULE,
    &dig::MODULE,
    &dnsutil::MODULE,
    &ethtool::MODULE,
    &firewall::MODULE,
    &firewalld::MODULE,
    &ip::MODULE,
    &ipset::MODULE,
    &iptables::MODULE,
    &network::MODULE,
    &nftables::MODULE,
];

//! Salt's modules, one directory each: `mod.rs` has the execution functions, `state.rs` or `state/` the state
//! functions; backends, tests and transcripts are in the same directory.
//!
//! A new module is a directory with a `ROOM`, and its line here: `build.rs` collects the rooms from these lines.

#![warn(clippy::self_named_module_files)]

pub(crate) mod acl;
pub(crate) mod aliases;
pub(crate) mod alternatives;
pub(crate) mod apache;
pub(crate) mod archive;
pub(crate) mod beacons;
pub(crate) mod cmd;
pub(crate) mod config;
pub(crate) mod cp;
pub(crate) mod cron;
pub(crate) mod data;
pub(crate) mod debconf;
pub(crate) mod defaults;
pub(crate) mod disk;
pub(crate) mod environ;
pub(crate) mod event;
pub(crate) mod file;
pub(crate) mod git;
pub(crate) mod grains;
pub(crate) mod group;
pub(crate) mod hashutil;
pub(crate) mod hosts;
pub(crate) mod http;
pub(crate) mod ini;
pub(crate) mod iptables;
pub(crate) mod jinja;
pub(crate) mod key;
pub(crate) mod kmod;
pub(crate) mod locale;
pub(crate) mod log;
pub(crate) mod logrotate;
pub(crate) mod r#loop;
pub(crate) mod r#match;
pub(crate) mod mine;
pub(crate) mod module;
pub(crate) mod mount;
pub(crate) mod network;
pub(crate) mod pillar;
pub(crate) mod pip;
pub(crate) mod pkg;
pub(crate) mod ps;
pub(crate) mod publish;
pub(crate) mod random;
pub(crate) mod salt;
pub(crate) mod saltutil;
pub(crate) mod schedule;
pub(crate) mod sdb;
pub(crate) mod service;
pub(crate) mod shadow;
pub(crate) mod slsutil;
pub(crate) mod ssh;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod sys;
pub(crate) mod sysctl;
pub(crate) mod system;
pub(crate) mod test;
pub(crate) mod timezone;
pub(crate) mod user;
pub(crate) mod virtualenv;

#[cfg(test)]
mod testing;

use brine_context::{Room, Rooms};

pub use salt::state::is_success;

// `static ALL: &[&Room]`
include!(concat!(env!("OUT_DIR"), "/rooms.rs"));

/// The functions of all modules.
pub static ROOMS: Rooms = Rooms(ALL);

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;
    use crate::testing;

    #[test]
    fn availability_depends_on_the_host() {
        for (grains, module, reason) in [
            (map! {"os_family" => "RedHat"}, "debconf", Some("debconf state only runs on Debian systems")),
            (map! {"kernel" => "Linux"}, "service", None),
            (map! {}, "file", None),
            (
                map! {"kernel" => "FreeBSD", "osfinger" => "FreeBSD-13"},
                "service",
                Some("No service execution module loaded: check support for service management on FreeBSD-13 "),
            ),
        ] {
            let mut context = testing::state_context(true, &[]).call;
            context.own_grains = Some(std::sync::Arc::new(grains));
            assert_eq!(ROOMS.unavailable(&context, module).as_deref(), reason, "{module}");
        }
    }
}

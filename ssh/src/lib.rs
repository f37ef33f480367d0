//! Runs functions and states on hosts over ssh, without a minion or a running master (`salt-ssh`).
//!
//! | module | owns |
//! |---|---|
//! | `roster` | rosters: the hosts and how to reach them |
//! | `command` | the arguments of `ssh`, and the command line that the host's shell runs |
//! | `session` | one call on one host: messages in both directions |
//! | `child` | a running `ssh`: its process group, and the deadlines of its streams |
//! | `delivery` | sending the program to a host that lacks it |
//! | `master_data` | the requests of a host during a call: files, pillar, options |
//! | `mine` | `mine.get` of a host: other hosts of the roster, and the mine of a running master |
//! | `program` | the programs that are pushed, one per kind of machine, and their hashes |
//! | `multiplexing` | connections that successive calls share |
//! | `temporary` | the temporary directories of calls |
//! | `askpass` | passwords for `ssh` |
//!
//! The system's `ssh` makes the connection, so its configuration, agents, jump hosts and multiplexing apply. The
//! program on the host is this executable or a smaller static one; the crate `brine-ssh-host` implements its call. The
//! program is stored under its hash in a directory that only its user can write to. It is verified when it arrives, and
//! whenever the file has changed since. Everything else goes over the standard input and output of that one connection:
//! no part of a pillar or a file appears in a command line, or in a file that others could read.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::self_named_module_files)]

pub mod askpass;
mod child;
mod command;
mod delivery;
mod master_data;
mod mine;
mod multiplexing;
mod program;
pub mod roster;
mod session;
mod temporary;

pub use command::Options;
pub use master_data::{MasterData, nodegroups};
pub use mine::{MasterMine, Mine};
pub use multiplexing::Multiplexing;
pub use program::Programs;
pub use session::{Call, Caller, Reply};

/// An error that is not specific to one host.
#[derive(Debug, thiserror::Error)]
pub enum SshError {
    /// The roster cannot be used.
    #[error(transparent)]
    Roster(#[from] roster::RosterError),
    /// A file or directory cannot be used.
    #[error(transparent)]
    File(#[from] brine_system::files::FileError),
    /// The configuration is invalid.
    #[error("{0}")]
    Config(String),
}

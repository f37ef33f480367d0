//! Functions and states on hosts that are reached by ssh, without a minion and without a running master (`salt-ssh`).
//!
//! | module | owns |
//! |---|---|
//! | `roster` | which hosts there are and how they are reached |
//! | `command` | the arguments of `ssh`, and the one line that the host's shell runs |
//! | `session` | one call on one host: messages that go both ways |
//! | `delivery` | the program is sent to a host that does not have it |
//! | `answers` | the requests of a host during a call: files, pillar, options |
//! | `mine` | `mine.get` of a host: other hosts of the roster, and the mine of a running master |
//! | `program` | the programs that are pushed, one for each kind of machine, and their hashes |
//! | `multiplexing` | connections that successive calls share |
//! | `askpass` | passwords, for `ssh` |
//!
//! The system's `ssh` makes the connection, so its configuration, agents, jump hosts and multiplexing hold. The program on the
//! host, whose call is that of the crate `brine-ssh-host`, is this one or a smaller static one. Its file is named by its hash, is
//! in a directory that only its user can write to, and is verified when it arrives and whenever it has changed since. Everything
//! else goes over the standard input and output of that one connection: nothing of a pillar or a file is in a command line or
//! in a file that others could read.

#![warn(clippy::self_named_module_files)]

pub mod askpass;
mod command;
mod delivery;
mod master_data;
mod mine;
mod multiplexing;
mod program;
pub mod roster;
mod session;

pub use command::Options;
pub use master_data::MasterData;
pub use mine::{Mine, Regular};
pub use multiplexing::Multiplexing;
pub use program::Programs;
pub use session::{Call, Caller, Reply};

/// The error of a run that concerns no single host.
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

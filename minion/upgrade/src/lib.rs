//! Exchanges the program of a running minion, and goes back to the old one by itself if the new one does not work.
//!
//! The new program is placed beside the old one as `brine.new` and tried under that name: the minion executes it, so that
//! its PID stays. Only when it has connected to a master does it become `brine`, and the old one `brine.previous`. Until
//! then each start by anybody, as after a power failure, starts the old program. A second process, the watcher, is the old
//! program: it restarts that if the new one ends or hangs.
//!
//! | module | owns |
//! |---|---|
//! | `state` | the file about an upgrade, which survives a crash at each step |
//! | `files` | the names beside the program, and what changes them |
//! | [`check`] | what a program must fulfil before it is used: checksum, signature, architecture, version |
//! | `probe` | the run of a new program with `--version` |
//! | `daemon` | the upgrade of this minion: [`Daemon`] |
//! | `process` | the identity of processes |
//! | `watch` | the watcher |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]
#![warn(clippy::self_named_module_files)]

pub mod check;
mod daemon;
mod files;
mod probe;
mod process;
mod state;
mod watch;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use brine_system::files::FileError;

pub use daemon::{Claim, Daemon, daemon, start};
pub use files::{Counted, Program, sha256_of};
pub use probe::version_of;
pub use state::{Phase, Release, State};

/// The name under which the binary acts for an upgrade.
const NAME: &str = "brine-upgrade";

/// The error of an upgrade.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// An operation failed.
    #[error("{action} failed: {source}")]
    Failed {
        /// The operation.
        action: String,
        /// The system's error.
        source: io::Error,
    },
    /// Another upgrade is not complete.
    #[error("an upgrade is under way (job {0}): wait for its start event")]
    UnderWay(String),
    /// Other users could exchange a file.
    #[error("{0} is not safe: other users can exchange it or a directory on the way to it; correct owner and mode")]
    Untrusted(PathBuf),
    /// The file about the upgrade is damaged.
    #[error("{path} is invalid: {source}; remove it")]
    State {
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The program does not fulfil a condition.
    #[error("{0}")]
    Refused(String),
}

impl UpgradeError {
    /// Returns a closure for `map_err` that names the operation.
    pub(crate) fn at(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| UpgradeError::Failed { action, source }
    }
}

/// Acts for an upgrade if these words say so, and returns the exit status. The binary calls it before anything else.
pub fn intercept(words: &[OsString]) -> Option<u8> {
    let [name, action, args @ ..] = words else { return None };
    if name != NAME {
        return None;
    }
    let result = match action.to_str() {
        Some("probe") => probe::run(args),
        Some("watch") => watch::detach(args),
        Some("watching") => watch::run(args),
        _ => Err(UpgradeError::Refused("the action is unknown".into())),
    };
    match result {
        Ok(()) => Some(0),
        Err(error) => {
            eprintln!("{NAME}: {error}");
            Some(1)
        }
    }
}

//! The systems that authenticate users: one file a system, one line each in [`open`].

mod auto;
mod file;
mod sharedsecret;

use std::path::PathBuf;

use brine_value::{Map, Value};

/// Salt's names of the systems that Brine knows.
pub(crate) const NAMES: &[&str] = &["auto", "file", "sharedsecret"];

/// A system that knows users and their passwords.
pub(crate) trait Backend {
    /// Returns what is known of a user whose password is right, and `None` if it is wrong or the user unknown.
    fn authenticate(&self, user: &str, password: &str) -> Result<Option<Proven>, BackendError>;
}

/// What a system tells of a user.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Proven {
    pub groups: Vec<String>,
    /// Entries that permit functions, where the system has such itself.
    pub entries: Option<Vec<Value>>,
}

/// Why a system cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// An option is missing or has a value that cannot be.
    #[error("external_auth {system}: {option}: {reason}")]
    Option {
        /// The system.
        system: &'static str,
        /// The option.
        option: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A file cannot be read.
    #[error("reading {path} failed: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Opens a system with its part of `external_auth` and the options of the master; `None` if Brine does not know it.
pub(crate) fn open(name: &str, users: &Map, options: &Map) -> Result<Option<Box<dyn Backend>>, BackendError> {
    Ok(Some(match name {
        "auto" => Box::new(auto::Auto),
        "file" => Box::new(file::PasswordFile::new(users)?),
        "sharedsecret" => Box::new(sharedsecret::SharedSecret::new(options)?),
        _ => return Ok(None),
    }))
}

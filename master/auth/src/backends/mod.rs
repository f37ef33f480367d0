//! The systems that authenticate users: one file a system, one line each in [`open`].

mod auto;
mod file;
mod htpasswd;
mod ldap;
mod pam;
mod rest;
mod sharedsecret;
mod tls;

use std::path::PathBuf;

use brine_value::{Map, Value};

/// Salt's names of the systems that Brine knows.
pub(crate) const NAMES: &[&str] = &["auto", "file", "ldap", "pam", "rest", "sharedsecret"];

/// A system that knows users and their passwords.
pub(crate) trait Backend: Send + Sync {
    /// Returns the groups and entries of a user whose password is right, and `None` if it is wrong or the user unknown.
    fn authenticate(&self, user: &str, password: &str) -> Result<Option<Proven>, BackendError>;

    /// Returns whether the account of a user who has a token has to be checked before the token is accepted.
    fn must_check_account(&self, _user: &str) -> bool {
        false
    }

    /// Returns whether the account of a user who was authenticated earlier is still valid.
    fn is_account_valid(&self, _user: &str) -> Result<bool, BackendError> {
        Ok(true)
    }

    /// Returns whether an entry names minions that only the system knows.
    fn must_expand(&self, _entry: &Value) -> bool {
        false
    }

    /// Replaces entries that name minions which only the system knows. Those that cannot be resolved are dropped.
    fn expand(&self, entries: Vec<Value>) -> Vec<Value> {
        entries
    }
}

/// The attributes of an authenticated user.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Proven {
    pub groups: Vec<String>,
    /// Entries that permit functions, if the system has such itself.
    pub entries: Option<Vec<Value>>,
}

/// Errors of a system of `external_auth`.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// An option is missing or invalid.
    #[error("external_auth {system}: {option}: {reason}")]
    Option {
        /// The system.
        system: &'static str,
        /// The option.
        option: &'static str,
        /// The error.
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
    /// The helper program of a system did not answer.
    #[error("running {program} failed: {reason}")]
    Helper {
        /// The program.
        program: PathBuf,
        /// The error.
        reason: String,
    },
    /// A server did not answer, or refused the request itself.
    #[error("asking {server} failed: {reason}")]
    Server {
        /// Its address, without a password.
        server: String,
        /// The error.
        reason: String,
    },
}

/// Opens a system with its part of `external_auth` and the options of the master; `None` if Brine does not know it.
/// Opening reads no file and connects to nothing.
pub(crate) fn open(name: &str, users: &Map, options: &Map) -> Result<Option<Box<dyn Backend>>, BackendError> {
    Ok(Some(match name {
        "auto" => Box::new(auto::Auto),
        "file" => Box::new(file::PasswordFile::new(users)?),
        "ldap" => Box::new(ldap::Ldap::new(options)?),
        "pam" => Box::new(pam::Pam::new(options)?),
        "rest" => Box::new(rest::Rest::new(users)?),
        "sharedsecret" => Box::new(sharedsecret::SharedSecret::new(options)?),
        _ => return Ok(None),
    }))
}

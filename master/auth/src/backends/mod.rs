//! The authentication backends: one module each, opened by [`open`].

mod auto;
mod custom;
mod file;
mod htpasswd;
mod ldap;
mod pam;
mod rest;
mod sharedsecret;
mod tls;

use std::path::PathBuf;
use std::sync::Arc;

use brine_function::CallError;
use brine_value::{Map, Value};

use crate::names::UserName;

/// Salt's names of the supported backends.
pub(crate) const NAMES: &[&str] = &["auto", "file", "ldap", "pam", "rest", "sharedsecret"];

/// Custom authentication modules (`_auth`), which run in Python.
pub trait CustomAuthModules: Send + Sync {
    /// Whether a file of this name exists. Runs no code.
    fn has_file(&self, module: &str) -> bool;

    /// Whether a file or the package `salt` may provide a module of this name. Runs no code.
    fn may_have(&self, module: &str) -> bool;

    /// Calls a function by its full name with those arguments that it accepts. Returns `None` if there is no such
    /// function. Blocks until the function returns or its deadline has passed.
    fn call(&self, function: &str, arguments: Map) -> Option<Result<Value, CallError>>;
}

/// An authentication backend.
pub(crate) trait Backend: Send + Sync {
    /// Returns the groups and entries of a user; `None` if the user is unknown or the password is wrong.
    fn authenticate(&self, user: &str, password: &str) -> Result<Option<Proven>, BackendError>;

    /// Whether names that differ in case alone are one user.
    fn ignores_case(&self) -> bool {
        false
    }

    /// Whether the account has to be checked each time that a token of the user is used.
    fn must_check_account(&self, _user: &str) -> bool {
        false
    }

    /// Whether the account of a previously authenticated user is still valid.
    fn is_account_valid(&self, _user: &str) -> Result<bool, BackendError> {
        Ok(true)
    }

    /// Whether an entry targets minions that only the backend can resolve.
    fn must_expand(&self, _entry: &Value) -> bool {
        false
    }

    /// Whether entries of the backend replace those of the configuration, instead of being added.
    fn replaces_entries(&self) -> bool {
        false
    }

    /// Resolves entries whose targets only the backend can resolve. Unresolvable entries are dropped.
    fn expand(&self, entries: Vec<Value>) -> Vec<Value> {
        entries
    }
}

/// The attributes of an authenticated user.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Proven {
    /// The name in the spelling of the backend; `None` if the backend accepts names and does not return them.
    pub name: Option<UserName>,
    pub groups: Vec<String>,
    /// Entries that the backend itself provides, if any.
    pub entries: Option<Vec<Value>>,
}

/// The error of an authentication backend.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// An option is missing or invalid.
    #[error("external_auth {system}: {option}: {reason}")]
    Option {
        /// The backend.
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
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The helper program of a backend failed.
    #[error("running {program} failed: {reason}")]
    Helper {
        /// The program.
        program: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A custom module failed.
    #[error("external_auth '{module}' failed: {reason}")]
    Module {
        /// The module.
        module: String,
        /// The reason.
        reason: String,
    },
    /// A server did not answer, or rejected the request.
    #[error("request to {server} failed: {reason}")]
    Server {
        /// Its address, without the password.
        server: String,
        /// The reason.
        reason: String,
    },
}

/// Opens a backend with its section of `external_auth` and the options of the master; `None` if it is not supported. A
/// custom module with a file takes precedence over a built-in backend. Neither runs code nor opens connections.
pub(crate) fn open(
    name: &str,
    users: &Map,
    options: &Map,
    modules: Option<&Arc<dyn CustomAuthModules>>,
) -> Result<Option<Box<dyn Backend>>, BackendError> {
    let is_own = |custom: &&Arc<dyn CustomAuthModules>| {
        if NAMES.contains(&name) { custom.has_file(name) } else { custom.may_have(name) }
    };
    if let Some(custom) = modules.filter(is_own) {
        return Ok(Some(Box::new(custom::Custom::new(name, Arc::clone(custom)))));
    }
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

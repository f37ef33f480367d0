//! What can go wrong with a returner.

use std::path::PathBuf;

use brine_bus::store::StoreError;

/// Why something could not be stored or found.
#[derive(Debug, thiserror::Error)]
pub enum ReturnerError {
    /// There is no such returner.
    #[error("there is no returner '{name}'{hint}: {known} are known")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The nearest one that there is, in words.
        hint: String,
        /// The names that there are.
        known: String,
    },
    /// The returner cannot do this.
    #[error("the returner {returner} cannot {what}: use another one for that")]
    Unsupported {
        /// Which returner.
        returner: &'static str,
        /// What it cannot do.
        what: &'static str,
    },
    /// An option is wrong or missing.
    #[error("option '{option}': {reason}")]
    Option {
        /// Which option.
        option: String,
        /// What is wrong.
        reason: String,
    },
    /// The job cache is in the master's store, and there is none here.
    #[error("local_cache is in the master's store, which is not open here: a minion cannot return to it")]
    NoStore,
    /// The store does not work.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file cannot be written.
    #[error("rawfile_json cannot write to {path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A database does not work.
    #[error("sqlite3 at {path}: {source}")]
    Sqlite {
        /// Where it is.
        path: PathBuf,
        /// What it says.
        source: rusqlite::Error,
    },
    /// A Redis server does not work or cannot be reached.
    #[error("redis at {address}: {source}")]
    Redis {
        /// Which server.
        address: String,
        /// What it says.
        source: ::redis::RedisError,
    },
    /// What is stored is no job or no return (any more).
    #[error("{returner} holds something unreadable under {key}: {reason}")]
    Damaged {
        /// Which returner.
        returner: &'static str,
        /// Where it is.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ReturnerError {
    pub(crate) fn damaged(returner: &'static str, key: &str, reason: impl ToString) -> Self {
        ReturnerError::Damaged { returner, key: key.to_owned(), reason: reason.to_string() }
    }
}

/// One of many that were read: one that is damaged is logged and left out.
pub(crate) fn readable<T>(read: Result<T, ReturnerError>) -> Option<T> {
    read.inspect_err(|error| tracing::warn!(%error, "a stored job or return is left out")).ok()
}

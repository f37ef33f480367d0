//! The errors of returners, and those of their servers after which a later retry may succeed.

#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod sql;

use std::path::PathBuf;

use brine_bus::store::StoreError;
use redis::RedisError;

/// The error of storing or reading a job, return or event.
#[derive(Debug, thiserror::Error)]
pub enum ReturnerError {
    /// No returner has this name.
    #[error("unknown returner '{name}': expected one of {known}{hint}")]
    Unknown {
        /// The requested name.
        name: String,
        /// `; did you mean '<name>'?`, or empty.
        hint: String,
        /// The names of all returners, separated by commas.
        known: String,
    },
    /// The client of the returner's server was left out of this build.
    #[error("returner '{name}' is not part of this build: {}", brine_config::remedy_of_missing("returner", .name))]
    NotBuilt {
        /// The requested name.
        name: &'static str,
    },
    /// The returner does not implement the operation.
    #[error("returner '{returner}' cannot {operation}: choose another returner")]
    Unsupported {
        /// The name of the returner.
        returner: &'static str,
        /// The operation, as an infinitive.
        operation: &'static str,
    },
    /// An option is missing or invalid.
    #[error("option '{option}': {reason}")]
    Option {
        /// The full name of the option, such as `redis.port`.
        option: String,
        /// The reason, as a clause.
        reason: String,
    },
    /// `local_cache` was opened by a process that does not own the master's store.
    #[error("local_cache stores jobs in the master's store, which only the master opens: choose another returner")]
    NoStore,
    /// A read or write of the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A write to the file of `rawfile_json` failed.
    #[error("writing to {path} (rawfile_json) failed: {source}")]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A statement of `sqlite3` failed.
    #[error("sqlite3 database {path} failed: {source}")]
    Sqlite {
        /// The path of the database.
        path: PathBuf,
        /// The error of SQLite.
        source: rusqlite::Error,
    },
    /// A connection to Redis or a command failed.
    #[error("redis server {address} failed: {source}")]
    Redis {
        /// `host:port`, or the path of the socket.
        address: String,
        /// The error of the connection or the server.
        source: RedisError,
    },
    /// A connection to a database server or a statement failed.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    #[error("database {address} ({returner}) failed: {source}{hint}")]
    Sql {
        /// The name of the returner.
        returner: &'static str,
        /// `host:port/database`.
        address: String,
        /// The error of the connection or the server.
        source: sql::SqlError,
        /// The remedy of a missing table, or empty.
        hint: String,
    },
    /// The backend cannot store the value.
    #[error("storing it by returner '{returner}' failed: {reason}")]
    Refused {
        /// The name of the returner.
        returner: &'static str,
        /// The reason.
        reason: String,
    },
    /// A request to another server failed.
    #[error("{server} ({returner}) failed: {reason}")]
    Server {
        /// The name of the returner.
        returner: &'static str,
        /// The address of the server, without secrets.
        server: String,
        /// The error of the connection or the server, without secrets.
        reason: String,
        /// Whether the server was not reached, or is overloaded.
        is_outage: bool,
    },
    /// A stored value does not decode to a job or return.
    #[error("decoding the value of {key} ({returner}) failed: {reason}")]
    Damaged {
        /// The name of the returner.
        returner: &'static str,
        /// The key of the value in the returner's storage.
        key: String,
        /// The error of the decoder.
        reason: String,
    },
}

impl ReturnerError {
    /// Whether the server was not reached or is overloaded, so that a later retry may succeed.
    pub fn is_outage(&self) -> bool {
        match self {
            ReturnerError::Redis { source, .. } => is_of_redis_connection(source),
            #[cfg(any(feature = "mysql", feature = "postgres"))]
            ReturnerError::Sql { source, .. } => source.is_of_connection(),
            ReturnerError::Server { is_outage, .. } => *is_outage,
            _ => false,
        }
    }

    /// Creates the error of a server that was not reached.
    pub(crate) fn unreachable(returner: &'static str, server: String, error: impl ToString) -> Self {
        ReturnerError::Server { returner, server, reason: error.to_string(), is_outage: true }
    }

    pub(crate) fn damaged(returner: &'static str, key: &str, reason: impl ToString) -> Self {
        ReturnerError::Damaged { returner, key: key.to_owned(), reason: reason.to_string() }
    }
}

/// Returns whether a retry over a new connection may succeed: also while the server is loading its data.
pub(crate) fn is_of_redis_connection(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_connection_dropped()
        || error.is_connection_refusal()
        || error.code() == Some("LOADING")
}

/// Returns a decoded value of a list, or logs the error and returns `None`, so that one damaged value does not hide the
/// others.
pub(crate) fn readable<T>(decoded: Result<T, ReturnerError>) -> Option<T> {
    decoded.inspect_err(|error| tracing::warn!(%error, "a stored job or return is damaged; skipping it")).ok()
}

//! The errors of SQL servers, by their cause.

/// An error of a server or its client.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct SqlError {
    source: Box<dyn std::error::Error + Send + Sync>,
    cause: Cause,
}

impl SqlError {
    pub(crate) fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>, cause: Cause) -> Self {
        SqlError { source: source.into(), cause }
    }

    /// Returns the kind of the error.
    pub(crate) fn cause(&self) -> Cause {
        self.cause
    }

    /// Whether the connection failed.
    pub(crate) fn is_of_connection(&self) -> bool {
        self.cause == Cause::Connection
    }
}

/// The kinds of errors that are handled differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The connection failed: a retry over a new one may succeed.
    Connection,
    /// A table or column is missing.
    Schema,
    Other,
}

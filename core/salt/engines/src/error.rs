//! Why an engine ends, and why an event is not published.

use std::io;

use brine_http_server::CertificateError;
use brine_runtime::threads::ThreadError;

/// Why an engine has ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An argument is invalid.
    #[error("{0}")]
    Argument(String),
    /// A program cannot be started.
    #[error("starting the program '{program}' failed: {source}")]
    Program {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// A socket cannot be opened.
    #[error("listening on {address} port {port} failed: {source}")]
    Listen {
        /// The address.
        address: String,
        /// The TCP port.
        port: u16,
        /// The system's error.
        source: io::Error,
    },
    /// The certificate of a server cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A thread of the engine cannot be started, or panicked.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// The function of a custom module failed.
    #[error("{0}")]
    Custom(String),
}

/// Why an event of an engine is not published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The master does not accept the event.
    #[error("{0}")]
    Refused(String),
    /// The bus or the master is out of reach, or cannot store the event.
    #[error("{0}")]
    Unavailable(String),
}

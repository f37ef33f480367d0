//! The errors of requests to the master, and of files under `salt://`.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use brine_system::files::FileError;

/// The error of a link, whose type belongs to the crate that implements it.
pub type LinkError = Box<dyn Error + Send + Sync>;

/// The error of a request to the master.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// There is no master that could carry out a command.
    #[error("the command {command} failed: {reason}")]
    NoMaster {
        /// The name of the command.
        command: String,
        /// The missing part.
        reason: &'static str,
    },
    /// The minion works without a master, and has no bus for an event.
    #[error("Local mode detected. Event with tag {tag} will NOT be sent.")]
    LocalMode {
        /// The tag of the event.
        tag: String,
    },
    /// The minion was called by `salt-ssh`, which has no bus for an event.
    #[error("the event {tag} is not sent: salt-ssh is not connected to an event bus")]
    NoBus {
        /// The tag of the event.
        tag: String,
    },
    /// Pillar files ask for the pillar, whose files ask again.
    #[error("the pillar is not rendered: its files ask for the pillar, {0} times one within the other")]
    PillarDepth(usize),
    /// The minion that should carry out the request does not exist any more.
    #[error("the minion is gone")]
    MinionGone,
    /// The connection, or the master at its other end, does not work. The request may succeed later.
    #[error(transparent)]
    Unavailable(LinkError),
    /// The connection to the caller of `salt-ssh` ended.
    #[error("the connection to salt-ssh is lost: {source}")]
    Lost {
        /// The error of the stream.
        source: io::Error,
    },
    /// The master did not answer an event in time.
    #[error("the master did not answer the event {tag} within {within:?}")]
    TimedOut {
        /// The tag of the event.
        tag: String,
        /// The timeout.
        within: Duration,
    },
    /// The master refuses the request, or this minion.
    #[error(transparent)]
    Refused(LinkError),
    /// The master refuses an event.
    #[error("the master refuses the event {tag} of this minion")]
    RefusedEvent {
        /// The tag of the event.
        tag: String,
    },
    /// The session or the reply cannot be trusted, or does not decode.
    #[error(transparent)]
    Invalid(LinkError),
    /// The reply to a request for the pillar has none.
    #[error("{peer} sent no pillar")]
    NoPillar {
        /// The side that replied.
        peer: &'static str,
    },
}

/// The error of a request for files under `salt://`.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The file server did not answer.
    #[error(transparent)]
    Server(#[from] UpstreamError),
    /// The file server did not send all of a file.
    #[error("fetching salt://{path} failed: {source}")]
    Unfinished {
        /// The path of the file, without `salt://`.
        path: String,
        /// The error of the request for a part.
        source: UpstreamError,
    },
    /// The received content cannot be written.
    #[error("fetching salt://{path} failed: {source}")]
    Write {
        /// The path of the file, without `salt://`.
        path: String,
        /// The error of the target.
        source: io::Error,
    },
    /// A file is too large to be read into memory.
    #[error("fetching salt://{path} failed: it is larger than {limit} bytes: copy it with cp.get_file")]
    TooLarge {
        /// The path of the file, without `salt://`.
        path: String,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// The received content has another hash than the file server promised.
    #[error("salt://{path} changed while it was read")]
    Changed {
        /// The path of the file, without `salt://`.
        path: String,
    },
    /// A file of this host cannot be read, or its content not be copied.
    #[error("{}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file of this host cannot be hashed.
    #[error(transparent)]
    Hash(#[from] FileError),
    /// A file that should be text is not.
    #[error("salt://{path} is not UTF-8 text")]
    NotText {
        /// The path of the file, without `salt://`.
        path: String,
    },
}

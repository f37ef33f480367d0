//! ZeroMQ sockets, as thin asynchronous wrappers: request server and client, publisher and
//! subscriber, pull server and push client.
//!
//! The protocol (ZMTP 3, mechanism NULL) is spoken here directly, because who listens for strangers
//! needs what the `zeromq` crate does not offer: a limit on frame sizes, a bound on what one peer can
//! hold, and a publisher that never drops silently. Its sockets and libzmq's are the peers in the tests.

mod backoff;
mod endpoint;
mod publisher;
mod pull;
mod request;
mod router;
mod subscriber;
mod zmtp;

pub use backoff::Backoff;
pub use endpoint::{Endpoint, Listener};
pub use publisher::Publisher;
pub use pull::{Pull, Push};
pub use request::RequestClient;
pub use router::{Handler, Peer, Router, Worker};
pub use subscriber::Subscriber;
pub use zmtp::{Accepted, Limits, Message, Reader, SocketType, Writer, connect};
pub(crate) use zmtp::{Subscriptions, accept_raw};

use std::time::Duration;

/// Why a connection could not be made or ended.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The address is not one.
    #[error("'{0}' is not an address: tcp://host:port and ipc:///path are")]
    BadEndpoint(String),
    /// The other side does not answer, or the connection broke.
    #[error("{endpoint}: {source}")]
    Io {
        /// Which address it was about.
        endpoint: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// Nothing came in time.
    #[error("{endpoint}: no answer within {after:?}")]
    TimedOut {
        /// Which address it was about.
        endpoint: String,
        /// How long was waited.
        after: Duration,
    },
    /// The other side closed the connection.
    #[error("the peer closed the connection")]
    Closed,
    /// The other side does not speak ZMTP 3 without encryption.
    #[error("the peer does not speak ZMTP 3 with mechanism NULL: {0}")]
    Handshake(&'static str),
    /// A message is larger than allowed.
    #[error("a message of {size} bytes was announced, {limit} are allowed")]
    TooLarge {
        /// What was announced.
        size: u64,
        /// What is allowed.
        limit: usize,
    },
    /// What came is no ZMTP.
    #[error("malformed frame: {0}")]
    Malformed(&'static str),
}

impl TransportError {
    fn io(endpoint: &Endpoint) -> impl FnOnce(std::io::Error) -> TransportError + use<> {
        let endpoint = endpoint.to_string();
        move |source| TransportError::Io { endpoint, source }
    }
}

impl From<std::io::Error> for TransportError {
    fn from(source: std::io::Error) -> Self {
        use std::io::ErrorKind;
        match source.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => TransportError::Closed,
            _ => TransportError::Io { endpoint: "connection".into(), source },
        }
    }
}

#[cfg(test)]
mod tests;

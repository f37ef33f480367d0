//! ZeroMQ sockets, as thin asynchronous wrappers: request server and client, publisher and
//! subscriber, pull server and push client.
//!
//! The protocol (ZMTP 3, mechanism NULL) is spoken here directly, because servers that face unauthenticated peers
//! need what the `zeromq` crate does not offer: a limit on frame sizes, a bound on what one peer can
//! hold, and a publisher that never drops silently. Its sockets and libzmq's are the peers in the tests.
//!
//! `server` accepts connections for all listening sockets within the limits of `bounds`; `connection` reads and writes
//! side by side, for servers and for the request client.

mod addresses;
mod audience;
mod backlog;
mod bounds;
mod connection;
mod endpoint;
mod io;
pub mod metrics;
mod publisher;
mod pull;
mod request;
mod router;
mod server;
mod subscriber;
mod subscriptions;
mod zmtp;

pub use bounds::{Allowance, Bounds, Memory};
pub use connection::{Connection, Incoming, Outgoing, Source};
pub use endpoint::{Endpoint, Listener};
pub use io::{Reader, Writer};
pub use publisher::Publisher;
pub use pull::{Pull, Push};
pub use request::RequestClient;
pub use router::{Handler, Peer, Router, Worker};
pub use server::{Remote, Server, Service};
pub use subscriber::Subscriber;
pub use subscriptions::Subscribed;
pub use zmtp::{Limits, Message, SocketType, connect};

use std::sync::Arc;
use std::time::Duration;

/// Why a connection could not be made or ended.
#[derive(Debug, Clone, thiserror::Error)]
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
        source: Arc<std::io::Error>,
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
    /// The connection ended between a request and its reply.
    #[error("the connection ended before the reply: {reason}; the request may have been carried out")]
    Unanswered {
        /// The end of the connection.
        reason: Arc<TransportError>,
    },
    /// The server closed the connection before its handshake was complete.
    #[error(
        "{endpoint}: connecting failed: the peer closed the connection instead of a ZMTP handshake: it may be stopping, \
         or be a Salt master with `transport: tcp`, which Brine does not support: set `transport: zeromq` there"
    )]
    NoHandshake {
        /// The address.
        endpoint: String,
    },
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
    /// The peer began a message and did not finish it.
    #[error("the peer did not finish a message within {after:?}")]
    Unfinished {
        /// How long a message may take.
        after: Duration,
    },
    /// The peer does not read what is sent to it.
    #[error("the peer did not read what was sent to it within {after:?}")]
    NotRead {
        /// How long it may take.
        after: Duration,
    },
    /// A subscriber is too far behind.
    #[error("the subscriber is too slow: it is {count} publishes behind")]
    Behind {
        /// How many publishes it has not got.
        count: u64,
    },
    /// There are too many connections of unauthenticated peers.
    #[error("an unauthenticated connection gave way to a new one (max_connections)")]
    Evicted,
    /// What came is no ZMTP.
    #[error("malformed frame: {0}")]
    Malformed(&'static str),
}

impl TransportError {
    fn io(endpoint: &Endpoint) -> impl FnOnce(std::io::Error) -> TransportError + use<> {
        let endpoint = endpoint.to_string();
        move |source| TransportError::Io { endpoint, source: Arc::new(source) }
    }
}

impl From<std::io::Error> for TransportError {
    fn from(source: std::io::Error) -> Self {
        use std::io::ErrorKind;
        match source.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => TransportError::Closed,
            _ => TransportError::Io { endpoint: "connection".into(), source: Arc::new(source) },
        }
    }
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;

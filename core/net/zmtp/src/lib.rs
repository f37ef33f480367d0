//! ZeroMQ sockets, as thin asynchronous wrappers: request server and client, publisher and
//! subscriber, pull server and push client. Request and publish sockets also have Salt's framing of `transport: tcp`
//! (`salt_tcp`), with the same limits.
//!
//! Implements ZMTP 3 with mechanism NULL itself, because servers that face unauthenticated peers need features that the
//! `zeromq` crate lacks: a limit on frame sizes, a bound on the resources of one peer, and a publisher that never drops
//! messages silently. The tests use that crate and libzmq as peers.
//!
//! `server` accepts connections for all listening sockets within the limits of `bounds`; `connection` reads and writes
//! concurrently, for servers and for the request client.

#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "peers choose the numbers"
)]

mod audience;
mod backlog;
mod bounds;
mod connection;
mod endpoint;
mod foreign;
mod handshake;
mod io;
mod keepalive;
pub mod metrics;
mod publisher;
mod pull;
mod request;
mod router;
mod salt_tcp;
mod server;
mod subscribed;
mod subscriber;
mod subscriptions;
mod zmtp;

pub use bounds::{Bounds, Memory, PeerLimits};
pub use connection::{Connection, Incoming, Outgoing, Source};
pub use endpoint::{Endpoint, Listener, PortOptions};
pub use foreign::{ForeignStream, SilenceTimeout};
pub use handshake::{SocketType, connect};
pub use io::{Reader, Writer};
pub use keepalive::Keepalive;
pub use publisher::Publisher;
pub use pull::{Pull, Push};
pub use request::RequestClient;
pub use router::{Handler, Peer, Router, Worker};
pub use server::{Remote, Server, Service};
pub use subscribed::Subscribed;
pub use subscriber::Subscriber;
pub use zmtp::{Framing, Limits, Message};

use std::sync::Arc;
use std::time::Duration;

/// The error with which a connection failed or ended.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TransportError {
    /// The address is invalid.
    #[error("'{0}' is not an address: expected tcp://host:port or ipc:///path")]
    BadEndpoint(String),
    /// An I/O error, such as a refused connection.
    #[error("{endpoint}: {source}")]
    Io {
        /// The address.
        endpoint: String,
        /// The system's error.
        source: Arc<std::io::Error>,
    },
    /// The host's name does not resolve.
    #[error("{endpoint}: {source}")]
    Unresolved {
        /// The address.
        endpoint: String,
        /// The resolver's error.
        source: Arc<std::io::Error>,
    },
    /// The timeout expired.
    #[error("{endpoint}: no answer within {after:?}")]
    TimedOut {
        /// The address.
        endpoint: String,
        /// The timeout.
        after: Duration,
    },
    /// The peer closed the connection.
    #[error("the peer closed the connection")]
    Closed,
    /// The connection ended between a request and its reply.
    #[error("the connection ended before the reply: {reason}; the request may have been carried out")]
    Unanswered {
        /// The error that ended the connection.
        reason: Arc<TransportError>,
    },
    /// The peer closed the connection before the handshake was complete.
    #[error(
        "{endpoint}: connecting failed: the peer closed the connection instead of a ZMTP handshake: it may be stopping, \
         or be a master with `transport: tcp`: set the same transport on both sides"
    )]
    NoHandshake {
        /// The address.
        endpoint: String,
    },
    /// The peer speaks ZeroMQ, but this side has `transport: tcp`.
    #[error("the peer speaks ZeroMQ, and this side has `transport: tcp`: set the same transport on both sides")]
    SpeaksZeroMq,
    /// The peer does not speak ZMTP 3 with mechanism NULL.
    #[error("the peer does not speak ZMTP 3 with mechanism NULL: {0}")]
    Handshake(&'static str),
    /// A request port was expected, and this is a publish port.
    #[error(
        "the peer is a publish port: a request port is expected here; set master_port to the ret_port of the master, by \
         default 4506 and not 4505"
    )]
    PublishPort,
    /// A publish port was expected, and this is a request port.
    #[error(
        "the peer is a request port: a publish port is expected here; set publish_port to that of the master, by default \
         4505 and not 4506"
    )]
    RequestPort,
    /// A message exceeds the limit.
    #[error("the peer announced a message of {size} bytes: the limit is {limit}")]
    TooLarge {
        /// The announced size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: usize,
    },
    /// The peer did not complete a message within the timeout.
    #[error("the peer did not finish a message within {after:?}")]
    Unfinished {
        /// The timeout.
        after: Duration,
    },
    /// The peer did not read within the timeout.
    #[error("the peer did not read its messages within {after:?}")]
    NotRead {
        /// The timeout.
        after: Duration,
    },
    /// A subscriber lags too far behind.
    #[error("the subscriber is too slow: it lags {count} publishes behind")]
    Lagged {
        /// Its lag in publishes.
        count: u64,
    },
    /// Evicted in favour of a new connection.
    #[error("unauthenticated connection evicted in favour of a new one (max_connections)")]
    Evicted,
    /// The peer violates ZMTP.
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

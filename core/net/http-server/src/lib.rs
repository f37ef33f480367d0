//! What the HTTP servers of Brine share, the REST API and the engine `webhook`: what happens to a connection before and
//! around its requests.
//!
//! | module | owns |
//! |---|---|
//! | `server` | accepting connections, TLS handshakes, the deadlines of connections |
//! | `connections` | the slots of connections: in total, of one address, of clients without a login |
//! | `requests` | HTTP/1.1 on a connection: the size and the timeout of a head |
//! | `heads` | heads that reach hyper when they are complete |
//! | `slow_peers` | the timeout of blocked writes |
//! | `peer` | TCP or TLS |
//! | `certificates` | the files of a certificate and its key |
//!
//! A server stops with the tasks that it was given: whoever owns them ends all connections. What a request means, who may
//! send it and what its body may occupy is up to the handlers. The metrics belong to each server.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod certificates;
mod connections;
mod heads;
mod peer;
mod requests;
mod server;
mod slow_peers;

pub use certificates::{CertificateError, load_certificate};
pub use connections::{ConnectionLimits, ConnectionMetrics, Connections, Slot, network};
pub use heads::{Following, Heads};
pub use peer::Peer;
pub use requests::{HeadLimits, serve_requests};
pub use server::{Accepted, ConnectionError, Options, Server};
pub use slow_peers::{WriteLimit, WriteTimeout};

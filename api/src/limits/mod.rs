//! The limits on what clients of the API occupy, above all those without a login: connections, memory, and parsers.
//!
//! | resource | limit | when it is reached |
//! |---|---|---|
//! | connections without a login | `max_unauthenticated_connections`, half for one address | the one that is idle for longest is closed, of the address with the most |
//! | the head of a request | [`MAX_HEAD_SIZE`](crate::listener::MAX_HEAD_SIZE), `head_timeout` | 431; the connection is closed |
//! | bodies without a login, and their values | `unauthenticated_memory`, half for one address | the request waits; then slow ones are ended |
//! | a body with a password | [`MAX_LOGIN_BODY`], [`LOGIN_BODY_TIMEOUT`] | 413, 408 |
//! | a value | 256 kB and ten times the size of the body, at most [`MAX_VALUE`] | 413 |
//! | bodies of users, and their values | [`AUTHENTICATED_MEMORY`], a quarter for one user | as above |
//! | parsing | [`Parsers`]: two at once, by turns of the senders | the request waits |
//! | paths of static files | [`Limits::files`]: four at once | the request waits |
//! | events that clients do not read | [`UNREAD_MEMORY`], a quarter for one user | the stream ends |
//!
//! IPv6 addresses count by /64 network. Addresses of this host may use everything: they belong to a proxy.

mod memory;
mod parsers;

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use brine_config::RestConfig;
use brine_http_server::{ConnectionLimits, ConnectionMetrics};
use brine_runtime::executors::Executor;

use crate::metrics;

pub(crate) use memory::{Memory, Reservation};
pub(crate) use parsers::Parsers;

/// The maximum size of a body with a password, in bytes.
pub(crate) const MAX_LOGIN_BODY: usize = 4 << 10;
/// The maximum timeout of such a body; `body_timeout` may be lower.
pub(crate) const LOGIN_BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum memory of the value of a body, in bytes: of a client without a login, and of a user.
pub(crate) const MAX_VALUE: usize = 4 << 20;
pub(crate) const MAX_VALUE_OF_USER: usize = 16 << 20;
/// The memory that the value of any body may take, and the further multiple of its size.
const MIN_VALUE: usize = 256 << 10;
const VALUE_FACTOR: usize = 10;
/// The memory of bodies of users and of their values, in bytes.
const AUTHENTICATED_MEMORY: usize = 64 << 20;
/// The memory of events for clients that do not read, in bytes.
const UNREAD_MEMORY: usize = 16 << 20;

/// The threads and the queue of the executor `files`.
const FILE_THREADS: usize = 4;
const FILE_QUEUE: usize = 1024;

/// The owner of a resource, for fair shares.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A client without a login, by the network of its address.
    Network(IpAddr),
    /// A user.
    User(Arc<str>),
}

impl Owner {
    /// Returns the owner for a client without a login.
    pub fn of_address(address: IpAddr) -> Self {
        Owner::Network(brine_http_server::network(address))
    }

    /// Whether the owner represents several clients: an address of this host may be that of a proxy.
    fn is_shared(&self) -> bool {
        matches!(self, Owner::Network(address) if address.is_loopback())
    }
}

/// The limits of one API.
pub(crate) struct Limits {
    /// For bodies of clients without a login, and their values.
    pub unauthenticated: Arc<Memory>,
    /// The same for users.
    pub authenticated: Arc<Memory>,
    /// For events that a client does not read.
    pub unread: Arc<Memory>,
    pub parsers: Arc<Parsers>,
    files: OnceLock<Executor>,
}

impl Limits {
    pub fn new(options: &RestConfig) -> Self {
        Limits {
            unauthenticated: Memory::new(options.unauthenticated_memory, options.unauthenticated_memory / 2),
            authenticated: Memory::new(AUTHENTICATED_MEMORY, AUTHENTICATED_MEMORY / 4),
            unread: Memory::new(UNREAD_MEMORY, UNREAD_MEMORY / 4),
            parsers: Arc::new(Parsers::default()),
            files: OnceLock::new(),
        }
    }

    /// Returns the executor for the static files. The limits exist before the runtime, so the first request creates it.
    pub fn files(&self) -> &Executor {
        self.files.get_or_init(|| Executor::new("files", FILE_THREADS, FILE_QUEUE))
    }
}

/// What counts the connections of the API.
pub(crate) const CONNECTION_METRICS: ConnectionMetrics = ConnectionMetrics {
    open: Some(&metrics::CONNECTIONS),
    refused: &metrics::CONNECTIONS_REFUSED,
    evicted: Some(&metrics::CONNECTIONS_EVICTED),
};

/// Returns the maximum numbers of connections.
pub(crate) fn connections(options: &RestConfig) -> ConnectionLimits {
    ConnectionLimits {
        total: options.max_connections,
        per_address: options.max_connections_per_address,
        unauthenticated: Some(options.max_unauthenticated_connections.max(2)),
    }
}

/// Returns the memory that the value of a body of this size may take.
pub(crate) fn value_limit(body: usize, is_user: bool) -> usize {
    let most = if is_user { MAX_VALUE_OF_USER } else { MAX_VALUE };
    body.saturating_mul(VALUE_FACTOR).saturating_add(MIN_VALUE).min(most)
}

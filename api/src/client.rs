//! The client of a request: its address, and the slot of its connection.

use std::net::IpAddr;
use std::sync::Arc;

use brine_http_server::Slot;

/// The client of a request.
#[derive(Clone)]
pub(crate) struct Client {
    pub address: IpAddr,
    /// The slot of the connection. A web socket or event stream keeps it for as long as it is open.
    pub slot: Arc<Slot>,
}

#[cfg(test)]
impl Client {
    /// Creates a client without a connection, for tests.
    pub fn testing() -> Self {
        let limits = crate::limits::connections(&brine_config::RestConfig::default());
        let connections = Arc::new(brine_http_server::Connections::new(limits, crate::limits::CONNECTION_METRICS));
        let address = IpAddr::from([10, 0, 0, 1]);
        let slot = connections.take(address).unwrap_or_else(|| unreachable!());
        Client { address, slot: Arc::new(slot) }
    }
}

//! The listening sockets of a master: the request and publish ports, the event bus, the publisher's feed, and the
//! metrics port.

use std::time::Duration;

use brine_bus::{EventSockets, SocketNames};
use brine_config::{InvalidOption, MasterConfig};
use brine_master_access::access;
use brine_wire::TOPIC_BROADCAST;
use brine_zmtp::{Endpoint, Keepalive, Limits, Listener, PeerLimits, PortOptions, Publisher, Pull};
use tokio_util::sync::CancellationToken;

use crate::StartError;
use crate::salt_clients;

/// The socket through which other programs feed the publish port.
pub(crate) const PUBLISH_PULL: &str = "publish_pull.ipc";

/// The listening sockets of a master.
pub(crate) struct Listeners {
    pub(crate) publish: Listener,
    pub(crate) request: Listener,
    pub(crate) event_sockets: EventSockets,
    pub(crate) feed: Listener,
    pub(crate) metrics: Option<tokio::net::TcpListener>,
}

impl Listeners {
    /// Binds all sockets, and sets the ports in the configuration.
    pub(crate) async fn bind(config: &mut MasterConfig) -> Result<Self, StartError> {
        let group = access::socket_group(config)?;
        let endpoint = |port| Endpoint::Tcp(config.interface.clone(), port);
        let options = port_options(config);
        let publish = Listener::bind_port(&endpoint(config.publish_port), options).await?;
        let request = Listener::bind_port(&endpoint(config.ret_port), options).await?;
        let event_sockets = EventSockets::bind(&config.sock_dir, &SocketNames::master()).await?;
        access::open_to_users(config, group)?;
        salt_clients::create_worker_socket_marker(&config.sock_dir);
        let feed = Listener::bind(&Endpoint::Ipc(config.sock_dir.join(PUBLISH_PULL))).await?;
        let metrics = metrics_listener(config).await?;
        config.publish_port = port_of(&publish);
        config.ret_port = port_of(&request);
        Ok(Listeners { publish, request, event_sockets, feed, metrics })
    }
}

/// Publishes the payloads that other programs on this machine push into `publish_pull.ipc`: encrypted, one frame each.
pub(crate) async fn feed_publisher(feed: Listener, publisher: Publisher, limits: Limits, shutdown: CancellationToken) {
    let take = move |payloads: Vec<bytes::Bytes>| {
        for payload in payloads {
            publisher.publish_under(vec![bytes::Bytes::from_static(TOPIC_BROADCAST)], &payload);
        }
        std::future::ready(())
    };
    Pull::serve(feed, take, limits, shutdown).await;
}

fn port_options(config: &MasterConfig) -> PortOptions {
    let (idle, interval) = (config.tcp_keepalive_idle, config.tcp_keepalive_intvl);
    let keepalive = Keepalive::new(config.tcp_keepalive, idle, interval, config.tcp_keepalive_cnt);
    PortOptions { backlog: config.zmq_backlog, keepalive }
}

/// Returns the resource limits of peers, for both ports.
pub(crate) fn allowance(config: &MasterConfig) -> PeerLimits {
    PeerLimits {
        connections: config.max_connections,
        per_address: config.max_connections_per_address,
        unauthenticated_message: config.unauthenticated_message_size,
        unauthenticated_memory: config.unauthenticated_memory,
        message_time: Duration::from_secs(config.message_timeout.max(1)),
    }
}

/// Binds the metrics port, if it is configured.
async fn metrics_listener(config: &MasterConfig) -> Result<Option<tokio::net::TcpListener>, StartError> {
    if config.metrics_port == 0 {
        return Ok(None);
    }
    let address = (config.metrics_interface.as_str(), config.metrics_port);
    match tokio::net::TcpListener::bind(address).await {
        Ok(listener) => Ok(Some(listener)),
        Err(error) => {
            let reason = format!("cannot listen on {}:{}: {error}", address.0, address.1);
            Err(InvalidOption { option: "metrics_port", reason }.into())
        }
    }
}

fn port_of(listener: &Listener) -> u16 {
    match listener.endpoint() {
        Endpoint::Tcp(_, port) => *port,
        Endpoint::Ipc(_) => 0,
    }
}

//! The listening socket: connection limits, TLS, and timeouts of requests.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use brine_config::{MasterConfig, RestConfig};
use brine_runtime::supervisor::Background;
use futures::future::BoxFuture;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::handover::{Connection, EventWriter, Handover, HandoverConnection};
use crate::peer::Peer;
use crate::slow_peers::WriteTimeout;
use crate::{Api, StartError, handover, metrics, routes, tls};

/// The timeout of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of a request's head, in bytes.
const MAX_HEAD_SIZE: usize = 64 << 10;
/// The time that open connections have to end at shutdown.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

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
        let slots = Arc::new(Slots { counts: Mutex::default(), max: 1, max_per_address: 1 });
        let address = IpAddr::from([10, 0, 0, 1]);
        let slot = slots.take(address).unwrap_or_else(|| unreachable!());
        Client { address, slot: Arc::new(slot) }
    }
}

/// The counts of open connections. The addresses of an IPv6 network count together, since one host can use all of them.
#[derive(Default)]
struct Counts {
    all: usize,
    by_network: HashMap<IpAddr, usize>,
}

/// The pool of connection slots.
struct Slots {
    counts: Mutex<Counts>,
    max: usize,
    max_per_address: usize,
}

impl Slots {
    /// Takes a slot; `None` if there are too many connections.
    fn take(self: &Arc<Self>, address: IpAddr) -> Option<Slot> {
        let mut counts = self.counts.lock();
        let of_address = counts.by_network.get(&address).copied().unwrap_or(0);
        // Loopback is exempt from the limit per address: a local proxy uses one address for all its clients.
        let is_full = counts.all >= self.max || (of_address >= self.max_per_address && !address.is_loopback());
        if is_full {
            return None;
        }
        counts.all += 1;
        counts.by_network.insert(address, of_address + 1);
        metrics::CONNECTIONS.add(1);
        Some(Slot { slots: Arc::clone(self), address })
    }
}

/// The slot of an open connection.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    address: IpAddr,
}

impl Drop for Slot {
    fn drop(&mut self) {
        metrics::CONNECTIONS.sub(1);
        let mut counts = self.slots.counts.lock();
        counts.all -= 1;
        if let Some(count) = counts.by_network.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.by_network.remove(&self.address);
            }
        }
    }
}

/// A running API.
pub struct Server {
    address: SocketAddr,
    is_tls: bool,
    api: Arc<Api>,
    tasks: Background,
}

impl Server {
    /// Starts the API for the master of this configuration. `key_file` contains the key of the REST API.
    pub fn start(config: &MasterConfig, key_file: PathBuf) -> BoxFuture<'_, Result<Self, StartError>> {
        // Boxed, because the code of a future is compiled by the crate that polls it.
        Box::pin(Self::start_tasks(config, key_file))
    }

    async fn start_tasks(config: &MasterConfig, key_file: PathBuf) -> Result<Self, StartError> {
        brine_check::report(crate::check(config)).map_err(StartError::Refused)?;
        let (options, _) = RestConfig::new(config)?;
        let tls = tls::load(config, &options)?;
        let host: String = options.host.clone();
        let listen = async {
            let listener = TcpListener::bind((host.trim_matches(['[', ']']), options.port)).await?;
            let address = listener.local_addr()?;
            Ok::<_, std::io::Error>((listener, address))
        };
        let (listener, address) =
            listen.await.map_err(|error| StartError::Listen { address: format!("{host}:{}", options.port), error })?;
        let is_tls = tls.is_some();
        let api = Arc::new(Api::new(config, options, key_file)?);
        let tasks = Background::default();
        tasks.spawn("api events", Arc::clone(&api.hub).run());
        tasks.spawn("api event streams", Arc::clone(&api.hub).pace());
        let slots = Arc::new(Slots {
            counts: Mutex::default(),
            max: api.options.max_connections,
            max_per_address: api.options.max_connections_per_address,
        });
        let router = routes::router(&api)?;
        let entry = Entry { api: Arc::clone(&api), router, acceptor: tls.map(TlsAcceptor::from) };
        tasks.spawn("api listener", accept(listener, entry, slots));
        tracing::info!(%address, tls = is_tls, "the API listens");
        Ok(Server { address, is_tls, api, tasks })
    }

    /// Returns the URL of the API.
    pub fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        let host = match self.address.ip() {
            ip if ip.is_unspecified() => "localhost".to_owned(),
            IpAddr::V6(ip) => format!("[{ip}]"),
            IpAddr::V4(ip) => ip.to_string(),
        };
        format!("{scheme}://{host}:{}/", self.address.port())
    }

    /// Stops the API. Running requests are dropped.
    pub async fn stop(self) {
        self.tasks.stop(STOP_TIMEOUT).await;
        self.api.hub.end();
        self.api.connections.stop(STOP_TIMEOUT).await;
    }
}

/// The shared data of connections.
#[derive(Clone)]
struct Entry {
    api: Arc<Api>,
    router: Router,
    acceptor: Option<TlsAcceptor>,
}

async fn accept(listener: TcpListener, entry: Entry, slots: Arc<Slots>) {
    let connections = entry.api.connections.clone();
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "accepting a connection of the API failed");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let address = peer.ip().to_canonical();
        let Some(slot) = slots.take(brine_auth::network(address)) else {
            metrics::CONNECTIONS_REFUSED.add(1);
            tracing::debug!(%address, "a connection of the API is refused: there are too many");
            continue;
        };
        let entry = entry.clone();
        connections.spawn("api connection", async move {
            let client = Client { address, slot: Arc::new(slot) };
            let tasks = entry.api.connections.clone();
            match serve(stream, entry, client.clone()).await {
                Ok(None) => {}
                Ok(Some((connection, writer))) => {
                    tasks.spawn_small("api event stream", handover::run(connection, writer, client.slot));
                }
                Err(error) => tracing::debug!(%address, error, "a connection of the API ended"),
            }
        });
    }
}

/// Serves a connection until it ends. Returns the connection if an event stream takes it over.
async fn serve(stream: TcpStream, entry: Entry, client: Client) -> Result<Option<(Connection, EventWriter)>, String> {
    // Events are small and should be sent without delay.
    _ = stream.set_nodelay(true);
    // An idle client costs no buffers until it sends data.
    let timeout = Duration::from_secs(entry.api.options.head_timeout.max(1));
    let readable = tokio::time::timeout(timeout, stream.readable()).await;
    readable.map_err(|_| "the client is silent".to_owned())?.map_err(|error| error.to_string())?;
    let peer = match entry.acceptor.clone() {
        None => Peer::Plain(stream),
        Some(acceptor) => {
            let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, Box::pin(acceptor.accept(stream))).await;
            let stream = handshake.map_err(|_| "the TLS handshake took too long".to_owned())?;
            Peer::Tls(Box::new(stream.map_err(|error| error.to_string())?))
        }
    };
    Box::pin(serve_http(WriteTimeout::new(peer), entry, client, timeout)).await
}

async fn serve_http(
    connection: Connection,
    entry: Entry,
    client: Client,
    timeout: Duration,
) -> Result<Option<(Connection, EventWriter)>, String> {
    let handover = Arc::new(Handover::default());
    let lent = HandoverConnection::new(connection, Arc::clone(&handover));
    let service = {
        let handover = Arc::clone(&handover);
        service_fn(move |request: Request<Incoming>| {
            let (entry, client, handover) = (entry.clone(), client.clone(), Arc::clone(&handover));
            async move {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(client);
                request.extensions_mut().insert(handover);
                Ok::<_, Infallible>(routes::answer(&entry.api, entry.router, request).await)
            }
        })
    };
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(timeout)
        .max_buf_size(MAX_HEAD_SIZE)
        .serve_connection(TokioIo::new(lent), service)
        .with_upgrades()
        .await;
    match (handover.take(), served) {
        (Some(taken), _) => Ok(Some(taken)),
        (None, served) => served.map(|()| None).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_in_total_and_by_network() {
        let slots = Arc::new(Slots { counts: Mutex::default(), max: 5, max_per_address: 2 });
        let [one, other] = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])];
        let own = IpAddr::from([127, 0, 0, 1]);
        let mut taken = vec![slots.take(one).unwrap(), slots.take(one).unwrap()];
        assert!(slots.take(one).is_none());
        taken.push(slots.take(other).unwrap());
        taken.extend([slots.take(own).unwrap(), slots.take(own).unwrap()]);
        assert!(slots.take(other).is_none() && slots.take(own).is_none());
        taken.remove(0);
        assert!(slots.take(one).is_some());
        drop(taken);
        assert!(slots.counts.lock().by_network.is_empty());
    }
}

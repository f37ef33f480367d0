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
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::slow_peers::Bounded;
use crate::{Api, StartError, metrics, routes, tls};

/// The timeout of a TLS handshake.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// The timeout of a request's head, also of an idle connection.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// The maximum size of a request's head, in bytes.
const HEAD_SIZE: usize = 64 << 10;
/// The time that open connections have to end at shutdown.
const STOP_TIME: Duration = Duration::from_secs(1);

/// The client of a request.
#[derive(Clone)]
pub(crate) struct Client {
    pub address: IpAddr,
    /// A web socket occupies its connection's slot for as long as it is open.
    _place: Arc<Place>,
}

#[cfg(test)]
impl Client {
    /// A client without a connection.
    pub fn testing() -> Self {
        let places = Arc::new(Places { counts: Mutex::default(), most: 1, most_of_address: 1 });
        let address = IpAddr::from([10, 0, 0, 1]);
        let place = places.take(address).unwrap_or_else(|| unreachable!());
        Client { address, _place: Arc::new(place) }
    }
}

/// The counts of open connections.
#[derive(Default)]
struct Counts {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// The slots for connections.
struct Places {
    counts: Mutex<Counts>,
    most: usize,
    most_of_address: usize,
}

impl Places {
    /// Takes a slot; `None` if there are too many connections.
    fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let mut counts = self.counts.lock();
        let of_address = counts.by_address.get(&address).copied().unwrap_or(0);
        // A proxy on this host has one address for all its clients.
        let is_full = counts.all >= self.most || (of_address >= self.most_of_address && !address.is_loopback());
        if is_full {
            return None;
        }
        counts.all += 1;
        counts.by_address.insert(address, of_address + 1);
        metrics::CONNECTIONS.add(1);
        Some(Place { places: Arc::clone(self), address })
    }
}

/// The slot of an open connection.
pub(crate) struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        metrics::CONNECTIONS.sub(1);
        let mut counts = self.places.counts.lock();
        counts.all -= 1;
        if let Some(count) = counts.by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.by_address.remove(&self.address);
            }
        }
    }
}

/// A running API.
pub struct Server {
    address: SocketAddr,
    is_tls: bool,
    connections: Background,
    tasks: Background,
}

impl Server {
    /// Starts the API for the master of this configuration. `key_file` has the key that authorizes local tools.
    pub async fn start(config: &MasterConfig, key_file: PathBuf) -> Result<Self, StartError> {
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
        let (connections, tasks) = (Background::default(), Background::default());
        tasks.spawn("api events", Arc::clone(&api.hub).run());
        let places = Arc::new(Places {
            counts: Mutex::default(),
            most: api.options.max_connections,
            most_of_address: api.options.max_connections_per_address,
        });
        let router = routes::router(&api)?;
        let entry = Entry { api, router, acceptor: tls.map(TlsAcceptor::from) };
        tasks.spawn("api listener", accept(listener, entry, places, connections.clone()));
        tracing::info!(%address, tls = is_tls, "the API listens");
        Ok(Server { address, is_tls, connections, tasks })
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
        self.tasks.stop(STOP_TIME).await;
        self.connections.stop(STOP_TIME).await;
    }
}

/// The shared data of connections.
#[derive(Clone)]
struct Entry {
    api: Arc<Api>,
    router: Router,
    acceptor: Option<TlsAcceptor>,
}

async fn accept(listener: TcpListener, entry: Entry, places: Arc<Places>, connections: Background) {
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
        let Some(place) = places.take(address) else {
            metrics::CONNECTIONS_REFUSED.add(1);
            tracing::debug!(%address, "a connection of the API is refused: there are too many");
            continue;
        };
        let entry = entry.clone();
        connections.spawn("api connection", async move {
            let client = Client { address, _place: Arc::new(place) };
            if let Err(error) = serve(stream, entry, client).await {
                tracing::debug!(%address, error, "a connection of the API ended");
            }
        });
    }
}

async fn serve(stream: TcpStream, entry: Entry, client: Client) -> Result<(), String> {
    // Events are small and latency matters.
    _ = stream.set_nodelay(true);
    let Some(acceptor) = entry.acceptor.clone() else { return serve_http(stream, entry, client).await };
    let handshake = tokio::time::timeout(HANDSHAKE_TIME, acceptor.accept(stream)).await;
    let stream = handshake.map_err(|_| "the TLS handshake timed out".to_owned())?;
    serve_http(stream.map_err(|error| error.to_string())?, entry, client).await
}

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    entry: Entry,
    client: Client,
) -> Result<(), String> {
    let service = service_fn(move |request: Request<Incoming>| {
        let (entry, client) = (entry.clone(), client.clone());
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(client);
            Ok::<_, Infallible>(routes::answer(&entry.api, entry.router, request).await)
        }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_SIZE)
        .serve_connection(TokioIo::new(Bounded::new(stream)), service)
        .with_upgrades()
        .await
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_in_total_and_by_address() {
        let places = Arc::new(Places { counts: Mutex::default(), most: 5, most_of_address: 2 });
        let [one, other] = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])];
        let own = IpAddr::from([127, 0, 0, 1]);
        let mut taken = vec![places.take(one).unwrap(), places.take(one).unwrap()];
        assert!(places.take(one).is_none());
        taken.push(places.take(other).unwrap());
        taken.extend([places.take(own).unwrap(), places.take(own).unwrap()]);
        assert!(places.take(other).is_none() && places.take(own).is_none());
        taken.remove(0);
        assert!(places.take(one).is_some());
        drop(taken);
        assert!(places.counts.lock().by_address.is_empty());
    }
}

//! The listening socket: TLS, and the deadlines of connections.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, header};
use brine_config::{MasterConfig, RestConfig};
use brine_runtime::supervisor::Background;
use futures::future::BoxFuture;
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::client::Client;
use crate::error::StartError;
use crate::handover::{Connection, EventWriter, Handover, HandoverConnection};
use crate::heads::Following;
use crate::peer::Peer;
use crate::slow_peers::WriteTimeout;
use crate::{Api, handover, metrics, routes, tls};

/// The timeout of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of a request's head, in bytes.
pub(crate) const MAX_HEAD_SIZE: usize = 16 << 10;
/// The size of the kernel's buffer for received data of a connection, in bytes.
const RECEIVE_BUFFER: usize = 64 << 10;
/// The time that open connections have to end at shutdown.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

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
            // Connections inherit it. The kernel would buffer megabytes for each that nobody reads.
            SockRef::from(&listener).set_recv_buffer_size(RECEIVE_BUFFER)?;
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
        let router = routes::router(&api)?;
        let entry = Entry { api: Arc::clone(&api), router, acceptor: tls.map(TlsAcceptor::from) };
        tasks.spawn("api listener", accept(listener, entry));
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

async fn accept(listener: TcpListener, entry: Entry) {
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
        let Some(slot) = entry.api.limits.connections.take(address) else {
            metrics::CONNECTIONS_REFUSED.add(1);
            tracing::debug!(%address, "a connection of the API is refused: there are too many");
            continue;
        };
        let entry = entry.clone();
        connections.spawn("api connection", async move {
            let client = Client { address, slot: Arc::new(slot) };
            let tasks = entry.api.connections.clone();
            let served = tokio::select! {
                served = serve(stream, entry, client.clone()) => served,
                () = client.slot.evicted() => Err("it has not logged in, and others wait".to_owned()),
            };
            match served {
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
    let handover = Arc::new(Handover::new(MAX_HEAD_SIZE));
    let lent = HandoverConnection::new(connection, Arc::clone(&handover));
    let service = {
        let handover = Arc::clone(&handover);
        service_fn(move |request: Request<Incoming>| {
            let (entry, client, handover) = (entry.clone(), client.clone(), Arc::clone(&handover));
            let following = following(&request);
            handover.heads.lock().expect(following);
            client.slot.set_busy(true);
            async move {
                let slot = Arc::clone(&client.slot);
                let mut request = request.map(Body::new);
                let is_last = following == Following::Data && !request.headers().contains_key(header::UPGRADE);
                request.extensions_mut().insert(client);
                request.extensions_mut().insert(handover);
                let mut response = routes::answer(&entry.api, entry.router, request).await;
                if is_last {
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                slot.set_busy(false);
                Ok::<_, Infallible>(response)
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

/// Returns what follows the head of a request.
fn following(request: &Request<Incoming>) -> Following {
    match request.body().size_hint().exact() {
        Some(length) if !request.headers().contains_key(header::UPGRADE) => Following::Body(length),
        _ => Following::Data,
    }
}

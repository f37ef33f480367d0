//! The listening socket and its connections.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, header};
use brine_config::{MasterConfig, RestConfig};
use brine_http_server::{
    Accepted, ConnectionError, Following, HeadLimits, Options, WriteLimit, WriteTimeout, serve_requests,
};
use brine_runtime::supervisor::Background;
use futures::future::BoxFuture;
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use socket2::SockRef;
use tokio::net::TcpListener;

use crate::client::Client;
use crate::error::StartError;
use crate::handover::{Handover, HandoverConnection};
use crate::{Api, handover, limits, metrics, routes, tls};

/// The maximum size of a request's head, in bytes.
pub(crate) const MAX_HEAD_SIZE: usize = 16 << 10;
/// The size of the kernel's buffer for received data of a connection, in bytes.
const RECEIVE_BUFFER: usize = 64 << 10;
/// The limit on blocked writes, so that slow clients cannot occupy resources indefinitely.
static WRITES: WriteLimit =
    WriteLimit { timeout: Duration::from_secs(60), count: || metrics::SUBSCRIBERS_CLOSED.with(&["slow"]).add(1) };
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
        brine_check::report(crate::check(config)).map_err(|finding| StartError::Refused(finding.message))?;
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
        let entry = Entry { api: Arc::clone(&api), router: routes::router(&api)? };
        let options = Options {
            name: "the API",
            task: "api connection",
            limits: limits::connections(&api.options),
            metrics: limits::CONNECTION_METRICS,
            tls,
            silence: Some(entry.head_timeout()),
            lifetime: None,
        };
        let serve = move |accepted| -> BoxFuture<'static, _> { Box::pin(serve(accepted, entry.clone())) };
        let server = brine_http_server::Server::new(options, api.connections.clone(), serve);
        tasks.spawn("api listener", server.accept(listener));
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
}

impl Entry {
    fn head_timeout(&self) -> Duration {
        Duration::from_secs(self.api.options.head_timeout.max(1))
    }
}

/// Serves a connection until it ends, or an event stream takes it over.
async fn serve(accepted: Accepted, entry: Entry) -> Result<(), ConnectionError> {
    let client = Client { address: accepted.peer.ip().to_canonical(), slot: accepted.slot };
    let (tasks, slot) = (entry.api.connections.clone(), Arc::clone(&client.slot));
    let heads = HeadLimits { timeout: entry.head_timeout(), size: MAX_HEAD_SIZE };
    let handover = Arc::new(Handover::new(MAX_HEAD_SIZE));
    let lent = HandoverConnection::new(WriteTimeout::new(accepted.stream, &WRITES), Arc::clone(&handover));
    let answer = |request: Request<Incoming>| {
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
            response
        }
    };
    let served = serve_requests(lent, heads, answer).await;
    let Some((connection, writer)) = handover.take() else { return served };
    tasks.spawn_small("api event stream", handover::run(connection, writer, slot));
    Ok(())
}

/// Returns what follows the head of a request.
fn following(request: &Request<Incoming>) -> Following {
    match request.body().size_hint().exact() {
        Some(length) if !request.headers().contains_key(header::UPGRADE) => Following::Body(length),
        _ => Following::Data,
    }
}

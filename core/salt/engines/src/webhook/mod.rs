//! The engine `webhook`: publishes each HTTP request as an event `salt/engines/hook/<path>`.
//!
//! Every peer of the port can publish these events without authentication, so the resources of a peer are bounded:
//! connections, their time, the size of a request, and the memory of all of them.

mod connections;
mod request;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brine_runtime::threads;
use brine_value::{FromValue, Map, Value};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::arguments::check_names;
use crate::metrics;
use crate::publisher::Publisher;
use connections::{Connections, Slot};
use request::Hook;

/// The maximum size of a request's head, in bytes.
const MAX_HEAD_SIZE: usize = 64 << 10;
/// The timeouts of a TLS handshake and of a request's head, and of a connection as a whole.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(120);
/// The time that open connections have to end when the engine stops.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);
/// The port by default.
const PORT: u16 = 5000;

/// The arguments of the engine.
#[derive(Debug)]
pub struct Webhook {
    /// The address of the socket; all addresses of this host by default.
    address: Option<String>,
    port: u16,
    /// The paths of the certificate and its key.
    tls: Option<(PathBuf, PathBuf)>,
}

impl Webhook {
    /// Reads the arguments `address`, `port`, `ssl_crt` and `ssl_key`.
    pub(crate) fn new(kwargs: &Map) -> Result<Self, String> {
        check_names(kwargs, &["address", "port", "ssl_crt", "ssl_key"])?;
        let given = |name: &str| kwargs.get(name).filter(|value| value.is_truthy());
        let port = match kwargs.get("port") {
            None => PORT,
            Some(port) => u16::from_value(port)
                .ok_or_else(|| format!("the argument 'port' is invalid: expected a number up to 65535, got {port}"))?,
        };
        let path = |value: &Value| PathBuf::from(value.to_string());
        let tls = match (given("ssl_crt"), given("ssl_key")) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((path(certificate), path(key))),
            _ => return Err("the arguments 'ssl_crt' and 'ssl_key' are required together".to_owned()),
        };
        Ok(Webhook { address: given("address").map(ToString::to_string), port, tls })
    }

    /// Serves requests until `stopping` is cancelled.
    ///
    /// # Errors
    /// The certificate is invalid, or the socket cannot be opened.
    pub(crate) async fn run(self, publisher: Arc<dyn Publisher>, stopping: CancellationToken) -> Result<(), String> {
        let listener = self.listen().await?;
        self.serve(listener, publisher, stopping).await
    }

    async fn listen(&self) -> Result<TcpListener, String> {
        let bind = async |address: &str| {
            let bound = TcpListener::bind((address.trim_matches(['[', ']']), self.port)).await;
            bound.map_err(|error| format!("listening on {address} port {} failed: {error}", self.port))
        };
        match &self.address {
            Some(address) => bind(address).await,
            None => match bind("::").await {
                Ok(listener) => Ok(listener),
                // A host without IPv6.
                Err(_) => bind("0.0.0.0").await,
            },
        }
    }

    async fn serve(
        self,
        listener: TcpListener,
        publisher: Arc<dyn Publisher>,
        stopping: CancellationToken,
    ) -> Result<(), String> {
        let acceptor = match self.tls {
            None => None,
            Some((certificate, key)) => Some(acceptor(certificate, key).await?),
        };
        if let Ok(address) = listener.local_addr() {
            tracing::info!(%address, tls = acceptor.is_some(), "the engine webhook listens, without authentication");
        }
        let (hook, connections) = (Arc::new(Hook::new(publisher)), Arc::new(Connections::default()));
        let tasks = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                () = stopping.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection of the engine webhook failed");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let Some(slot) = connections.take(peer.ip()) else {
                metrics::WEBHOOKS_REFUSED.add(1);
                tracing::debug!(%peer, "a connection of the engine webhook is refused: there are too many");
                continue;
            };
            let (hook, acceptor, stopping) = (Arc::clone(&hook), acceptor.clone(), stopping.clone());
            tasks.spawn(async move {
                let served = connection(stream, peer, slot, hook, acceptor);
                tokio::select! {
                    () = stopping.cancelled() => {}
                    served = tokio::time::timeout(CONNECTION_TIMEOUT, served) => {
                        if let Ok(Err(error)) = served {
                            tracing::debug!(%peer, error, "a connection of the engine webhook ended");
                        }
                    }
                }
            });
        }
        tasks.close();
        _ = tokio::time::timeout(STOP_TIMEOUT, tasks.wait()).await;
        Ok(())
    }
}

async fn acceptor(certificate: PathBuf, key: PathBuf) -> Result<TlsAcceptor, String> {
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path).map_err(|error| format!("reading {} failed: {error}", path.display()))
    };
    let loaded = threads::run("certificate", move |_| brine_tls::server(&[read(&certificate)?], &read(&key)?));
    let tls = loaded.await.map_err(|error| error.to_string())??;
    Ok(TlsAcceptor::from(tls))
}

/// Serves a connection until it ends.
async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    _slot: Slot,
    hook: Arc<Hook>,
    acceptor: Option<TlsAcceptor>,
) -> Result<(), String> {
    _ = stream.set_nodelay(true);
    let Some(acceptor) = acceptor else { return serve_http(stream, peer, hook).await };
    let handshake = tokio::time::timeout(HEAD_TIMEOUT, acceptor.accept(stream)).await;
    let stream = handshake.map_err(|_| "the TLS handshake took too long".to_owned())?;
    serve_http(stream.map_err(|error| error.to_string())?, peer, hook).await
}

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: SocketAddr,
    hook: Arc<Hook>,
) -> Result<(), String> {
    let service = service_fn(move |request| {
        let hook = Arc::clone(&hook);
        async move { Ok::<_, std::convert::Infallible>(hook.answer(request, peer.ip()).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_SIZE)
        .serve_connection(TokioIo::new(stream), service)
        .await
        .map_err(|error| error.to_string())
}

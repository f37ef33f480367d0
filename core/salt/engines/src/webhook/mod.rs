//! The engine `webhook`: publishes each HTTP request as an event `salt/engines/hook/<path>`.
//!
//! Every peer of the port can publish these events without authentication, so the resources of a peer are bounded:
//! connections, their time, the size of a request, and the memory of all of them.

mod request;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brine_http_server::{
    ConnectionLimits, ConnectionMetrics, HeadLimits, Options, Server, load_certificate, serve_requests,
};
use brine_runtime::supervisor::Background;
use brine_runtime::threads;
use brine_value::{FromValue, Map, Value};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::EngineError;
use crate::arguments::check_names;
use crate::metrics;
use crate::publisher::Publisher;
use request::Hook;

/// The maximum number of connections, and of those of one address.
const LIMITS: ConnectionLimits = ConnectionLimits { total: 256, per_address: 32, unauthenticated: None };
/// The limits of a request's head.
const HEADS: HeadLimits = HeadLimits { timeout: Duration::from_secs(10), size: 64 << 10 };
/// The timeout of a connection as a whole.
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
        let argument = |name: &str| kwargs.get(name).filter(|value| value.is_truthy());
        let port = match kwargs.get("port") {
            None => PORT,
            Some(port) => u16::from_value(port)
                .ok_or_else(|| format!("the argument 'port' is invalid: expected a number up to 65535, got {port}"))?,
        };
        let path = |value: &Value| PathBuf::from(value.to_string());
        let tls = match (argument("ssl_crt"), argument("ssl_key")) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((path(certificate), path(key))),
            _ => return Err("the arguments 'ssl_crt' and 'ssl_key' are required together".to_owned()),
        };
        Ok(Webhook { address: argument("address").map(ToString::to_string), port, tls })
    }

    /// Serves requests until `stopping` is cancelled.
    ///
    /// # Errors
    /// The certificate is invalid, or the socket cannot be opened.
    pub(crate) async fn run(
        self,
        publisher: Arc<dyn Publisher>,
        stopping: CancellationToken,
    ) -> Result<(), EngineError> {
        let listener = self.listen().await?;
        self.serve(listener, publisher, stopping).await
    }

    async fn listen(&self) -> Result<TcpListener, EngineError> {
        let bind = async |address: &str| {
            let bound = TcpListener::bind((address.trim_matches(['[', ']']), self.port)).await;
            bound.map_err(|source| EngineError::Listen { address: address.to_owned(), port: self.port, source })
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
    ) -> Result<(), EngineError> {
        let tls = match self.tls {
            None => None,
            Some((certificate, key)) => {
                let loaded = threads::run("certificate", move |_| load_certificate(&[&certificate], &key));
                Some(loaded.await??)
            }
        };
        if let Ok(address) = listener.local_addr() {
            tracing::info!(%address, tls = tls.is_some(), "the engine webhook listens, without authentication");
        }
        let options = Options {
            name: "the engine webhook",
            task: "webhook connection",
            limits: LIMITS,
            metrics: ConnectionMetrics { open: None, refused: &metrics::WEBHOOKS_REFUSED, evicted: None },
            tls,
            silence: None,
            lifetime: Some(CONNECTION_TIMEOUT),
        };
        let (hook, tasks) = (Arc::new(Hook::new(publisher)), Background::default());
        let server = Server::new(options, tasks.clone(), move |accepted| {
            let (hook, peer) = (Arc::clone(&hook), accepted.peer.ip());
            Box::pin(async move {
                let answer = |request| {
                    let hook = Arc::clone(&hook);
                    async move { hook.answer(request, peer).await }
                };
                serve_requests(accepted.stream, HEADS, answer).await
            })
        });
        tokio::select! {
            () = stopping.cancelled() => {}
            () = server.accept(listener) => {}
        }
        tasks.stop(STOP_TIMEOUT).await;
        Ok(())
    }
}

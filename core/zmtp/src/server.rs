//! The one place that accepts connections: bounds, handshakes, deadlines, counting, and the end of every connection.
//! What a kind of socket does with a connection is a [`Service`].

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::TransportError;
use super::bounds::{Bounds, Trust};
use super::connection::Connection;
use super::endpoint::{Accepted, Listener};
use super::zmtp::{self, Limits, SocketType};
use crate::metrics;

/// Who is at the other end of a connection.
#[derive(Clone)]
pub struct Remote {
    /// Its address, or `local`.
    pub address: Arc<str>,
    /// Its address, if it is one of a network.
    pub socket: Option<SocketAddr>,
    /// How far it is trusted; nothing on a socket without bounds.
    pub(super) trust: Option<Arc<Trust>>,
}

/// What a kind of socket does with its connections.
pub trait Service: Send + Sync + 'static {
    /// What belongs to one connection from the moment that it is accepted.
    type Session: Send + 'static;

    /// Called for each connection before its handshake; nothing closes it.
    fn accepted(&self) -> Option<Self::Session>;

    /// Serves one connection until it ends.
    fn serve(
        &self,
        session: Self::Session,
        remote: Remote,
        connection: Connection,
    ) -> impl Future<Output = Result<(), TransportError>> + Send;
}

/// A listening socket with what its peers may do.
pub struct Server {
    /// Where connections arrive.
    pub listener: Listener,
    /// The type of the socket.
    pub role: SocketType,
    /// The limits of each connection.
    pub limits: Limits,
    /// The bounds of unauthenticated peers. A unix socket has none: who may open it is trusted, and may be slow.
    pub bounds: Option<Bounds>,
}

impl Server {
    /// Serves until `shutdown`. All connections have ended when this returns.
    pub async fn run(self, service: impl Service, shutdown: CancellationToken) {
        let service = Arc::new(service);
        let mut connections = JoinSet::new();
        let (refusals, evictions) = (Arc::new(Reports::new(SECOND)), Arc::new(Reports::new(MINUTE)));
        loop {
            let accepted = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                Some(ended) = connections.join_next() => {
                    observe(ended);
                    continue;
                }
                accepted = self.listener.accept() => accepted,
            };
            let Accepted { read, write, address: socket, is_local } = accepted;
            let address: Arc<str> = socket.map_or_else(|| "local".into(), |socket| socket.to_string().into());
            let ip = socket.map(|socket| socket.ip());
            let trust = self.bounds.as_ref().map(|bounds| Arc::new(Trust::new(bounds.clone(), ip, is_local)));
            let opened = match (&self.bounds, &trust, ip) {
                (Some(bounds), Some(trust), Some(ip)) => bounds.open(ip, trust).map(Some),
                _ => Ok(None),
            };
            let open = match opened {
                Ok(open) => open,
                Err(exceeded) => {
                    metrics::CONNECTIONS_LIMITED.add(1);
                    refusals.warn(&address, &exceeded, "a connection is not taken");
                    continue;
                }
            };
            let Some(session) = service.accepted() else { continue };
            let remote = Remote { address, socket, trust };
            let time = self.bounds.as_ref().map(Bounds::message_time);
            let (role, limits) = (self.role, self.limits);
            let (service, refusals, evictions) = (Arc::clone(&service), Arc::clone(&refusals), Arc::clone(&evictions));
            connections.spawn(async move {
                let _open = open;
                let (address, trust) = (Arc::clone(&remote.address), remote.trust.clone());
                let served = async {
                    // Boxed, or the task would hold room for both, several times, for as long as the connection lasts.
                    let handshake = Box::pin(zmtp::accept(read, write, role, limits, remote.trust.clone())).await;
                    let (reader, writer) = handshake?;
                    Box::pin(service.serve(session, remote, Connection::new(reader, writer, time))).await
                };
                let evicted = async {
                    match trust {
                        Some(trust) => trust.evicted().await,
                        None => std::future::pending().await,
                    }
                };
                let ended = tokio::select! {
                    ended = served => ended,
                    () = evicted => Err(TransportError::Evicted),
                };
                match ended {
                    Ok(()) | Err(TransportError::Closed) => {}
                    Err(error @ TransportError::Evicted) => evictions.warn(&address, &error, "a connection is closed"),
                    Err(error) => {
                        metrics::CONNECTIONS_REFUSED.add(1);
                        refusals.warn(&address, &error, "a connection is closed");
                    }
                }
            });
        }
        drop(self.listener);
        connections.abort_all();
        while let Some(ended) = connections.join_next().await {
            observe(ended);
        }
    }
}

/// Reports a connection whose task panicked.
fn observe(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        metrics::TASKS_PANICKED.add(1);
        tracing::error!(%error, "serving a connection failed: it is closed; please report this");
    }
}

/// Warnings about connections, of which unauthenticated peers can bring about any number: after some in a period the
/// others are counted.
struct Reports {
    period: Duration,
    most: u32,
    state: Mutex<Period>,
}

#[derive(Default)]
struct Period {
    began: Option<Instant>,
    reported: u32,
    suppressed: u64,
}

/// Periods, and how many warnings are logged in one.
const SECOND: (Duration, u32) = (Duration::from_secs(1), 10);
const MINUTE: (Duration, u32) = (Duration::from_secs(60), 1);

impl Reports {
    fn new((period, most): (Duration, u32)) -> Self {
        Reports { period, most, state: Mutex::default() }
    }

    fn warn(&self, peer: &str, error: &dyn std::error::Error, message: &'static str) {
        let suppressed = {
            let mut state = self.state.lock();
            if state.began.is_none_or(|began| began.elapsed() > self.period) {
                (state.began, state.reported) = (Some(Instant::now()), 0);
            }
            if state.reported >= self.most {
                state.suppressed += 1;
                return;
            }
            state.reported += 1;
            std::mem::take(&mut state.suppressed)
        };
        tracing::warn!(peer, %error, suppressed, "{message}");
    }
}

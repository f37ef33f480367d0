//! Accepts the connections of all sockets. Owns their limits, handshakes, deadlines and metrics, and closes them. A
//! [`Service`] implements the behaviour of a kind of socket.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use parking_lot::Mutex;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::TransportError;
use super::bounds::{Bounds, Trust};
use super::connection::Connection;
use super::endpoint::{Accepted, Listener};
use super::foreign::{ForeignStream, SilenceTimeout, Sniffed, peer_pid, sniff};
use super::handshake::{self, SocketType};
use super::zmtp::Limits;
use crate::metrics;

/// The remote end of a connection.
#[derive(Clone)]
pub struct Remote {
    /// The address, or `local`.
    pub address: Arc<str>,
    /// The address, if it is a network address.
    pub socket: Option<SocketAddr>,
    /// The authentication state of the peer; `None` on a socket without limits.
    pub(super) trust: Option<Arc<Trust>>,
}

/// The behaviour of a kind of socket.
pub trait Service: Send + Sync + 'static {
    /// The state of one connection, from the moment it is accepted.
    type Session: Send + 'static;

    /// Called for each connection before its handshake; `None` closes it.
    fn accepted(&self) -> Option<Self::Session>;

    /// Returns the timeout after which a silent peer counts as foreign; `None` if only ZeroMQ is served. Called on unix
    /// sockets only, with the PID of the peer if it is known.
    fn silence_timeout(&self, _process: Option<i32>) -> impl Future<Output = Option<SilenceTimeout>> + Send {
        std::future::ready(None)
    }

    /// Serves a peer that does not speak ZeroMQ until the connection ends.
    fn serve_foreign(
        &self,
        _session: Self::Session,
        _process: Option<i32>,
        _peer: ForeignStream,
    ) -> impl Future<Output = Result<(), TransportError>> + Send {
        std::future::ready(Err(TransportError::Handshake("it sent no ZMTP greeting")))
    }

    /// Serves one connection until it ends.
    fn serve(
        &self,
        session: Self::Session,
        remote: Remote,
        connection: Connection,
    ) -> impl Future<Output = Result<(), TransportError>> + Send;
}

/// A listening socket with the limits of its peers.
pub struct Server {
    /// The socket that listens.
    pub listener: Listener,
    /// The type of the socket.
    pub role: SocketType,
    /// The limits of each connection.
    pub limits: Limits,
    /// The limits of unauthenticated peers. A unix socket has none: its file mode restricts it to trusted peers, which
    /// may be slow.
    pub bounds: Option<Bounds>,
}

impl Server {
    /// Serves until `shutdown`. Returns after all connections have ended.
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
                    refusals.warn(&address, &exceeded, "connection refused");
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
                    let (mut read, mut write, mut begun) = (read, write, BytesMut::new());
                    if remote.socket.is_none() {
                        let process = peer_pid(&read);
                        if let Some(timeout) = Box::pin(service.silence_timeout(process)).await {
                            match Box::pin(sniff(read, write, timeout)).await? {
                                Sniffed::ZeroMq(same, other, first) => (read, write, begun) = (same, other, first),
                                Sniffed::Foreign(peer) => {
                                    return Box::pin(service.serve_foreign(session, process, peer)).await;
                                }
                            }
                        }
                    }
                    // Boxed: otherwise the task would reserve memory for both futures, several times, for the life of
                    // the connection.
                    let handshake =
                        Box::pin(handshake::accept(read, write, begun, role, limits, remote.trust.clone())).await;
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
                    Err(error @ TransportError::Evicted) => evictions.warn(&address, &error, "connection closed"),
                    Err(error) => {
                        metrics::CONNECTIONS_REFUSED.add(1);
                        refusals.warn(&address, &error, "connection closed");
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

/// Logs a panic of a connection's task.
fn observe(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        metrics::TASKS_PANICKED.add(1);
        tracing::error!(%error, "connection task panicked: this is a defect, please report it");
    }
}

/// Rate-limited warnings about connections, which unauthenticated peers could trigger in any number: beyond a limit in
/// a period they are only counted.
struct Reports {
    period: Duration,
    limit: u32,
    state: Mutex<Period>,
}

#[derive(Default)]
struct Period {
    began: Option<Instant>,
    reported: u32,
    suppressed: u64,
}

/// The period, and the maximum number of warnings in it.
const SECOND: (Duration, u32) = (Duration::from_secs(1), 10);
const MINUTE: (Duration, u32) = (Duration::from_secs(60), 1);

impl Reports {
    fn new((period, limit): (Duration, u32)) -> Self {
        Reports { period, limit, state: Mutex::default() }
    }

    fn warn(&self, peer: &str, error: &dyn std::error::Error, message: &'static str) {
        let suppressed = {
            let mut state = self.state.lock();
            if state.began.is_none_or(|began| began.elapsed() > self.period) {
                (state.began, state.reported) = (Some(Instant::now()), 0);
            }
            if state.reported >= self.limit {
                state.suppressed += 1;
                return;
            }
            state.reported += 1;
            std::mem::take(&mut state.suppressed)
        };
        tracing::warn!(peer, %error, suppressed, "{message}");
    }
}

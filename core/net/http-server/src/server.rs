//! Accepts connections within limits, does their TLS handshakes, and hands them to the handler.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use brine_runtime::supervisor::Background;
use futures::future::BoxFuture;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::connections::{ConnectionLimits, ConnectionMetrics, Connections, Slot};
use crate::peer::Peer;

/// The timeout of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after an error of the listening socket: with too many open files it would return errors without end.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// The options of a server.
pub struct Options {
    /// What log messages call the server: `the API`.
    pub name: &'static str,
    /// The name of the task of a connection.
    pub task: &'static str,
    /// The maximum numbers of connections.
    pub limits: ConnectionLimits,
    /// What counts the connections.
    pub metrics: ConnectionMetrics,
    /// The certificate; none for connections without TLS.
    pub tls: Option<Arc<ServerConfig>>,
    /// The time for which a new connection may be silent. It occupies no buffers during it.
    pub silence: Option<Duration>,
    /// The time for which a connection may be open.
    pub lifetime: Option<Duration>,
}

/// A connection that is ready for requests.
pub struct Accepted {
    /// Its stream.
    pub stream: Peer,
    /// The address of the client.
    pub peer: SocketAddr,
    /// Its slot: the connection counts for as long as it exists.
    pub slot: Arc<Slot>,
}

/// Why a connection has ended early.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The client has sent nothing.
    #[error("the client is silent")]
    Silent,
    /// The TLS handshake has not ended in time.
    #[error("the TLS handshake took too long")]
    SlowHandshake,
    /// Another client took its place.
    #[error("it has not logged in, and others wait")]
    Evicted,
    /// It has reached the lifetime of connections.
    #[error("it has been open for too long")]
    Lifetime,
    /// The network or TLS failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A request is none of HTTP, or took too long, or the network failed.
    #[error(transparent)]
    Http(#[from] hyper::Error),
}

/// Serves a connection. Boxed, because the code of a future is compiled by the crate that polls it.
type Handler = Box<dyn Fn(Accepted) -> BoxFuture<'static, Result<(), ConnectionError>> + Send + Sync>;

/// A server of one listening socket.
pub struct Server {
    options: Options,
    connections: Arc<Connections>,
    acceptor: Option<TlsAcceptor>,
    tasks: Background,
    handler: Handler,
}

impl Server {
    /// Creates a server whose connections are `tasks`, and end with them. `handler` serves a connection, and returns the
    /// reason if it has ended early.
    pub fn new(
        options: Options,
        tasks: Background,
        handler: impl Fn(Accepted) -> BoxFuture<'static, Result<(), ConnectionError>> + Send + Sync + 'static,
    ) -> Self {
        let connections = Arc::new(Connections::new(options.limits, options.metrics));
        let acceptor = options.tls.clone().map(TlsAcceptor::from);
        Server { options, connections, acceptor, tasks, handler: Box::new(handler) }
    }

    /// Accepts connections until the future is dropped, which closes the listening socket.
    pub fn accept(self, listener: TcpListener) -> BoxFuture<'static, ()> {
        Box::pin(accept(Arc::new(self), listener))
    }

    /// Serves a connection until it ends.
    async fn serve(&self, stream: TcpStream, peer: SocketAddr, slot: Arc<Slot>) -> Result<(), ConnectionError> {
        // Answers and events are small and should be sent without delay.
        _ = stream.set_nodelay(true);
        if let Some(silence) = self.options.silence {
            // Not `readable`, which is true of a new connection until a read finds nothing.
            let received = timeout(silence, stream.peek(&mut [0])).await;
            received.map_err(|_| ConnectionError::Silent)??;
        }
        let stream = match &self.acceptor {
            None => Peer::Plain(stream),
            Some(acceptor) => {
                let handshake = timeout(HANDSHAKE_TIMEOUT, Box::pin(acceptor.accept(stream))).await;
                let stream = handshake.map_err(|_| ConnectionError::SlowHandshake)?;
                Peer::Tls(Box::new(stream?))
            }
        };
        (self.handler)(Accepted { stream, peer, slot }).await
    }
}

async fn accept(server: Arc<Server>, listener: TcpListener) {
    let name = server.options.name;
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "accepting a connection of {name} failed");
                sleep(ERROR_PAUSE).await;
                continue;
            }
        };
        let address = peer.ip().to_canonical();
        let Some(slot) = server.connections.take(address).map(Arc::new) else {
            tracing::debug!(%address, "a connection of {name} is refused: there are too many");
            continue;
        };
        let served = Arc::clone(&server);
        server.tasks.spawn(server.options.task, async move {
            let ended = tokio::select! {
                ended = served.serve(stream, peer, Arc::clone(&slot)) => ended,
                () = slot.evicted() => Err(ConnectionError::Evicted),
                () = after(served.options.lifetime) => Err(ConnectionError::Lifetime),
            };
            if let Err(error) = ended {
                tracing::debug!(%address, %error, "a connection of {name} ended");
            }
        });
    }
}

/// Waits for a time, if there is one. Boxed: a timer is large, and there are thousands of connections without one.
async fn after(time: Option<Duration>) {
    match time {
        Some(time) => Box::pin(sleep(time)).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use brine_metrics::Counter;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    static REFUSED: Counter = Counter::new("refused", "");

    /// Starts a server of this many connections, which greets its clients and waits until they have gone.
    async fn started(tasks: &Background, total: usize, change: impl FnOnce(&mut Options)) -> SocketAddr {
        let mut options = Options {
            name: "the test",
            task: "test connection",
            limits: ConnectionLimits { total, per_address: total, unauthenticated: None },
            metrics: ConnectionMetrics { open: None, refused: &REFUSED, evicted: None },
            tls: None,
            silence: None,
            lifetime: None,
        };
        change(&mut options);
        let server = Server::new(options, tasks.clone(), |mut accepted| {
            Box::pin(async move {
                _ = accepted.stream.write_all(b"hello").await;
                _ = accepted.stream.read_to_end(&mut Vec::new()).await;
                Ok(())
            })
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tasks.spawn("test listener", server.accept(listener));
        address
    }

    /// Connects, and returns the connection and its greeting, which is empty if the server closes it.
    async fn greeting(address: SocketAddr) -> (TcpStream, String) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let mut greeting = String::new();
        _ = (&mut stream).take(5).read_to_string(&mut greeting).await;
        (stream, greeting)
    }

    #[tokio::test]
    async fn connections_are_served_within_the_limits_until_the_tasks_end() {
        let tasks = Background::default();
        let address = started(&tasks, 2, |_| ()).await;
        let (first, second) = (greeting(address).await, greeting(address).await);
        assert_eq!((&*first.1, &*second.1), ("hello", "hello"));
        assert_eq!(greeting(address).await.1, "");
        assert_eq!(REFUSED.get(), 1);
        let mut open = first.0;
        tasks.stop(Duration::from_secs(10)).await;
        assert_eq!(open.read(&mut [0]).await.unwrap(), 0);
        assert!(TcpStream::connect(address).await.is_err());
    }

    #[tokio::test]
    async fn silent_connections_and_old_ones_are_closed() {
        let tasks = Background::default();
        let soon = Some(Duration::from_millis(20));
        let address = started(&tasks, 2, |options| options.silence = soon).await;
        assert_eq!(greeting(address).await.1, "");
        let address = started(&tasks, 2, |options| options.lifetime = soon).await;
        let (mut open, greeting) = greeting(address).await;
        assert_eq!(greeting, "hello");
        assert_eq!(open.read(&mut [0]).await.unwrap(), 0);
    }
}

//! Addresses, and listening on them: TCP for the network, unix sockets for this host.

use std::fmt;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};

use super::TransportError;
use super::io::{ReadHalf, WriteHalf};
use super::keepalive::Keepalive;

/// The address of a socket: `tcp://host:port` or `ipc:///path`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A host (name or address) and a port.
    Tcp(String, u16),
    /// A unix socket.
    Ipc(PathBuf),
}

impl FromStr for Endpoint {
    type Err = TransportError;

    fn from_str(text: &str) -> Result<Self, TransportError> {
        let bad = || TransportError::BadEndpoint(text.to_owned());
        if let Some(path) = text.strip_prefix("ipc://") {
            return if path.is_empty() { Err(bad()) } else { Ok(Endpoint::Ipc(path.into())) };
        }
        let (host, port) = text.strip_prefix("tcp://").and_then(|rest| rest.rsplit_once(':')).ok_or_else(bad)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(bad());
        }
        Ok(Endpoint::Tcp(host.to_owned(), port.parse().map_err(|_| bad())?))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(host, port) if host.contains(':') => write!(f, "tcp://[{host}]:{port}"),
            Endpoint::Tcp(host, port) => write!(f, "tcp://{host}:{port}"),
            Endpoint::Ipc(path) => write!(f, "ipc://{}", path.display()),
        }
    }
}

impl Endpoint {
    /// Connects. A TCP connection is opened from the address and port `source`, if given.
    pub(super) async fn open(
        &self,
        source: Option<SocketAddr>,
        keepalive: Keepalive,
    ) -> Result<(ReadHalf, WriteHalf), TransportError> {
        match self {
            Endpoint::Tcp(host, port) => {
                let resolved = tokio::net::lookup_host((host.as_str(), *port)).await;
                let addresses: Vec<SocketAddr> = resolved
                    .map_err(|source| TransportError::Unresolved {
                        endpoint: self.to_string(),
                        source: Arc::new(source),
                    })?
                    .collect();
                let connected = match source {
                    None => TcpStream::connect(&addresses[..]).await,
                    Some(source) => connect_from(source, host, &addresses).await,
                };
                let stream = connected.map_err(TransportError::io(self))?;
                tracing::debug!(endpoint = %self, "connected");
                prepare(&stream, keepalive);
                let (read, write) = stream.into_split();
                Ok((ReadHalf::Tcp(read), WriteHalf::Tcp(write)))
            }
            Endpoint::Ipc(path) => {
                let stream = UnixStream::connect(path).await.map_err(TransportError::io(self))?;
                tracing::debug!(endpoint = %self, "connected");
                let (read, write) = stream.into_split();
                Ok((ReadHalf::Unix(read), WriteHalf::Unix(write)))
            }
        }
    }
}

/// Connects to the first reachable address of a host, among those of the address family of `source`.
async fn connect_from(source: SocketAddr, host: &str, addresses: &[SocketAddr]) -> std::io::Result<TcpStream> {
    let mut failed = std::io::Error::new(
        std::io::ErrorKind::AddrNotAvailable,
        format!("{host} has no address that can be reached from {}", source.ip()),
    );
    for &address in addresses.iter().filter(|address| address.is_ipv4() == source.is_ipv4()) {
        let connected = match connect_by(source, address).await {
            // The port is in use by another process of the minion, or by another program.
            Err(error) if source.port() != 0 && is_taken(&error) => {
                tracing::debug!(%source, "the port of this side is taken: connecting from another one");
                connect_by(SocketAddr::new(source.ip(), 0), address).await
            }
            connected => connected,
        };
        match connected {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn is_taken(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::AddrInUse | std::io::ErrorKind::AddrNotAvailable)
}

async fn connect_by(source: SocketAddr, address: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = if source.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A previous connection from this port may still be closing.
    socket.set_reuseaddr(true)?;
    socket.bind(source)?;
    if source.port() != 0 {
        // The next connection has the same addresses and ports: the closed socket must not stay in TIME_WAIT.
        socket.set_zero_linger()?;
    }
    socket.connect(address).await
}

/// Sets the socket options: no Nagle delay, as messages are small, and keepalive, so that vanished peers are noticed.
fn prepare(stream: &TcpStream, keepalive: Keepalive) {
    _ = stream.set_nodelay(true);
    if let Err(error) = keepalive.apply(stream) {
        tracing::debug!(%error, ?keepalive, "setting the TCP keepalive failed");
    }
}

/// The settings of a TCP port.
#[derive(Debug, Clone, Copy)]
pub struct PortOptions {
    /// The number of connections that wait to be accepted; the system has a limit of its own, too.
    pub backlog: u32,
    /// The keepalive of accepted connections.
    pub keepalive: Keepalive,
}

impl Default for PortOptions {
    fn default() -> Self {
        PortOptions { backlog: 1000, keepalive: Keepalive::default() }
    }
}

/// Listens on the first address of a host that can be bound.
async fn listen(host: &str, port: u16, backlog: u32) -> std::io::Result<TcpListener> {
    let mut failed = std::io::Error::new(std::io::ErrorKind::InvalidInput, format!("{host} has no address"));
    for address in tokio::net::lookup_host((host, port)).await? {
        let listening = (|| {
            let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            socket.listen(backlog.max(1))
        })();
        match listening {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// The system's limit on the path of a unix socket, in bytes.
const MAX_PATH: usize = 107;

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    endpoint: Endpoint,
    socket: Socket,
    keepalive: Keepalive,
    /// Device and inode of the unix socket's file.
    file: Option<(u64, u64)>,
}

/// A connection before its handshake.
pub(super) struct Accepted {
    pub read: ReadHalf,
    pub write: WriteHalf,
    /// The peer's address, if it is a network address.
    pub address: Option<SocketAddr>,
    /// Whether the peer runs on this host.
    pub is_local: bool,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Listens at an address. A unix socket gets mode 0600; a stale one is replaced, one in use is an error. Port 0
    /// selects any free port.
    pub async fn bind(endpoint: &Endpoint) -> Result<Self, TransportError> {
        Self::bind_port(endpoint, PortOptions::default()).await
    }

    /// As [`Listener::bind`], with the settings of a TCP port.
    pub async fn bind_port(endpoint: &Endpoint, port_options: PortOptions) -> Result<Self, TransportError> {
        let PortOptions { backlog, keepalive } = port_options;
        let failed = || TransportError::io(endpoint);
        match endpoint {
            Endpoint::Tcp(host, port) => {
                let listener = listen(host, *port, backlog).await.map_err(failed())?;
                let port = listener.local_addr().map_err(failed())?.port();
                let endpoint = Endpoint::Tcp(host.clone(), port);
                tracing::debug!(%endpoint, "listening");
                Ok(Listener { endpoint, socket: Socket::Tcp(listener), keepalive, file: None })
            }
            Endpoint::Ipc(path) => {
                Self::check(endpoint)?;
                if UnixStream::connect(path).await.is_ok() {
                    return Err(failed()(std::io::Error::new(
                        std::io::ErrorKind::AddrInUse,
                        "another process listens there: is it running already?",
                    )));
                }
                match std::fs::remove_file(path) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed()(error)),
                    _ => {}
                }
                let listener = UnixListener::bind(path).map_err(failed())?;
                // The directory of the sockets is private.
                #[allow(clippy::disallowed_methods)]
                std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).map_err(failed())?;
                let file = Some(file_of(path).map_err(failed())?);
                tracing::debug!(%endpoint, "listening");
                Ok(Listener { endpoint: endpoint.clone(), socket: Socket::Unix(listener), keepalive, file })
            }
        }
    }

    /// Checks that the system accepts an endpoint's path, without opening anything.
    ///
    /// # Errors
    /// The path of a unix socket is too long.
    pub fn check(endpoint: &Endpoint) -> Result<(), TransportError> {
        match endpoint {
            Endpoint::Ipc(path) if path.as_os_str().len() > MAX_PATH => {
                let message = format!("the path has more than {MAX_PATH} bytes: set sock_dir to a shorter directory");
                Err(TransportError::io(endpoint)(std::io::Error::other(message)))
            }
            _ => Ok(()),
        }
    }

    /// Returns the address, with the actual port.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Waits for the next connection. Retries after failures of a single connection or missing file descriptors.
    pub(super) async fn accept(&self) -> Accepted {
        loop {
            let accepted = match &self.socket {
                Socket::Tcp(listener) => listener.accept().await.map(|(stream, address)| {
                    prepare(&stream, self.keepalive);
                    // A peer with the same address as the local end runs on this host.
                    let is_local = stream.local_addr().is_ok_and(|own| own.ip() == address.ip());
                    let (read, write) = stream.into_split();
                    let (read, write) = (ReadHalf::Tcp(read), WriteHalf::Tcp(write));
                    Accepted { read, write, address: Some(address), is_local }
                }),
                Socket::Unix(listener) => listener.accept().await.map(|(stream, _)| {
                    let (read, write) = stream.into_split();
                    let (read, write) = (ReadHalf::Unix(read), WriteHalf::Unix(write));
                    Accepted { read, write, address: None, is_local: true }
                }),
            };
            match accepted {
                Ok(connection) => return connection,
                Err(error) => {
                    crate::metrics::ACCEPT_FAILED.add(1);
                    tracing::warn!(endpoint = %self.endpoint, %error, "accepting a connection failed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
}

/// Returns device and inode of a file.
fn file_of(path: &Path) -> std::io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Endpoint::Ipc(path) = &self.endpoint
            // A file that another process has created since must not be removed.
            && file_of(path).ok() == self.file
        {
            _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests;

//! A connection to a server. It is opened by the first operation, so that a master may start before the server, and
//! reopened after a failure.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use parking_lot::Mutex;

/// The pauses before the retries over a new connection.
const RETRIES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];

/// The timeout of a connection attempt, and of each reply of a key-value server.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// Opens a TCP connection to the first address of a host that accepts it. Each attempt, read and write ends after
/// [`TIMEOUT`].
pub(crate) fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut refused = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// At most one open connection, used by one operation at a time.
pub(crate) struct Connection<C> {
    slot: Mutex<Option<C>>,
}

impl<C> Connection<C> {
    /// Creates a closed connection.
    pub(crate) fn new() -> Self {
        Connection { slot: Mutex::new(None) }
    }

    /// Runs an operation, and retries it over a new connection while `is_lost` holds for the error. The server may have
    /// completed a failed operation: it must be idempotent. A connection with a failed operation is closed, because
    /// replies or a transaction may be pending.
    ///
    /// # Errors
    /// The last error of `connect` or `operation`.
    pub(crate) fn run<T, E: std::fmt::Display>(
        &self,
        server: &str,
        connect: impl Fn() -> Result<C, E>,
        is_lost: impl Fn(&E) -> bool,
        operation: impl Fn(&mut C) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut slot = self.slot.lock();
        let mut attempt = || {
            let mut connection = slot.take().map_or_else(&connect, Ok)?;
            let result = operation(&mut connection);
            if result.is_ok() {
                *slot = Some(connection);
            }
            result
        };
        let mut result = attempt();
        for wait in RETRIES {
            match &result {
                Err(error) if is_lost(error) => {
                    tracing::debug!(server, %error, "connection failed; retrying over a new one");
                    std::thread::sleep(wait);
                    result = attempt();
                }
                _ => break,
            }
        }
        result
    }
}

#[cfg(test)]
mod tests;

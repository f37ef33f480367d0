//! Peers on a unix socket that do not speak ZeroMQ: detected by their first bytes, and passed to the service.

use std::time::Duration;

use bytes::BytesMut;
use tokio::net::UnixStream;

use super::TransportError;
use super::io::{ReadHalf, WriteHalf};

/// The first byte of a ZeroMQ greeting.
const GREETING: u8 = 0xff;

/// A connection whose peer does not speak ZeroMQ.
pub struct ForeignStream {
    /// The connection.
    pub stream: UnixStream,
    /// The bytes that the peer has sent so far.
    pub received: BytesMut,
}

/// The timeout after which a peer that has sent nothing is treated as foreign. ZeroMQ peers send their greeting at
/// once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SilenceTimeout {
    /// No timeout.
    Never,
    /// The timeout, from the start of the connection.
    After(Duration),
}

/// A connection before its handshake, by the protocol of its peer.
pub(super) enum Sniffed {
    ZeroMq(ReadHalf, WriteHalf, BytesMut),
    Foreign(ForeignStream),
}

/// Returns the PID of the peer, if it is known; TCP peers have none.
pub(super) fn peer_pid(read: &ReadHalf) -> Option<i32> {
    match read {
        ReadHalf::Unix(half) => half.as_ref().peer_cred().ok()?.pid(),
        ReadHalf::Tcp(_) => None,
    }
}

/// Waits for the first bytes of a peer, and returns its connection by protocol.
pub(super) async fn sniff(
    read: ReadHalf,
    write: WriteHalf,
    silence_timeout: SilenceTimeout,
) -> Result<Sniffed, TransportError> {
    let (ReadHalf::Unix(half), WriteHalf::Unix(other)) = (read, write) else {
        return Err(TransportError::Handshake("only unix sockets have foreign peers"));
    };
    let mut received = BytesMut::zeroed(64);
    let first = async {
        loop {
            half.readable().await?;
            match half.try_read(&mut received) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    };
    let first = match silence_timeout {
        SilenceTimeout::Never => Some(first.await),
        SilenceTimeout::After(time) => tokio::time::timeout(time, first).await.ok(),
    };
    let count = match first {
        None => 0,
        Some(Ok(count @ 1..)) => count,
        Some(Ok(0) | Err(_)) => return Err(TransportError::Closed),
    };
    received.truncate(count);
    if received.first() == Some(&GREETING) {
        return Ok(Sniffed::ZeroMq(ReadHalf::Unix(half), WriteHalf::Unix(other), received));
    }
    let stream = half.reunite(other).map_err(|_| TransportError::Closed)?;
    Ok(Sniffed::Foreign(ForeignStream { stream, received }))
}

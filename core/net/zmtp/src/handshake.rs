//! The handshake of ZMTP 3.0, mechanism NULL: greeting, socket types, properties.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, BytesMut};

use super::bounds::Trust;
use super::io::{ReadHalf, Reader, WriteHalf, Writer};
use super::zmtp::{Framing, Limits, Message};
use super::{Endpoint, TransportError};

const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
const GREETING_SIZE: usize = 64;

/// The supported socket types, of this side and of peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SocketType {
    Req,
    Dealer,
    Router,
    Rep,
    Pub,
    XPub,
    Sub,
    XSub,
    Push,
    Pull,
}

impl SocketType {
    fn name(self) -> &'static str {
        match self {
            SocketType::Req => "REQ",
            SocketType::Dealer => "DEALER",
            SocketType::Router => "ROUTER",
            SocketType::Rep => "REP",
            SocketType::Pub => "PUB",
            SocketType::XPub => "XPUB",
            SocketType::Sub => "SUB",
            SocketType::XSub => "XSUB",
            SocketType::Push => "PUSH",
            SocketType::Pull => "PULL",
        }
    }

    fn talks_to(self, peer: &[u8]) -> bool {
        let peers: &[&str] = match self {
            SocketType::Router => &["REQ", "DEALER", "ROUTER"],
            SocketType::Dealer => &["REP", "DEALER", "ROUTER"],
            SocketType::Req => &["REP", "ROUTER"],
            SocketType::Rep => &["REQ", "DEALER"],
            SocketType::Pub | SocketType::XPub => &["SUB", "XSUB"],
            SocketType::Sub | SocketType::XSub => &["PUB", "XPUB"],
            SocketType::Push => &["PULL"],
            SocketType::Pull => &["PUSH"],
        };
        peers.iter().any(|name| name.as_bytes() == peer)
    }

    /// Returns the error of a connection to a socket of another type. Exchanged ports are the usual cause.
    fn mismatch(self, peer: &[u8]) -> TransportError {
        match (self, peer) {
            (SocketType::Req | SocketType::Dealer, b"PUB" | b"XPUB") => TransportError::PublishPort,
            (SocketType::Sub | SocketType::XSub, b"ROUTER" | b"REP") => TransportError::RequestPort,
            _ => TransportError::Handshake("its socket type is incompatible with this socket"),
        }
    }
}

/// Connects to an address and completes the handshake, if the framing has one.
pub async fn connect(
    endpoint: &Endpoint,
    as_type: SocketType,
    limits: Limits,
) -> Result<(Reader, Writer), TransportError> {
    let in_time = async {
        let (read, write) = endpoint.open(limits.source, limits.keepalive).await?;
        let reader = Reader::new(read, BytesMut::new(), limits, None);
        handshake(reader, Writer::new(write, limits.framing), as_type).await
    };
    let timed_out = |_| TransportError::TimedOut { endpoint: endpoint.to_string(), after: HANDSHAKE_TIME };
    match tokio::time::timeout(HANDSHAKE_TIME, in_time).await.map_err(timed_out)? {
        // A master with another transport closes the connection, as it cannot parse the greeting.
        Err(TransportError::Closed) if matches!(endpoint, Endpoint::Tcp(..)) => {
            Err(TransportError::NoHandshake { endpoint: endpoint.to_string() })
        }
        connected => connected,
    }
}

/// Completes the handshake with a peer that has connected, within ten seconds.
pub(super) async fn accept(
    read: ReadHalf,
    write: WriteHalf,
    received: BytesMut,
    as_type: SocketType,
    limits: Limits,
    trust: Option<Arc<Trust>>,
) -> Result<(Reader, Writer), TransportError> {
    let timed_out = |_| TransportError::Handshake("it did not finish its greeting in time");
    let shake = handshake(Reader::new(read, received, limits, trust), Writer::new(write, limits.framing), as_type);
    tokio::time::timeout(HANDSHAKE_TIME, shake).await.map_err(timed_out)?
}

async fn handshake(
    mut reader: Reader,
    mut writer: Writer,
    as_type: SocketType,
) -> Result<(Reader, Writer), TransportError> {
    if reader.limits.framing == Framing::Salt {
        return Ok((reader, writer));
    }
    let mut greeting = [0; GREETING_SIZE];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    writer.push_raw(&greeting);
    let mut ready = BytesMut::from(&b"\x05READY"[..]);
    put_property(&mut ready, "Socket-Type", as_type.name().as_bytes());
    put_property(&mut ready, "Identity", b"");
    if as_type == SocketType::Router {
        put_property(&mut ready, PIPELINES_REQUESTS, b"");
    }
    writer.push_command(&ready);
    writer.flush().await?;

    let theirs = reader.exactly(GREETING_SIZE).await?;
    if theirs[0] != 0xff || theirs[9] != 0x7f {
        return Err(TransportError::Handshake("it sent no ZMTP greeting"));
    }
    if theirs[10] < 3 {
        return Err(TransportError::Handshake("it speaks a version before 3"));
    }
    if &theirs[12..17] != b"NULL\0" {
        return Err(TransportError::Handshake("it requires another security mechanism"));
    }
    let limits = std::mem::replace(&mut reader.limits, Limits { message: 4096, frames: 1, ..Limits::default() });
    let Message::Command(command) = reader.read().await? else {
        return Err(TransportError::Handshake("it sent a message before its READY command"));
    };
    reader.limits = limits;
    let Some(properties) = command.strip_prefix(b"\x05READY") else {
        return Err(TransportError::Handshake("its first command is not READY"));
    };
    reader.pipelines_requests = property(properties, PIPELINES_REQUESTS).is_some();
    match property(properties, "socket-type") {
        Some(peer) if as_type.talks_to(peer) => Ok((reader, writer)),
        peer => Err(as_type.mismatch(peer.unwrap_or_default())),
    }
}

/// The property by which a request server announces that it returns the frames in front of a request, so that several
/// can be in progress on one connection. Brine's servers do, Salt's only if one process serves the port.
const PIPELINES_REQUESTS: &str = "X-Any-Order";

fn put_property(out: &mut BytesMut, name: &str, value: &[u8]) {
    // Names and values are those of this file.
    out.put_u8(u8::try_from(name.len()).unwrap_or(u8::MAX));
    out.put_slice(name.as_bytes());
    out.put_u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
    out.put_slice(value);
}

fn property<'a>(mut properties: &'a [u8], key: &str) -> Option<&'a [u8]> {
    while let Some((&length, rest)) = properties.split_first() {
        let (name, rest) = rest.split_at_checked(length.into())?;
        let (size, rest) = rest.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*size) as usize)?;
        if name.eq_ignore_ascii_case(key.as_bytes()) {
            return Some(value);
        }
        properties = rest;
    }
    None
}

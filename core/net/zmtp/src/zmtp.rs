//! ZMTP 3.0: frames and commands, and the limits on them.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};

use super::keepalive::Keepalive;

/// The framing of messages on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// ZeroMQ's, with a handshake.
    #[default]
    Zmtp,
    /// Salt's msgpack mappings over TCP (`transport: tcp`), without a handshake.
    Salt,
}

impl Framing {
    /// Returns the framing of `transport: tcp` or of `transport: zeromq`.
    pub fn of_transport(is_tcp: bool) -> Self {
        if is_tcp { Framing::Salt } else { Framing::Zmtp }
    }
}

/// The limits on messages of one peer, and the settings of the connection.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The framing of messages.
    pub framing: Framing,
    /// The maximum bytes of one message, all frames together.
    pub message: usize,
    /// The maximum frames of one message.
    pub frames: usize,
    /// The address and port from which this side connects over the network, if not the system's choice.
    pub source: Option<SocketAddr>,
    /// The keepalive of connections that this side opens over the network.
    pub keepalive: Keepalive,
    /// The time within which a subscriber must receive the rest of a message that has begun.
    pub message_time: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        let (framing, keepalive) = (Framing::default(), Keepalive::default());
        Limits { framing, message: 64 << 20, frames: 16, source: None, keepalive, message_time: None }
    }
}

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// The frames of one message.
    Frames(Vec<Bytes>),
    /// A command of the protocol, such as `PING` or `SUBSCRIBE`: its name, then its content.
    Command(Bytes),
    /// The first frames of a message that exceeds its sender's limit: the others are dropped.
    Dropped(Vec<Bytes>),
}

/// Returns the flags, header length and content length of the first frame in the buffer; `None` if its header is
/// incomplete.
pub(super) fn peek(buffer: &[u8]) -> Option<(u8, usize, u64)> {
    let flags = *buffer.first()?;
    if flags & 2 == 0 {
        return Some((flags, 2, u64::from(*buffer.get(1)?)));
    }
    let length: [u8; 8] = buffer.get(1..9)?.try_into().ok()?;
    Some((flags, 9, u64::from_be_bytes(length)))
}

/// Appends one frame to the output.
pub(super) fn put_frame(out: &mut BytesMut, content: &[u8], flags: u8) {
    put_header(out, content.len(), flags);
    out.put_slice(content);
}

pub(super) fn put_header(out: &mut BytesMut, size: usize, flags: u8) {
    if let Ok(short) = u8::try_from(size) {
        out.put_slice(&[flags, short]);
    } else {
        out.put_u8(flags | 2);
        out.put_u64(size as u64);
    }
}

/// Returns the reply to a `PING`, with its context of at most 16 bytes; `None` for other commands.
pub(super) fn pong(command: &[u8]) -> Option<Vec<u8>> {
    let rest = command.strip_prefix(b"\x04PING")?;
    let context = rest.get(2..)?;
    Some([b"\x04PONG", &context[..context.len().min(16)]].concat())
}

/// Whether a command is the reply to a heartbeat.
pub(super) fn is_pong(command: &[u8]) -> bool {
    command.starts_with(b"\x04PONG")
}

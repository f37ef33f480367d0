//! ZMTP 3.0, mechanism NULL: greeting, handshake, frames.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::AsyncWriteExt;
use tokio::net::{tcp, unix};

use super::{Endpoint, TransportError};

const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
const GREETING_SIZE: usize = 64;
/// How much is read at once: little at first, as most peers send little.
const READ_FIRST: usize = 4 << 10;
const READ_MOST: usize = 128 << 10;

/// What one peer may send.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of one message, all its frames together.
    pub message: usize,
    /// Frames of one message.
    pub frames: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { message: 64 << 20, frames: 16 }
    }
}

/// The socket types that are spoken here or with.
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
}

/// What came from a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// The frames of one message.
    Frames(Vec<Bytes>),
    /// A command of the protocol, such as `PING` or `SUBSCRIBE`: its name, then its content.
    Command(Bytes),
}

pub(super) enum ReadHalf {
    Tcp(tcp::OwnedReadHalf),
    Unix(unix::OwnedReadHalf),
}

pub(super) enum WriteHalf {
    Tcp(tcp::OwnedWriteHalf),
    Unix(unix::OwnedWriteHalf),
}

/// The reading side of a connection.
pub struct Reader {
    half: ReadHalf,
    buffer: BytesMut,
    chunk: usize,
    limits: Limits,
    frames: Vec<Bytes>,
    size: usize,
    any_order: bool,
}

/// The writing side of a connection.
pub struct Writer {
    half: WriteHalf,
    buffer: BytesMut,
}

impl Reader {
    /// Whether the peer is a request server that sends back whatever stands in front of a request.
    pub fn any_order(&self) -> bool {
        self.any_order
    }

    /// The next message. Safe to drop while it waits: nothing is lost.
    pub async fn read(&mut self) -> Result<Message, TransportError> {
        loop {
            if let Some(message) = self.buffered()? {
                return Ok(message);
            }
            self.fill().await?;
        }
    }

    /// The next message if it is here already.
    pub fn buffered(&mut self) -> Result<Option<Message>, TransportError> {
        loop {
            let Some((flags, header, size)) = peek(&self.buffer) else { return Ok(None) };
            let total = size.saturating_add(self.size as u64);
            if total > self.limits.message as u64 || self.frames.len() >= self.limits.frames {
                return Err(TransportError::TooLarge { size: total, limit: self.limits.message });
            }
            let size = size as usize;
            if self.buffer.len() < header + size {
                return Ok(None);
            }
            self.buffer.advance(header);
            let content = self.buffer.split_to(size).freeze();
            if flags & 4 != 0 {
                return Ok(Some(Message::Command(content)));
            }
            self.size += size;
            self.frames.push(content);
            if flags & 1 == 0 {
                self.size = 0;
                return Ok(Some(Message::Frames(std::mem::take(&mut self.frames))));
            }
        }
    }

    async fn fill(&mut self) -> Result<(), TransportError> {
        loop {
            if self.buffer.is_empty() {
                // While nothing comes, a connection holds no buffer: there may be twenty thousand. Not even when it
                // was said that something has come and nothing had.
                self.buffer = BytesMut::new();
            }
            match &self.half {
                ReadHalf::Tcp(half) => half.readable().await?,
                ReadHalf::Unix(half) => half.readable().await?,
            }
            // Announced sizes are not reserved: memory follows what really comes.
            self.buffer.reserve(self.chunk);
            let mut space = (&mut self.buffer).limit(self.chunk);
            let read = match &self.half {
                ReadHalf::Tcp(half) => half.try_read_buf(&mut space),
                ReadHalf::Unix(half) => half.try_read_buf(&mut space),
            };
            match read {
                Ok(0) => return Err(TransportError::Closed),
                Ok(read) => {
                    self.chunk = if read == self.chunk { (self.chunk * 2).min(READ_MOST) } else { self.chunk };
                    return Ok(());
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn exactly(&mut self, count: usize) -> Result<Bytes, TransportError> {
        while self.buffer.len() < count {
            self.fill().await?;
        }
        Ok(self.buffer.split_to(count).freeze())
    }
}

/// Flags, header length and content length of the frame that the buffer starts with.
fn peek(buffer: &[u8]) -> Option<(u8, usize, u64)> {
    let flags = *buffer.first()?;
    if flags & 2 == 0 {
        return Some((flags, 2, u64::from(*buffer.get(1)?)));
    }
    let length: [u8; 8] = buffer.get(1..9)?.try_into().ok()?;
    Some((flags, 9, u64::from_be_bytes(length)))
}

/// Appends one frame to what will be written.
pub(super) fn put_frame(out: &mut BytesMut, content: &[u8], flags: u8) {
    put_header(out, content.len(), flags);
    out.put_slice(content);
}

fn put_header(out: &mut BytesMut, size: usize, flags: u8) {
    if let Ok(short) = u8::try_from(size) {
        out.put_slice(&[flags, short]);
    } else {
        out.put_u8(flags | 2);
        out.put_u64(size as u64);
    }
}

impl Writer {
    /// Appends a message to what the next [`flush`](Writer::flush) writes.
    pub fn push(&mut self, frames: &[impl AsRef<[u8]>]) {
        for (i, frame) in frames.iter().enumerate() {
            put_frame(&mut self.buffer, frame.as_ref(), u8::from(i + 1 < frames.len()));
        }
    }

    /// Appends a command.
    pub(super) fn push_command(&mut self, content: &[u8]) {
        put_frame(&mut self.buffer, content, 4);
    }

    /// Appends bytes that are frames already.
    pub(super) fn push_raw(&mut self, frames: &[u8]) {
        self.buffer.put_slice(frames);
    }

    /// How many bytes wait for the next flush.
    pub fn waiting(&self) -> usize {
        self.buffer.len()
    }

    /// Writes what has been appended.
    pub async fn flush(&mut self) -> Result<(), TransportError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        match &mut self.half {
            WriteHalf::Tcp(half) => half.write_all(&buffer).await?,
            WriteHalf::Unix(half) => half.write_all(&buffer).await?,
        }
        // A large buffer is not kept for a connection that may stay silent.
        if buffer.capacity() <= READ_FIRST {
            buffer.clear();
            self.buffer = buffer;
        }
        Ok(())
    }

    /// Writes bytes that are frames already, shared with other connections.
    pub(super) async fn write_raw(&mut self, frames: &[u8]) -> Result<(), TransportError> {
        match &mut self.half {
            WriteHalf::Tcp(half) => half.write_all(frames).await?,
            WriteHalf::Unix(half) => half.write_all(frames).await?,
        }
        Ok(())
    }

    /// Writes one message.
    pub async fn send(&mut self, frames: &[impl AsRef<[u8]>]) -> Result<(), TransportError> {
        self.push(frames);
        self.flush().await
    }
}

/// Connects to an address and shakes hands.
pub async fn connect(
    endpoint: &Endpoint,
    as_type: SocketType,
    limits: Limits,
) -> Result<(Reader, Writer), TransportError> {
    let in_time = async {
        let (read, write) = endpoint.open().await?;
        handshake(read, write, as_type, limits).await
    };
    let timed_out = |_| TransportError::TimedOut { endpoint: endpoint.to_string(), after: HANDSHAKE_TIME };
    tokio::time::timeout(HANDSHAKE_TIME, in_time).await.map_err(timed_out)?
}

/// A connection before its handshake.
pub struct Accepted {
    read: ReadHalf,
    write: WriteHalf,
    /// Who has connected: an address, or `local`.
    pub address: String,
}

impl Accepted {
    /// Shakes hands, within ten seconds.
    pub async fn handshake(self, as_type: SocketType, limits: Limits) -> Result<(Reader, Writer), TransportError> {
        let timed_out = |_| TransportError::Handshake("it did not finish its greeting in time");
        let shake = handshake(self.read, self.write, as_type, limits);
        tokio::time::timeout(HANDSHAKE_TIME, shake).await.map_err(timed_out)?
    }
}

/// Takes the next connection of a listener.
pub(crate) async fn accept_raw(listener: &super::Listener) -> Accepted {
    let (read, write, address) = listener.accept().await;
    Accepted { read, write, address }
}

async fn handshake(
    read: ReadHalf,
    write: WriteHalf,
    as_type: SocketType,
    limits: Limits,
) -> Result<(Reader, Writer), TransportError> {
    let mut reader = Reader {
        half: read,
        buffer: BytesMut::new(),
        chunk: READ_FIRST,
        limits,
        frames: Vec::new(),
        size: 0,
        any_order: false,
    };
    let mut writer = Writer { half: write, buffer: BytesMut::new() };

    let mut greeting = [0; GREETING_SIZE];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    writer.push_raw(&greeting);
    let mut ready = BytesMut::from(&b"\x05READY"[..]);
    put_property(&mut ready, "Socket-Type", as_type.name().as_bytes());
    put_property(&mut ready, "Identity", b"");
    if as_type == SocketType::Router {
        put_property(&mut ready, ANY_ORDER, b"");
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
        return Err(TransportError::Handshake("it wants an encryption mechanism"));
    }
    let limits = std::mem::replace(&mut reader.limits, Limits { message: 4096, frames: 1 });
    let Message::Command(command) = reader.read().await? else {
        return Err(TransportError::Handshake("it sent a message before it was ready"));
    };
    reader.limits = limits;
    let Some(properties) = command.strip_prefix(b"\x05READY") else {
        return Err(TransportError::Handshake("it is not ready"));
    };
    reader.any_order = property(properties, ANY_ORDER).is_some();
    match property(properties, "socket-type") {
        Some(peer) if as_type.talks_to(peer) => Ok((reader, writer)),
        _ => Err(TransportError::Handshake("its socket type does not fit this socket")),
    }
}

/// The property by which a request server tells that it sends back whatever stands in front of a request, so
/// that many can be under way on one connection. Brine's do, Salt's only where one process serves the port.
const ANY_ORDER: &str = "X-Any-Order";

fn put_property(out: &mut BytesMut, name: &str, value: &[u8]) {
    out.put_u8(name.len() as u8);
    out.put_slice(name.as_bytes());
    out.put_u32(value.len() as u32);
    out.put_slice(value);
}

fn property<'a>(mut properties: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    while let Some((&length, rest)) = properties.split_first() {
        let (name, rest) = rest.split_at_checked(length.into())?;
        let (size, rest) = rest.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*size) as usize)?;
        if name.eq_ignore_ascii_case(wanted.as_bytes()) {
            return Some(value);
        }
        properties = rest;
    }
    None
}

/// The answer to a `PING`, if the command is one.
pub(super) fn pong(command: &[u8]) -> Option<Vec<u8>> {
    let rest = command.strip_prefix(b"\x04PING")?;
    let context = rest.get(2..)?;
    Some([b"\x04PONG", context].concat())
}

/// The prefixes that a subscriber has asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subscriptions(pub Vec<Bytes>);

impl Subscriptions {
    /// How many prefixes one subscriber may have.
    const MOST: usize = 1024;

    /// Takes a change of subscription, in either of its forms; other messages change nothing.
    pub fn change(&mut self, message: &Message) {
        let (add, prefix) = match message {
            Message::Frames(frames) => {
                match frames.first().and_then(|frame| frame.split_first().map(|split| (frame, split))) {
                    Some((frame, (1, prefix))) => (true, frame.slice_ref(prefix)),
                    Some((frame, (0, prefix))) => (false, frame.slice_ref(prefix)),
                    _ => return,
                }
            }
            Message::Command(command) => {
                if let Some(prefix) = command.strip_prefix(b"\x09SUBSCRIBE") {
                    (true, command.slice_ref(prefix))
                } else if let Some(prefix) = command.strip_prefix(b"\x06CANCEL") {
                    (false, command.slice_ref(prefix))
                } else {
                    return;
                }
            }
        };
        if add && self.0.len() < Self::MOST {
            // A slice would hold the whole buffer that it was read into.
            self.0.push(Bytes::copy_from_slice(&prefix));
        } else if let (false, Some(at)) = (add, self.0.iter().position(|have| *have == prefix)) {
            self.0.swap_remove(at);
        }
    }

    /// Whether the subscriber wants a message that starts so. `by_name`: the subscription to everything does
    /// not count.
    pub fn wants(&self, topic: &[u8], by_name: bool) -> bool {
        self.0.iter().any(|prefix| topic.starts_with(prefix) && !(by_name && prefix.is_empty()))
    }
}

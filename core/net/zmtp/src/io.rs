//! The two sides of a connection: a reader that yields messages within the peer's limits and memory, and a writer.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::AsyncWriteExt;
use tokio::net::{tcp, unix};
use tokio::time::Instant;

use super::TransportError;
use super::bounds::{Admitted, Memory, Trust};
use super::salt_tcp::{self, Decoder};
use super::zmtp::{Framing, Limits, Message, peek, put_frame, put_header};

/// The size of the first read: small, as most peers send little.
const FIRST_READ: usize = 4 << 10;
const MAX_READ: usize = 128 << 10;
/// The size of a read of a message that is dropped.
const DROPPED_READ: usize = 16 << 10;
/// Bytes of a message that need no memory reservation. An authentication fits.
const UNRESERVED: usize = 4 << 10;
/// The maximum length of a command.
const MAX_COMMAND: usize = 8 << 10;
/// A write buffer of at most this capacity is kept for the next message.
const MAX_KEPT_BUFFER: usize = 512;
/// Content up to this size is copied behind its headers; larger content is written without a copy.
const MAX_COPIED: usize = 16 << 10;

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
    pub(super) limits: Limits,
    frames: Vec<Bytes>,
    size: usize,
    pub(super) pipelines_requests: bool,
    /// The current message of a peer with Salt's framing.
    decoder: Decoder,
    /// Grants memory to the peer; `None` for outgoing connections.
    trust: Option<Arc<Trust>>,
    /// The memory reservation of the current message.
    memory: Option<Memory>,
    granted: usize,
    /// Bytes of the current frame that the buffer has room for and that have not arrived; 0 if unknown.
    missing: usize,
    dropped: Option<Dropped>,
    /// The time at which the current message must be complete, once it has begun. Heartbeats between its frames do not
    /// move it.
    deadline: Option<Instant>,
}

/// A message that is discarded while it is read.
struct Dropped {
    /// Remaining bytes of its current frame.
    left: u64,
    has_more: bool,
}

/// The next step after parsing the buffer.
enum Step {
    Message(Message),
    /// Read more bytes.
    Fill,
    /// Wait for memory for a message of this size.
    Wait(usize),
}

impl Reader {
    /// Creates the reader of a connection of which these bytes have been read.
    pub(super) fn new(half: ReadHalf, received: BytesMut, limits: Limits, trust: Option<Arc<Trust>>) -> Self {
        Reader {
            half,
            buffer: received,
            chunk: FIRST_READ,
            limits,
            frames: Vec::new(),
            size: 0,
            pipelines_requests: false,
            decoder: Decoder::default(),
            trust,
            memory: None,
            granted: UNRESERVED,
            missing: 0,
            dropped: None,
            deadline: None,
        }
    }

    /// Whether the peer is a request server that returns the frames in front of a request, so that requests can be
    /// pipelined.
    pub fn pipelines_requests(&self) -> bool {
        self.pipelines_requests
    }

    /// Returns the framing of messages.
    pub(super) fn framing(&self) -> Framing {
        self.limits.framing
    }

    /// Returns the next message. Cancel safe.
    pub async fn read(&mut self) -> Result<Message, TransportError> {
        self.read_within(None).await
    }

    /// Returns the next message, which must be complete within this time once it has begun. Waits for the first byte
    /// without limit.
    pub(super) async fn read_within(&mut self, time: Option<Duration>) -> Result<Message, TransportError> {
        loop {
            match self.step()? {
                Step::Message(message) => return Ok(message),
                Step::Wait(size) => {
                    let Some(trust) = self.trust.clone() else { return Err(TransportError::Closed) };
                    match trust.wait_for_memory(size).await {
                        Some(memory) => self.grant(size, memory),
                        None => self.drop_content(),
                    }
                    // While the reader waited for memory, the peer could not make progress: the deadline starts anew.
                    self.deadline = None;
                }
                Step::Fill => {
                    let has_begun = !self.buffer.is_empty() || !self.frames.is_empty() || self.dropped.is_some();
                    if let Some(time) = time.filter(|_| has_begun) {
                        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + time);
                        let filled = tokio::time::timeout_at(deadline, self.fill()).await;
                        filled.map_err(|_| TransportError::Unfinished { after: time })??;
                    } else {
                        self.fill().await?;
                    }
                }
            }
        }
    }

    /// Returns the next message if it is already buffered.
    pub fn buffered(&mut self) -> Result<Option<Message>, TransportError> {
        match self.step()? {
            Step::Message(message) => Ok(Some(message)),
            Step::Fill | Step::Wait(_) => Ok(None),
        }
    }

    /// Takes the memory reservation of the last message, to be held as long as the message.
    pub(super) fn take_memory(&mut self) -> Option<Memory> {
        self.memory.take()
    }

    fn step(&mut self) -> Result<Step, TransportError> {
        match self.limits.framing {
            Framing::Zmtp => self.step_frame(),
            Framing::Salt => self.step_message(),
        }
    }

    fn step_frame(&mut self) -> Result<Step, TransportError> {
        loop {
            if let Some(dropped) = &mut self.dropped {
                let here = self.buffer.len().min(usize::try_from(dropped.left).unwrap_or(usize::MAX));
                self.buffer.advance(here);
                dropped.left -= here as u64;
                if dropped.left > 0 {
                    return Ok(Step::Fill);
                }
                if !dropped.has_more {
                    self.dropped = None;
                    return Ok(Step::Message(Message::Dropped(self.finish())));
                }
            }
            let Some((flags, header, size)) = peek(&self.buffer) else { return Ok(Step::Fill) };
            let total = size.saturating_add(self.size as u64);
            let too_large = TransportError::TooLarge { size: total, limit: self.limits.message };
            let (Ok(size), Ok(total)) = (usize::try_from(size), usize::try_from(total)) else { return Err(too_large) };
            if total > self.limits.message || self.frames.len() >= self.limits.frames {
                return Err(too_large);
            }
            let is_command = flags & 4 != 0;
            if is_command && size > MAX_COMMAND {
                return Err(TransportError::TooLarge { size: size as u64, limit: MAX_COMMAND });
            }
            if let Some(dropped) = &mut self.dropped {
                self.buffer.advance(header);
                self.size = total;
                (dropped.left, dropped.has_more) = (size as u64, flags & 1 != 0);
                continue;
            }
            if !is_command && self.needs_memory(total) {
                if !self.reserve(total) {
                    return Ok(Step::Wait(total));
                }
                continue;
            }
            let missing = (header + size).saturating_sub(self.buffer.len());
            if missing > 0 {
                if self.memory.is_some() {
                    // Exactly the granted size: a buffer that grows by doubling may take twice as much.
                    self.buffer.reserve(missing);
                    self.missing = missing;
                }
                return Ok(Step::Fill);
            }
            self.missing = 0;
            self.buffer.advance(header);
            let content = self.buffer.split_to(size).freeze();
            if is_command {
                if self.frames.is_empty() {
                    self.deadline = None;
                }
                return Ok(Step::Message(Message::Command(content)));
            }
            self.size = total;
            self.frames.push(content);
            if flags & 1 == 0 {
                return Ok(Step::Message(Message::Frames(self.finish())));
            }
        }
    }

    /// As [`Reader::step_frame`], with Salt's framing. The frames of a message are its head, an empty one and its body:
    /// those of a request whose return route is the head.
    fn step_message(&mut self) -> Result<Step, TransportError> {
        loop {
            let is_complete = self.decoder.examine(&self.buffer)?;
            let size = self.decoder.minimum();
            let too_large = TransportError::TooLarge { size, limit: self.limits.message };
            let Some(size) = usize::try_from(size).ok().filter(|size| *size <= self.limits.message) else {
                return Err(too_large);
            };
            if self.dropped.is_some() {
                if !self.decoder.has_head() {
                    return Err(TransportError::Malformed("the head of a message is too large"));
                }
                self.buffer.advance(self.decoder.remove_examined());
                if !is_complete {
                    return Ok(Step::Fill);
                }
                self.dropped = None;
                let (head, _) = self.decoder.take(&mut self.buffer);
                self.finish();
                return Ok(Step::Message(Message::Dropped(vec![head, Bytes::new()])));
            }
            if self.needs_memory(size) {
                if !self.reserve(size) {
                    return Ok(Step::Wait(size));
                }
                continue;
            }
            if !is_complete {
                let missing = size.saturating_sub(self.buffer.len());
                // The minimum size may be far below the actual one, and many small reads would be slow.
                self.missing = if self.memory.is_some() && missing > FIRST_READ { missing } else { 0 };
                self.buffer.reserve(self.missing);
                return Ok(Step::Fill);
            }
            self.missing = 0;
            let (head, body) = self.decoder.take(&mut self.buffer);
            self.finish();
            return Ok(Step::Message(Message::Frames(vec![head, Bytes::new(), body])));
        }
    }

    /// Whether a message of this size needs more memory than the peer has been granted.
    fn needs_memory(&self, size: usize) -> bool {
        self.trust.is_some() && size > self.granted
    }

    /// Reserves memory for the current message, or drops the message. Returns false if the reader must wait for memory.
    fn reserve(&mut self, size: usize) -> bool {
        let has_grown = self.memory.take().is_some();
        match self.trust.as_ref().map_or(Admitted::No, |trust| trust.admit(size)) {
            Admitted::Yes(memory) => self.grant(size, memory),
            Admitted::Later if !has_grown => return false,
            // A waiting message holds no memory, so one that has grown is dropped.
            Admitted::Later | Admitted::No => self.drop_content(),
        }
        true
    }

    /// Drops the current message except for its return route, which ends with an empty frame. The number of its frames
    /// remains, by which the router refuses malformed requests.
    fn drop_content(&mut self) {
        let content = self.frames.iter().position(Bytes::is_empty).map_or(0, |delimiter| delimiter + 1);
        self.frames[content..].fill(Bytes::from_static(b"dropped"));
        self.dropped = Some(Dropped { left: 0, has_more: true });
    }

    fn grant(&mut self, size: usize, memory: Memory) {
        (self.granted, self.memory) = (size, Some(memory));
    }

    /// Finishes a message and returns its frames.
    fn finish(&mut self) -> Vec<Bytes> {
        if let Some(trust) = &self.trust {
            trust.received();
        }
        (self.size, self.granted, self.deadline) = (0, UNRESERVED, None);
        std::mem::take(&mut self.frames)
    }

    /// Returns the size of the next read. An unauthenticated peer gets no more than the reservation of its message.
    fn chunk(&self) -> usize {
        match &self.trust {
            _ if self.dropped.is_some() => DROPPED_READ,
            _ if self.missing > 0 => MAX_READ.min(self.missing),
            Some(trust) if !trust.is_authenticated() => self.chunk.min(self.granted),
            _ => self.chunk,
        }
    }

    async fn fill(&mut self) -> Result<(), TransportError> {
        loop {
            if self.buffer.is_empty() {
                // Idle connections, of which there may be twenty thousand, hold no buffer, even after a spurious
                // wake-up.
                self.buffer = BytesMut::new();
            }
            match &self.half {
                ReadHalf::Tcp(half) => half.readable().await?,
                ReadHalf::Unix(half) => half.readable().await?,
            }
            // Only granted sizes are reserved in advance: otherwise memory follows the received bytes.
            let chunk = self.chunk();
            self.buffer.reserve(chunk);
            let mut space = (&mut self.buffer).limit(chunk);
            let read = match &self.half {
                ReadHalf::Tcp(half) => half.try_read_buf(&mut space),
                ReadHalf::Unix(half) => half.try_read_buf(&mut space),
            };
            match read {
                Ok(0) => return Err(TransportError::Closed),
                Ok(read) => {
                    self.chunk = if read == self.chunk { (self.chunk * 2).min(MAX_READ) } else { self.chunk };
                    return Ok(());
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(super) async fn exactly(&mut self, count: usize) -> Result<Bytes, TransportError> {
        while self.buffer.len() < count {
            self.fill().await?;
        }
        Ok(self.buffer.split_to(count).freeze())
    }
}

/// The writing side of a connection.
pub struct Writer {
    half: WriteHalf,
    framing: Framing,
    buffer: BytesMut,
    /// Content after the buffer, shared with other connections or too large to copy.
    content: Bytes,
}

impl Writer {
    pub(super) fn new(half: WriteHalf, framing: Framing) -> Self {
        Writer { half, framing, buffer: BytesMut::new(), content: Bytes::new() }
    }

    /// Appends a message for the next [`flush`](Writer::flush).
    pub fn push(&mut self, frames: &[impl AsRef<[u8]>]) {
        self.merge_content();
        for (i, frame) in frames.iter().enumerate() {
            put_frame(&mut self.buffer, frame.as_ref(), u8::from(i + 1 < frames.len()));
        }
    }

    /// Appends a message of small frames and one of any size, without copying a large one. Returns whether the writer
    /// must be flushed before the next message. With Salt's framing the first frame is the encoded head, and the content
    /// the encoded body.
    pub(super) fn push_content(&mut self, head: &[Bytes], content: &Bytes) -> bool {
        self.merge_content();
        if self.framing == Framing::Salt {
            salt_tcp::put_start(&mut self.buffer, head.first().unwrap_or(&salt_tcp::NO_HEAD));
            return self.push_shared(content);
        }
        for frame in head {
            put_frame(&mut self.buffer, frame, 1);
        }
        put_header(&mut self.buffer, content.len(), 0);
        self.push_shared(content)
    }

    /// Appends an encoded message, without copying large ones. Returns whether the writer must be flushed before the next
    /// message.
    pub(super) fn push_shared(&mut self, encoded: &Bytes) -> bool {
        self.merge_content();
        if encoded.len() <= MAX_COPIED {
            self.buffer.put_slice(encoded);
        } else {
            self.content = encoded.clone();
        }
        self.waiting() > MAX_COPIED
    }

    /// Appends a small frame of a message with further frames; Salt's framing has none.
    pub(super) fn push_more(&mut self, frame: &[u8]) {
        if self.framing == Framing::Salt {
            return;
        }
        self.merge_content();
        put_frame(&mut self.buffer, frame, 1);
    }

    /// Appends a command.
    pub(super) fn push_command(&mut self, content: &[u8]) {
        self.merge_content();
        put_frame(&mut self.buffer, content, 4);
    }

    /// Appends encoded frames.
    pub(super) fn push_raw(&mut self, frames: &[u8]) {
        self.merge_content();
        self.buffer.put_slice(frames);
    }

    /// Moves the content into the buffer, so that data appended next keeps its order.
    fn merge_content(&mut self) {
        if !self.content.is_empty() {
            self.buffer.put_slice(&std::mem::take(&mut self.content));
        }
    }

    /// Returns the number of bytes that wait for the next flush.
    pub fn waiting(&self) -> usize {
        self.buffer.len() + self.content.len()
    }

    /// Writes all appended data. Cancel safe: the next call continues.
    pub async fn flush(&mut self) -> Result<(), TransportError> {
        while self.waiting() > 0 {
            let mut rest = (&mut self.buffer).chain(&mut self.content);
            let written = match &mut self.half {
                WriteHalf::Tcp(half) => half.write_buf(&mut rest).await?,
                WriteHalf::Unix(half) => half.write_buf(&mut rest).await?,
            };
            if written == 0 {
                return Err(TransportError::Closed);
            }
        }
        // An idle connection must not hold a large buffer.
        if self.buffer.capacity() > MAX_KEPT_BUFFER {
            self.buffer = BytesMut::new();
        }
        self.content = Bytes::new();
        Ok(())
    }

    /// Writes one message.
    pub async fn send(&mut self, frames: &[impl AsRef<[u8]>]) -> Result<(), TransportError> {
        self.push(frames);
        self.flush().await
    }
}

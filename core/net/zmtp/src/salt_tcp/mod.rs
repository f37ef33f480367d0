//! Salt's framing of messages over TCP (`transport: tcp`): a stream of msgpack mappings of `head` and `body`, without
//! lengths. Owns the decoder that finds the end of a message in bytes that arrive in parts.
//!
//! The decoder examines each byte once and stores no values, so neither deep nesting nor an announced length costs
//! memory. It knows the minimum size of an incomplete message, by which the reader applies the limits of its peer.

mod scanner;

use bytes::{BufMut, Bytes, BytesMut};

use super::TransportError;
use scanner::Scanner;

/// The encoding in front of a head: a mapping of two keys, and the first key.
const START: &[u8] = b"\x82\xa4head";
/// The encoding in front of a body: the second key.
const BODY: &[u8] = b"\xa4body";
/// A head without fields.
pub(super) const NO_HEAD: Bytes = Bytes::from_static(b"\x80");
/// The maximum length of a head. Heads of requests contain one short id.
const MAX_HEAD: u64 = 1 << 10;
/// The first byte of a ZeroMQ greeting.
const ZEROMQ: u8 = 0xff;

/// Encodes everything in front of a body.
pub(super) fn put_start(out: &mut BytesMut, head: &[u8]) {
    out.put_slice(START);
    out.put_slice(head);
    out.put_slice(BODY);
}

/// Encodes a message without a head whose body is this content as bytes.
pub(super) fn encode(content: &[u8]) -> Bytes {
    let mut encoded = BytesMut::with_capacity(START.len() + BODY.len() + content.len() + 6);
    put_start(&mut encoded, &NO_HEAD);
    encoded.put_u8(0xc6);
    // Messages are limited to less than 4 GiB.
    encoded.put_u32(u32::try_from(content.len()).unwrap_or(u32::MAX));
    encoded.put_slice(content);
    encoded.freeze()
}

/// Finds the end of the message at the start of a buffer.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    part: Part,
    scanner: Scanner,
    /// The number of examined bytes at the start of the buffer.
    at: usize,
    /// The number of examined bytes that have been removed from the buffer.
    removed: u64,
    head: Bytes,
    /// The position of the body in the buffer.
    body: usize,
}

/// The part of a message that the decoder examines.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    #[default]
    Start,
    Head,
    Key,
    Body,
    End,
}

impl Decoder {
    /// Examines the new bytes of the buffer, and returns whether the message is complete.
    ///
    /// # Errors
    /// The bytes are no message.
    pub fn examine(&mut self, buffer: &[u8]) -> Result<bool, TransportError> {
        loop {
            let new = buffer.get(self.at..).unwrap_or_default();
            let (next, length) = match self.part {
                Part::Start if new.first() == Some(&ZEROMQ) => return Err(TransportError::SpeaksZeroMq),
                Part::Start => (Part::Head, literal(new, START)?),
                Part::Head => {
                    let (length, is_complete) = self.scanner.advance(new)?;
                    if (self.at + length - START.len()) as u64 + self.scanner.minimum() > MAX_HEAD {
                        return Err(TransportError::Malformed("the head of a message is too large"));
                    }
                    if is_complete {
                        let head = &buffer[START.len()..self.at + length];
                        if !matches!(head.first(), Some(0x80..=0x8f | 0xde | 0xdf)) {
                            return Err(TransportError::Malformed("the head of a message is not a mapping"));
                        }
                        // A slice would keep the whole receive buffer alive.
                        self.head = Bytes::copy_from_slice(head);
                    } else {
                        self.at += length;
                    }
                    (Part::Key, is_complete.then_some(length))
                }
                Part::Key => (Part::Body, literal(new, BODY)?),
                Part::Body => {
                    let (length, is_complete) = self.scanner.advance(new)?;
                    if !is_complete {
                        self.at += length;
                    }
                    (Part::End, is_complete.then_some(length))
                }
                Part::End => return Ok(true),
            };
            let Some(length) = length else { return Ok(false) };
            self.at += length;
            match next {
                Part::Head => self.scanner = Scanner::default(),
                Part::Body => (self.scanner, self.body) = (Scanner::default(), self.at),
                _ => {}
            }
            self.part = next;
        }
    }

    /// Returns the size that the message has at least, in bytes.
    pub fn minimum(&self) -> u64 {
        let missing = if self.part == Part::End { 0 } else { self.scanner.minimum() };
        (self.removed + self.at as u64).saturating_add(missing)
    }

    /// Whether the head is complete.
    pub fn has_head(&self) -> bool {
        matches!(self.part, Part::Key | Part::Body | Part::End)
    }

    /// Returns the number of examined bytes, which the caller removes from the buffer because the message is dropped.
    pub fn remove_examined(&mut self) -> usize {
        let examined = std::mem::take(&mut self.at);
        self.removed += examined as u64;
        examined
    }

    /// Removes the complete message from the buffer, and starts with the next one. Returns head and body, encoded.
    pub fn take(&mut self, buffer: &mut BytesMut) -> (Bytes, Bytes) {
        let Decoder { at, head, body, .. } = std::mem::take(self);
        let message = buffer.split_to(at).freeze();
        (head, message.slice(body.min(at)..))
    }
}

/// Returns the length of the literal if the bytes begin with it; `None` if they are too few to know.
fn literal(bytes: &[u8], literal: &[u8]) -> Result<Option<usize>, TransportError> {
    let length = bytes.len().min(literal.len());
    if bytes[..length] != literal[..length] {
        return Err(TransportError::Malformed("a message is not a mapping of 'head' and 'body'"));
    }
    Ok((length == literal.len()).then_some(length))
}

#[cfg(test)]
mod peers_tests;
#[cfg(test)]
mod tests;

//! Events: a tag, a body, and the sequence number on the bus.
//!
//! The body stays packed until it is decoded. On sockets an event is encoded as its tag, two newlines and the packed
//! body, as in Salt.

use brine_ids::MinionId;
use brine_value::levels::{self, MAX_LEVELS, TooDeep};
use brine_value::{FromValue, Map, Value, msgpack};
use bytes::Bytes;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The field with the sequence number, set by the bus alone.
pub const SEQ: &str = "_seq";
/// The field with the time of publication in UTC, `2026-11-21T01:02:03.000004+00:00`, set by the bus alone.
pub const STAMP: &str = "_stamp";
/// The field with the `_stamp` set by the sender: for information, never for decisions.
pub const SENDER_STAMP: &str = "_sender_stamp";
/// The field with the authenticated id of the minion that sent the event. Only [`Event::from_minion`] sets it; the bus
/// removes it from all other events, so that it cannot be forged.
pub const FROM: &str = "_from";
/// The field with the id of the cluster member on whose bus the event was published first. Only [`Event::from_member`]
/// sets it; the bus removes it from all other events.
pub const ORIGIN: &str = "_origin";
/// The field with the sequence number on the bus of [`ORIGIN`].
pub const ORIGIN_SEQ: &str = "_origin_seq";
/// The field of a job whose arguments are masked in events and in the job cache: a reference to the real ones, for the
/// master alone.
pub const MASKED: &str = "_masked";
/// The maximum length of a tag, in bytes.
pub const MAX_TAG: usize = 4096;

const SEPARATOR: &[u8] = b"\n\n";

/// An event. Cheap to clone: all copies share one buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    seq: u64,
    frame: Bytes,
    tag_len: usize,
    authority: Authority,
}

/// The party that vouches for the fields about an event's origin until it is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Authority {
    /// No party: `_from`, `_origin` and `_origin_seq` are removed.
    Nobody,
    /// The master, which has set `_from`; the other two fields are removed.
    Master,
    /// Another member of the cluster, which has set or checked all of them.
    Member,
}

/// The errors of an invalid event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The separator is missing.
    #[error("invalid event: expected a tag, two newlines and a msgpack map")]
    NoSeparator,
    /// The tag is empty, too long or not UTF-8.
    #[error("invalid tag of an event: expected 1 to {MAX_TAG} bytes of UTF-8")]
    BadTag,
    /// The body is not exactly one msgpack map.
    #[error("invalid body of an event: expected one msgpack map: {0}")]
    BadBody(#[from] msgpack::UnpackError),
    /// The body nests deeper than [`MAX_LEVELS`].
    #[error("invalid event: {0}")]
    TooDeep(#[from] TooDeep),
}

impl Event {
    /// Creates an event; validates that the body is one packed map.
    pub fn new(tag: &str, body: &[u8]) -> Result<Self, EventError> {
        check_tag(tag)?;
        check_body(body)?;
        Ok(Self::join(tag, 0, |frame| frame.extend_from_slice(body)))
    }

    /// Creates an event with this body.
    pub fn from_map(tag: &str, body: &Map) -> Result<Self, EventError> {
        levels::check(body)?;
        Self::from_trusted_map(tag, body)
    }

    /// Creates an event of a journal from its body, which is not checked for its depth: earlier versions took more
    /// levels.
    pub fn from_trusted_map(tag: &str, body: &Map) -> Result<Self, EventError> {
        check_tag(tag)?;
        Ok(Self::join(tag, 0, |frame| msgpack::pack_map_into(frame, body)))
    }

    /// Creates an event on behalf of an authenticated minion, whose id is set as [`FROM`].
    pub fn from_minion(tag: &str, mut body: Map, id: &MinionId) -> Result<Self, EventError> {
        body.insert(FROM.into(), Value::from(id));
        Ok(Event { authority: Authority::Master, ..Self::from_map(tag, &body)? })
    }

    /// Creates the copy of an event that another member of the cluster has published as `seq`. `frame` is its socket
    /// encoding there; a [`FROM`] in it is kept.
    pub fn from_member(frame: Bytes, member: &str, seq: u64) -> Result<Self, EventError> {
        let event = Self::from_frame(frame)?;
        let (len, header) = msgpack::scan(event.body(), |_| ())?;
        let own = event.body();
        let mut body = Vec::with_capacity(own.len() + 64);
        // Writing into a `Vec` cannot fail.
        _ = rmp::encode::write_map_len(&mut body, len + 2);
        body.extend_from_slice(&own[header..]);
        _ = rmp::encode::write_str(&mut body, ORIGIN);
        _ = rmp::encode::write_str(&mut body, member);
        _ = rmp::encode::write_str(&mut body, ORIGIN_SEQ);
        _ = rmp::encode::write_uint(&mut body, seq);
        let joined = Self::join(event.tag(), 0, |frame| frame.extend_from_slice(&body));
        Ok(Event { authority: Authority::Member, ..joined })
    }

    /// Decodes the socket encoding.
    pub fn from_frame(frame: Bytes) -> Result<Self, EventError> {
        let event = Self::from_trusted_frame(0, frame)?;
        check_body(event.body())?;
        Ok(event)
    }

    /// Decodes the socket encoding of a trusted event from the journal, without validating the body.
    pub fn from_trusted_frame(seq: u64, frame: Bytes) -> Result<Self, EventError> {
        let (tag, _) = split(&frame).ok_or(EventError::NoSeparator)?;
        check_tag(std::str::from_utf8(tag).map_err(|_| EventError::BadTag)?)?;
        let tag_len = tag.len();
        Ok(Event { seq, frame, tag_len, authority: Authority::Nobody })
    }

    fn join(tag: &str, seq: u64, write_body: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut frame = Vec::with_capacity(tag.len() + 256);
        frame.extend_from_slice(tag.as_bytes());
        frame.extend_from_slice(SEPARATOR);
        write_body(&mut frame);
        Event { seq, frame: frame.into(), tag_len: tag.len(), authority: Authority::Nobody }
    }

    /// Returns the sequence number; 0 before the event is published.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the tag, such as `salt/auth`.
    pub fn tag(&self) -> &str {
        // Validated on creation.
        std::str::from_utf8(&self.frame[..self.tag_len]).unwrap_or_default()
    }

    /// Returns the body: one packed msgpack map.
    pub fn body(&self) -> &[u8] {
        &self.frame[self.tag_len + SEPARATOR.len()..]
    }

    /// Returns the socket encoding.
    pub fn frame(&self) -> &Bytes {
        &self.frame
    }

    /// Decodes the body. It was validated on creation, so decoding fails only for an event of an old journal that
    /// [nests too deep](Event::is_deeper); then the result is empty.
    pub fn data(&self) -> Map {
        msgpack::unpack_map(self.body()).unwrap_or_default()
    }

    /// Whether the body nests deeper than this many levels.
    pub fn is_deeper(&self, levels: usize) -> bool {
        // Validated on creation.
        msgpack::is_deeper(self.body(), levels).unwrap_or_default()
    }

    /// Returns the time of publication from `_stamp`, in microseconds since 1970.
    pub fn time(&self) -> Option<u64> {
        let mut stamp = None;
        // The body was validated on creation.
        _ = msgpack::scan(self.body(), |entry| {
            if entry.key == Some(STAMP) {
                stamp = msgpack::unpack(entry.value).ok();
            }
        });
        let time: DateTime = stamp?.as_str()?.parse().ok()?;
        u64::try_from(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_microsecond()).ok()
    }

    /// Returns the cluster member that published the event first, and its sequence number there; `None` for an event of
    /// this master. Only meaningful for published events.
    pub fn origin(&self) -> Option<(String, u64)> {
        let (mut member, mut seq) = (None, None);
        // The body was validated on creation.
        _ = msgpack::scan(self.body(), |entry| match entry.key {
            Some(ORIGIN) => member = msgpack::unpack(entry.value).ok(),
            Some(ORIGIN_SEQ) => seq = msgpack::unpack(entry.value).ok(),
            _ => {}
        });
        Some((member?.as_str()?.to_owned(), u64::from_value(&seq?)?))
    }

    /// Returns the event as published: with the bus's `_seq` and `_stamp`. A sender's `_stamp` moves to
    /// [`SENDER_STAMP`]; a [`FROM`] that the master did not set is removed.
    pub fn stamped(&self, seq: u64, stamp: &str) -> Result<Self, EventError> {
        let body = self.body();
        let mut reserved = Vec::new();
        let mut entry_start = None;
        let (len, header) = msgpack::scan(body, |entry| {
            let end = entry.offset + entry.value.len();
            match entry.key {
                Some(SEQ) => reserved.push((Reserved::Removed, entry_start, entry.offset, end)),
                Some(STAMP) => reserved.push((Reserved::Moved, entry_start, entry.offset, end)),
                Some(FROM) if self.authority == Authority::Nobody => {
                    reserved.push((Reserved::Removed, entry_start, entry.offset, end));
                }
                Some(ORIGIN | ORIGIN_SEQ) if self.authority < Authority::Member => {
                    reserved.push((Reserved::Removed, entry_start, entry.offset, end));
                }
                _ => {}
            }
            entry_start = Some(end);
        })?;
        let removed = reserved.iter().filter(|(kind, ..)| *kind == Reserved::Removed).count() as u32;
        let mut frame = Vec::with_capacity(self.frame.len() + 64);
        frame.extend_from_slice(&self.frame[..self.tag_len + SEPARATOR.len()]);
        // Writing into a `Vec` cannot fail.
        _ = rmp::encode::write_map_len(&mut frame, len - removed + 2);
        let mut copied = header;
        for (kind, start, value, end) in reserved {
            frame.extend_from_slice(&body[copied..start.unwrap_or(header)]);
            if kind == Reserved::Moved {
                _ = rmp::encode::write_str(&mut frame, SENDER_STAMP);
                frame.extend_from_slice(&body[value..end]);
            }
            copied = end;
        }
        frame.extend_from_slice(&body[copied..]);
        _ = rmp::encode::write_str(&mut frame, SEQ);
        _ = rmp::encode::write_uint(&mut frame, seq);
        _ = rmp::encode::write_str(&mut frame, STAMP);
        _ = rmp::encode::write_str(&mut frame, stamp);
        Ok(Event { seq, frame: frame.into(), ..*self })
    }
}

/// The treatment of a field that only the bus may set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reserved {
    Removed,
    Moved,
}

/// Checks that a body is one packed map, and not too deep.
fn check_body(body: &[u8]) -> Result<(), EventError> {
    if msgpack::is_map_deeper(body, MAX_LEVELS)? { Err(TooDeep.into()) } else { Ok(()) }
}

fn check_tag(tag: &str) -> Result<(), EventError> {
    if tag.is_empty() || tag.len() > MAX_TAG || tag.contains('\n') { Err(EventError::BadTag) } else { Ok(()) }
}

/// Splits the socket encoding of an event into tag and body.
pub fn split(frame: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = frame.windows(SEPARATOR.len()).position(|window| window == SEPARATOR)?;
    Some((&frame[..at], &frame[at + SEPARATOR.len()..]))
}

/// Returns the current time in the format of stamps.
pub fn stamp() -> String {
    stamp_of(Timestamp::now())
}

/// Formats a time as a stamp.
pub fn stamp_of(time: Timestamp) -> String {
    let micros = time.subsec_nanosecond().unsigned_abs() / 1000;
    format!("{}.{micros:06}+00:00", time.strftime("%Y-%m-%dT%H:%M:%S"))
}

#[cfg(test)]
mod tests;

//! Events: a tag, a body, and the place that the bus gave them.
//!
//! The body stays packed until somebody looks into it. On sockets an event is its tag, two newlines
//! and the packed body, as Salt has it.

use brine_ids::MinionId;
use brine_value::{Map, Value, msgpack};
use bytes::Bytes;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The field with the sequence number, set by the bus alone.
pub const SEQ: &str = "_seq";
/// The field with the time of publication in UTC, `2026-11-21T01:02:03.000004+00:00`, set by the bus alone.
pub const STAMP: &str = "_stamp";
/// The field that holds the `_stamp` that a sender had set itself: for information, never for decisions.
pub const SENDER_STAMP: &str = "_sender_stamp";
/// The field with the authenticated id of the minion that sent the event. Only [`Event::from_minion`] sets it; the
/// bus removes it from every other event, so that nobody can claim it.
pub const FROM: &str = "_from";
/// The longest tag that is taken.
pub const MAX_TAG: usize = 4096;

const SEPARATOR: &[u8] = b"\n\n";

/// Something that happened. Cheap to clone: all copies share one buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    seq: u64,
    frame: Bytes,
    tag_len: usize,
    /// Whether `_from` was set by the master, and not by a sender.
    authenticated: bool,
}

/// Why bytes are not an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// There are no two newlines.
    #[error("an event is a tag, two newlines and a msgpack map; there are no two newlines")]
    NoSeparator,
    /// The tag is no text, empty or too long.
    #[error("an event's tag is 1 to {MAX_TAG} bytes of text")]
    BadTag,
    /// The body is not one whole msgpack map.
    #[error("an event's body is one msgpack map: {0}")]
    BadBody(#[from] msgpack::UnpackError),
}

impl Event {
    /// An event from its parts; the body is checked to be one packed map.
    pub fn new(tag: &str, body: &[u8]) -> Result<Self, EventError> {
        check_tag(tag)?;
        msgpack::scan(body, |_| ())?;
        Ok(Self::join(tag, 0, |frame| frame.extend_from_slice(body)))
    }

    /// An event whose body is this mapping.
    pub fn from_map(tag: &str, body: &Map) -> Result<Self, EventError> {
        check_tag(tag)?;
        Ok(Self::join(tag, 0, |frame| msgpack::pack_map_into(frame, body)))
    }

    /// Creates an event on behalf of an authenticated minion, whose id goes into [`FROM`].
    pub fn from_minion(tag: &str, mut body: Map, id: &MinionId) -> Result<Self, EventError> {
        body.insert(FROM.into(), Value::from(id));
        Ok(Event { authenticated: true, ..Self::from_map(tag, &body)? })
    }

    /// Reads the form on sockets.
    pub fn from_frame(frame: Bytes) -> Result<Self, EventError> {
        let event = Self::from_trusted_frame(0, frame)?;
        msgpack::scan(event.body(), |_| ())?;
        Ok(event)
    }

    /// Reads the form on sockets where the body has been checked before: what comes out of the journal.
    pub fn from_trusted_frame(seq: u64, frame: Bytes) -> Result<Self, EventError> {
        let (tag, _) = split(&frame).ok_or(EventError::NoSeparator)?;
        check_tag(std::str::from_utf8(tag).map_err(|_| EventError::BadTag)?)?;
        let tag_len = tag.len();
        Ok(Event { seq, frame, tag_len, authenticated: false })
    }

    fn join(tag: &str, seq: u64, write_body: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut frame = Vec::with_capacity(tag.len() + 256);
        frame.extend_from_slice(tag.as_bytes());
        frame.extend_from_slice(SEPARATOR);
        write_body(&mut frame);
        Event { seq, frame: frame.into(), tag_len: tag.len(), authenticated: false }
    }

    /// The place on the bus, rising by one; 0 before the bus has seen the event.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// What happened, such as `salt/auth`.
    pub fn tag(&self) -> &str {
        // Checked when the event was made.
        std::str::from_utf8(&self.frame[..self.tag_len]).unwrap_or_default()
    }

    /// The details: one packed msgpack map.
    pub fn body(&self) -> &[u8] {
        &self.frame[self.tag_len + SEPARATOR.len()..]
    }

    /// The form on sockets.
    pub fn frame(&self) -> &Bytes {
        &self.frame
    }

    /// The body as a mapping. Bodies are checked when an event is made, so this fails only for
    /// bodies that nest too deep; such a one reads as empty.
    pub fn data(&self) -> Map {
        msgpack::unpack_map(self.body()).unwrap_or_default()
    }

    /// When it happened, in microseconds since 1970, as it is stamped; nothing if it has no stamp.
    pub fn time(&self) -> Option<u64> {
        let mut stamp = None;
        // The body was checked when the event was made.
        _ = msgpack::scan(self.body(), |entry| {
            if entry.key == Some(STAMP) {
                stamp = msgpack::unpack(entry.value).ok();
            }
        });
        let time: DateTime = stamp?.as_str()?.parse().ok()?;
        u64::try_from(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_microsecond()).ok()
    }

    /// Returns the event as the bus carries it: `_seq` and `_stamp` are the bus's own. A sender's `_stamp` moves to
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
                Some(FROM) if !self.authenticated => reserved.push((Reserved::Removed, entry_start, entry.offset, end)),
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

/// The treatment of a field that only the bus sets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reserved {
    Removed,
    Moved,
}

fn check_tag(tag: &str) -> Result<(), EventError> {
    if tag.is_empty() || tag.len() > MAX_TAG || tag.contains('\n') { Err(EventError::BadTag) } else { Ok(()) }
}

/// Tag and body of an event's form on sockets.
pub fn split(frame: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = frame.windows(SEPARATOR.len()).position(|window| window == SEPARATOR)?;
    Some((&frame[..at], &frame[at + SEPARATOR.len()..]))
}

/// The time now, as events carry it.
pub fn stamp() -> String {
    stamp_of(Timestamp::now())
}

/// A time as events carry it.
pub fn stamp_of(time: Timestamp) -> String {
    let micros = time.subsec_nanosecond().unsigned_abs() / 1000;
    format!("{}.{micros:06}+00:00", time.strftime("%Y-%m-%dT%H:%M:%S"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use brine_value::{Value, map};

    #[test]
    fn frames_go_both_ways() {
        let event = Event::from_map("salt/auth", &map! {"id" => "web1"}).unwrap();
        assert!(event.frame().starts_with(b"salt/auth\n\n\x81"));
        assert_eq!((event.tag(), event.data()), ("salt/auth", map! {"id" => "web1"}));
        assert_eq!(Event::from_frame(event.frame().clone()), Ok(event.clone()));
        assert_eq!(Event::new(event.tag(), event.body()), Ok(event));
    }

    #[test]
    fn what_is_no_event_is_refused() {
        for (frame, error) in [
            (&b""[..], EventError::NoSeparator),
            (b"tag", EventError::NoSeparator),
            (b"\n\n\x80", EventError::BadTag),
            (b"\xff\xfe\n\n\x80", EventError::BadTag),
            (b"tag\n\n\x81", EventError::BadBody(msgpack::UnpackError::Truncated(1))),
            (b"tag\n\n\x01", EventError::BadBody(msgpack::UnpackError::NotAMap)),
            (b"tag\n\n\x80\x80", EventError::BadBody(msgpack::UnpackError::Trailing(1))),
        ] {
            assert_eq!(Event::from_frame(Bytes::from_static(frame)), Err(error), "{frame:?}");
        }
    }

    #[test]
    fn the_bus_sets_number_and_stamp() {
        let stamp = |map: Map| {
            let event = Event::from_map("t", &map).unwrap().stamped(7, "now").unwrap();
            assert_eq!((event.tag(), event.seq()), ("t", 7));
            event.data()
        };
        assert_eq!(stamp(map! {}), map! {"_seq" => 7, "_stamp" => "now"});
        let moved = map! {"a" => 1, "_sender_stamp" => "then", "_seq" => 7, "_stamp" => "now"};
        assert_eq!(stamp(map! {"a" => 1, "_stamp" => "then"}), moved);
        assert_eq!(stamp(map! {"_stamp" => "then", "a" => 1}), moved);
        assert_eq!(stamp(map! {"_seq" => 900, "a" => 1}), map! {"_seq" => 7, "a" => 1, "_stamp" => "now"});
        assert_eq!(stamp(map! {"_from" => "db1", "a" => 1}), map! {"_seq" => 7, "a" => 1, "_stamp" => "now"});
    }

    #[test]
    fn only_the_master_names_the_sender() {
        let id = "web1".parse().unwrap();
        let event = Event::from_minion("t", map! {"_from" => "db1", "a" => 1}, &id).unwrap();
        let stamped = event.stamped(7, "now").unwrap();
        assert_eq!(stamped.data(), map! {"_from" => "web1", "a" => 1, "_seq" => 7, "_stamp" => "now"});
        let pushed = Event::from_frame(stamped.frame().clone()).unwrap();
        assert_eq!(pushed.stamped(8, "later").unwrap().data().get("_from"), None);
    }

    #[test]
    fn stamps_have_six_digits() {
        let time = Timestamp::from_microsecond(1_000_004).unwrap();
        assert_eq!(stamp_of(time), "1970-01-01T00:00:01.000004+00:00");
        let event = Event::from_map("t", &map! {"x" => 1}).unwrap();
        assert_eq!(event.time(), None);
        assert_eq!(event.stamped(1, &stamp_of(time)).unwrap().time(), Some(1_000_004));
    }

    proptest! {
        #[test]
        fn stamping_keeps_the_rest(entries in prop::collection::btree_map("[a-z]{1,300}", any::<i64>(), 0..40), seq: u64) {
            let map: Map = entries.into_iter().map(|(k, v)| (Value::from(k), Value::from(v))).collect();
            let mut out = Event::from_map("t", &map).unwrap().stamped(seq, "s").unwrap().data();
            prop_assert_eq!(out.shift_remove("_seq"), Some(Value::from(seq)));
            prop_assert_eq!(out.shift_remove("_stamp"), Some(Value::from("s")));
            prop_assert_eq!(out, map);
        }

        #[test]
        fn any_frame_is_read_or_refused(frame: Vec<u8>) {
            let _ = Event::from_frame(Bytes::from(frame));
        }
    }
}

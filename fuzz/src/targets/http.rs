//! The REST API before a login: heads and bodies of requests.

use brine_allocator::held;
use brine_api::fuzzing;

use crate::fingerprint;

/// The memory that may be allocated beyond what is counted, in bytes.
const SLACK: i64 = 8 << 10;

/// Any body parses or is refused, and the counted memory of its value covers what is allocated. The first byte selects
/// the content type.
pub fn body(bytes: &[u8]) -> u64 {
    let Some((kind, body)) = bytes.split_first() else { return 0 };
    let before = held();
    let read = fuzzing::body(*kind, body);
    if let Ok((_, counted)) = &read {
        let (allocated, counted) = (held() - before, i64::try_from(*counted).unwrap_or(i64::MAX));
        assert!(allocated <= counted + SLACK, "{allocated} bytes are allocated, {counted} counted");
    }
    let read = read.and_then(|(value, _)| fuzzing::arguments(value, body.len()));
    fingerprint(*kind % 4, read)
}

/// Any form parses or is refused.
pub fn form(bytes: &[u8]) -> u64 {
    let with_kind = [&[3][..], bytes].concat();
    body(&with_kind)
}

/// Heads are passed on alike, in whatever pieces they arrive.
pub fn head(bytes: &[u8]) -> u64 {
    let whole = fuzzing::heads(bytes, bytes.len());
    for piece in [1, 2, 3, 7] {
        assert_eq!(fuzzing::heads(bytes, piece), whole, "in pieces of {piece}");
    }
    let lines = whole.split(|byte| *byte == b'\n').count() - 1;
    fingerprint(u8::from(whole.contains(&0)), Err::<(), _>("a".repeat(lines.min(40))))
}

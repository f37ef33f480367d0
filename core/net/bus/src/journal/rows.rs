//! Rows of the journal. A row has the frame of one event, or a newline, with which no frame begins, and the frames of
//! consecutive events, each after its length as a big-endian 16-bit number.
//!
//! Consecutive small events share a row, which costs the store one insertion for all of them. Such a row fits into one
//! page of the store: damage of a page loses no more events than with rows of their own.

use brine_event::Event;
use bytes::Bytes;

use crate::store::LARGEST_SHARED_ROW;

const PACKED: u8 = b'\n';
/// The bytes of the length before each frame.
const LENGTH: usize = size_of::<u16>();
/// The maximum size of a packed row, without its key.
const MAX_ROW: usize = LARGEST_SHARED_ROW - size_of::<u64>();

/// Packs events into rows, in order. Yields the number of the first event of each row, and the row.
pub(super) fn pack(events: &[Event]) -> impl Iterator<Item = (u64, Bytes)> {
    let mut left = events;
    std::iter::from_fn(move || {
        let first = left.first()?;
        let count = of_one_row(left);
        let (events, rest) = left.split_at(count);
        left = rest;
        if count == 1 {
            return Some((first.seq(), first.frame().clone()));
        }
        let mut row = Vec::with_capacity(MAX_ROW);
        row.push(PACKED);
        for event in events {
            // Bounded by the size of a row.
            let length = u16::try_from(event.frame().len()).unwrap_or_default();
            row.extend_from_slice(&length.to_be_bytes());
            row.extend_from_slice(event.frame());
        }
        Some((first.seq(), row.into()))
    })
}

/// Returns the number of leading events that share a row, at least one.
fn of_one_row(events: &[Event]) -> usize {
    let mut size = size_of_val(&PACKED);
    let pairs = events.iter().zip(events.first().map_or(0, Event::seq)..);
    let fitting = pairs.take_while(|(event, seq)| {
        size += LENGTH + event.frame().len();
        size <= MAX_ROW && event.seq() == *seq
    });
    fitting.count().max(1)
}

/// Yields the frames of a row with their numbers. A packed row that is cut ends with its last whole frame.
pub(super) fn events(first: u64, row: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let (mut single, mut packed) = match row.split_first() {
        Some((&PACKED, packed)) => (None, packed),
        _ => (Some(row), &[][..]),
    };
    let frames = std::iter::from_fn(move || {
        if let Some(frame) = single.take() {
            return Some(frame);
        }
        let (length, rest) = packed.split_first_chunk::<LENGTH>()?;
        let (frame, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        packed = rest;
        Some(frame)
    });
    (first..).zip(frames)
}

/// Returns the number of the last event of a row.
pub(super) fn last(first: u64, row: &[u8]) -> u64 {
    events(first, row).last().map_or(first, |(seq, _)| seq)
}

#[cfg(test)]
mod tests {
    use brine_value::map;
    use proptest::prelude::*;

    use super::*;

    fn event(seq: u64, size: usize) -> Event {
        let body = map! {"text" => "x".repeat(size)};
        Event::from_map("some/tag", &body).unwrap().stamped(seq, "2026-11-30T12:00:00.000000+00:00").unwrap()
    }

    fn unpacked(rows: &[(u64, Bytes)]) -> Vec<(u64, Vec<u8>)> {
        rows.iter().flat_map(|(first, row)| events(*first, row).map(|(seq, frame)| (seq, frame.to_vec()))).collect()
    }

    proptest! {
        #[test]
        fn rows_have_the_events_that_were_packed(
            sizes in prop::collection::vec(prop_oneof![0usize..300, 3900usize..4100, 9000usize..9001], 0..60),
            gap in 0u64..60,
        ) {
            let numbered = sizes.iter().enumerate().map(|(at, size)| {
                let at = at as u64;
                event(1 + at + if at >= gap { 1000 } else { 0 }, *size)
            });
            let packed: Vec<Event> = numbered.collect();
            let rows: Vec<_> = pack(&packed).collect();
            let expected: Vec<_> = packed.iter().map(|event| (event.seq(), event.frame().to_vec())).collect();
            prop_assert_eq!(unpacked(&rows), expected);
            for (first, row) in &rows {
                let count = events(*first, row).count();
                prop_assert!(count == 1 || row.len() <= MAX_ROW, "{} events in {} bytes", count, row.len());
                prop_assert_eq!(count > 1, row[0] == PACKED);
                prop_assert_eq!(last(*first, row), first + count as u64 - 1);
            }
        }

        #[test]
        fn any_bytes_are_a_row(row in prop::collection::vec(any::<u8>(), 0..300), is_packed in any::<bool>()) {
            let row = if is_packed { [&[PACKED][..], &row].concat() } else { row };
            let size: usize = events(1, &row).map(|(_, frame)| frame.len()).sum();
            prop_assert!(size <= row.len() && last(1, &row) >= 1);
        }
    }

    #[test]
    fn small_events_share_rows() {
        let small: Vec<Event> = (1..=100).map(|seq| event(seq, 10)).collect();
        assert!(pack(&small).count() <= 4);
    }
}

//! Sequence numbers across restarts: a number that may have been issued is never issued again.
//!
//! The journal reserves numbers ahead, on disk, before any of them is issued. A clean stop records the next number;
//! after any other stop the whole reservation is skipped. Skipped ranges are recorded as holes, so that they are not
//! reported as lost events.

use crate::store::{Batch, BlockingStore, Opened, StoreError, Table};

const NUMBERS: Table = Table("journal_numbers");
/// First to last number of each hole.
const HOLES: Table = Table("journal_holes");
const NEXT: &[u8] = b"next";
const RESERVED: &[u8] = b"reserved";

/// The numbers at the start of a bus.
pub(super) struct Numbers {
    /// The next number.
    pub next: u64,
    /// The last number that may be issued.
    pub reserved: u64,
    /// The ranges of numbers that were never issued.
    pub holes: Vec<(u64, u64)>,
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_be_bytes)
}

/// Claims numbers after the last one in the journal and reserves the next ones on disk. `unreserved` is the number of
/// events that a version of Brine without reservations may have published after the last one. Blocks until the claim is
/// on disk; if that fails, no number is reserved.
pub(super) fn claim(
    store: &BlockingStore,
    last: u64,
    opened: Opened,
    unreserved: u64,
    reserve: u64,
) -> Result<Numbers, StoreError> {
    let mut holes: Vec<_> =
        store.scan(HOLES, b"", usize::MAX)?.into_iter().map(|(key, value)| (number(&key), number(&value))).collect();
    let next = match (store.get(NUMBERS, NEXT)?, store.get(NUMBERS, RESERVED)?) {
        (Some(next), _) => number(&next).max(last + 1),
        (None, Some(reserved)) => number(&reserved).max(last) + 1,
        (None, None) if opened == Opened::Repaired => last + 1 + unreserved,
        (None, None) => last + 1,
    };
    let mut batch = Batch::new();
    let mut reserved = next - 1 + reserve;
    batch.delete(NUMBERS, NEXT).put(NUMBERS, RESERVED, reserved.to_be_bytes().to_vec());
    if next > last + 1 {
        holes.push((last + 1, next - 1));
        batch.put(HOLES, (last + 1).to_be_bytes(), (next - 1).to_be_bytes().to_vec());
    }
    if let Err(error) = store.write(batch).durable_blocking() {
        tracing::error!(%error, "reserving sequence numbers failed: events are refused until the store takes writes");
        reserved = next - 1;
    }
    Ok(Numbers { next, reserved, holes })
}

/// Extends the reservation to this number.
pub(super) fn reserve(batch: &mut Batch, reserved: u64) {
    batch.delete(NUMBERS, NEXT).put(NUMBERS, RESERVED, reserved.to_be_bytes().to_vec());
}

/// Records the next number at a clean stop.
pub(super) fn stop(batch: &mut Batch, next: u64) {
    batch.put(NUMBERS, NEXT, next.to_be_bytes().to_vec());
}

/// Removes the holes that begin before this number.
pub(super) fn forget_holes(batch: &mut Batch, below: u64) {
    batch.delete_below(HOLES, below.to_be_bytes());
}

/// Returns how many numbers from `from` to `to` (both included) are in no hole.
pub(super) fn issued(holes: &[(u64, u64)], from: u64, to: u64) -> u64 {
    let hole = |(first, last): &(u64, u64)| (*last.min(&to) + 1).saturating_sub(*first.max(&from));
    (to + 1).saturating_sub(from).saturating_sub(holes.iter().map(hole).sum())
}

/// Returns the ranges of `from` to `to` (both included) that are in no hole and not in the ascending `present`.
pub(super) fn missing(holes: &[(u64, u64)], from: u64, to: u64, present: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut there: Vec<(u64, u64)> = present.map(|seq| (seq, seq)).collect();
    there.extend(holes.iter().filter(|(first, last)| *last >= from && *first <= to));
    there.sort_unstable();
    let (mut missing, mut next) = (Vec::new(), from);
    for (first, last) in there {
        if first > next {
            missing.push((next, (first - 1).min(to)));
        }
        next = next.max(last + 1);
    }
    if next <= to {
        missing.push((next, to));
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_numbers_are_neither_present_nor_in_holes() {
        let holes = [(4, 6), (20, 30)];
        for (from, to, present, expected) in [
            (1, 3, &[1, 2, 3][..], vec![]),
            (1, 8, &[1, 2, 3, 7, 8], vec![]),
            (1, 8, &[3, 8], vec![(1, 2), (7, 7)]),
            (5, 9, &[], vec![(7, 9)]),
            (15, 25, &[16], vec![(15, 15), (17, 19)]),
            (21, 29, &[], vec![]),
        ] {
            assert_eq!(missing(&holes, from, to, present.iter().copied()), expected, "{from}..={to} {present:?}");
        }
        for (from, to, expected) in [(1, 3, 3), (1, 8, 5), (5, 5, 0), (7, 7, 1), (25, 40, 10), (9, 8, 0)] {
            assert_eq!(issued(&holes, from, to), expected, "{from}..={to}");
        }
    }
}

//! The journal: events on disk, by sequence number, and the cursors of durable subscribers. `rows` has the format.

mod rows;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brine_event::Event;
use brine_runtime::executors::{Executor, MayBlock};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::BusLimits;
use super::numbers::{self, Numbers};
use super::retention::{self, Cut, JournalLimits, Progress, TRIM_AT_ONCE};
use crate::metrics;
use crate::store::{Batch, BlockingStore, Opened, Store, StoreError, Table};

/// Sequence number of the first event to the row: see `rows`.
const EVENTS: Table = Table("journal");
/// Sparse: time in microseconds to sequence number and bytes written so far.
const INDEX: Table = Table("journal_index");
const CURSORS: Table = Table("cursors");

/// The maximum bytes of events per read.
const PAGE_BYTES: usize = 4 << 20;
/// The maximum number of index entries per read.
const INDEX_PAGE: usize = 1024;

/// A position in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeOrSeq {
    /// The event with this sequence number.
    Seq(u64),
    /// The first event published at this time or later, in microseconds since 1970.
    Time(u64),
}

#[derive(Clone)]
pub(super) struct Journal {
    store: Store,
    disk: Executor,
    shared: Arc<Shared>,
}

struct Shared {
    limits: JournalLimits,
    reserve: u64,
    cursors: Mutex<HashMap<String, Cursor>>,
    moved: Notify,
    progress: Mutex<Progress>,
    holes: Mutex<Vec<(u64, u64)>>,
    /// The number below which events were removed although a durable subscriber had not handled them. They are already
    /// counted as lost.
    forced: Mutex<u64>,
    /// The number of replacements of the store at the last check.
    replaced: AtomicU64,
}

#[derive(Default)]
struct Cursor {
    seq: u64,
    written: Option<u64>,
}

/// A range of the journal.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub events: Vec<Event>,
    /// The first number after the range; `None` at the end of the journal.
    pub next: Option<u64>,
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_be_bytes)
}

/// Splits an index entry into its sequence number and the bytes before it.
fn entry(value: &[u8]) -> (u64, u64) {
    (number(value.get(..8).unwrap_or_default()), number(value.get(8..).unwrap_or_default()))
}

impl Journal {
    /// Opens the journal of a store. Returns it with the number of the next event and the last one reserved.
    pub fn open(
        thread: &MayBlock,
        disk: Executor,
        store: Store,
        opened: Opened,
        limits: JournalLimits,
        bus: &BusLimits,
    ) -> Result<(Self, u64, u64), StoreError> {
        let blocking = store.blocking(thread);
        let mut last = blocking.last(EVENTS)?.map_or(0, |(key, row)| rows::last(number(&key), &row));
        let mut cursors = HashMap::new();
        for (name, seq) in blocking.scan(CURSORS, b"", usize::MAX)? {
            let seq = number(&seq);
            // All events may have been removed by age: their numbers are still used.
            last = last.max(seq);
            cursors.insert(String::from_utf8_lossy(&name).into_owned(), Cursor { seq, written: Some(seq) });
        }
        let Numbers { next, reserved, holes } =
            numbers::claim(&blocking, last, opened, bus.ring_events as u64, bus.reserve)?;
        let index = blocking.last(INDEX)?.map(|(time, value)| (number(&time), entry(&value).1));
        let shared = Shared {
            limits,
            reserve: bus.reserve,
            cursors: Mutex::new(cursors),
            moved: Notify::new(),
            progress: Mutex::new(Progress::new(index)),
            holes: Mutex::new(holes),
            forced: Mutex::default(),
            replaced: AtomicU64::new(store.replaced()),
        };
        Ok((Journal { store, disk, shared: Arc::new(shared) }, next, reserved))
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the executor for blocking disk operations.
    pub fn disk(&self) -> &Executor {
        &self.disk
    }

    /// Returns the cursor of this subscriber; a new one starts at `now`.
    pub fn cursor(&self, name: &str, now: u64) -> u64 {
        let mut cursors = self.shared.cursors.lock();
        if let Some(cursor) = cursors.get(name) {
            return cursor.seq;
        }
        cursors.insert(name.to_owned(), Cursor { seq: now, written: None });
        drop(cursors);
        self.shared.moved.notify_one();
        now
    }

    /// Advances the cursor of this name. It is persisted asynchronously.
    pub fn commit(&self, name: &str, seq: u64) {
        if let Some(cursor) = self.shared.cursors.lock().get_mut(name) {
            cursor.seq = cursor.seq.max(seq);
        }
        self.shared.moved.notify_one();
    }

    /// Waits until a cursor has advanced.
    pub async fn moved(&self) {
        self.shared.moved.notified().await;
    }

    /// Reads up to `limit` events from this number on, as many as fit into a page. Logs and counts unreadable ones.
    pub fn read(&self, thread: &MayBlock, from: u64, limit: usize) -> Result<Page, StoreError> {
        let store = self.store.blocking(thread);
        let start = row_of(&store, from)?;
        let (mut page, mut bytes) = (Page::default(), 0);
        store.each_from(EVENTS, &start.to_be_bytes(), |key, row| {
            let first = number(key);
            if page.events.len() >= limit || (bytes > 0 && bytes + row.len() > PAGE_BYTES) {
                page.next = Some(first);
                return false;
            }
            bytes += row.len();
            for (seq, frame) in rows::events(first, row) {
                if seq < from {
                    continue;
                }
                if page.events.len() >= limit {
                    page.next = Some(seq);
                    return false;
                }
                // A copy of its own: an event that somebody keeps does not keep the others of its row.
                match Event::from_trusted_frame(seq, Bytes::copy_from_slice(frame)) {
                    Ok(event) => page.events.push(event),
                    Err(error) => {
                        metrics::STORE_DAMAGED.add(1);
                        tracing::error!(seq, %error, "an event in the journal is unreadable and skipped");
                    }
                }
            }
            true
        })?;
        Ok(page)
    }

    /// Returns the number of the newest event before this number.
    pub fn last_before(&self, thread: &MayBlock, below: u64) -> Result<Option<u64>, StoreError> {
        let below = below.saturating_sub(1);
        let entry = self.store.blocking(thread).at_or_before(EVENTS, &below.to_be_bytes())?;
        Ok(entry.map(|(key, row)| rows::last(number(&key), &row).min(below)))
    }

    /// Returns the number of the first event at or after a position.
    pub fn resolve_position(&self, thread: &MayBlock, position: TimeOrSeq) -> Result<u64, StoreError> {
        let time = match position {
            TimeOrSeq::Seq(seq) => return Ok(seq),
            TimeOrSeq::Time(time) => time,
        };
        // The index is sparse: start at the entry before, and skip older events.
        let before = self.store.blocking(thread).at_or_before(INDEX, &time.to_be_bytes())?;
        let mut from = before.map_or(0, |(_, value)| entry(&value).0);
        loop {
            let page = self.read(thread, from, 1024)?;
            if let Some(event) = page.events.iter().find(|event| event.time().is_some_and(|at| at >= time)) {
                return Ok(event.seq());
            }
            match (page.next, page.events.last()) {
                (Some(next), _) => from = next,
                (None, Some(last)) => return Ok(last.seq() + 1),
                (None, None) => return Ok(from),
            }
        }
    }

    /// Returns the lag of each durable subscriber behind this number.
    pub fn lags(&self, last: u64) -> Vec<(String, u64)> {
        let holes = self.shared.holes.lock();
        let cursors = self.shared.cursors.lock();
        cursors.iter().map(|(name, cursor)| (name.clone(), numbers::issued(&holes, cursor.seq + 1, last))).collect()
    }

    /// Returns the approximate number of events and their bytes on disk; `last` is the number of the last event.
    pub fn size(&self, thread: &MayBlock, last: u64) -> (u64, u64) {
        let store = self.store.blocking(thread);
        let first = store.scan(EVENTS, b"", 1).ok().and_then(|pairs| pairs.first().map(|(key, _)| number(key)));
        let oldest = store.scan(INDEX, b"", 1).ok().and_then(|pairs| pairs.into_iter().next());
        let before = oldest.map_or(0, |(_, value)| entry(&value).1);
        let events = first.map_or(0, |first| numbers::issued(&self.shared.holes.lock(), first, last));
        (events, self.shared.progress.lock().bytes().saturating_sub(before))
    }

    /// Returns the ranges of issued numbers that are missing among the events read from `from` to before `next`.
    /// Excludes events that were already counted as lost when they were removed.
    pub fn missing(&self, from: u64, next: u64, events: &[Event]) -> Vec<(u64, u64)> {
        let from = from.max(*self.shared.forced.lock());
        if next <= from {
            return Vec::new();
        }
        numbers::missing(&self.shared.holes.lock(), from, next - 1, events.iter().map(Event::seq))
    }

    /// Whether the store has been replaced by an empty one since the last call. If so, marks all cursors as unwritten;
    /// the caller must reserve sequence numbers again.
    pub fn has_been_replaced(&self) -> bool {
        let replaced = self.store.replaced();
        if self.shared.replaced.swap(replaced, Ordering::Relaxed) == replaced {
            return false;
        }
        self.shared.cursors.lock().values_mut().for_each(|cursor| cursor.written = None);
        let mut progress = self.shared.progress.lock();
        let bytes = progress.bytes();
        progress.reset_to(bytes);
        true
    }

    /// Extends the reservation of sequence numbers if less than half of it is left. Returns its new end.
    pub fn reservation(&self, batch: &mut Batch, next: u64, reserved: u64) -> Option<u64> {
        let reservation = next - 1 + self.shared.reserve;
        (reserved.saturating_sub(next) < self.shared.reserve / 2).then(|| {
            numbers::reserve(batch, reservation);
            reservation
        })
    }

    pub fn dirty_cursors(&self, batch: &mut Batch) -> Vec<(String, u64)> {
        let cursors = self.shared.cursors.lock();
        let dirty = cursors.iter().filter(|(_, cursor)| cursor.written != Some(cursor.seq));
        let dirty: Vec<_> = dirty.map(|(name, cursor)| (name.clone(), cursor.seq)).collect();
        for (name, seq) in &dirty {
            batch.put(CURSORS, name.as_bytes(), seq.to_be_bytes().to_vec());
        }
        dirty
    }

    pub fn cursors_written(&self, written: Vec<(String, u64)>) {
        let mut cursors = self.shared.cursors.lock();
        for (name, seq) in written {
            if let Some(cursor) = cursors.get_mut(&name) {
                cursor.written = Some(seq);
            }
        }
    }

    /// Returns the maximum bytes of events per commit: small enough that the journal stays near its limit, since space
    /// of removed events is reusable only from the next commit on.
    pub fn commit_bytes(&self) -> u64 {
        (self.shared.limits.bytes / 32).max(256 << 10)
    }

    /// Adds events to a batch. Returns the bytes written before, and the cut if trimming is due.
    pub fn append(&self, batch: &mut Batch, events: &[Event]) -> (u64, Option<Cut>) {
        let mut progress = self.shared.progress.lock();
        let (before, now) = (progress.bytes(), retention::now_micros());
        for (seq, row) in rows::pack(events) {
            if let Some(time) = progress.index(now, &self.shared.limits) {
                let entry = [seq.to_be_bytes(), progress.bytes().to_be_bytes()].concat();
                batch.put(INDEX, time.to_be_bytes(), entry);
            }
            progress.add(8 + row.len());
            batch.put(EVENTS, seq.to_be_bytes(), row);
        }
        (before, if events.is_empty() { None } else { progress.trim(&self.shared.limits) })
    }

    /// Resets the byte count to `before` after a failed write.
    pub fn revert_append(&self, before: u64) {
        self.shared.progress.lock().reset_to(before);
    }

    /// Removes events beyond the limits of age and size. Keeps events that a durable subscriber has not handled, unless
    /// the journal exceeds twice its size limit.
    pub fn trim(&self, thread: &MayBlock, batch: &mut Batch, cut: Cut) -> Result<(), StoreError> {
        let (limits, store) = (self.shared.limits, self.store.blocking(thread));
        let (mut keep_from, mut forced_from) = (0, 0);
        let oldest = cut.now.saturating_sub(u64::try_from(limits.age.as_micros()).unwrap_or(u64::MAX));
        let (mut entries, mut start, mut first_bytes, mut more) = (Vec::new(), Vec::new(), None, false);
        'index: loop {
            let page = store.scan(INDEX, &start, INDEX_PAGE)?;
            let Some((last, _)) = page.last() else { break };
            start = [&last[..], b"\0"].concat();
            for (time, value) in page {
                let (seq, bytes) = entry(&value);
                let behind = cut.written.saturating_sub(bytes);
                if number(&time) >= oldest && behind <= limits.bytes {
                    break 'index;
                }
                if bytes > *first_bytes.get_or_insert(bytes) + TRIM_AT_ONCE {
                    more = true;
                    break 'index;
                }
                keep_from = seq;
                if behind > limits.bytes.saturating_mul(2) {
                    forced_from = seq;
                }
                entries.push((seq, time));
            }
        }
        let handled = self.shared.cursors.lock().values().map(|cursor| cursor.seq + 1).min().unwrap_or(u64::MAX);
        let mut forced = self.shared.forced.lock();
        let uncounted = handled.max(*forced);
        if forced_from > uncounted {
            metrics::EVENTS_MISSED.add(numbers::issued(&self.shared.holes.lock(), uncounted, forced_from - 1));
            *forced = forced_from;
            tracing::error!(
                from = uncounted,
                to = forced_from - 1,
                "the journal exceeds twice its size: events that a durable subscriber has not handled are removed; raise event_journal_size"
            );
        }
        drop(forced);
        let from = keep_from.min(handled).max(forced_from);
        if more && from == keep_from {
            self.shared.progress.lock().trim_again();
        }
        if from > 0 {
            // A row goes once all its events may.
            batch.delete_below(EVENTS, row_of(&store, from)?.to_be_bytes());
            if let Some((_, time)) = entries.iter().rev().find(|(seq, _)| *seq <= from) {
                batch.delete_below(INDEX, time.clone());
            }
            numbers::forget_holes(batch, from);
            self.shared.holes.lock().retain(|(_, last)| *last >= from);
        }
        Ok(())
    }
}

/// Returns the key of the row that has this event, or the number itself if no row before it has it.
fn row_of(store: &BlockingStore, seq: u64) -> Result<u64, StoreError> {
    let before = store.at_or_before(EVENTS, &seq.to_be_bytes())?;
    let has_it = before.map(|(key, row)| (number(&key), row)).filter(|(first, row)| rows::last(*first, row) >= seq);
    Ok(has_it.map_or(seq, |(first, _)| first))
}

/// Queues the cursors for writing, without waiting: a subscriber is being dropped. They do not count as written, so that
/// the journal writer repeats a refused write.
pub(super) fn flush_cursors(journal: &Journal) {
    let mut batch = Batch::new();
    if !journal.dirty_cursors(&mut batch).is_empty() {
        journal.store.write_unchecked(batch, "cursors of a dropped subscriber, which the journal writer writes again");
        journal.shared.moved.notify_one();
    }
}

#[cfg(test)]
mod tests;

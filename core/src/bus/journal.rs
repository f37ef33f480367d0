//! The journal: events on disk, by sequence number, and how far durable subscribers have got.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Inner;
use crate::event::Event;
use crate::metrics;
use crate::store::{Batch, Store, StoreError, Table};

const EVENTS: Table = Table("journal");
/// Sparse: time in microseconds to sequence number and bytes written so far.
const INDEX: Table = Table("journal_index");
const CURSORS: Table = Table("cursors");

/// How many events go into one commit.
const COMMIT: usize = 8192;
/// How often at most cursors alone are written.
const CURSOR_INTERVAL: Duration = Duration::from_millis(50);
const INDEX_INTERVAL_MICROS: u64 = 1_000_000;
const TRIM_INTERVAL_MICROS: u64 = 60_000_000;

/// How much the journal keeps.
#[derive(Debug, Clone, Copy)]
pub struct JournalLimits {
    /// Events older than this leave.
    pub age: Duration,
    /// When there are more bytes than this, the oldest events leave.
    pub bytes: u64,
}

impl Default for JournalLimits {
    fn default() -> Self {
        JournalLimits { age: Duration::from_secs(24 * 3600), bytes: 1 << 30 }
    }
}

/// A place in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeOrSeq {
    /// The event of this number.
    Seq(u64),
    /// The first event fired at this time or later, in microseconds since 1970.
    Time(u64),
}

#[derive(Clone)]
pub(super) struct Journal {
    store: Store,
    shared: Arc<Shared>,
}

struct Shared {
    limits: JournalLimits,
    cursors: Mutex<HashMap<String, Cursor>>,
    moved: Notify,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Cursor {
    seq: u64,
    written: Option<u64>,
}

struct Progress {
    bytes: u64,
    indexed: u64,
    trimmed: u64,
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_be_bytes)
}

fn now_micros() -> u64 {
    jiff::Timestamp::now().as_microsecond().max(0).cast_unsigned()
}

impl Journal {
    /// The journal of a store, and the number of its last event.
    pub fn open(store: Store, limits: JournalLimits) -> Result<(Self, u64), StoreError> {
        let mut last = store.last(EVENTS)?.map_or(0, |(key, _)| number(&key));
        let mut cursors = HashMap::new();
        for (name, seq) in store.scan(CURSORS, b"", usize::MAX)? {
            let seq = number(&seq);
            // All events may have left by age: their numbers are used up all the same.
            last = last.max(seq);
            cursors.insert(String::from_utf8_lossy(&name).into_owned(), Cursor { seq, written: Some(seq) });
        }
        let bytes = store.last(INDEX)?.map_or(0, |(_, value)| number(value.get(8..).unwrap_or_default()));
        let progress = Mutex::new(Progress { bytes, indexed: 0, trimmed: 0 });
        let shared = Shared { limits, cursors: Mutex::new(cursors), moved: Notify::new(), progress };
        Ok((Journal { store, shared: Arc::new(shared) }, last))
    }

    /// How far the subscriber of this name has got; a new one has got to `now`.
    pub fn cursor(&self, name: &str, now: u64) -> Result<u64, StoreError> {
        let mut cursors = self.shared.cursors.lock();
        if let Some(cursor) = cursors.get(name) {
            return Ok(cursor.seq);
        }
        cursors.insert(name.to_owned(), Cursor { seq: now, written: None });
        drop(cursors);
        self.shared.moved.notify_one();
        Ok(now)
    }

    /// The subscriber of this name has got to here. Written soon, not at once.
    pub fn commit(&self, name: &str, seq: u64) {
        if let Some(cursor) = self.shared.cursors.lock().get_mut(name) {
            cursor.seq = cursor.seq.max(seq);
        }
        self.shared.moved.notify_one();
    }

    /// Up to `limit` events from this number on.
    pub fn read(&self, from: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        let pairs = self.store.scan(EVENTS, &from.to_be_bytes(), limit)?;
        let events = pairs
            .into_iter()
            .filter_map(|(key, frame)| Event::from_trusted_frame(number(&key), Bytes::from(frame)).ok());
        Ok(events.collect())
    }

    /// The number of the first event at a place.
    pub fn place(&self, place: TimeOrSeq) -> Result<u64, StoreError> {
        let time = match place {
            TimeOrSeq::Seq(seq) => return Ok(seq),
            TimeOrSeq::Time(time) => time,
        };
        // The index is sparse: start at the entry before, and skip what is older.
        let before = self.store.at_or_before(INDEX, &time.to_be_bytes())?;
        let mut from = before.map_or(0, |(_, value)| number(value.get(..8).unwrap_or_default()));
        let stamp = crate::event::stamp_of(jiff::Timestamp::from_microsecond(time.cast_signed()).unwrap_or_default());
        loop {
            let events = self.read(from, 1024)?;
            let Some(last) = events.last() else { return Ok(from) };
            let at_or_after = |event: &&Event| {
                event
                    .data()
                    .get(crate::event::STAMP)
                    .and_then(crate::Value::as_str)
                    .is_some_and(|text| text >= stamp.as_str())
            };
            if let Some(found) = events.iter().find(at_or_after) {
                return Ok(found.seq());
            }
            from = last.seq() + 1;
        }
    }

    /// How far each durable subscriber has got.
    pub fn cursors(&self) -> Vec<(String, u64)> {
        self.shared.cursors.lock().iter().map(|(name, cursor)| (name.clone(), cursor.seq)).collect()
    }

    /// About how many events and bytes are kept, when this is the last event.
    pub fn size(&self, last: u64) -> (u64, u64) {
        let first = self.store.scan(EVENTS, b"", 1).ok().and_then(|pairs| pairs.first().map(|(key, _)| number(key)));
        let oldest = self.store.scan(INDEX, b"", 1).ok().and_then(|pairs| pairs.into_iter().next());
        let before = oldest.map_or(0, |(_, value)| number(value.get(8..).unwrap_or_default()));
        let events = first.map_or(0, |first| (last + 1).saturating_sub(first));
        (events, self.shared.progress.lock().bytes.saturating_sub(before))
    }

    fn dirty_cursors(&self, batch: &mut Batch) -> Vec<(String, u64)> {
        let cursors = self.shared.cursors.lock();
        let dirty = cursors.iter().filter(|(_, cursor)| cursor.written != Some(cursor.seq));
        let dirty: Vec<_> = dirty.map(|(name, cursor)| (name.clone(), cursor.seq)).collect();
        for (name, seq) in &dirty {
            batch.put(CURSORS, name.as_bytes(), seq.to_be_bytes().to_vec());
        }
        dirty
    }

    fn cursors_written(&self, written: Vec<(String, u64)>) {
        let mut cursors = self.shared.cursors.lock();
        for (name, seq) in written {
            if let Some(cursor) = cursors.get_mut(&name) {
                cursor.written = Some(seq);
            }
        }
    }

    fn append(&self, batch: &mut Batch, events: &[Event]) {
        let Some(first) = events.first() else { return };
        let mut progress = self.shared.progress.lock();
        let now = now_micros();
        if now >= progress.indexed + INDEX_INTERVAL_MICROS {
            progress.indexed = now;
            let entry = [first.seq().to_be_bytes(), progress.bytes.to_be_bytes()].concat();
            batch.put(INDEX, now.to_be_bytes(), entry);
        }
        for event in events {
            progress.bytes += event.frame().len() as u64;
            batch.put(EVENTS, event.seq().to_be_bytes(), event.frame().clone());
        }
        if now >= progress.trimmed + TRIM_INTERVAL_MICROS {
            progress.trimmed = now;
            let (written, limits) = (progress.bytes, self.shared.limits);
            drop(progress);
            if let Err(error) = self.trim(batch, now, written, limits) {
                tracing::error!(%error, "the journal cannot be trimmed");
            }
        }
    }

    /// Removes what is too old or too much, but nothing that a durable subscriber has not handled
    /// unless the journal has grown to twice its size.
    fn trim(&self, batch: &mut Batch, now: u64, written: u64, limits: JournalLimits) -> Result<(), StoreError> {
        let (mut keep_from, mut index_from, mut forced_from) = (0, 0, 0);
        let oldest = now.saturating_sub(limits.age.as_micros() as u64);
        for (time, value) in self.store.scan(INDEX, b"", usize::MAX)? {
            let (seq, bytes) = (number(value.get(..8).unwrap_or_default()), number(value.get(8..).unwrap_or_default()));
            let behind = written.saturating_sub(bytes);
            if number(&time) < oldest || behind > limits.bytes {
                (keep_from, index_from) = (seq, number(&time));
            }
            if behind > limits.bytes * 2 {
                forced_from = seq;
            }
        }
        let handled = self.shared.cursors.lock().values().map(|cursor| cursor.seq + 1).min().unwrap_or(u64::MAX);
        if forced_from > handled {
            metrics::EVENTS_MISSED.add(forced_from - handled);
            tracing::error!(
                from = handled,
                to = forced_from - 1,
                "the journal is twice its size: events leave it that a durable subscriber has not handled; raise event_journal_size"
            );
        }
        let from = keep_from.min(handled).max(forced_from);
        if from > 0 {
            batch.delete_below(EVENTS, from.to_be_bytes());
            if from == keep_from {
                batch.delete_below(INDEX, index_from.to_be_bytes());
            }
        }
        Ok(())
    }
}

/// Hands cursors to the store without waiting for it: their subscriber goes away.
pub(super) fn flush_cursors(journal: &Journal) {
    let mut batch = Batch::new();
    let written = journal.dirty_cursors(&mut batch);
    if !written.is_empty() {
        _ = journal.store.write(batch);
        journal.cursors_written(written);
    }
}

/// Writes what is fired, in the order of its numbers, until the bus is closed or dropped.
pub(super) async fn write(bus: Weak<Inner>) {
    loop {
        let Some(inner) = bus.upgrade() else { return };
        let Some(journal) = inner.journal.clone() else { return };
        let (events, closed) = {
            let ring = inner.ring.lock();
            (ring.from(ring.kept + 1, COMMIT).unwrap_or_default(), ring.closed)
        };
        let mut batch = Batch::new();
        journal.append(&mut batch, &events);
        let cursors = journal.dirty_cursors(&mut batch);
        if batch.is_empty() {
            if closed {
                inner.ring.lock().stopped = true;
                inner.kept.notify_waiters();
                return;
            }
            // Only a weak hold while nothing happens: a bus that everybody dropped ends here. The wait is
            // bounded because a notification between the look above and this wait is not kept.
            let arrived = inner.arrived.notified();
            let mut arrived = std::pin::pin!(arrived);
            arrived.as_mut().enable();
            let idle = {
                let ring = inner.ring.lock();
                ring.next == ring.kept + 1 && !ring.closed
            };
            if idle {
                tokio::select! {
                    () = arrived => {}
                    () = journal.shared.moved.notified() => {}
                    () = tokio::time::sleep(Duration::from_secs(5)) => {}
                }
            }
            continue;
        }
        let only_cursors = events.is_empty();
        let result = journal.store.write(batch).durable().await;
        if let (Some(first), Some(last)) = (events.first(), events.last()) {
            let mut ring = inner.ring.lock();
            if let Err(error) = &result {
                metrics::JOURNAL_FAILED.add(events.len() as u64);
                tracing::error!(first = first.seq(), last = last.seq(), %error, "events could not be kept");
                ring.failed(first.seq(), last.seq(), error.clone());
            }
            ring.kept = last.seq();
        }
        inner.kept.notify_waiters();
        if result.is_ok() {
            journal.cursors_written(cursors);
        }
        if only_cursors && !closed {
            tokio::select! {
                () = inner.arrived.notified() => {}
                () = tokio::time::sleep(CURSOR_INTERVAL) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map;

    /// A journal with ten events of 100 bytes, one each second from 1 s on, each with an index entry.
    async fn ten(limits: JournalLimits) -> (tempfile::TempDir, Journal) {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(&folder.path().join("brine.redb"), 1 << 20).unwrap();
        let (journal, _) = Journal::open(store.clone(), limits).unwrap();
        let mut batch = Batch::new();
        for seq in 1..=10u64 {
            let event = Event::from_map("t", &map! {}).unwrap().stamped(seq, "s").unwrap();
            batch.put(EVENTS, seq.to_be_bytes(), event.frame().clone());
            let entry = [seq.to_be_bytes(), (100 * (seq - 1)).to_be_bytes()].concat();
            batch.put(INDEX, (seq * 1_000_000).to_be_bytes(), entry);
        }
        store.write(batch).durable().await.unwrap();
        (folder, journal)
    }

    /// The numbers that are left after trimming at `now` seconds.
    async fn left(journal: &Journal, now: u64) -> Vec<u64> {
        let mut batch = Batch::new();
        journal.trim(&mut batch, now * 1_000_000, 1000, journal.shared.limits).unwrap();
        journal.store.write(batch).durable().await.unwrap();
        journal.read(0, 100).unwrap().iter().map(Event::seq).collect()
    }

    #[tokio::test]
    async fn old_events_leave() {
        let (_folder, journal) = ten(JournalLimits { age: Duration::from_secs(5), bytes: 1 << 30 }).await;
        assert_eq!(left(&journal, 6).await.len(), 10);
        assert_eq!(left(&journal, 10).await, [4, 5, 6, 7, 8, 9, 10]);
    }

    #[tokio::test]
    async fn the_oldest_leave_when_there_are_too_many() {
        let (_folder, journal) = ten(JournalLimits { bytes: 450, ..JournalLimits::default() }).await;
        assert_eq!(left(&journal, 11).await, [6, 7, 8, 9, 10]);
    }

    #[tokio::test]
    async fn what_a_durable_subscriber_has_not_handled_stays_up_to_twice_the_size() {
        let (_folder, journal) = ten(JournalLimits { bytes: 450, ..JournalLimits::default() }).await;
        journal.cursor("reactor", 2).unwrap();
        assert_eq!(left(&journal, 11).await, [3, 4, 5, 6, 7, 8, 9, 10]);
        let (_folder, journal) = ten(JournalLimits { bytes: 200, ..JournalLimits::default() }).await;
        journal.cursor("reactor", 2).unwrap();
        let before = metrics::EVENTS_MISSED.get();
        assert_eq!(left(&journal, 11).await, [6, 7, 8, 9, 10]);
        assert!(metrics::EVENTS_MISSED.get() > before);
    }
}

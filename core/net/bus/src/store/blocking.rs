//! Blocking operations: reads, and writes that wait for room in the queue.

use std::cell::Cell;
use std::ops::{Bound, Deref, Range};
use std::path::Path;
use std::time::Instant;

use redb::ReadableTable;

use super::engine::ReadTable;
use super::queue::Due;
use super::{Batch, Inner, Pair, Store, StoreError, Table, Ticket, disk, snapshot};

/// A store with its blocking operations: see [`Store::blocking`].
#[derive(Debug, Clone)]
pub struct BlockingStore(pub(super) Store);

/// The number of times that a read is tried, between which the database is reopened.
const ATTEMPTS: u32 = 3;

impl Deref for BlockingStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.0
    }
}

impl BlockingStore {
    /// Queues changes once the queue has room: backpressure for threads that may block and do not wait for the ticket.
    pub fn write_blocking(&self, batch: Batch) -> Ticket {
        Ticket(self.inner.queue.push_blocking(batch, Due::Now))
    }

    /// Queues changes as [`BlockingStore::write_blocking`] does, for a caller that nobody waits for: they are committed
    /// together with the next other write, at the latest after 50 ms.
    pub fn write_soon(&self, batch: Batch) -> Ticket {
        Ticket(self.inner.queue.push_blocking(batch, Due::Soon))
    }

    /// Returns the value of a key.
    pub fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(table, |table| Ok(table.get(key)?.map(|value| value.value().to_vec())))
    }

    /// Returns up to `limit` pairs in ascending order of their keys, from `start` on.
    pub fn scan(&self, table: Table, start: &[u8], limit: usize) -> Result<Vec<Pair>, StoreError> {
        Ok(self.scan_page(table, start, limit, usize::MAX)?.0)
    }

    /// Returns up to `limit` pairs in ascending order of their keys, from `start` on, as many as fit into `bytes` but
    /// at least one, and whether there are more.
    pub fn scan_page(
        &self,
        table: Table,
        start: &[u8],
        limit: usize,
        bytes: usize,
    ) -> Result<(Vec<Pair>, bool), StoreError> {
        self.read(table, |table| {
            let (mut pairs, mut room) = (Vec::new(), bytes);
            for pair in table.range::<&[u8]>((Bound::Included(start), Bound::Unbounded))? {
                if pairs.len() >= limit {
                    return Ok((pairs, true));
                }
                let (key, value) = pair?;
                let size = key.value().len() + value.value().len();
                if size > room && !pairs.is_empty() {
                    return Ok((pairs, true));
                }
                room = room.saturating_sub(size);
                pairs.push((key.value().to_vec(), value.value().to_vec()));
            }
            Ok((pairs, false))
        })
    }

    /// Returns up to `limit` pairs of a range of keys, in ascending order.
    pub fn scan_range(&self, table: Table, range: Range<&[u8]>, limit: usize) -> Result<Vec<Pair>, StoreError> {
        // redb panics on a range whose end is before its start.
        if range.start >= range.end {
            return Ok(Vec::new());
        }
        self.read(table, |table| {
            let pairs = table.range::<&[u8]>((Bound::Included(range.start), Bound::Excluded(range.end)))?.take(limit);
            pairs.map(|pair| pair.map(|(key, value)| (key.value().to_vec(), value.value().to_vec()))).collect()
        })
    }

    /// Returns all pairs whose keys have this prefix, in ascending order.
    pub fn scan_prefix(&self, table: Table, prefix: &[u8]) -> Result<Vec<Pair>, StoreError> {
        self.read(table, |table| {
            let mut pairs = Vec::new();
            for pair in table.range::<&[u8]>((Bound::Included(prefix), Bound::Unbounded))? {
                let (key, value) = pair?;
                if !key.value().starts_with(prefix) {
                    break;
                }
                pairs.push((key.value().to_vec(), value.value().to_vec()));
            }
            Ok(pairs)
        })
    }

    /// Returns up to `limit` pairs in descending order of their keys, from the last one on.
    pub fn scan_back(&self, table: Table, limit: usize) -> Result<Vec<Pair>, StoreError> {
        self.read(table, |table| {
            let pairs = table.iter()?.rev().take(limit);
            pairs.map(|pair| pair.map(|(key, value)| (key.value().to_vec(), value.value().to_vec()))).collect()
        })
    }

    /// Calls `visit` with each pair in ascending order of their keys, from `start` on, until it returns `false`. The
    /// values are not copied.
    pub fn each_from(
        &self,
        table: Table,
        start: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        let has_visited = Cell::new(false);
        self.read_unless(&has_visited, table, |table| {
            for pair in table.range::<&[u8]>((Bound::Included(start), Bound::Unbounded))? {
                let (key, value) = pair?;
                has_visited.set(true);
                if !visit(key.value(), value.value()) {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Calls `visit` with each pair in descending order of their keys until it returns `false`. The values are not
    /// copied.
    pub fn each_back(&self, table: Table, mut visit: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        let has_visited = Cell::new(false);
        self.read_unless(&has_visited, table, |table| {
            for pair in table.iter()?.rev() {
                let (key, value) = pair?;
                has_visited.set(true);
                if !visit(key.value(), value.value()) {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Returns the pair with the last key.
    pub fn last(&self, table: Table) -> Result<Option<Pair>, StoreError> {
        self.read(table, |table| Ok(table.last()?.map(|(key, value)| (key.value().to_vec(), value.value().to_vec()))))
    }

    /// Returns the pair with the greatest key that is not above this one.
    pub fn at_or_before(&self, table: Table, key: &[u8]) -> Result<Option<Pair>, StoreError> {
        self.read(table, |table| {
            let mut range = table.range::<&[u8]>((Bound::Unbounded, Bound::Included(key)))?;
            let pair = range.next_back().transpose()?;
            Ok(pair.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())))
        })
    }

    /// Writes all rows of this moment to a new file of mode 0600, a store of its own. Reads and writes continue
    /// meanwhile; the space of what they replace is free for others only afterwards.
    ///
    /// # Errors
    /// The file exists or cannot be written, or the store was reopened or compacted meanwhile: try again.
    pub fn write_snapshot(&self, path: &Path) -> Result<(), StoreError> {
        let failed = |reason: String| StoreError::Write { path: path.to_owned(), reason };
        if path.symlink_metadata().is_ok() {
            return Err(failed("the file exists".to_owned()));
        }
        snapshot::write(&self.inner.engine, path).map_err(|error| {
            // Half a copy is of no use, and may be what fills the disk of the store.
            if let Err(error) = disk::remove(path) {
                tracing::warn!(path = %path.display(), %error, "removing an unfinished snapshot failed");
            }
            failed(error.to_string())
        })
    }

    fn read<T: Default>(
        &self,
        table: Table,
        read: impl FnMut(ReadTable) -> Result<T, redb::StorageError>,
    ) -> Result<T, StoreError> {
        self.read_unless(&Cell::new(false), table, read)
    }

    /// Reads from a table. If the database must be reopened, waits for that and reads again, unless the first attempt
    /// has had effects.
    fn read_unless<T: Default>(
        &self,
        has_effects: &Cell<bool>,
        table: Table,
        mut read: impl FnMut(ReadTable) -> Result<T, redb::StorageError>,
    ) -> Result<T, StoreError> {
        let Inner { engine, queue, .. } = &*self.inner;
        let begun = Instant::now();
        let mut left = ATTEMPTS;
        loop {
            let failed = match engine.read(table, &mut read) {
                Ok(result) => return result,
                Err(failed) => failed,
            };
            if failed.is_open {
                queue.suspect(failed.reason.clone(), failed.generation);
            }
            left -= 1;
            if has_effects.get() || left == 0 || !engine.outage.wait(begun, || engine.generation() > failed.generation)
            {
                return Err(if queue.is_ended() { StoreError::Closed } else { engine.unavailable(&failed.reason) });
            }
        }
    }
}

//! Queues of items in the store, for the runner module `queue`: first in, first out. `shared.rs` implements the queues
//! of a cluster, and `known.rs` remembers their items.

mod known;
mod shared;

use std::hash::{Hash, Hasher};

use brine_bus::store::{Batch, BlockingStore, Pair, StoreError, Table};
use brine_value::{Value, msgpack};
use parking_lot::{Mutex, MutexGuard};

use crate::sealing::Sealing;
use crate::shared::SharedError;
use known::KnownQueues;
pub use shared::SharedQueues;

/// Items by `<queue>\0<number>`; numbers are eight bytes long and ascending.
const ITEMS: Table = Table("queue_items");
/// The numbers of items that are strings, by `<queue>\0` and the first bytes of the SHA-256 of the packed string.
const INDEX: Table = Table("queue_index");
/// The sizes of non-empty queues, by name: the number of items and their bytes.
const SIZES: Table = Table("queue_sizes");

/// The first byte of a sealed item, which no packed value has.
const SEALED: u8 = 0xc1;
/// The purpose that sealed items are bound to.
const PURPOSE: &str = "item of a queue";
/// The maximum length of a name, in bytes.
const MAX_NAME: usize = 255;
/// The maximum number of items in a queue.
const MAX_ITEMS: usize = 100_000;
/// The maximum size of an item, in bytes.
const MAX_ITEM: usize = 1 << 20;
/// The maximum size of a queue, in bytes.
const MAX_QUEUE: usize = 64 << 20;
/// The maximum number of queues.
const MAX_QUEUES: usize = 10_000;
/// The maximum size of all queues together, in bytes.
const MAX_TOTAL: u64 = 1 << 30;
/// The number of locks: queues that share one are changed one after the other.
const STRIPES: usize = 16;

/// The error of an operation on a queue.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The cluster, which contains the queues, failed.
    #[error("{0}")]
    Shared(#[from] SharedError),
    /// The event about the items was not published.
    #[error(transparent)]
    Event(#[from] brine_bus::BusError),
    /// The lock of the queue has expired before the change, so nothing was changed.
    #[error("the queue is busy: nothing was taken from it; try again")]
    Busy,
    /// The name of the queue is invalid.
    #[error("the name of the queue is invalid: expected 1 to {MAX_NAME} bytes without control characters")]
    Name,
    /// An item is too large.
    #[error("an item is too large: expected at most {limit} bytes, got {size}; queue a reference to the data instead")]
    LargeItem {
        /// The size of the item, in bytes.
        size: usize,
        /// The maximum size, in bytes.
        limit: usize,
    },
    /// The queue is full.
    #[error(
        "the queue {0} is full: expected at most {MAX_ITEMS} items of {MAX_QUEUE} bytes; process or delete some first"
    )]
    Full(String),
    /// There are too many queues.
    #[error("there are too many queues: expected at most {MAX_QUEUES} that have items; process or delete some first")]
    TooMany,
    /// All queues together are too large.
    #[error(
        "the queues are full: expected at most {} MB of items in all of them; process or delete some first",
        MAX_TOTAL >> 20
    )]
    AllFull,
}

/// The queues in a store. Beside the items, the store has the size of each queue and an index of its strings, so that
/// the cost of a change does not depend on the length of the queue.
pub struct Queues {
    store: BlockingStore,
    /// Encrypts items other than strings: they may be calls with secret arguments.
    sealing: Sealing,
    /// Serializes changes of a queue, which read and write it in several steps.
    changing: [Mutex<()>; STRIPES],
    totals: Mutex<Option<Totals>>,
    /// What is known of the queues of the cluster.
    pub known: KnownQueues,
}

/// The size of all queues together.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    queues: usize,
    bytes: u64,
    /// The number of replacements of the store by an empty one at the time of the count.
    replaced: u64,
}

/// The size of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    items: u64,
    bytes: u64,
}

impl Size {
    fn pack(self) -> Vec<u8> {
        [self.items.to_be_bytes(), self.bytes.to_be_bytes()].concat()
    }

    fn unpack(row: &[u8]) -> Size {
        let (items, bytes) = row.split_at_checked(8).unwrap_or_default();
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_be_bytes);
        Size { items: number(items), bytes: number(bytes) }
    }

    fn add(&mut self, packed: &[u8]) {
        self.items += 1;
        self.bytes += packed.len() as u64;
    }

    fn remove(&mut self, packed: &[u8]) {
        self.items = self.items.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(packed.len() as u64);
    }
}

/// The items at the head of a queue. As long as this value exists, other calls cannot change the queue.
pub struct Head<'a> {
    queues: &'a Queues,
    queue: String,
    rows: Vec<Pair>,
    _changing: MutexGuard<'a, ()>,
    /// The items, oldest first.
    pub items: Vec<Value>,
}

impl Head<'_> {
    /// Removes the items from the queue.
    pub fn remove(self) -> Result<(), QueueError> {
        self.queues.remove(&self.queue, &self.rows)
    }
}

impl Queues {
    /// Creates the queues of a store.
    pub fn new(store: BlockingStore, sealing: Sealing) -> Self {
        Queues { store, sealing, changing: Default::default(), totals: Mutex::default(), known: KnownQueues::default() }
    }

    fn seal(&self, queue: &str, packed: Vec<u8>) -> Vec<u8> {
        let is_string = matches!(packed.first(), Some(0xa0..=0xbf | 0xd9..=0xdb));
        if is_string {
            return packed;
        }
        [&[SEALED][..], &self.sealing.seal(PURPOSE, queue, &packed)].concat()
    }

    /// Returns a packed item; `None` if it is damaged. Earlier versions stored all items unsealed.
    fn unseal(&self, queue: &str, stored: &[u8]) -> Option<Vec<u8>> {
        match stored.strip_prefix(&[SEALED]) {
            Some(sealed) => self.sealing.unseal(PURPOSE, queue, sealed).ok(),
            None => Some(stored.to_vec()),
        }
    }

    /// Appends items. Strings that are already in the queue are skipped and returned.
    ///
    /// # Errors
    /// Nothing was appended.
    pub fn insert(&self, queue: &str, items: Vec<Value>) -> Result<Vec<Value>, QueueError> {
        let prefix = prefix(queue)?;
        self.count()?;
        let _changing = self.lock(queue);
        let size = self.size(queue)?;
        let last = self.store.at_or_before(ITEMS, &key(&prefix, u64::MAX))?.filter(|(key, _)| key.starts_with(&prefix));
        let mut next = last.map_or(0, |(key, _)| number(&key) + 1);
        let (mut batch, mut new_size, mut duplicates) = (Batch::new(), size, Vec::new());
        let mut added = std::collections::HashSet::new();
        for item in items {
            let packed = msgpack::pack(&item);
            if packed.len() > MAX_ITEM {
                return Err(QueueError::LargeItem { size: packed.len(), limit: MAX_ITEM });
            }
            if item.as_str().is_some() {
                let index = index_key(&prefix, &packed);
                if added.contains(&index) || self.store.get(INDEX, &index)?.is_some() {
                    duplicates.push(item);
                    continue;
                }
                batch.put(INDEX, index.clone(), next.to_be_bytes().to_vec());
                added.insert(index);
            }
            let stored = self.seal(queue, packed);
            new_size.add(&stored);
            if new_size.items > MAX_ITEMS as u64 || new_size.bytes > MAX_QUEUE as u64 {
                return Err(QueueError::Full(queue.to_owned()));
            }
            batch.put(ITEMS, key(&prefix, next), stored);
            next += 1;
        }
        self.change(queue, size, new_size, batch)?;
        Ok(duplicates)
    }

    /// Removes all items that equal one of these.
    pub fn delete(&self, queue: &str, items: &[Value]) -> Result<(), QueueError> {
        let prefix = prefix(queue)?;
        self.count()?;
        let _changing = self.lock(queue);
        let mut rows = Vec::new();
        for packed in items.iter().filter(|item| item.as_str().is_some()).map(msgpack::pack) {
            let Some(number) = self.store.get(INDEX, &index_key(&prefix, &packed))? else { continue };
            rows.push(([&prefix[..], &number].concat(), packed));
        }
        let others: std::collections::HashSet<Vec<u8>> =
            items.iter().filter(|item| item.as_str().is_none()).map(msgpack::pack).collect();
        if !others.is_empty() {
            let is_unwanted = |stored: &[u8]| self.unseal(queue, stored).is_some_and(|packed| others.contains(&packed));
            rows.extend(self.rows(&prefix, MAX_ITEMS)?.into_iter().filter(|(_, stored)| is_unwanted(stored)));
        }
        rows.sort();
        rows.dedup();
        self.remove(queue, &rows)
    }

    /// Returns at most `limit` items, oldest first.
    pub fn head(&self, queue: &str, limit: usize) -> Result<Head<'_>, QueueError> {
        let prefix = prefix(queue)?;
        self.count()?;
        let changing = self.lock(queue);
        let rows = self.rows(&prefix, limit.min(MAX_ITEMS))?;
        let mut items = Vec::with_capacity(rows.len());
        for (_, stored) in &rows {
            if let Some(item) = self.unseal(queue, stored).and_then(|packed| msgpack::unpack(&packed).ok()) {
                items.push(item);
            } else {
                tracing::error!(queue, "an item of a queue is damaged and is left out");
            }
        }
        Ok(Head { queues: self, queue: queue.to_owned(), rows, _changing: changing, items })
    }

    /// Returns the number of items.
    pub fn len(&self, queue: &str) -> Result<usize, QueueError> {
        prefix(queue)?;
        self.count()?;
        Ok(usize::try_from(self.size(queue)?.items).unwrap_or(usize::MAX))
    }

    /// Removes all items of a queue, and returns them.
    pub fn drain(&self, queue: &str) -> Result<Vec<Value>, QueueError> {
        let mut head = self.head(queue, usize::MAX)?;
        let items = std::mem::take(&mut head.items);
        head.remove()?;
        Ok(items)
    }

    /// Returns the sorted names of non-empty queues.
    pub fn names(&self) -> Result<Vec<String>, QueueError> {
        self.count()?;
        let sizes = self.store.scan(SIZES, b"", usize::MAX)?;
        Ok(sizes.into_iter().map(|(name, _)| String::from_utf8_lossy(&name).into_owned()).collect())
    }

    fn lock(&self, queue: &str) -> MutexGuard<'_, ()> {
        let mut hasher = std::hash::DefaultHasher::new();
        queue.hash(&mut hasher);
        self.changing[hasher.finish() as usize % STRIPES].lock()
    }

    fn rows(&self, prefix: &[u8], limit: usize) -> Result<Vec<Pair>, StoreError> {
        self.store.scan_range(ITEMS, prefix..&end_of(prefix), limit)
    }

    fn size(&self, queue: &str) -> Result<Size, StoreError> {
        Ok(self.store.get(SIZES, queue.as_bytes())?.map(|row| Size::unpack(&row)).unwrap_or_default())
    }

    fn remove(&self, queue: &str, rows: &[Pair]) -> Result<(), QueueError> {
        let prefix = prefix(queue)?;
        let size = self.size(queue)?;
        let (mut batch, mut left) = (Batch::new(), size);
        for (key, packed) in rows {
            left.remove(packed);
            batch.delete(ITEMS, key.clone());
            // Items that are not strings have no row there.
            batch.delete(INDEX, index_key(&prefix, packed));
        }
        self.change(queue, size, left, batch)
    }

    /// Applies changes of a queue, with its new size, and waits until they are on disk.
    fn change(&self, queue: &str, from: Size, to: Size, mut batch: Batch) -> Result<(), QueueError> {
        if batch.is_empty() {
            return Ok(());
        }
        if to.items == 0 {
            batch.delete(SIZES, queue);
        } else {
            batch.put(SIZES, queue, to.pack());
        }
        {
            let mut totals = self.totals.lock();
            let totals = totals.get_or_insert_default();
            if from.items == 0 && to.items > 0 && totals.queues >= MAX_QUEUES {
                return Err(QueueError::TooMany);
            }
            if to.bytes > from.bytes && totals.bytes + (to.bytes - from.bytes) > MAX_TOTAL {
                return Err(QueueError::AllFull);
            }
            totals.change(from, to);
        }
        self.store.write_blocking(batch).durable_blocking().inspect_err(|_| {
            if let Some(totals) = &mut *self.totals.lock() {
                totals.change(to, from);
            }
        })?;
        Ok(())
    }

    /// Counts all queues, at the first use and after the store was replaced. Queues that an earlier version has stored
    /// get their size and index.
    fn count(&self) -> Result<(), StoreError> {
        let mut totals = self.totals.lock();
        let replaced = self.store.replaced();
        if totals.as_ref().is_some_and(|totals| totals.replaced == replaced) {
            return Ok(());
        }
        let mut counted = Totals { replaced, ..Totals::default() };
        let mut start = Vec::new();
        while let Some((first, _)) = self.store.scan(ITEMS, &start, 1)?.into_iter().next() {
            let end = first.iter().position(|byte| *byte == 0).unwrap_or(first.len());
            let (queue, prefix) = (&first[..end], [&first[..end], &[0]].concat());
            let size = match self.store.get(SIZES, queue)? {
                Some(row) => Size::unpack(&row),
                None => self.index(queue, &prefix)?,
            };
            counted.change(Size::default(), size);
            start = end_of(&prefix);
        }
        *totals = Some(counted);
        Ok(())
    }

    fn index(&self, queue: &[u8], prefix: &[u8]) -> Result<Size, StoreError> {
        let (mut size, mut batch) = (Size::default(), Batch::new());
        for (key, packed) in self.rows(prefix, usize::MAX)? {
            size.add(&packed);
            if msgpack::unpack(&packed).is_ok_and(|item| item.as_str().is_some()) {
                batch.put(INDEX, index_key(prefix, &packed), number(&key).to_be_bytes().to_vec());
            }
        }
        batch.put(SIZES, queue, size.pack());
        self.store.write_blocking(batch).durable_blocking()?;
        Ok(size)
    }
}

impl Totals {
    fn change(&mut self, from: Size, to: Size) {
        match (from.items, to.items) {
            (0, 1..) => self.queues += 1,
            (1.., 0) => self.queues = self.queues.saturating_sub(1),
            _ => {}
        }
        self.bytes = (self.bytes + to.bytes).saturating_sub(from.bytes);
    }
}

/// Returns the key of a string in [`INDEX`].
fn index_key(prefix: &[u8], packed: &[u8]) -> Vec<u8> {
    use sha2::Digest;
    [prefix, &sha2::Sha256::digest(packed)[..16]].concat()
}

/// Returns the first key behind those with this prefix, which ends with a zero byte.
fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    if let Some(last) = end.last_mut() {
        *last = 1;
    }
    end
}

fn prefix(queue: &str) -> Result<Vec<u8>, QueueError> {
    if queue.is_empty() || queue.len() > MAX_NAME || queue.chars().any(char::is_control) {
        return Err(QueueError::Name);
    }
    Ok([queue.as_bytes(), &[0]].concat())
}

fn key(prefix: &[u8], number: u64) -> Vec<u8> {
    [prefix, &number.to_be_bytes()].concat()
}

fn number(key: &[u8]) -> u64 {
    let bytes = key.len().checked_sub(8).and_then(|start| key[start..].try_into().ok());
    bytes.map_or(0, u64::from_be_bytes)
}

#[cfg(test)]
mod tests;

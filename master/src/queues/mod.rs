//! Queues of items in the store, for the runner module `queue`: first in, first out. `shared.rs` implements the queues
//! of a cluster.

mod shared;

use brine_bus::store::{Batch, BlockingStore, StoreError, Table};
use brine_value::{Value, msgpack};
use parking_lot::{Mutex, MutexGuard};

use crate::cluster::SharedError;
use crate::sealing::Sealing;
pub(crate) use shared::SharedQueues;

/// Items by `<queue>\0<number>`; numbers are eight bytes long and ascending.
const ITEMS: Table = Table("queue_items");

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
}

/// The queues in a store.
pub(crate) struct Queues {
    store: BlockingStore,
    /// Encrypts items other than strings: they may be calls with secret arguments.
    sealing: Sealing,
    /// Serializes changes, which read and write a queue in several steps.
    changing: Mutex<()>,
}

/// The items at the head of a queue. As long as this value exists, other calls cannot change the queues.
pub(crate) struct Head<'a> {
    queues: &'a Queues,
    keys: Vec<Vec<u8>>,
    _changing: MutexGuard<'a, ()>,
    /// The items, oldest first.
    pub items: Vec<Value>,
}

impl Head<'_> {
    /// Removes the items from the queue.
    pub fn remove(self) -> Result<(), StoreError> {
        self.queues.delete_keys(self.keys)
    }
}

impl Queues {
    /// Creates the queues of a store.
    pub fn new(store: BlockingStore, sealing: Sealing) -> Self {
        Queues { store, sealing, changing: Mutex::default() }
    }

    fn seal(&self, queue: &str, packed: Vec<u8>) -> Vec<u8> {
        let is_string = matches!(packed.first(), Some(0xa0..=0xbf | 0xd9..=0xdb));
        if is_string {
            return packed;
        }
        [&[SEALED][..], &self.sealing.seal(PURPOSE, queue, &packed)].concat()
    }

    /// Returns a packed item; `None` if it is damaged. Earlier versions stored all items unsealed.
    fn unseal(&self, queue: &str, stored: Vec<u8>) -> Option<Vec<u8>> {
        match stored.strip_prefix(&[SEALED]) {
            Some(sealed) => self.sealing.unseal(PURPOSE, queue, sealed).ok(),
            None => Some(stored),
        }
    }

    /// Appends items. Strings that are already in the queue are skipped and returned.
    ///
    /// # Errors
    /// Nothing was appended.
    pub fn insert(&self, queue: &str, items: Vec<Value>) -> Result<Vec<Value>, QueueError> {
        let prefix = prefix(queue)?;
        let _changing = self.changing.lock();
        let rows = self.store.scan_prefix(ITEMS, &prefix)?;
        let next = rows.last().map_or(0, |(key, _)| number(key) + 1);
        let known = rows.into_iter().map(|(_, packed)| packed).collect();
        let (new, duplicates) = new_items(queue, known, items, MAX_ITEM)?;
        let mut batch = Batch::new();
        for (number, packed) in (next..).zip(new) {
            batch.put(ITEMS, key(&prefix, number), self.seal(queue, packed));
        }
        self.store.write(batch).durable_blocking()?;
        Ok(duplicates)
    }

    /// Removes all items that equal one of these.
    pub fn delete(&self, queue: &str, items: &[Value]) -> Result<(), QueueError> {
        let prefix = prefix(queue)?;
        let _changing = self.changing.lock();
        let rows = self.store.scan_prefix(ITEMS, &prefix)?;
        let unwanted: std::collections::HashSet<Vec<u8>> = items.iter().map(msgpack::pack).collect();
        let rows = rows.into_iter().filter_map(|(key, stored)| Some((key, self.unseal(queue, stored)?)));
        let keys = rows.filter(|(_, packed)| unwanted.contains(packed)).map(|(key, _)| key);
        Ok(self.delete_keys(keys.collect())?)
    }

    /// Returns at most `limit` items, oldest first.
    pub fn head(&self, queue: &str, limit: usize) -> Result<Head<'_>, QueueError> {
        let prefix = prefix(queue)?;
        let changing = self.changing.lock();
        let mut rows = self.store.scan(ITEMS, &prefix, limit.min(MAX_ITEMS))?;
        rows.retain(|(key, _)| key.starts_with(&prefix));
        let mut head = Head { queues: self, keys: Vec::new(), items: Vec::new(), _changing: changing };
        for (key, stored) in rows {
            match self.unseal(queue, stored).and_then(|packed| msgpack::unpack(&packed).ok()) {
                Some(item) => head.items.push(item),
                None => tracing::error!(queue, "an item of a queue is damaged and is left out"),
            }
            head.keys.push(key);
        }
        Ok(head)
    }

    /// Returns the number of items.
    pub fn len(&self, queue: &str) -> Result<usize, QueueError> {
        Ok(self.store.scan_prefix(ITEMS, &prefix(queue)?)?.len())
    }

    /// Removes all items of a queue, and returns them.
    pub fn drain(&self, queue: &str) -> Result<Vec<Value>, QueueError> {
        let head = self.head(queue, usize::MAX)?;
        let items = head.items.clone();
        head.remove()?;
        Ok(items)
    }

    /// Returns the sorted names of non-empty queues.
    pub fn names(&self) -> Result<Vec<String>, QueueError> {
        let mut names = Vec::new();
        let mut start = Vec::new();
        while let Some((key, _)) = self.store.scan(ITEMS, &start, 1)?.into_iter().next() {
            let end = key.iter().position(|byte| *byte == 0).unwrap_or(key.len());
            names.push(String::from_utf8_lossy(&key[..end]).into_owned());
            // The first key behind those of this queue.
            start = [&key[..end], &[1]].concat();
        }
        Ok(names)
    }

    fn delete_keys(&self, keys: Vec<Vec<u8>>) -> Result<(), StoreError> {
        let mut batch = Batch::new();
        for key in keys {
            batch.delete(ITEMS, key);
        }
        self.store.write(batch).durable_blocking()
    }
}

/// Returns the packed items to append to the `known` ones of a queue, and the strings that are already in the queue.
fn new_items(
    queue: &str,
    known: Vec<Vec<u8>>,
    items: Vec<Value>,
    limit: usize,
) -> Result<(Vec<Vec<u8>>, Vec<Value>), QueueError> {
    let (mut count, mut bytes) = (known.len(), known.iter().map(Vec::len).sum::<usize>());
    let mut known: std::collections::HashSet<Vec<u8>> = known.into_iter().collect();
    let (mut new, mut duplicates) = (Vec::new(), Vec::new());
    for item in items {
        let packed = msgpack::pack(&item);
        if packed.len() > limit {
            return Err(QueueError::LargeItem { size: packed.len(), limit });
        }
        if !known.insert(packed.clone()) && item.as_str().is_some() {
            duplicates.push(item);
            continue;
        }
        (count, bytes) = (count + 1, bytes + packed.len());
        if count > MAX_ITEMS || bytes > MAX_QUEUE {
            return Err(QueueError::Full(queue.to_owned()));
        }
        new.push(packed);
    }
    Ok((new, duplicates))
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

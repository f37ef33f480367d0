//! Returns that exceed `max_event_size`: the job cache stores them whole, before their trimmed events are published.
//!
//! The space for whole returns is limited (`large_returns_size`), per minion and in total, also across restarts.

use std::collections::BTreeMap;

use brine_bus::store::{Batch, BlockingStore, StoreError, Table};
use brine_ids::{Jid, MinionId};
use brine_job::{Return, oldest_kept};
use brine_value::msgpack;
use parking_lot::Mutex;

/// The sizes of whole returns, by `jid/id`.
const TABLE: Table = Table("large_returns");
/// Whole returns that the other members of a cluster do not have yet, by `jid/id`.
const OUTGOING: Table = Table("large_returns_outgoing");
/// The divisor of the space that yields the limit of one minion.
const MINION_DIVISOR: u64 = 4;

/// Accounts for the space of whole returns.
pub struct LargeReturns {
    store: BlockingStore,
    limit: u64,
    /// Whether whole returns are sent to other members of a cluster.
    is_shared: bool,
    /// The sizes in bytes, by job and minion.
    sizes: Mutex<BTreeMap<(String, String), u64>>,
}

impl LargeReturns {
    /// Reads the sizes from the store. `limit` is the space in bytes. With `is_shared`, whole returns are sent to other
    /// members.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn open(store: &BlockingStore, limit: u64, is_shared: bool) -> Result<Self, StoreError> {
        let pairs = store.scan(TABLE, b"", usize::MAX)?;
        let entry = |(key, size): (Vec<u8>, Vec<u8>)| {
            let (jid, id) = std::str::from_utf8(&key).ok()?.split_once('/')?;
            Some(((jid.to_owned(), id.to_owned()), u64::from_be_bytes(size.try_into().ok()?)))
        };
        let sizes = pairs.into_iter().filter_map(entry).collect();
        Ok(LargeReturns { store: store.clone(), limit, is_shared, sizes: Mutex::new(sizes) })
    }

    /// Reserves space for a return, once for each job and minion, and waits until that is on disk. Returns false if
    /// there is not enough.
    ///
    /// # Errors
    /// The store has refused the write: no space is reserved.
    pub fn reserve(&self, jid: &Jid, id: &MinionId, size: u64) -> Result<bool, StoreError> {
        let key = (jid.to_string(), id.to_string());
        {
            let mut sizes = self.sizes.lock();
            if sizes.contains_key(&key) {
                return Ok(true);
            }
            let all: u64 = sizes.values().sum();
            let own: u64 = sizes.iter().filter(|((_, of), _)| *of == key.1).map(|(_, size)| size).sum();
            if all.saturating_add(size) > self.limit || own.saturating_add(size) > self.limit / MINION_DIVISOR {
                return Ok(false);
            }
            sizes.insert(key.clone(), size);
        }
        let mut batch = Batch::new();
        batch.put(TABLE, format!("{jid}/{id}"), size.to_be_bytes().to_vec());
        let written = self.store.write_blocking(batch).durable_blocking();
        if written.is_err() {
            self.sizes.lock().remove(&key);
        }
        written.map(|()| true)
    }

    /// Retains a whole return until the other members have it, and waits until it is on disk.
    ///
    /// # Errors
    /// The store has refused the write: the other members would never get the return.
    pub fn keep_for_members(&self, one: &Return) -> Result<(), StoreError> {
        if !self.is_shared {
            return Ok(());
        }
        let mut batch = Batch::new();
        batch.put(OUTGOING, format!("{}/{}", one.jid(), one.id()), msgpack::pack_map(one.map()));
        self.store.write_blocking(batch).durable_blocking()
    }

    /// Returns a whole return that the other members do not have yet, packed.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn outgoing(&self, jid: &str, id: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get(OUTGOING, format!("{jid}/{id}").as_bytes())
    }

    /// Removes a whole return that the other members have.
    pub fn sent(&self, jid: &str, id: &str) {
        let mut batch = Batch::new();
        batch.delete(OUTGOING, format!("{jid}/{id}"));
        self.store.write_unchecked(
            batch,
            "the removal of a large return that the other members have: it stays until it expires",
        );
    }

    /// Frees the space of returns that have expired in the job cache.
    pub fn expire(&self, lifetime: std::time::Duration) {
        let Some(oldest) = oldest_kept(&brine_clock::now_for_age(lifetime), lifetime.as_secs()) else { return };
        let mut batch = Batch::new();
        batch.delete_below(TABLE, oldest.as_str());
        batch.delete_below(OUTGOING, oldest.as_str());
        self.store.write_unchecked(batch, "the removal of expired large returns: the next cleaning repeats it");
        let mut sizes = self.sizes.lock();
        *sizes = sizes.split_off(&(oldest.to_string(), String::new()));
    }
}

#[cfg(test)]
mod tests;

//! The masked arguments of recent jobs. Events and the job cache contain a job with masked arguments; minions that were
//! disconnected, and other members of a cluster, receive it with the real ones after a restart, too. So these are in a
//! table of the store, sealed, until no minion receives the job late any more.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use brine_bus::store::{Batch, BlockingStore, StoreError, Table};
use brine_crypt::token;
use brine_value::{Map, msgpack};

use crate::sealing::Sealing;

const TABLE: Table = Table("sealed_arguments");
/// The purpose that the sealed data is bound to.
const PURPOSE: &str = "arguments of a job";
/// The tolerance of clocks, and of the time between the event of a job and its publish.
const MARGIN: Duration = Duration::from_secs(60);
/// The minimum lifetime in a cluster: events of an outage of the servers are forwarded after it.
const CLUSTER_LIFETIME: Duration = Duration::from_secs(3600);

/// The masked arguments of recent jobs, by reference.
pub struct SealedArguments {
    store: BlockingStore,
    sealing: Sealing,
    lifetime: Duration,
}

impl SealedArguments {
    /// Creates the table. `catch_up` is the time for which jobs are delivered late.
    pub fn new(store: BlockingStore, sealing: Sealing, catch_up: Duration, is_member: bool) -> Self {
        let shortest = if is_member { CLUSTER_LIFETIME } else { Duration::ZERO };
        SealedArguments { store, sealing, lifetime: (catch_up + MARGIN).max(shortest) }
    }

    /// Seals the masked fields of a job. Returns a reference to them, which reveals nothing.
    pub fn store(&self, fields: &Map) -> String {
        let random: [u8; 8] = token::random_bytes();
        let reference = format!("{}{}", key_of(now()), brine_digest::hex(random));
        let batch = self.batch(&reference, &msgpack::pack_map(fields));
        self.store.write_unchecked(batch, "the masked arguments of a job");
        reference
    }

    /// Stores the packed fields of a job of another member. Returns `None` if the reference is invalid.
    pub fn put(&self, reference: &str, packed: &[u8]) -> Option<brine_bus::store::Ticket> {
        let is_reference = reference.len() == 32 && reference.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_reference.then(|| self.store.write(self.batch(reference, packed)))
    }

    fn batch(&self, reference: &str, packed: &[u8]) -> Batch {
        let mut batch = self.removal();
        batch.put(TABLE, reference, self.sealing.seal(PURPOSE, reference, packed));
        batch
    }

    /// Returns the removal of expired arguments.
    fn removal(&self) -> Batch {
        let mut batch = Batch::new();
        batch.delete_below(TABLE, key_of(now().saturating_sub(self.lifetime)));
        batch
    }

    /// Returns the packed fields of a reference; `None` if they have expired. Blocks.
    pub fn packed(&self, reference: &str) -> Option<Vec<u8>> {
        let mut row = self.store.get(TABLE, reference.as_bytes());
        if matches!(row, Ok(None)) && reference >= key_of(now().saturating_sub(MARGIN)).as_str() {
            // The write may be queued still: writes are committed in order.
            _ = self.store.write_blocking(self.removal()).durable_blocking();
            row = self.store.get(TABLE, reference.as_bytes());
        }
        let sealed = row.inspect_err(|error| tracing::error!(%error, "reading the arguments of a masked job failed"));
        let opened = self.sealing.unseal(PURPOSE, reference, &sealed.ok()??);
        opened.inspect_err(|error| tracing::error!(%error, "decrypting the arguments of a masked job failed")).ok()
    }

    /// Returns the fields of a reference; `None` if they have expired. Blocks.
    pub fn fields(&self, reference: &str) -> Option<Map> {
        msgpack::unpack_map(&self.packed(reference)?).ok()
    }

    /// Removes expired arguments. Blocks.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn expire(&self) -> Result<(), StoreError> {
        let before = key_of(now().saturating_sub(self.lifetime));
        let oldest = self.store.scan(TABLE, b"", 1)?;
        if oldest.first().is_none_or(|(key, _)| key.as_slice() >= before.as_bytes()) {
            return Ok(());
        }
        self.store.write_blocking(self.removal()).durable_blocking()
    }
}

/// Returns the time since 1970.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the first part of references of this time: they sort by it.
fn key_of(time: Duration) -> String {
    format!("{:016x}", u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;

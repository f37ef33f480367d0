//! The tables that all members have: minions' keys, their data, the mine, tokens.

use brine_bus::store::{Batch, BlockingStore, StoreError, Table as StoreName};
use brine_digest::Digest;
use brine_runtime::executors::MayBlock;
use tokio::sync::{mpsc, oneshot};

/// The limits of one read from the store: the number of pairs, and their total size in bytes.
const PAGE: usize = 1024;
const PAGE_BYTES: usize = 8 << 20;

/// The SHA-256 digest of a value; `None` if there is no value.
pub(crate) type ValueDigest = Option<Vec<u8>>;

/// Why a table cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The disk failed, or has no room. A retry may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// The key or the value is none of this table.
    #[error("{0}")]
    Invalid(String),
}

impl From<StoreError> for TableError {
    fn from(error: StoreError) -> Self {
        TableError::Unavailable(error.to_string())
    }
}

/// A table of this master that is replicated to all members.
pub trait Table: Send + Sync {
    /// Returns the name of the table in the cluster: letters, digits and `_`.
    fn name(&self) -> &'static str;

    /// Returns all keys.
    ///
    /// # Errors
    /// The table cannot be read.
    fn keys(&self, thread: &MayBlock) -> Result<Vec<Vec<u8>>, TableError>;

    /// Returns a value.
    ///
    /// # Errors
    /// The table cannot be read.
    fn get(&self, thread: &MayBlock, key: &[u8]) -> Result<Option<Vec<u8>>, TableError>;

    /// Sets a value, or removes it.
    ///
    /// # Errors
    /// The table cannot be written, or the value is invalid.
    fn set(&self, thread: &MayBlock, key: &[u8], value: Option<&[u8]>) -> Result<(), TableError>;

    /// Whether the local value wins where both sides were changed; by default the cluster's value does.
    fn prefers(&self, _local: Option<&[u8]>, _cluster: Option<&[u8]>) -> bool {
        false
    }
}

/// A table of the master's store.
pub(crate) struct StoreTable {
    pub table: StoreName,
    pub store: BlockingStore,
}

impl Table for StoreTable {
    fn name(&self) -> &'static str {
        self.table.0
    }

    fn keys(&self, _: &MayBlock) -> Result<Vec<Vec<u8>>, TableError> {
        let (mut keys, mut start) = (Vec::new(), Vec::new());
        loop {
            let (pairs, more) = self.store.scan_page(self.table, &start, PAGE, PAGE_BYTES)?;
            keys.extend(pairs.into_iter().map(|(key, _)| key));
            let Some(last) = keys.last().filter(|_| more) else { return Ok(keys) };
            start.clone_from(last);
            start.push(0);
        }
    }

    fn get(&self, _: &MayBlock, key: &[u8]) -> Result<Option<Vec<u8>>, TableError> {
        Ok(self.store.get(self.table, key)?)
    }

    fn set(&self, _: &MayBlock, key: &[u8], value: Option<&[u8]>) -> Result<(), TableError> {
        let mut batch = Batch::new();
        match value {
            Some(value) => batch.put(self.table, key, value.to_vec()),
            None => batch.delete(self.table, key),
        };
        Ok(self.store.write_blocking(batch).durable_blocking()?)
    }
}

/// Returns the digest of a value.
pub(crate) fn digest(value: Option<&[u8]>) -> ValueDigest {
    value.map(|value| Digest::Sha256.of(value))
}

/// Requests to the task that synchronises the tables.
#[derive(Debug)]
pub(crate) enum Request {
    /// Compare the files of keys, and send changed ones.
    PushFiles(oneshot::Sender<()>),
    /// Fetch the key of a minion.
    PullFile(String, oneshot::Sender<()>),
}

/// A handle to the task that synchronises the tables.
#[derive(Debug)]
pub(crate) struct SyncHandle(pub mpsc::Sender<Request>);

impl SyncHandle {
    /// Sends changed minion keys to the cluster. Returns when the cluster has them, or is away.
    pub async fn push_files(&self) {
        let (reply, waiting) = oneshot::channel();
        if self.0.send(Request::PushFiles(reply)).await.is_ok() {
            // The sender is dropped at shutdown and during an outage.
            _ = waiting.await;
        }
    }

    /// Fetches the key of a minion from the cluster, and returns when it is here or the cluster is away.
    pub async fn pull_file(&self, id: &str) {
        let (reply, waiting) = oneshot::channel();
        if self.0.send(Request::PullFile(id.to_owned(), reply)).await.is_ok() {
            _ = waiting.await;
        }
    }
}

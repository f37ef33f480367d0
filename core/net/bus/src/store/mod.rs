//! The one embedded store on disk: journal, job cache, minion data, durable cursors.
//!
//! One thread does all writing and commits everything queued since its last commit together (group commit), so that
//! durability costs one disk flush for many writers. Readers wait for it only while it reopens a failed
//! database. Tables are named by their owner and hold bytes; keys sort as bytes.
//!
//! Reads block on the disk: [`BlockingStore`] provides them to threads that may block.
//!
//! Modules: `batch` (changes), `blocking` (reads), `queue` (the bounded queue of the writer), `writer` (commits and
//! recovery), `reclaim` and `copy` (free space), `pages` (the disk space of rows), `snapshot` (backups), `engine` (redb,
//! with its errors and panics), `outage` (until it is reopened), `disk` (the file), `observers` (of committed changes).

mod batch;
mod blocking;
mod copy;
mod disk;
mod engine;
mod observers;
mod outage;
mod pages;
mod queue;
mod reclaim;
mod snapshot;
mod writer;

#[cfg(test)]
pub(crate) mod faults;
#[cfg(test)]
pub(crate) mod tests;

#[cfg(test)]
mod outage_tests;
#[cfg(test)]
mod reclaim_tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Duration;

use brine_runtime::executors::MayBlock;
use parking_lot::Mutex;
use redb::TableDefinition;
use tokio::sync::{Notify, oneshot, watch};

pub use batch::Batch;
pub use blocking::BlockingStore;
use disk::{Disk, FileDisk};
pub(crate) use engine::text_of as panic_text;
use engine::{Engine, Failure, ReadTable};
use observers::Observers;
pub use observers::{Observer, Touched};
pub(crate) use pages::{LARGEST_SHARED_ROW, Pages};
use queue::{Queue, QueueLimits, Reply, ResultReceiver};

/// The version of the layout. A change of the layout increases it and adds a migration of older stores.
pub const SCHEMA: u64 = 2;

/// The number of attempts, and the pause between them, to open a store that is in use.
const RETRIES: u32 = 10;
const RETRY: Duration = Duration::from_millis(20);

const META: Table = Table("meta");

/// A table, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Table(pub &'static str);

impl Table {
    fn definition(self) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
        TableDefinition::new(self.0)
    }
}

/// A key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// Why an operation of the store failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be opened or created.
    #[error("cannot open the store {path}: {reason}")]
    Open {
        /// The path of the store.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// Another process has opened it.
    #[error("the store {0} is in use by another process: is another master running?")]
    InUse(PathBuf),
    /// A newer version of Brine wrote it.
    #[error(
        "the store {path} has layout {found}: this version of Brine supports layouts up to {SCHEMA}; run the newer version"
    )]
    TooNew {
        /// The path of the store.
        path: PathBuf,
        /// The layout found.
        found: u64,
    },
    /// Reading failed.
    #[error("cannot read from the store: {0}")]
    Read(String),
    /// Writing failed: the disk is full, read-only or broken.
    #[error("cannot write to the store {path}: {reason}; make room on that disk, or make it writable")]
    Write {
        /// The path of the store.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// The store failed before and cannot be read yet.
    #[error("the store {path} is not available: {reason}; try again")]
    Unavailable {
        /// The path of the store.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// A page of the file is damaged.
    #[error("the store {path} is damaged: {reason}")]
    Damaged {
        /// The path of the store.
        path: PathBuf,
        /// The error of the database.
        reason: String,
    },
    /// The store failed while it committed the write, or was closed before it did: the write may be missing.
    #[error("a write to the store was interrupted: it may be missing; try again")]
    Interrupted,
    /// The queue of writes is full.
    #[error("writing to the store failed: its queue is full; try again")]
    Busy,
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}

/// Whether the store accepts writes.
#[derive(Debug, Clone)]
pub enum Health {
    /// The store accepts writes.
    Healthy,
    /// The store accepts writes, but was damaged beyond repair: it was moved to this path and replaced by an empty one.
    Replaced(PathBuf),
    /// Writes are refused because of this error until the disk recovers.
    Failed(StoreError),
}

/// The description of a refused write whose caller has dropped its ticket.
const ABANDONED: &str = "a write whose caller no longer waits";

/// A write in progress, which the store may still refuse. A caller that cannot act on a refusal uses
/// [`Store::write_unchecked`] and states what is lost then. The refusal of a dropped ticket is counted and logged.
#[derive(Debug)]
#[must_use = "the store may refuse the write: wait for `durable`, or use `write_unchecked`"]
pub struct Ticket(ResultReceiver);

impl Ticket {
    /// Waits until the write is flushed to disk.
    pub async fn durable(mut self) -> Result<(), StoreError> {
        // By reference, so that a refusal is not lost when the caller stops waiting.
        (&mut self.0).await.unwrap_or(Err(StoreError::Interrupted))
    }

    /// Waits until the write is flushed to disk, on a thread that may block.
    pub fn durable_blocking(mut self) -> Result<(), StoreError> {
        let (_, taken) = oneshot::channel();
        std::mem::replace(&mut self.0, taken).blocking_recv().unwrap_or(Err(StoreError::Interrupted))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // From here on, a refusal is counted by the writer.
        self.0.close();
        if let Ok(Err(error)) = self.0.try_recv() {
            crate::metrics::STORE_UNCHECKED.add(1);
            tracing::error!(what = ABANDONED, %error, "a write to the store was refused and is not repeated");
        }
    }
}

/// Has writes committed at once while it exists: see [`Store::hurry`].
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct Hurry(Store);

impl Drop for Hurry {
    fn drop(&mut self) {
        self.0.inner.queue.end_hurry();
    }
}

/// The state of the store when it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The store did not exist and has been created.
    New,
    /// The file was empty, which the store never leaves behind: it has been created anew.
    Emptied,
    /// The last stop was clean.
    Clean,
    /// The last stop was not clean; the store has been repaired.
    Repaired,
    /// The file was damaged: it has been moved aside (to the same name with `.damaged` appended) and an empty one
    /// created.
    Replaced,
}

struct Inner {
    engine: Engine,
    queue: Queue,
    health: watch::Sender<Health>,
    observers: Observers,
    /// The writer thread has closed the database.
    closed: Notify,
}

/// The open store. Clones share it; dropping the last one closes it cleanly, and so does [`Store::close`].
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    /// Ends the writer thread with the last clone.
    _writer: Arc<WriterThread>,
}

struct WriterThread {
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.inner.queue.close();
        if let Some(thread) = self.thread.lock().take() {
            // The writer thread has logged its failures.
            _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store at this path, creating it if it does not exist and repairing it after an unclean stop. `cache`
    /// is the size of the page cache in bytes.
    pub fn open(path: &Path, cache: usize) -> Result<(Self, Opened), StoreError> {
        Self::open_on(Box::new(FileDisk(path.to_owned())), cache, QueueLimits::default())
    }

    fn open_on(disk: Box<dyn Disk>, cache: usize, limits: QueueLimits) -> Result<(Self, Opened), StoreError> {
        let path = disk.path().to_owned();
        let failed = |reason: String| StoreError::Open { path: path.clone(), reason };
        let length = std::fs::metadata(&path).ok().map(|data| data.len());
        let (engine, opened) = match open_with_retry(disk, cache) {
            Ok((engine, _)) if length.is_none() => (engine, Opened::New),
            Ok((engine, _)) if length == Some(0) => {
                crate::metrics::STORE_REPLACED.add(1);
                tracing::error!(path = %path.display(), "the store is an empty file: earlier events and jobs are lost, and sequence numbers begin anew");
                (engine, Opened::Emptied)
            }
            Ok((engine, repaired)) => (engine, if repaired { Opened::Repaired } else { Opened::Clean }),
            Err((redb::DatabaseError::DatabaseAlreadyOpen, _)) => return Err(StoreError::InUse(path)),
            Err((error, disk)) if length.is_some() && engine::is_damage(&error) => {
                let aside = disk::move_aside(&path).map_err(|error| failed(error.to_string()))?;
                tracing::error!(path = %path.display(), moved_to = %aside.display(), %error, "the store is damaged beyond repair: it is moved aside and an empty one takes its place");
                crate::metrics::STORE_REPLACED.add(1);
                let (engine, _) = Engine::open(disk, cache).map_err(|(error, _)| failed(error.to_string()))?;
                (engine, Opened::Replaced)
            }
            Err((error, _)) => return Err(failed(error.to_string())),
        };
        disk::remove(engine.disk.copy_disk().path()).map_err(|error| failed(error.to_string()))?;
        check_schema(&engine)?;
        let inner = Arc::new(Inner {
            engine,
            queue: Queue::new(limits),
            health: watch::Sender::new(Health::Healthy),
            observers: Observers::default(),
            closed: Notify::new(),
        });
        let of_thread = Arc::clone(&inner);
        let thread = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || {
                let Inner { engine, queue, health, observers, closed, .. } = &*of_thread;
                let (refused, unchecked) = (AtomicU64::new(0), Mutex::new(BTreeSet::new()));
                writer::Writer { engine, queue, health, observers, refused, unchecked }.run();
                closed.notify_waiters();
            })
            .map_err(|error| failed(error.to_string()))?;
        let writer = Arc::new(WriterThread { inner: Arc::clone(&inner), thread: Mutex::new(Some(thread)) });
        Ok((Store { inner, _writer: writer }, opened))
    }

    /// Returns the path of the store.
    pub fn path(&self) -> &Path {
        self.inner.engine.disk.path()
    }

    /// Returns the allocated size of the store on disk in bytes, including a copy in progress.
    pub fn disk_bytes(&self) -> u64 {
        disk::allocated(self.path()) + disk::allocated(self.inner.engine.disk.copy_disk().path())
    }

    /// Checks at once, besides the regular checks, whether the file takes much more space than its rows need, and
    /// returns free space to the disk. The ticket completes when that has ended; reads and writes continue meanwhile.
    pub fn reclaim(&self) -> Ticket {
        Ticket(self.inner.queue.request_space())
    }

    /// As [`Store::reclaim`], without waiting: a failure is logged and repeated later.
    pub fn reclaim_soon(&self) {
        drop(self.inner.queue.request_space());
    }

    /// Watches whether the store accepts writes.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.inner.health.subscribe()
    }

    /// Whether the store refuses writes at the moment.
    pub fn is_failing(&self) -> bool {
        matches!(*self.inner.health.borrow(), Health::Failed(_))
    }

    /// Returns how often the open store was replaced by an empty one because it was damaged beyond repair.
    pub fn replaced(&self) -> u64 {
        self.inner.engine.replaced()
    }

    /// Observes the committed changes of these tables from now on.
    pub fn observe(&self, tables: &[Table]) -> Observer {
        self.inner.observers.add(tables)
    }

    /// Queues changes; they are applied in the order of these calls. Never blocks: if the queue is full, the write is
    /// refused with [`StoreError::Busy`]. For callers that wait for the ticket, so that the number of their writes is
    /// bounded.
    pub fn write(&self, batch: Batch) -> Ticket {
        let (sender, result) = oneshot::channel();
        self.inner.queue.try_push(batch, Reply::Ticket(sender));
        Ticket(result)
    }

    /// Queues changes as [`Store::write`] does, for callers that can do without them: a refusal is only logged and
    /// counted (`brine_store_unchecked_total`). `what` is what is lost then, such as `the end of a batch`.
    pub fn write_unchecked(&self, batch: Batch, what: &'static str) {
        self.inner.queue.try_push(batch, Reply::Unchecked(what));
    }

    /// Commits the queued writes and closes the file cleanly, although other clones still exist: their later reads and
    /// writes fail. Waits for running reads.
    pub async fn close(&self) {
        let mut closed = std::pin::pin!(self.inner.closed.notified());
        closed.as_mut().enable();
        self.inner.queue.close();
        if !self.inner.queue.is_ended() {
            closed.await;
        }
    }

    /// Queues changes once the queue has room: backpressure for tasks that do not wait for the ticket.
    pub async fn write_when_room(&self, batch: Batch) -> Ticket {
        let (sender, result) = oneshot::channel();
        self.inner.queue.push_when_room(batch, Reply::Ticket(sender)).await;
        Ticket(result)
    }

    /// Queues changes as [`Store::write_unchecked`] does, once the queue has room.
    pub async fn write_unchecked_when_room(&self, batch: Batch, what: &'static str) {
        self.inner.queue.push_when_room(batch, Reply::Unchecked(what)).await;
    }

    /// Has the writes of [`BlockingStore::write_soon`] committed at once, those that wait and further ones, while the
    /// result exists: somebody waits for them.
    pub fn hurry(&self) -> Hurry {
        self.inner.queue.hurry();
        Hurry(self.clone())
    }

    /// Returns the number of commits since the store was opened. Each flushes the disk once.
    pub fn commits(&self) -> u64 {
        self.inner.engine.commits()
    }

    /// Returns the blocking operations, for a thread that may block. Types that store them are themselves wrapped in
    /// [`Blocking`](brine_runtime::executors::Blocking), or belong to such threads.
    pub fn blocking(&self, _: &MayBlock) -> BlockingStore {
        BlockingStore(self.clone())
    }
}

/// Opens the database, retrying while it is locked: after it was closed, a child process between fork and exec may
/// still hold the file open.
fn open_with_retry(
    mut disk: Box<dyn Disk>,
    cache: usize,
) -> Result<(Engine, bool), (redb::DatabaseError, Box<dyn Disk>)> {
    for _ in 0..RETRIES {
        match Engine::open(disk, cache) {
            Err((redb::DatabaseError::DatabaseAlreadyOpen, same)) => disk = same,
            result => return result,
        }
        std::thread::sleep(RETRY);
    }
    Engine::open(disk, cache)
}

/// Checks the version of the layout, and writes it into a new store and one of an older layout. Layout 2 has journal rows
/// of several events; what layout 1 wrote is read as it is.
fn check_schema(engine: &Engine) -> Result<(), StoreError> {
    let path = engine.disk.path().to_owned();
    let read = |table: ReadTable| Ok(table.get(&b"schema"[..])?.map(|value| value.value().to_vec()));
    let row = engine.read(META, read).unwrap_or_else(|failed| Err(StoreError::Read(failed.reason)))?;
    match row.and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes) {
        Some(version) if version > SCHEMA => Err(StoreError::TooNew { path, found: version }),
        Some(SCHEMA) => Ok(()),
        _ => {
            let mut batch = Batch::new();
            batch.put(META, *b"schema", SCHEMA.to_be_bytes().to_vec());
            match engine.commit(&[batch]) {
                Ok(()) => Ok(()),
                Err(Failure::Broken(reason) | Failure::Damaged(reason) | Failure::Refused(reason)) => {
                    Err(StoreError::Write { path, reason })
                }
            }
        }
    }
}

//! The one embedded store on disk: journal, job cache, minion data, durable cursors.
//!
//! One thread owns all writing and puts whatever has come in since its last commit into the next one
//! (group commit), so that durability costs one disk flush for many writers. Readers never wait for it.
//! Tables are named by their owner and hold bytes; keys sort as bytes.

use std::collections::HashMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use tokio::sync::oneshot;

/// The layout of what is stored; raised when it changes, with a step that brings older stores forward.
pub const SCHEMA: u64 = 1;

/// How often, and after which time, a store that is in use is tried again.
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

/// Why the store cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// It cannot be opened or made.
    #[error("cannot open the store {path}: {reason}")]
    Open {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Another process has it open.
    #[error("the store {0} is in use by another process: is another master running?")]
    InUse(PathBuf),
    /// It was written by a newer Brine.
    #[error("the store {path} has layout {found}, this Brine knows layouts up to {SCHEMA}: run the newer Brine")]
    TooNew {
        /// Where it is.
        path: PathBuf,
        /// The layout found.
        found: u64,
    },
    /// Reading failed.
    #[error("cannot read from the store: {0}")]
    Read(String),
    /// Writing failed: the disk is full or gone.
    #[error("cannot write to the store {path}: {reason}; make room on that disk")]
    Write {
        /// Where the store is.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}

/// Changes that are made together or not at all.
#[derive(Debug, Default)]
pub struct Batch {
    changes: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Put(Table, Vec<u8>, Bytes),
    PutNew(Table, Vec<u8>, Bytes),
    Delete(Table, Vec<u8>),
    DeleteBelow(Table, Vec<u8>),
    DeletePrefix(Table, Vec<u8>),
}

impl Batch {
    /// No changes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a key.
    pub fn put(&mut self, table: Table, key: impl Into<Vec<u8>>, value: impl Into<Bytes>) -> &mut Self {
        self.changes.push(Change::Put(table, key.into(), value.into()));
        self
    }

    /// Sets a key that is not there yet; one that is keeps its value.
    pub fn put_new(&mut self, table: Table, key: impl Into<Vec<u8>>, value: impl Into<Bytes>) -> &mut Self {
        self.changes.push(Change::PutNew(table, key.into(), value.into()));
        self
    }

    /// Removes a key.
    pub fn delete(&mut self, table: Table, key: impl Into<Vec<u8>>) -> &mut Self {
        self.changes.push(Change::Delete(table, key.into()));
        self
    }

    /// Removes all keys that sort before this one.
    pub fn delete_below(&mut self, table: Table, key: impl Into<Vec<u8>>) -> &mut Self {
        self.changes.push(Change::DeleteBelow(table, key.into()));
        self
    }

    /// Removes all keys that start so.
    pub fn delete_prefix(&mut self, table: Table, prefix: impl Into<Vec<u8>>) -> &mut Self {
        self.changes.push(Change::DeletePrefix(table, prefix.into()));
        self
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// A write that is under way.
#[derive(Debug)]
pub struct Ticket(oneshot::Receiver<Result<(), StoreError>>);

impl Ticket {
    /// Waits until the write is on disk.
    pub async fn durable(self) -> Result<(), StoreError> {
        self.0.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Waits until the write is on disk, on a thread that may block.
    pub fn durable_blocking(self) -> Result<(), StoreError> {
        self.0.blocking_recv().unwrap_or(Err(StoreError::Closed))
    }
}

/// What opening found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The store did not exist and was made.
    New,
    /// The last stop was clean.
    Clean,
    /// The last stop was not clean; the store has been repaired.
    Repaired,
    /// The file was no store any more: it was moved aside (to the same name with `.damaged` behind it)
    /// and an empty one was made.
    Replaced,
}

struct Inner {
    database: Database,
    path: PathBuf,
    queue: Mutex<Queue>,
    arrived: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<(Batch, oneshot::Sender<Result<(), StoreError>>)>,
    closing: bool,
}

/// The open store. Clones share it; dropping the last one closes it cleanly.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    writer: Arc<Writer>,
}

struct Writer {
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.inner.queue.lock().closing = true;
        self.inner.arrived.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            // The writer has logged what it could not write; nothing more can be done here.
            _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store at this path, making it if there is none and repairing what an unclean stop
    /// left. `cache` is how many bytes of pages are kept in memory.
    pub fn open(path: &Path, cache: usize) -> Result<(Self, Opened), StoreError> {
        let failed = |reason: String| StoreError::Open { path: path.to_owned(), reason };
        let existed = path.exists();
        let repaired = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&repaired);
        let open = || {
            let seen = Arc::clone(&seen);
            Database::builder()
                .set_cache_size(cache)
                .set_repair_callback(move |_| seen.store(true, Ordering::Relaxed))
                .create(path)
        };
        let mut opened = if existed { Opened::Clean } else { Opened::New };
        // What was closed a moment ago is held for as long as a process that is being started has its parent's files.
        let patient = || {
            for _ in 0..RETRIES {
                match open() {
                    Err(redb::DatabaseError::DatabaseAlreadyOpen) => std::thread::sleep(RETRY),
                    done => return done,
                }
            }
            open()
        };
        let database = match patient() {
            Ok(database) => database,
            Err(redb::DatabaseError::DatabaseAlreadyOpen) => return Err(StoreError::InUse(path.to_owned())),
            Err(redb::DatabaseError::Storage(redb::StorageError::Io(error)))
                if error.kind() != std::io::ErrorKind::InvalidData =>
            {
                return Err(failed(error.to_string()));
            }
            Err(error) if existed => {
                let mut aside = path.as_os_str().to_owned();
                aside.push(".damaged");
                tracing::error!(path = %path.display(), %error, "the store is damaged beyond repair; it is moved aside and an empty one takes its place");
                std::fs::rename(path, &aside).map_err(|error| failed(error.to_string()))?;
                opened = Opened::Replaced;
                open().map_err(|error| failed(error.to_string()))?
            }
            Err(error) => return Err(failed(error.to_string())),
        };
        let inner =
            Arc::new(Inner { database, path: path.to_owned(), queue: Mutex::default(), arrived: Condvar::new() });
        let of_thread = Arc::clone(&inner);
        let thread = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || write_loop(&of_thread))
            .map_err(|error| failed(error.to_string()))?;
        let writer = Arc::new(Writer { inner: Arc::clone(&inner), thread: Mutex::new(Some(thread)) });
        let store = Store { inner, writer };
        store.check_schema()?;
        if repaired.load(Ordering::Relaxed) && opened == Opened::Clean {
            opened = Opened::Repaired;
        }
        Ok((store, opened))
    }

    fn check_schema(&self) -> Result<(), StoreError> {
        let found = self.get(META, b"schema")?.and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        match found {
            Some(found) if found > SCHEMA => Err(StoreError::TooNew { path: self.inner.path.clone(), found }),
            Some(_) => Ok(()),
            None => {
                let mut batch = Batch::new();
                batch.put(META, *b"schema", SCHEMA.to_be_bytes().to_vec());
                self.write(batch).durable_blocking_in_place()
            }
        }
    }

    /// Where the store is.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Hands changes to the writer. They are made in the order of these calls.
    pub fn write(&self, batch: Batch) -> Ticket {
        let (done, ticket) = oneshot::channel();
        let mut queue = self.writer.inner.queue.lock();
        queue.waiting.push((batch, done));
        drop(queue);
        self.inner.arrived.notify_one();
        Ticket(ticket)
    }

    /// The value of a key.
    pub fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(table, |table| Ok(table.get(key)?.map(|value| value.value().to_vec())))
    }

    /// Up to `limit` pairs in rising order of their keys, from `start` on.
    pub fn scan(&self, table: Table, start: &[u8], limit: usize) -> Result<Vec<Pair>, StoreError> {
        self.read(table, |table| {
            let range = table.range::<&[u8]>((Bound::Included(start), Bound::Unbounded))?;
            range
                .take(limit)
                .map(|pair| pair.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())))
                .collect()
        })
    }

    /// All pairs whose keys start so, in rising order.
    pub fn scan_prefix(&self, table: Table, prefix: &[u8]) -> Result<Vec<Pair>, StoreError> {
        self.read(table, |table| {
            let mut found = Vec::new();
            for pair in table.range::<&[u8]>((Bound::Included(prefix), Bound::Unbounded))? {
                let (key, value) = pair?;
                if !key.value().starts_with(prefix) {
                    break;
                }
                found.push((key.value().to_vec(), value.value().to_vec()));
            }
            Ok(found)
        })
    }

    /// Up to `limit` pairs in falling order of their keys, from the last one on.
    pub fn scan_back(&self, table: Table, limit: usize) -> Result<Vec<Pair>, StoreError> {
        self.read(table, |table| {
            let pairs = table.iter()?.rev().take(limit);
            pairs.map(|pair| pair.map(|(key, value)| (key.value().to_vec(), value.value().to_vec()))).collect()
        })
    }

    /// The pair with the last key.
    pub fn last(&self, table: Table) -> Result<Option<Pair>, StoreError> {
        self.read(table, |table| Ok(table.last()?.map(|(key, value)| (key.value().to_vec(), value.value().to_vec()))))
    }

    /// The pair with the greatest key that is not above this one.
    pub fn at_or_before(&self, table: Table, key: &[u8]) -> Result<Option<Pair>, StoreError> {
        self.read(table, |table| {
            let mut range = table.range::<&[u8]>((Bound::Unbounded, Bound::Included(key)))?;
            let pair = range.next_back().transpose()?;
            Ok(pair.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())))
        })
    }

    fn read<T: Default>(
        &self,
        table: Table,
        read: impl FnOnce(redb::ReadOnlyTable<&'static [u8], &'static [u8]>) -> Result<T, redb::StorageError>,
    ) -> Result<T, StoreError> {
        let failed = |error: redb::Error| StoreError::Read(error.to_string());
        let transaction = self.inner.database.begin_read().map_err(|error| failed(error.into()))?;
        match transaction.open_table(table.definition()) {
            Ok(table) => read(table).map_err(|error| failed(error.into())),
            // Nothing has been written yet.
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(T::default()),
            Err(error) => Err(failed(error.into())),
        }
    }
}

impl Ticket {
    /// Waits on whatever thread this is: only for opening, before a runtime depends on it.
    fn durable_blocking_in_place(mut self) -> Result<(), StoreError> {
        loop {
            match self.0.try_recv() {
                Ok(result) => return result,
                Err(oneshot::error::TryRecvError::Closed) => return Err(StoreError::Closed),
                Err(oneshot::error::TryRecvError::Empty) => std::thread::yield_now(),
            }
        }
    }
}

fn write_loop(inner: &Inner) {
    loop {
        let waiting = {
            let mut queue = inner.queue.lock();
            while queue.waiting.is_empty() {
                if queue.closing {
                    return;
                }
                inner.arrived.wait(&mut queue);
            }
            std::mem::take(&mut queue.waiting)
        };
        let (batches, done): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        let failed = |error: redb::Error| StoreError::Write { path: inner.path.clone(), reason: error.to_string() };
        let result = commit(&inner.database, batches).map_err(failed);
        for sender in done {
            // Who waits for the write tells of its failure; for the others it is told here.
            if let (Err(_), Err(error)) = (sender.send(result.clone()), &result) {
                tracing::error!(%error, "what should be kept is lost");
            }
        }
    }
}

fn commit(database: &Database, batches: Vec<Batch>) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut tables = HashMap::new();
        for change in batches.into_iter().flat_map(|batch| batch.changes) {
            let table = match &change {
                Change::Put(table, ..)
                | Change::PutNew(table, ..)
                | Change::Delete(table, _)
                | Change::DeleteBelow(table, _)
                | Change::DeletePrefix(table, _) => *table,
            };
            let open = match tables.entry(table) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(entry) => {
                    entry.insert(transaction.open_table(table.definition())?)
                }
            };
            match change {
                Change::Put(_, key, value) => _ = open.insert(&*key, &*value)?,
                Change::PutNew(_, key, value) => {
                    if open.get(&*key)?.is_none() {
                        open.insert(&*key, &*value)?;
                    }
                }
                Change::Delete(_, key) => _ = open.remove(&*key)?,
                Change::DeleteBelow(_, key) => open.retain_in::<&[u8], _>(..&*key, |_, _| false)?,
                Change::DeletePrefix(_, prefix) => {
                    let keys: Vec<Vec<u8>> = open
                        .range::<&[u8]>(&*prefix..)?
                        .map(|pair| pair.map(|(key, _)| key.value().to_vec()))
                        .take_while(|key| key.as_ref().map_or(true, |key| key.starts_with(&prefix)))
                        .collect::<Result<_, _>>()?;
                    for key in keys {
                        open.remove(&*key)?;
                    }
                }
            }
        }
    }
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const THINGS: Table = Table("things");

    fn open(path: &Path) -> (Store, Opened) {
        Store::open(path, 1 << 20).unwrap()
    }

    fn put(store: &Store, pairs: &[(&str, &str)]) {
        let mut batch = Batch::new();
        for (key, value) in pairs {
            batch.put(THINGS, key.as_bytes(), value.as_bytes().to_vec());
        }
        store.write(batch).durable_blocking().unwrap();
    }

    fn keys(pairs: Vec<Pair>) -> Vec<String> {
        pairs.into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
    }

    #[test]
    fn what_is_written_is_there_after_opening_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("brine.redb");
        let (store, opened) = open(&path);
        assert_eq!(opened, Opened::New);
        assert_eq!(store.get(THINGS, b"a").unwrap(), None);
        put(&store, &[("a", "1"), ("b", "2")]);
        drop(store);
        let (store, opened) = open(&path);
        assert_eq!(opened, Opened::Clean);
        assert_eq!(store.get(THINGS, b"a").unwrap(), Some(b"1".to_vec()));
    }

    #[test]
    fn keys_are_scanned_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = open(&folder.path().join("brine.redb"));
        put(&store, &[("b/1", "x"), ("a", "x"), ("b/2", "x"), ("c", "x")]);
        assert_eq!(keys(store.scan(THINGS, b"b", 2).unwrap()), ["b/1", "b/2"]);
        assert_eq!(keys(store.scan_prefix(THINGS, b"b/").unwrap()), ["b/1", "b/2"]);
        assert_eq!(keys(store.scan_back(THINGS, 2).unwrap()), ["c", "b/2"]);
        assert_eq!(store.last(THINGS).unwrap().unwrap().0, b"c");
        assert_eq!(store.at_or_before(THINGS, b"b/9").unwrap().unwrap().0, b"b/2");
        let mut batch = Batch::new();
        batch.delete_below(THINGS, *b"b").delete_prefix(THINGS, *b"b/").delete(THINGS, *b"nothing");
        store.write(batch).durable_blocking().unwrap();
        assert_eq!(keys(store.scan(THINGS, b"", 9).unwrap()), ["c"]);
    }

    #[test]
    fn a_key_that_is_there_keeps_its_value_if_only_new_ones_are_set() {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = open(&folder.path().join("brine.redb"));
        let mut batch = Batch::new();
        batch.put_new(THINGS, *b"a", &b"1"[..]).put_new(THINGS, *b"a", &b"2"[..]).put_new(THINGS, *b"b", &b"3"[..]);
        store.write(batch).durable_blocking().unwrap();
        assert_eq!(store.get(THINGS, b"a").unwrap(), Some(b"1".to_vec()));
        assert_eq!(store.get(THINGS, b"b").unwrap(), Some(b"3".to_vec()));
    }

    #[test]
    fn a_store_that_is_open_is_not_opened_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("brine.redb");
        let (_store, _) = open(&path);
        assert!(matches!(Store::open(&path, 1 << 20), Err(StoreError::InUse(_))));
    }

    #[test]
    fn a_file_that_is_no_store_is_moved_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("brine.redb");
        std::fs::write(&path, vec![0x55; 100_000]).unwrap();
        let (store, opened) = open(&path);
        assert_eq!(opened, Opened::Replaced);
        put(&store, &[("a", "1")]);
        assert!(folder.path().join("brine.redb.damaged").exists());
    }

    #[test]
    fn a_folder_that_does_not_exist_is_named() {
        let error = Store::open(Path::new("/nonexistent/brine.redb"), 1 << 20).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/brine.redb"), "{error}");
    }
}

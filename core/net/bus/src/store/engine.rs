//! The database: converts every error and panic of redb into a `StoreError`, and reopens a database that redb has
//! closed after an I/O error.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use redb::{Builder, Database, DatabaseError, ReadableDatabase, StorageError};

use super::disk::{self, Disk};
use super::outage::Outage;
use super::{Batch, StoreError, Table, batch};
use crate::metrics;

/// A table open for reading.
pub(super) type ReadTable = redb::ReadOnlyTable<&'static [u8], &'static [u8]>;

/// Why an operation failed.
pub(super) enum Failure {
    /// The database must be reopened.
    Broken(String),
    /// A page is damaged.
    Damaged(String),
    /// This operation alone failed.
    Refused(String),
}

impl Failure {
    fn of(error: redb::Error) -> Self {
        let text = error.to_string();
        match error {
            redb::Error::Corrupted(_) => Failure::Damaged(text),
            redb::Error::ValueTooLarge(_) => Failure::Refused(text),
            redb::Error::Io(error) if error.kind() == std::io::ErrorKind::FileTooLarge => Failure::Broken(format!(
                "{text}: it exceeds the limit of file sizes, which `ulimit -f` or LimitFSIZE= of the service sets"
            )),
            _ => Failure::Broken(text),
        }
    }

    fn of_panic(panic: &(dyn Any + Send)) -> Self {
        Failure::Damaged(text_of(panic).to_owned())
    }
}

/// Returns the message of a panic.
pub(crate) fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown reason")
}

/// Why a database that must be reopened cannot be read.
pub(super) struct Unreadable {
    /// The error that closed it.
    pub reason: String,
    /// Whether the database is open, so that the writer must be told to reopen it.
    pub is_open: bool,
    /// How often it was reopened before.
    pub generation: u64,
}

/// The error of an operation on the database, or on its file.
#[derive(Debug, thiserror::Error)]
pub(super) enum EngineError {
    /// The database is closed while it is being reopened.
    #[error("it is being reopened")]
    Reopening,
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] DatabaseError),
    /// An operation on the database failed.
    #[error(transparent)]
    Database(#[from] redb::Error),
    /// redb panicked, which means that a page is damaged.
    #[error("{0}")]
    Panicked(String),
    /// The file cannot be removed or renamed.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// The layout of a new database cannot be written.
    #[error(transparent)]
    Schema(#[from] StoreError),
}

pub(super) struct Engine {
    pub disk: Box<dyn Disk>,
    cache: usize,
    /// `None` while the database is being reopened.
    database: RwLock<Option<Database>>,
    /// The number of times that the database was reopened: errors of an earlier generation are stale.
    generation: AtomicU64,
    replaced: AtomicU64,
    commits: AtomicU64,
    /// Whether a file was created or renamed and the directory is not flushed yet: no commit may be acknowledged, since
    /// a crash might bring the old file back.
    is_directory_dirty: AtomicBool,
    /// The last damage that was logged, to log repeated errors once.
    damage: Mutex<String>,
    pub outage: Outage,
}

impl Engine {
    /// Opens the database. Returns whether it was repaired.
    pub fn open(disk: Box<dyn Disk>, cache: usize) -> Result<(Self, bool), (DatabaseError, Box<dyn Disk>)> {
        match open(&*disk, cache, true) {
            Ok((database, repaired)) => {
                let engine = Engine {
                    disk,
                    cache,
                    database: RwLock::new(Some(database)),
                    generation: AtomicU64::new(0),
                    replaced: AtomicU64::new(0),
                    commits: AtomicU64::new(0),
                    // The file may be new.
                    is_directory_dirty: AtomicBool::new(true),
                    damage: Mutex::default(),
                    outage: Outage::default(),
                };
                Ok((engine, repaired))
            }
            Err(error) => Err((error, disk)),
        }
    }

    /// Closes and reopens the database. Meanwhile, reads fail at once.
    pub fn reopen(&self) -> Result<(), DatabaseError> {
        self.close();
        let (database, _) = open(&*self.disk, self.cache, false)?;
        self.put(database);
        Ok(())
    }

    /// As [`Engine::reopen`], and checks all pages. Fails if the damage cannot be repaired.
    pub fn reopen_checked(&self) -> Result<(), DatabaseError> {
        self.close();
        let (mut database, repaired) = open(&*self.disk, self.cache, false)?;
        if !repaired {
            let check = AssertUnwindSafe(|| database.check_integrity());
            catch_unwind(check).unwrap_or_else(|panic| Err(corrupted(&*panic)))?;
        }
        self.put(database);
        Ok(())
    }

    /// Moves the file aside. Returns its new path.
    pub fn move_aside(&self) -> std::io::Result<PathBuf> {
        self.close();
        self.is_directory_dirty.store(true, Ordering::Release);
        disk::move_aside(self.disk.path())
    }

    /// Creates an empty database after the file was moved aside; removes the remains of an earlier attempt.
    pub fn create(&self) -> Result<(), EngineError> {
        self.close();
        match std::fs::remove_file(self.disk.path()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        self.is_directory_dirty.store(true, Ordering::Release);
        let (database, _) = open(&*self.disk, self.cache, true)?;
        self.put(database);
        super::check_schema(self)?;
        self.replaced.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Replaces the file by a copy with the same rows. Waits for running reads.
    ///
    /// # Errors
    /// The file was not replaced. Once it is, nothing may fail before the database is replaced, too: commits would go
    /// to a file without a name. Commits fail until the directory is flushed, see [`Engine::flush_directory`].
    pub fn swap(&self, copy: &dyn Disk) -> Result<(), EngineError> {
        let (database, _) = open(copy, self.cache, false)?;
        let mut slot = self.database.write();
        self.disk.rename_from(copy.path())?;
        self.is_directory_dirty.store(true, Ordering::Release);
        self.generation.fetch_add(1, Ordering::Relaxed);
        let old = slot.replace(database);
        drop(slot);
        self.outage.end();
        _ = catch_unwind(AssertUnwindSafe(move || drop(old)));
        Ok(())
    }

    /// Flushes the directory if a file was created or renamed since it was flushed last.
    pub fn flush_directory(&self) -> Result<(), Failure> {
        if !self.is_directory_dirty.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        self.disk.sync_directory().map_err(|error| {
            self.is_directory_dirty.store(true, Ordering::Release);
            Failure::Broken(format!("flushing its directory failed: {error}"))
        })
    }

    /// Runs an operation on the database.
    pub fn with<T>(&self, operation: impl FnOnce(&Database) -> Result<T, redb::Error>) -> Result<T, EngineError> {
        let guard = self.database.read();
        let database = guard.as_ref().ok_or(EngineError::Reopening)?;
        guarded(|| operation(database))
    }

    /// Closes the database cleanly once running reads have ended; later ones fail.
    pub fn close(&self) {
        let old = self.database.write().take();
        // A database with a damaged page may panic when it is closed.
        _ = catch_unwind(AssertUnwindSafe(move || drop(old)));
    }

    fn put(&self, database: Database) {
        let mut slot = self.database.write();
        self.generation.fetch_add(1, Ordering::Relaxed);
        *slot = Some(database);
        drop(slot);
        self.outage.end();
    }

    /// Returns how often the database was replaced by an empty one.
    pub fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Acquire)
    }

    /// Returns how often batches were committed.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Returns how often the database was reopened.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Reads from a table; a missing one reads as the default. The outer error means that the database must be
    /// reopened.
    pub fn read<T: Default>(
        &self,
        table: Table,
        read: impl FnOnce(ReadTable) -> Result<T, StorageError>,
    ) -> Result<Result<T, StoreError>, Unreadable> {
        let guard = self.database.read();
        let unreadable = |reason: String, is_open| Unreadable { reason, is_open, generation: self.generation() };
        let Some(database) = guard.as_ref() else {
            return Err(unreadable(self.outage.first_error("it is being reopened"), false));
        };
        let attempt = || -> Result<T, redb::Error> {
            match database.begin_read()?.open_table(table.definition()) {
                Ok(table) => Ok(read(table)?),
                Err(redb::TableError::TableDoesNotExist(_)) => Ok(T::default()),
                Err(error) => Err(error.into()),
            }
        };
        let failure = match catch_unwind(AssertUnwindSafe(attempt)) {
            Ok(Ok(value)) => return Ok(Ok(value)),
            Ok(Err(error)) => Failure::of(error),
            Err(panic) => Failure::of_panic(&*panic),
        };
        match failure {
            Failure::Damaged(reason) => Ok(Err(self.damaged(Some(table), reason))),
            Failure::Refused(reason) => Ok(Err(StoreError::Read(reason))),
            Failure::Broken(reason) => Err(unreadable(self.outage.begin(reason), true)),
        }
    }

    /// Applies batches in one transaction, which is flushed to disk on return.
    pub fn commit(&self, batches: &[Batch]) -> Result<(), Failure> {
        let guard = self.database.read();
        let Some(database) = guard.as_ref() else { return Err(Failure::Broken("opening it failed".into())) };
        self.flush_directory()?;
        #[cfg(test)]
        if batches.iter().any(|batch| batch.touched().any(|(table, _)| table == super::writer::REFUSED)) {
            return Err(Failure::Refused("requested by the test".into()));
        }
        let attempt = || -> Result<(), redb::Error> {
            let transaction = database.begin_write()?;
            batch::apply(&transaction, batches)?;
            Ok(transaction.commit()?)
        };
        match catch_unwind(AssertUnwindSafe(attempt)) {
            Ok(Ok(())) => {
                self.commits.fetch_add(1, Ordering::Relaxed);
                metrics::STORE_COMMITS.add(1);
                Ok(())
            }
            Ok(Err(error)) => match Failure::of(error) {
                Failure::Broken(reason) => Err(Failure::Broken(self.outage.begin(reason))),
                failure => Err(failure),
            },
            Err(panic) => Err(Failure::of_panic(&*panic)),
        }
    }

    /// Returns the error for operations while the store has failed.
    pub fn unavailable(&self, reason: &str) -> StoreError {
        StoreError::Unavailable { path: self.disk.path().to_owned(), reason: reason.to_owned() }
    }

    /// Counts and logs a damaged page.
    pub fn damaged(&self, table: Option<Table>, reason: String) -> StoreError {
        metrics::STORE_DAMAGED.add(1);
        let path = self.disk.path().to_owned();
        let table = table.map_or("", |table| table.0);
        let what = format!("{table}: {reason}");
        let mut last = self.damage.lock();
        if *last != what {
            tracing::error!(path = %path.display(), table, reason, "the store has a damaged page");
            *last = what;
        }
        StoreError::Damaged { path, reason }
    }
}

/// Runs an operation of redb, and returns its error or panic.
pub(super) fn guarded<T>(operation: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, EngineError> {
    match catch_unwind(AssertUnwindSafe(operation)) {
        Ok(result) => Ok(result?),
        Err(panic) => Err(EngineError::Panicked(text_of(&*panic).to_owned())),
    }
}

/// Opens the database of a disk. Returns whether it was repaired.
pub(super) fn open(disk: &dyn Disk, cache: usize, create: bool) -> Result<(Database, bool), DatabaseError> {
    let repaired = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&repaired);
    let mut builder = Builder::new();
    builder.set_cache_size(cache).set_repair_callback(move |_| seen.store(true, Ordering::Relaxed));
    match catch_unwind(AssertUnwindSafe(|| disk.open(&builder, create))) {
        Ok(database) => Ok((database?, repaired.load(Ordering::Relaxed))),
        Err(panic) => Err(corrupted(&*panic)),
    }
}

fn corrupted(panic: &(dyn Any + Send)) -> DatabaseError {
    StorageError::Corrupted(text_of(panic).to_owned()).into()
}

/// Whether a database cannot be opened because its file is damaged, not because of the disk or another process.
pub(super) fn is_damage(error: &DatabaseError) -> bool {
    match error {
        DatabaseError::DatabaseAlreadyOpen => false,
        DatabaseError::Storage(StorageError::Io(error)) => error.kind() == std::io::ErrorKind::InvalidData,
        _ => true,
    }
}

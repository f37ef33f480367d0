//! A disk for tests that fails on demand.

use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use redb::backends::FileBackend;
use redb::{BackendError, Builder, Database, DatabaseError, StorageBackend};

use super::disk::{self, Disk, FileDisk};
use super::queue::QueueLimits;
use super::{Opened, Store};

/// The errors that a disk returns from now on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Errors {
    /// The error number of writes.
    pub write: Option<i32>,
    /// The error number of making the file longer; it is that of writes if this is `None`.
    pub grow: Option<i32>,
    /// The error number of reads.
    pub read: Option<i32>,
    /// The error number of flushes.
    pub sync: Option<i32>,
    /// The error number of opening a file.
    pub open: Option<i32>,
    /// The error number of renames.
    pub rename: Option<i32>,
    /// The error number of flushes of the directory.
    pub directory: Option<i32>,
}

/// Controls the faults of a disk.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<Errors>>, Arc<Stall>);

/// Stalls a disk.
#[derive(Debug, Default)]
struct Stall {
    gate: Mutex<()>,
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Faults {
    /// Sets the errors of the disk.
    pub fn set(&self, errors: Errors) {
        *self.0.lock() = errors;
    }

    /// Stalls the next write until the guard is dropped.
    pub fn stall(&self) -> parking_lot::MutexGuard<'_, ()> {
        let guard = self.1.gate.lock();
        *self.1.state.lock() = (true, false);
        guard
    }

    /// Waits until a write is stalled.
    pub fn wait_for_stall(&self) {
        let mut state = self.1.state.lock();
        while !state.1 {
            self.1.changed.wait(&mut state);
        }
    }

    fn pass(&self) {
        let stalled = {
            let mut state = self.1.state.lock();
            state.1 |= state.0;
            std::mem::take(&mut state.0)
        };
        if stalled {
            self.1.changed.notify_all();
            drop(self.1.gate.lock());
        }
    }

    fn check(&self, which: impl FnOnce(&Errors) -> Option<i32>) -> io::Result<()> {
        which(&self.0.lock()).map_or(Ok(()), |error| Err(io::Error::from_raw_os_error(error)))
    }
}

struct FaultyDisk(FileDisk, Faults);

impl Disk for FaultyDisk {
    fn open(&self, builder: &Builder, create: bool) -> Result<Database, DatabaseError> {
        self.1.check(|errors| errors.open).map_err(|error| DatabaseError::Storage(error.into()))?;
        let file = self.0.file(create).map_err(|error| DatabaseError::Storage(error.into()))?;
        builder.create_with_backend(FaultyBackend(FileBackend::new(file)?, self.1.clone()))
    }

    fn probe(&self) -> io::Result<()> {
        self.1.check(|errors| errors.write.or(errors.grow))?;
        self.0.probe()
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn copy_disk(&self) -> Box<dyn Disk> {
        Box::new(FaultyDisk(FileDisk(disk::copy_path(self.0.path())), self.1.clone()))
    }

    fn rename_from(&self, by: &Path) -> io::Result<()> {
        self.1.check(|errors| errors.rename)?;
        self.0.rename_from(by)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.1.check(|errors| errors.directory)?;
        self.0.sync_directory()
    }
}

#[derive(Debug)]
struct FaultyBackend(FileBackend, Faults);

type Bounds = Result<bool, BackendError>;

impl StorageBackend for FaultyBackend {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.1.check(|errors| errors.read)?;
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.1.check(|errors| errors.write.or(errors.grow))?;
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.1.pass();
        self.1.check(|errors| errors.sync)?;
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.1.check(|errors| errors.write)?;
        self.0.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Bounds {
        self.0.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Bounds {
        self.0.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Bounds {
        self.0.query_lock_range(start, end)
    }
}

/// Opens a store on a disk that fails on demand.
pub fn open(path: &Path, cache: usize) -> (Store, Opened, Faults) {
    open_with(path, cache, 16_384)
}

/// As [`open`], with a queue of this many batches.
pub fn open_with(path: &Path, cache: usize, batches: usize) -> (Store, Opened, Faults) {
    let faults = Faults::default();
    let disk = Box::new(FaultyDisk(FileDisk(path.to_owned()), faults.clone()));
    let limits = QueueLimits { batches, ..QueueLimits::default() };
    let (store, opened) = Store::open_on(disk, cache, limits).unwrap();
    (store, opened, faults)
}

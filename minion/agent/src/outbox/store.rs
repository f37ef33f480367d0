//! The storage of a queued load: a file of its own, or memory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use brine_system::files::{self, FileError};
use brine_value::msgpack::UnpackError;
use brine_value::{Map, msgpack};
use jiff::Timestamp;

/// The storage of a load.
#[derive(Debug, Clone)]
pub enum LoadSource {
    /// A file.
    File(PathBuf),
    /// Its bytes.
    Memory(Vec<u8>),
}

/// Why a queued load cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Read(#[from] std::io::Error),
    #[error(transparent)]
    Decode(#[from] UnpackError),
}

impl LoadError {
    /// Whether a retry is in vain. Without free file descriptors or memory, or after an error of the disk, the load is
    /// still there.
    pub fn is_final(&self) -> bool {
        match self {
            LoadError::Read(error) => error.kind() == std::io::ErrorKind::NotFound,
            LoadError::Decode(_) => true,
        }
    }
}

impl LoadSource {
    pub fn read(&self) -> Result<Map, LoadError> {
        Ok(match self {
            LoadSource::Memory(packed) => msgpack::unpack_map(packed)?,
            LoadSource::File(path) => msgpack::unpack_map(&fs::read(path)?)?,
        })
    }

    pub fn remove(&self) {
        if let LoadSource::File(path) = self
            && let Err(error) = fs::remove_file(path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "removing a delivered return failed: it will be sent again");
        }
    }
}

/// A directory with one file for each load. Names consist of the time, the PID, a counter and the load's label, so that
/// they sort by age.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    next_number: AtomicU64,
}

/// A load in the directory.
#[derive(Debug)]
pub struct StoredLoad {
    pub label: String,
    pub size: usize,
    pub since: Timestamp,
    pub path: PathBuf,
}

impl Directory {
    pub fn new(path: &Path) -> Self {
        Directory { path: path.to_owned(), next_number: AtomicU64::new(0) }
    }

    /// Returns the path of a new load.
    pub fn name(&self, label: &str) -> PathBuf {
        let safe = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let label: String = label.chars().filter(safe).take(40).collect();
        let (now, next_number) = (Timestamp::now().as_microsecond(), self.next_number.fetch_add(1, Ordering::Relaxed));
        self.path.join(format!("{now:020}.{}.{next_number}.{label}", std::process::id()))
    }

    /// Returns all loads, oldest first.
    pub fn list(&self) -> Vec<StoredLoad> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => {
                brine_job::metrics::RETURNS_LOST.add(1);
                tracing::error!(path = %self.path.display(), %error, "reading the directory of returns failed");
                return Vec::new();
            }
        };
        let mut loads: Vec<StoredLoad> = entries.filter_map(|entry| read_name(&entry.ok()?)).collect();
        loads.sort_by(|a, b| a.path.cmp(&b.path));
        loads
    }
}

/// Moves the loads in subdirectories other than these into the directory itself, and removes the subdirectories: they
/// belong to masters that are no longer configured. Blocks.
pub fn adopt(path: &Path, names: &[String]) {
    for directory in fs::read_dir(path).into_iter().flatten().flatten() {
        let name = directory.file_name().to_string_lossy().into_owned();
        if names.contains(&name) || !directory.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        for load in Directory::new(&directory.path()).list() {
            let moved = load.path.file_name().map(|name| fs::rename(&load.path, path.join(name)));
            if let Some(Err(error)) = moved {
                tracing::error!(path = %load.path.display(), %error, "moving a queued return failed");
            }
        }
        match fs::remove_dir(directory.path()) {
            Ok(()) => {
                tracing::info!(master = name, "the queued returns of a removed master were moved to the first master");
            }
            Err(error) => tracing::warn!(master = name, %error, "removing the queue of a removed master failed"),
        }
    }
}

fn read_name(entry: &fs::DirEntry) -> Option<StoredLoad> {
    let name = entry.file_name().into_string().ok()?;
    let mut parts = name.splitn(4, '.');
    let since = Timestamp::from_microsecond(parts.next()?.parse().ok()?).ok()?;
    let label = parts.nth(2)?.to_owned();
    let status = entry.metadata().ok().filter(fs::Metadata::is_file)?;
    Some(StoredLoad { label, size: status.len() as usize, since, path: entry.path() })
}

/// Writes a load atomically.
pub fn write(path: &Path, packed: &[u8]) -> Result<(), FileError> {
    let written = files::write_soon(path, packed, 0o600);
    if !written.as_ref().is_err_and(FileError::is_not_found) {
        return written;
    }
    files::create_private_dir(path.parent().unwrap_or(path))?;
    files::write_soon(path, packed, 0o600)
}

/// Flushes a load to the disk.
pub fn sync(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

//! The store's file: opening, checking, and moving it aside.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{Builder, Database, DatabaseError};

/// The maximum number of damaged store files that are kept.
const DAMAGED: usize = 5;
/// The number of bytes that must fit on the disk before a failed store is retried.
const PROBE: usize = 1 << 20;

/// Opens the file of a store. Tests replace it by a disk that fails on demand.
pub(super) trait Disk: Send + Sync {
    /// Opens the database; `create` allows a missing or empty file, which becomes an empty database.
    fn open(&self, builder: &Builder, create: bool) -> Result<Database, DatabaseError>;

    /// Checks that the disk accepts data, without touching the store.
    fn probe(&self) -> io::Result<()>;

    /// Returns the path of the file.
    fn path(&self) -> &Path;

    /// Returns the disk of a file beside this one, for a copy that will replace it.
    fn copy_disk(&self) -> Box<dyn Disk>;

    /// Renames a file in the same directory to the path of this one. A crash before [`Disk::sync_directory`] may bring
    /// the old file back.
    fn rename_from(&self, by: &Path) -> io::Result<()> {
        std::fs::rename(by, self.path())
    }

    /// Flushes the directory of the file, so that a created or renamed file survives a crash.
    fn sync_directory(&self) -> io::Result<()> {
        let parent = self.path().parent().filter(|parent| !parent.as_os_str().is_empty());
        match File::open(parent.unwrap_or(Path::new(".")))?.sync_all() {
            // Some file systems cannot flush a directory.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
            flushed => flushed,
        }
    }
}

/// A file of the file system.
pub(super) struct FileDisk(pub PathBuf);

impl FileDisk {
    /// Opens the file with mode 0600, regardless of the umask.
    pub(super) fn file(&self, create: bool) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(create).truncate(false).mode(0o600).open(&self.0)?;
        let metadata = file.metadata()?;
        if !create && metadata.len() == 0 {
            return Err(io::Error::other("the file has become empty"));
        }
        if metadata.permissions().mode() & 0o077 != 0
            && let Err(error) = file.set_permissions(std::fs::Permissions::from_mode(0o600))
        {
            tracing::warn!(path = %self.0.display(), %error, "restricting the store's file mode to 0600 failed");
        }
        Ok(file)
    }
}

impl Disk for FileDisk {
    fn open(&self, builder: &Builder, create: bool) -> Result<Database, DatabaseError> {
        let file = self.file(create).map_err(|error| DatabaseError::Storage(error.into()))?;
        builder.create_with_backend(FileBackend::new(file)?)
    }

    fn probe(&self) -> io::Result<()> {
        let mut path = self.0.clone().into_os_string();
        path.push(".probe");
        let written = (|| {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&path)?;
            file.write_all(&vec![0x5a; PROBE])?;
            file.sync_all()
        })();
        match std::fs::remove_file(&path) {
            Err(error) if written.is_ok() => Err(error),
            _ => written,
        }
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn copy_disk(&self) -> Box<dyn Disk> {
        Box::new(FileDisk(copy_path(&self.0)))
    }
}

/// Returns the path of a copy of a store.
pub(super) fn copy_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Removes a file that may be missing.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns the free space of the file system of a path, in bytes.
pub(super) fn free(path: &Path) -> io::Result<u64> {
    let status = nix::sys::statvfs::statvfs(path)?;
    Ok(status.blocks_available() * status.fragment_size())
}

/// Moves a damaged store to the first free name of `.damaged`, `.damaged.1`, ...; if all are taken, replaces the
/// oldest. Returns the new path. The caller flushes the directory.
pub(super) fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let names: Vec<PathBuf> = (0..DAMAGED)
        .map(|number| {
            let mut name = path.as_os_str().to_owned();
            name.push(if number == 0 { ".damaged".to_owned() } else { format!(".damaged.{number}") });
            name.into()
        })
        .collect();
    let free = names.iter().find(|name| !name.exists());
    let oldest = || names.iter().min_by_key(|name| name.metadata().and_then(|data| data.modified()).ok());
    let Some(aside) = free.or_else(oldest) else { return Err(io::Error::other("no name is free")) };
    if free.is_none() {
        tracing::warn!(path = %aside.display(), "the oldest of {DAMAGED} damaged stores is replaced");
    }
    std::fs::rename(path, aside)?;
    Ok(aside.clone())
}

/// Returns the allocated size of a file in bytes; 0 on error.
pub(super) fn allocated(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |data| data.blocks() * 512)
}

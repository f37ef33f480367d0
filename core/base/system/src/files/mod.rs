//! Safe file operations: atomic writes, private directories, and joins of untrusted paths.
//!
//! All functions block: asynchronous callers use a blocking thread. The module `user_files` has the operations for
//! directories that other users can write.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

pub(crate) mod draft;
pub(crate) mod entry;

pub use draft::{Attributes, Draft, Flush};
use draft::{NewMode, replace};
pub use entry::{Entry, Links};

/// The error of an operation on a file or directory. Displays the operation, path, cause and a hint.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}{}", path.display(), hint(source))]
pub struct FileError {
    /// The operation, such as `read` or `write`.
    pub action: &'static str,
    /// The path of the file or directory.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

impl FileError {
    /// Returns a closure for `map_err` that adds the operation and the path.
    pub fn at(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| FileError { action, path, source }
    }

    /// Whether the file or directory does not exist.
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == ErrorKind::NotFound
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => "; run this as the user who owns it (often root), or give this user the right",
        ErrorKind::NotFound => "; create it, or correct the path in the configuration",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; free some space on that file system",
        ErrorKind::ReadOnlyFilesystem => "; choose a writable directory",
        _ => "",
    }
}

/// Writes a file atomically: readers see, and crashes leave, either the old content or the new. `mode` applies before
/// the first byte is written, regardless of the umask. A link at the path is replaced.
pub fn write_atomic(path: impl AsRef<Path>, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    let path = path.as_ref();
    write(path, bytes, mode, Flush::Now).map_err(FileError::at("write", path))
}

/// As [`write_atomic`], without flushing to disk, which makes it a hundred times faster: for data that can be recreated
/// after a power failure.
pub fn write_soon(path: impl AsRef<Path>, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    let path = path.as_ref();
    write(path, bytes, mode, Flush::Later).map_err(FileError::at("write", path))
}

fn write(path: &Path, bytes: &[u8], mode: u32, flush: Flush) -> io::Result<()> {
    let mut draft = Draft::create(Entry::resolve(path, Links::Keep)?)?;
    draft.file.write_all(bytes)?;
    draft.finish(Attributes::mode(mode), flush)
}

/// As [`write_soon`], for a file that does not exist yet, and twice as fast. Returns `false` and leaves the file
/// unchanged if it exists. Not atomic: readers may see a part of the file while it is written, and a process that dies
/// leaves that part. The umask applies to `mode`.
pub fn create_soon(path: impl AsRef<Path>, bytes: &[u8], mode: u32) -> Result<bool, FileError> {
    let path = path.as_ref();
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(FileError::at("write", path)(error)),
    };
    file.write_all(bytes).map(|()| true).map_err(|error| {
        let _ = fs::remove_file(path);
        FileError::at("write", path)(error)
    })
}

/// As [`write_atomic`], but follows links as [`Entry::resolve`] does, and keeps the mode and owner of an existing file;
/// a new file gets `mode`.
pub fn rewrite(path: impl AsRef<Path>, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    let path = path.as_ref();
    Entry::resolve(path, Links::Follow)
        .and_then(|entry| replace(entry, bytes, Attributes::default(), NewMode::Exact(mode), Flush::Now))
        .map_err(FileError::at("write", path))
}

/// As [`write_atomic`], for a file that does not exist yet. Returns `false` and leaves the file unchanged if it exists.
/// Of several concurrent processes, exactly one succeeds.
pub fn write_new(path: impl AsRef<Path>, bytes: &[u8], mode: u32) -> Result<bool, FileError> {
    let path = path.as_ref();
    let write = || {
        let mut draft = Draft::create(Entry::resolve(path, Links::Keep)?)?;
        draft.file.write_all(bytes)?;
        draft.finish_new(Attributes::mode(mode))
    };
    write().map_err(FileError::at("write", path))
}

/// Creates a directory if it does not exist, and sets its mode to 0700. Missing parents are created with the mode of
/// the umask.
pub fn create_private_dir(path: impl AsRef<Path>) -> Result<(), FileError> {
    let path = path.as_ref();
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(FileError::at("create", parent))?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        result => return result.map_err(FileError::at("create", path)),
    }
    let status = fs::metadata(path).map_err(FileError::at("read", path))?;
    if !status.is_dir() {
        return Err(FileError::at("create", path)(ErrorKind::NotADirectory.into()));
    }
    if status.permissions().mode() & 0o077 != 0 {
        let private = Permissions::from_mode(0o700);
        let directory = File::open(path).and_then(|directory| directory.set_permissions(private));
        directory.map_err(FileError::at("change the mode of", path))?;
    }
    Ok(())
}

/// Reads a whole file. Links are followed as by [`Entry::resolve`].
pub fn read(path: impl AsRef<Path>) -> Result<Vec<u8>, FileError> {
    let path = path.as_ref();
    let mut bytes = Vec::new();
    open(path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(FileError::at("read", path))?;
    Ok(bytes)
}

fn open(path: &Path) -> io::Result<File> {
    Entry::resolve(path, Links::Follow)?.open_to_read()
}

/// The size up to which files are read into a buffer of their size, in bytes.
const ONE_READ: u64 = 1 << 20;

/// Reads an open file to its end. A regular file of this size takes one call.
pub fn read_sized(file: &mut File, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if (1..=ONE_READ).contains(&size) {
        // One byte more than expected: a shorter read that has the expected size has reached the end.
        let size = size as usize;
        bytes.resize(size + 1, 0);
        let read = loop {
            match file.read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        bytes.truncate(read);
        if read == size {
            return Ok(bytes);
        }
    }
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a whole file as UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> Result<String, FileError> {
    let path = path.as_ref();
    let mut text = String::new();
    open(path).and_then(|mut file| file.read_to_string(&mut text)).map_err(FileError::at("read", path))?;
    Ok(text)
}

/// Reads a whole file as UTF-8, or `None` if it does not exist.
pub fn read_if_exists(path: impl AsRef<Path>) -> Result<Option<String>, FileError> {
    match read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns an untrusted path if it is relative and descends only: `None` if it is empty, absolute, or contains `..` or
/// a NUL. Does not resolve links, see [`path_within`].
pub fn relative_path(path: &str) -> Option<PathBuf> {
    if leads_out(path) {
        return None;
    }
    let clean: PathBuf = Path::new(path).components().filter(|part| matches!(part, Component::Normal(_))).collect();
    (!clean.as_os_str().is_empty()).then_some(clean)
}

/// Whether an untrusted path is absolute, or contains `..` or a NUL. Does not resolve links.
pub fn leads_out(path: &str) -> bool {
    let descends = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    path.contains('\0') || !Path::new(path).components().all(descends)
}

/// Joins an untrusted path to a directory, so that the result is within that directory after all symbolic links are
/// resolved. Returns `None` for absolute paths, `..`, NUL, and links that lead out or are broken. The target need not
/// exist; `root` must.
pub fn path_within(root: &Path, relative: &str) -> Option<PathBuf> {
    let root = root.canonicalize().ok()?;
    let path = root.join(relative_path(relative)?);
    let mut existing = path.as_path();
    let resolved = loop {
        match existing.canonicalize() {
            Ok(resolved) => break resolved,
            // Creating the file would write through a broken link.
            Err(error) if error.kind() == ErrorKind::NotFound && existing.symlink_metadata().is_err() => {
                existing = existing.parent()?;
            }
            Err(_) => return None,
        }
    };
    let rest = path.strip_prefix(existing).ok()?;
    let result = if rest.as_os_str().is_empty() { resolved } else { resolved.join(rest) };
    result.starts_with(&root).then_some(result)
}

#[cfg(test)]
mod tests;

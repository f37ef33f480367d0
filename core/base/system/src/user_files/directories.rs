//! Directories.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fchmod, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, unlinkat};

use super::keep;
use crate::files::entry::kind;
use crate::files::{Attributes, Entry, Links};

/// Creates a directory with this mode less the umask.
pub fn create_dir(path: impl AsRef<Path>, mode: u32) -> io::Result<()> {
    let entry = keep(path.as_ref())?;
    Ok(mkdirat(entry.directory(), entry.name(), Mode::from_bits_truncate(mode))?)
}

/// Creates a directory and its missing parents, with 0777 less the umask.
pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    create_dir_all_with(path, Attributes::default()).map(|_| ())
}

/// Creates a directory and its missing parents, with this owner and mode where they are set, otherwise with 0777 less
/// the umask. Returns the created directories, the outermost first.
pub fn create_dir_all_with(path: impl AsRef<Path>, attributes: Attributes) -> io::Result<Vec<PathBuf>> {
    let path = path.as_ref();
    let (mut missing, mut existing): (Vec<OsString>, &Path) = (Vec::new(), path);
    let mut entry = loop {
        match Entry::resolve(if existing.as_os_str().is_empty() { Path::new(".") } else { existing }, Links::Follow) {
            Ok(entry) => break entry,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                missing.push(existing.file_name().ok_or(error)?.to_owned());
                existing = existing.parent().ok_or(ErrorKind::NotFound)?;
            }
            Err(error) => return Err(error),
        }
    };
    let mut created = Vec::new();
    loop {
        let is_new = match mkdirat(entry.directory(), entry.name(), Mode::from_bits_truncate(0o777)) {
            Ok(()) => true,
            Err(Errno::EEXIST) => false,
            Err(error) => return Err(error.into()),
        };
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        // Only a new directory is opened for reading: others can be searchable alone.
        let flags = flags | if is_new { OFlag::O_RDONLY } else { OFlag::O_PATH };
        let directory = match openat(entry.directory(), entry.name(), flags, Mode::empty()) {
            Err(Errno::ENOTDIR) if missing.is_empty() => return Err(Errno::EEXIST.into()),
            directory => directory?,
        };
        if is_new {
            let Attributes { uid, gid, mode } = attributes;
            if uid.is_some() || gid.is_some() {
                // Somebody may have exchanged the new directory for another one.
                if std::fs::read_dir(format!("/proc/self/fd/{}", directory.as_raw_fd()))?.next().is_some() {
                    return Err(Errno::ENOTEMPTY.into());
                }
                fchown(&directory, uid.map(Uid::from_raw), gid.map(Gid::from_raw))?;
            }
            if let Some(mode) = mode {
                fchmod(&directory, Mode::from_bits_truncate(mode))?;
            }
            created.push(entry.path().to_owned());
        }
        let Some(name) = missing.pop() else { return Ok(created) };
        let path = entry.path().join(&name);
        entry = Entry::below(directory, name, path);
    }
}

/// Removes an empty directory.
pub fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let entry = keep(path.as_ref())?;
    Ok(unlinkat(entry.directory(), entry.name(), UnlinkatFlags::RemoveDir)?)
}

/// Removes a directory with its content, or a file, or a link. Links in the directory are not followed.
pub fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let entry = keep(path.as_ref())?;
    if entry.name() == "." {
        return Err(Errno::EINVAL.into());
    }
    match entry.status()? {
        // `std` descends by descriptors, and does not follow the last component.
        #[allow(clippy::disallowed_methods)]
        Some(status) if kind(&status) == SFlag::S_IFDIR => std::fs::remove_dir_all(entry.descriptor_path()),
        Some(_) => Ok(unlinkat(entry.directory(), entry.name(), UnlinkatFlags::NoRemoveDir)?),
        None => Err(ErrorKind::NotFound.into()),
    }
}

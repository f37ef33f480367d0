//! Drafts: files that are written under a temporary name and renamed when they are complete.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, linkat, unlinkat};
use rand::TryRng as _;
use rand::rngs::SysRng;

use super::entry::{Entry, kind, permissions};

/// The longest name of most file systems, in bytes.
const NAME_MAX: usize = 255;

/// Owner and mode of a file. Unset ones are those of the file that is replaced, or of a new file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The UID.
    pub uid: Option<u32>,
    /// The GID.
    pub gid: Option<u32>,
    /// The permissions, with the bits setuid, setgid and sticky.
    pub mode: Option<u32>,
}

impl Attributes {
    /// Returns a mode without an owner.
    pub fn mode(mode: u32) -> Self {
        Attributes { mode: Some(mode), ..Attributes::default() }
    }

    /// Adds the owner and mode of a file that is replaced.
    fn or_kept(self, replaced: &FileStat, may_be_planted: bool) -> Self {
        let is_same_owner = self.uid.unwrap_or(replaced.st_uid) == replaced.st_uid
            && self.gid.unwrap_or(replaced.st_gid) == replaced.st_gid;
        // As chown does; and the file may be one that somebody has exchanged for the one that was read.
        let mask = if is_same_owner && !may_be_planted { 0o7777 } else { 0o777 };
        Attributes {
            uid: self.uid.or(Some(replaced.st_uid)),
            gid: self.gid.or(Some(replaced.st_gid)),
            mode: self.mode.or(Some(permissions(replaced) & mask)),
        }
    }
}

/// Whether content is flushed to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// The file survives a power failure.
    Now,
    /// The system decides, which makes writing a hundred times faster: for data that can be recreated.
    Later,
}

/// A file that is being written beside its target. It is removed unless it is finished.
#[derive(Debug)]
pub struct Draft {
    /// The destination of the content, which only this process's user can read.
    pub file: File,
    name: OsString,
    target: Entry,
    is_renamed: bool,
}

impl Draft {
    /// Creates the file in the directory of its target. Its name is unpredictable and new: nobody can place a link
    /// there.
    pub fn create(target: Entry) -> io::Result<Self> {
        Self::with_mode(target, 0o600)
    }

    /// Creates the file with a mode from which the umask is subtracted.
    fn with_mode(target: Entry, mode: u32) -> io::Result<Self> {
        // Not a number of the thread's generator: seeding it costs a short program more than one number of the system's.
        let number = SysRng.try_next_u64().map_err(io::Error::other)?;
        let name = temporary_name(target.name(), &format!(".{number:016x}.tmp"));
        let short = || OsString::from(format!(".{number:016x}.tmp"));
        match Self::open(&target, &name, mode) {
            // Some file systems allow less than 255 bytes.
            Err(Errno::ENAMETOOLONG) => {
                let name = short();
                Ok(Draft { file: Self::open(&target, &name, mode)?, name, target, is_renamed: false })
            }
            file => Ok(Draft { file: file?, name, target, is_renamed: false }),
        }
    }

    fn open(target: &Entry, name: &OsStr, mode: u32) -> Result<File, Errno> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        openat(target.directory(), name, flags, Mode::from_bits_truncate(mode)).map(File::from)
    }

    /// Replaces the target by the draft, with this owner and mode.
    pub fn finish(mut self, attributes: Attributes, flush: Flush) -> io::Result<()> {
        self.set(attributes)?;
        if flush == Flush::Now {
            self.file.sync_all()?;
        }
        renameat(self.target.directory(), self.name.as_os_str(), self.target.directory(), self.target.name())?;
        self.is_renamed = true;
        if flush == Flush::Now { sync_directory(&self.target) } else { Ok(()) }
    }

    /// Replaces the target by the draft, with the owner and mode of the target where `attributes` sets none; a new file
    /// gets `new_mode`.
    pub fn finish_over(self, attributes: Attributes, new_mode: u32, flush: Flush) -> io::Result<()> {
        let attributes = match self.target.status()? {
            Some(status) if kind(&status) == SFlag::S_IFREG => {
                let may_be_planted = self.target.may_be_planted(&status)?;
                attributes.or_kept(&status, may_be_planted)
            }
            _ => Attributes { mode: attributes.mode.or(Some(new_mode)), ..attributes },
        };
        self.finish(attributes, flush)
    }

    /// Gives the draft the name of its target, unless that exists.
    pub fn finish_new(self, attributes: Attributes) -> io::Result<bool> {
        self.set(attributes)?;
        self.file.sync_all()?;
        let directory = self.target.directory();
        // A rename would replace another process's file; a hard link fails if it exists.
        match linkat(directory, self.name.as_os_str(), directory, self.target.name(), AtFlags::empty()) {
            Ok(()) => sync_directory(&self.target).map(|()| true),
            Err(Errno::EEXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets the owner, and then the mode: a change of the owner clears the bits setuid and setgid, and before it they
    /// would be those of another user.
    fn set(&self, attributes: Attributes) -> io::Result<()> {
        let Attributes { uid, gid, mode } = attributes;
        let mut mask = 0o7777;
        if uid.is_some() || gid.is_some() {
            match fchown(&self.file, uid.map(Uid::from_raw), gid.map(Gid::from_raw)) {
                // Only root may change the owner; others own the file now.
                Err(Errno::EPERM) => mask = 0o777,
                result => result?,
            }
        }
        if let Some(mode) = mode {
            fchmod(&self.file, Mode::from_bits_truncate(mode & mask))?;
        }
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_renamed {
            _ = unlinkat(self.target.directory(), self.name.as_os_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// The mode of a new file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NewMode {
    /// This mode, with any umask.
    Exact(u32),
    /// 0666 less the umask, as of a file that a shell creates.
    Masked,
}

/// Replaces the content of a file, which keeps its owner and mode where `attributes` sets none. Devices and files that
/// cannot be replaced, because they are mount points or their directory is not writable, are written in place.
pub(crate) fn replace(
    entry: Entry,
    bytes: &[u8],
    attributes: Attributes,
    new: NewMode,
    flush: Flush,
) -> io::Result<()> {
    if entry.is_descriptor() {
        return entry.open(OFlag::O_WRONLY, 0)?.write_all(bytes);
    }
    let status = entry.status()?;
    let attributes = match &status {
        Some(status) => match kind(status) {
            SFlag::S_IFREG => attributes.or_kept(status, entry.may_be_planted(status)?),
            SFlag::S_IFCHR | SFlag::S_IFBLK => return entry.open(OFlag::O_WRONLY, 0)?.write_all(bytes),
            SFlag::S_IFDIR => return Err(Errno::EISDIR.into()),
            // The link is replaced.
            SFlag::S_IFLNK => attributes,
            _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        },
        None => attributes,
    };
    let (mode, attributes) = match new {
        NewMode::Exact(mode) => (0o600, Attributes { mode: attributes.mode.or(Some(mode)), ..attributes }),
        NewMode::Masked if attributes.mode.is_none() => (0o666, attributes),
        NewMode::Masked => (0o600, attributes),
    };
    let again = entry.beside(entry.name().to_owned())?;
    let written = Draft::with_mode(entry, mode).and_then(|mut draft| {
        draft.file.write_all(bytes)?;
        draft.finish(attributes, flush)
    });
    match written {
        Err(error) if status.is_some() && is_in_place(&error) => overwrite(&again, bytes, &error),
        result => result,
    }
}

/// Whether an error says that a file cannot be replaced although it may be writable.
fn is_in_place(error: &io::Error) -> bool {
    let number = error.raw_os_error().map(Errno::from_raw);
    matches!(number, Some(Errno::EBUSY | Errno::EACCES | Errno::EROFS))
}

/// Writes an existing file in place. `error` is why it could not be replaced.
fn overwrite(entry: &Entry, bytes: &[u8], error: &io::Error) -> io::Result<()> {
    let Ok((mut file, _)) = entry.open_own(OFlag::O_WRONLY) else {
        return Err(error
            .raw_os_error()
            .map_or_else(|| io::Error::other(error.to_string()), io::Error::from_raw_os_error));
    };
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)?;
    file.sync_all()
}

/// Returns a hidden name with a suffix, shortened at the border of a character to what file systems allow.
pub(crate) fn temporary_name(name: &OsStr, suffix: &str) -> OsString {
    let bytes = name.as_bytes();
    let mut end = bytes.len().min(NAME_MAX - 1 - suffix.len());
    while end < bytes.len() && end > 0 && bytes[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    OsString::from_vec([b".", &bytes[..end], suffix.as_bytes()].concat())
}

/// Flushes a directory: a new entry is persistent only after that.
pub(crate) fn sync_directory(entry: &Entry) -> io::Result<()> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    match openat(entry.directory(), ".", flags, Mode::empty()) {
        Ok(directory) => File::from(directory).sync_all(),
        // The entry can be written, but the directory cannot be read.
        Err(Errno::EACCES) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

//! Operations of [`std::fs`] for paths that other users can write: root changes a user's files by these alone.
//!
//! A path is resolved once ([`Entry::resolve`]), without trust in links of other users, and everything happens in the
//! directory that was found: links and directories that a user exchanges meanwhile redirect nothing. Files are replaced
//! atomically, by a draft that has its owner and mode before it has its name.

mod directories;
mod trusted;

use std::fs::{File, Permissions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, UtimensatFlags, fstat, mknodat, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchownat, linkat, symlinkat, unlinkat};

use crate::files::draft::{NewMode, replace, temporary_name};
use crate::files::entry::{kind, open_path};
use crate::files::{Attributes, Draft, Entry, Flush, Links, read_sized};

pub use directories::{create_dir, create_dir_all, create_dir_all_with, remove_dir, remove_dir_all};
pub use trusted::{claim, is_trusted};

/// Returns the path without links that [`Entry::resolve`] finds; a path whose directory is missing as it is.
pub fn real(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref();
    match Entry::resolve(path, Links::Follow) {
        Ok(entry) => Ok(entry.path().to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(error),
    }
}

/// Opens a file for reading. A pipe without a writer is empty. Refuses files of which somebody may have placed another
/// name there: what is read is often written to a file of the user.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    Ok(open_with_status(path.as_ref())?.0)
}

fn open_with_status(path: &Path) -> io::Result<(File, FileStat)> {
    let entry = Entry::resolve(path, Links::Follow)?;
    let file = entry.open_to_read()?;
    let status = fstat(&file)?;
    entry.check_names(&status)?;
    Ok((file, status))
}

/// Reads a file.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let (mut file, status) = open_with_status(path.as_ref())?;
    read_sized(&mut file, u64::try_from(status.st_size).unwrap_or_default())
}

/// Reads a file as UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Writes a file. An existing one keeps its owner and mode, a new one gets 0666 less the umask.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let entry = Entry::resolve(path.as_ref(), Links::Follow)?;
    replace(entry, bytes.as_ref(), Attributes::default(), NewMode::Masked, Flush::Now)
}

/// Writes a file with this owner and mode; those that are not set are those of the existing file, or of a new file with
/// `new_mode`.
pub fn write_with(entry: Entry, bytes: &[u8], attributes: Attributes, new_mode: u32, flush: Flush) -> io::Result<()> {
    replace(entry, bytes, attributes, NewMode::Exact(new_mode), flush)
}

/// Writes a file from a reader. An existing file keeps its owner and mode where `attributes` sets none, a new one gets
/// `new_mode`. Anything else than a regular file at the path is refused.
pub fn write_from(
    path: impl AsRef<Path>,
    source: &mut impl Read,
    attributes: Attributes,
    new_mode: u32,
) -> io::Result<()> {
    let entry = Entry::resolve(path.as_ref(), Links::Follow)?;
    if entry.status()?.is_some_and(|status| kind(&status) != SFlag::S_IFREG) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut draft = Draft::create(entry)?;
    io::copy(source, &mut draft.file)?;
    draft.finish_over(attributes, new_mode, Flush::Now)
}

/// Creates an empty file with 0666 less the umask, unless it exists.
pub fn create(path: impl AsRef<Path>) -> io::Result<()> {
    create_entry(&Entry::resolve(path.as_ref(), Links::Follow)?, 0o666)
}

fn create_entry(entry: &Entry, mode: u32) -> io::Result<()> {
    match entry.open(OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL, mode) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        result => result.map(|_| ()),
    }
}

/// Creates a file that does not exist yet, with this mode less the umask, and opens it for writing.
pub fn create_new(path: impl AsRef<Path>, mode: u32) -> io::Result<File> {
    Entry::resolve(path.as_ref(), Links::Keep)?.open(OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL, mode)
}

/// Opens an existing file for changes in place. Refuses files of which somebody may have placed another name there.
pub fn open_in_place(path: impl AsRef<Path>) -> io::Result<File> {
    Entry::resolve(path.as_ref(), Links::Follow)?.open_own(OFlag::O_WRONLY).map(|(file, _)| file)
}

/// Appends to a file in place, with a newline before the text where the last line has none. A missing file is created
/// with 0666 less the umask.
pub fn append(path: impl AsRef<Path>, text: &[u8]) -> io::Result<()> {
    let entry = Entry::resolve(path.as_ref(), Links::Follow)?;
    create_entry(&entry, 0o666)?;
    let (mut file, _) = entry.open_own(OFlag::O_RDWR | OFlag::O_APPEND)?;
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let gap: &[u8] = if last == [b'\n'] { b"" } else { b"\n" };
    // One call, so that nothing comes between.
    file.write_all(&[gap, text].concat())?;
    file.sync_all()
}

/// Appends to a file in place as it is. A missing file is created with 0666 less the umask.
pub fn append_bytes(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    open_to_append(path, 0o666)?.write_all(bytes)
}

/// Opens a file for writing in place, without its content. A missing file is created with this mode less the umask.
pub fn open_truncated(path: impl AsRef<Path>, mode: u32) -> io::Result<File> {
    let entry = Entry::resolve(path.as_ref(), Links::Follow)?;
    create_entry(&entry, mode)?;
    let (file, status) = entry.open_own(OFlag::O_WRONLY)?;
    if kind(&status) == SFlag::S_IFREG {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Opens a file for appending in place. A missing file is created with this mode less the umask.
pub fn open_to_append(path: impl AsRef<Path>, mode: u32) -> io::Result<File> {
    let entry = Entry::resolve(path.as_ref(), Links::Follow)?;
    create_entry(&entry, mode)?;
    entry.open_own(OFlag::O_WRONLY | OFlag::O_APPEND).map(|(file, _)| file)
}

/// Copies a file, with its owner and mode. A link at the destination is followed.
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    copy_to(from.as_ref(), Entry::resolve(to.as_ref(), Links::Follow)?, 0o7777)
}

/// Copies a file with its mode, as a file of this process. A link at the destination is replaced, and so is a file with
/// another owner.
pub fn copy_as_own(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (uid, gid) = (Uid::effective().as_raw(), Gid::effective().as_raw());
    copy_with(from.as_ref(), Entry::resolve(to.as_ref(), Links::Keep)?, 0o7777, Some((uid, gid)))
}

/// Copies a file to a backup, with its owner and permissions, without setuid and setgid. A link at the destination is
/// replaced.
pub fn back_up(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    copy_to(from.as_ref(), Entry::resolve(to.as_ref(), Links::Keep)?, 0o777)
}

fn copy_to(from: &Path, to: Entry, mask: u32) -> io::Result<()> {
    copy_with(from, to, mask, None)
}

/// Copies a file with its mode, less what the mask lacks, and with this owner or its own.
fn copy_with(from: &Path, to: Entry, mask: u32, owner: Option<(u32, u32)>) -> io::Result<()> {
    let mut source = open(from)?;
    let status = source.metadata()?;
    if !status.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the source is not a regular file"));
    }
    let mut draft = Draft::create(to)?;
    io::copy(&mut source, &mut draft.file)?;
    let (uid, gid) = owner.unwrap_or((status.uid(), status.gid()));
    draft.finish(Attributes { uid: Some(uid), gid: Some(gid), mode: Some(status.mode() & mask) }, Flush::Later)
}

/// Renames a file or directory; links are renamed, not followed.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (keep(from.as_ref())?, keep(to.as_ref())?);
    Ok(renameat(from.directory(), from.name(), to.directory(), to.name())?)
}

/// Creates a hard link.
pub fn hard_link(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let (original, link) = (keep(original.as_ref())?, keep(link.as_ref())?);
    link_entry(&original, &link)
}

fn link_entry(original: &Entry, link: &Entry) -> io::Result<()> {
    Ok(linkat(original.directory(), original.name(), link.directory(), link.name(), AtFlags::empty())?)
}

/// Creates a hard link under a temporary name and renames it, so that the path always exists.
pub fn replace_hard_link(original: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    let (original, link) = (keep(original.as_ref())?, keep(link.as_ref())?);
    renamed(&link, |temporary| link_entry(&original, temporary))
}

/// Creates a symbolic link.
pub fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    symlink_entry(target.as_ref(), &keep(link.as_ref())?)
}

fn symlink_entry(target: &Path, link: &Entry) -> io::Result<()> {
    Ok(symlinkat(target, link.directory(), link.name())?)
}

/// Creates a symbolic link under a temporary name and renames it, so that the path always exists.
pub fn replace_symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    renamed(&keep(link.as_ref())?, |temporary| symlink_entry(target.as_ref(), temporary))
}

/// Creates an entry under a temporary name, and renames it.
fn renamed(entry: &Entry, make: impl FnOnce(&Entry) -> io::Result<()>) -> io::Result<()> {
    let temporary = entry.beside(temporary_name(entry.name(), &format!(".{:016x}.tmp", rand::random::<u64>())))?;
    make(&temporary)?;
    renameat(temporary.directory(), temporary.name(), entry.directory(), entry.name()).map_err(|error| {
        _ = unlinkat(temporary.directory(), temporary.name(), UnlinkatFlags::NoRemoveDir);
        error.into()
    })
}

/// Removes a file or a link.
pub fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let entry = keep(path.as_ref())?;
    Ok(unlinkat(entry.directory(), entry.name(), UnlinkatFlags::NoRemoveDir)?)
}

/// Creates a device or a named pipe; the umask applies to `mode`.
pub fn make_node(path: impl AsRef<Path>, kind: SFlag, mode: u32, number: u64) -> io::Result<()> {
    let entry = keep(path.as_ref())?;
    Ok(mknodat(entry.directory(), entry.name(), kind, Mode::from_bits_truncate(mode), number)?)
}

/// Sets the permissions of a file or directory. Refuses files of which somebody may have placed another name there.
pub fn set_mode(path: impl AsRef<Path>, mode: u32, links: Links) -> io::Result<()> {
    let entry = Entry::resolve(path.as_ref(), links)?;
    let (descriptor, status) = held(&entry)?;
    if kind(&status) == SFlag::S_IFLNK {
        return Err(Errno::EOPNOTSUPP.into());
    }
    entry.check_names(&status)?;
    set_mode_of(&descriptor, mode)
}

/// Sets the permissions of the file of a descriptor, which need not be open for reading.
fn set_mode_of(descriptor: &impl AsRawFd, mode: u32) -> io::Result<()> {
    // The path of a descriptor cannot be exchanged.
    #[allow(clippy::disallowed_methods)]
    std::fs::set_permissions(format!("/proc/self/fd/{}", descriptor.as_raw_fd()), Permissions::from_mode(mode))
}

/// Sets the owner of a file, directory or link; `None` leaves the user or the group unchanged. Refuses files of which
/// somebody may have placed another name there.
pub fn set_owner(path: impl AsRef<Path>, uid: Option<u32>, gid: Option<u32>, links: Links) -> io::Result<()> {
    let entry = Entry::resolve(path.as_ref(), links)?;
    let (descriptor, status) = held(&entry)?;
    entry.check_names(&status)?;
    Ok(fchownat(&descriptor, "", uid.map(Uid::from_raw), gid.map(Gid::from_raw), AtFlags::AT_EMPTY_PATH)?)
}

/// Sets the times of the last access and the last change of a file or directory.
pub fn set_times(path: impl AsRef<Path>, accessed: SystemTime, modified: SystemTime) -> io::Result<()> {
    let entry = Entry::resolve(path.as_ref(), Links::Follow)?;
    let (_, status) = held(&entry)?;
    entry.check_names(&status)?;
    let (accessed, modified) = (time_spec(accessed), time_spec(modified));
    Ok(utimensat(entry.directory(), entry.name(), &accessed, &modified, UtimensatFlags::NoFollowSymlink)?)
}

fn time_spec(time: SystemTime) -> TimeSpec {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => TimeSpec::from_duration(since),
        Err(before) => {
            // The nanoseconds count forward from the second before.
            let until = before.duration();
            let nanoseconds = (1_000_000_000 - until.subsec_nanos()) % 1_000_000_000;
            let seconds = i64::try_from(until.as_secs()).unwrap_or(i64::MAX - 1) + i64::from(nanoseconds > 0);
            TimeSpec::new(-seconds, nanoseconds.into())
        }
    }
}

/// Opens a descriptor that stands for the entry, and returns its status.
fn held(entry: &Entry) -> io::Result<(std::os::fd::OwnedFd, FileStat)> {
    let descriptor = open_path(entry)?;
    let status = fstat(&descriptor)?;
    Ok((descriptor, status))
}

fn keep(path: &Path) -> io::Result<Entry> {
    Entry::resolve(path, Links::Keep)
}

#[cfg(test)]
mod tests;

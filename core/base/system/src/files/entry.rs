//! Entries of directories: paths that are resolved once, without trust in the links of other users.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, OpenHow, ResolveFlag, openat, openat2, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};
use nix::unistd::geteuid;

/// The number of links after which a path is a loop, as in the kernel.
pub(crate) const MAX_LINKS: u32 = 40;

/// What a path means whose last component is a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// The target of the link.
    Follow,
    /// The link itself.
    Keep,
}

/// A name in a directory that is held open. Links and directories that another user puts into its path later redirect
/// nothing.
#[derive(Debug)]
pub struct Entry {
    directory: OwnedFd,
    name: OsString,
    path: PathBuf,
    /// Whether it is a link of `/proc` to a file of a process, whose text does not name that file.
    is_descriptor: bool,
}

/// A step of the resolution of a path.
enum Step {
    /// A component.
    Name(OsString),
    /// The end of the target of a link of this user: the user must own what was reached.
    EndOfLink(u32, PathBuf),
}

impl Entry {
    /// Resolves a path. Its directory must exist, the entry itself need not. A link of root or of this process's user
    /// is followed as usual, and a link of another user only to what that user owns: everybody who can write a
    /// directory can place a link to the files of others.
    pub fn resolve(path: &Path, links: Links) -> io::Result<Self> {
        match Self::without_links(path, links) {
            Some(entry) => Ok(entry),
            None => Self::walk(path, links),
        }
    }

    /// Resolves a path that contains no link, in one call for its directory; `None` if that fails for any reason.
    fn without_links(path: &Path, links: Links) -> Option<Self> {
        let mut parent = PathBuf::from(if path.is_absolute() { "/" } else { "" });
        let mut last = None;
        for part in path.components() {
            match part {
                Component::Normal(name) => parent.extend(last.replace(name)),
                Component::RootDir | Component::CurDir => {}
                Component::ParentDir | Component::Prefix(_) => return None,
            }
        }
        let name = last?;
        let directory = if parent.as_os_str().is_empty() { Path::new(".") } else { &parent };
        let how = OpenHow::new().flags(path_flags() | OFlag::O_DIRECTORY).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
        let directory = openat2(AT_FDCWD, directory, how).ok()?;
        match fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(status) if kind(&status) == SFlag::S_IFLNK && links == Links::Follow => None,
            Ok(_) | Err(Errno::ENOENT) => Some(Entry::below(directory, name.to_owned(), parent.join(name))),
            Err(_) => None,
        }
    }

    /// Resolves a path component by component.
    fn walk(path: &Path, links: Links) -> io::Result<Self> {
        let mut directory = open_start(path)?;
        let mut parent = PathBuf::from(if path.is_absolute() { "/" } else { "" });
        let mut steps: Vec<Step> = Vec::new();
        push(&mut steps, path);
        if !steps.iter().any(|step| matches!(step, Step::Name(_))) {
            // The root directory.
            return Ok(Entry::below(directory, ".".into(), parent));
        }
        let mut followed = 0;
        loop {
            let name = match steps.pop() {
                Some(Step::Name(name)) => name,
                Some(Step::EndOfLink(user, link)) => {
                    check_owner(user, &link, &fstat(&directory)?)?;
                    continue;
                }
                // A link at the end led to a directory without a last name: `..` or `/`.
                None => return Ok(Entry::below(directory, ".".into(), parent)),
            };
            let is_last = !steps.iter().any(|step| matches!(step, Step::Name(_)));
            if !is_last {
                // The flag mounts what an automounter has there.
                match openat(&directory, name.as_os_str(), path_flags() | OFlag::O_DIRECTORY, Mode::empty()) {
                    Ok(below) => {
                        parent.push(&name);
                        directory = below;
                        continue;
                    }
                    // It may be a link.
                    Err(Errno::ENOTDIR | Errno::ELOOP) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            let opened = openat(&directory, name.as_os_str(), path_flags(), Mode::empty());
            let file = match opened {
                Ok(file) => file,
                Err(Errno::ENOENT) if is_last => {
                    let status = fstat(&directory)?;
                    for step in &steps {
                        if let Step::EndOfLink(user, link) = step {
                            check_owner(*user, link, &status)?;
                        }
                    }
                    let path = parent.join(&name);
                    return Ok(Entry::below(directory, name, path));
                }
                Err(error) => return Err(error.into()),
            };
            let status = fstat(&file)?;
            if kind(&status) == SFlag::S_IFLNK && !(is_last && links == Links::Keep) {
                followed += 1;
                if followed > MAX_LINKS {
                    return Err(Errno::ELOOP.into());
                }
                let link = parent.join(&name);
                let is_trusted = is_trusted(status.st_uid);
                if is_trusted && fstatfs(&file).is_ok_and(|fs| fs.filesystem_type() == PROC_SUPER_MAGIC) {
                    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
                    let leads = openat(&directory, name.as_os_str(), flags, Mode::empty())?;
                    if is_last && kind(&fstat(&leads)?) != SFlag::S_IFDIR {
                        return Ok(Entry { is_descriptor: true, ..Entry::below(directory, name, link) });
                    }
                    directory = leads;
                    parent = link;
                    continue;
                }
                let target = PathBuf::from(readlinkat(&file, "")?);
                if !is_trusted {
                    steps.push(Step::EndOfLink(status.st_uid, link));
                }
                if target.is_absolute() {
                    directory = open_start(&target)?;
                    parent = PathBuf::from("/");
                }
                push(&mut steps, &target);
                continue;
            }
            if is_last {
                for step in &steps {
                    if let Step::EndOfLink(user, link) = step {
                        check_owner(*user, link, &status)?;
                    }
                }
                // `..` is a directory, and none that has this name.
                let (directory, name) = if name == ".." { (file, ".".into()) } else { (directory, name) };
                let path = parent.join(&name);
                return Ok(Entry::below(directory, name, path));
            }
            return Err(Errno::ENOTDIR.into());
        }
    }

    /// Returns an entry of an open directory.
    pub(crate) fn below(directory: OwnedFd, name: OsString, path: PathBuf) -> Self {
        Entry { directory, name, path, is_descriptor: false }
    }

    /// Returns an entry of the same directory.
    pub(crate) fn beside(&self, name: OsString) -> io::Result<Self> {
        let path = self.path.with_file_name(&name);
        Ok(Entry::below(self.directory.try_clone()?, name, path))
    }

    /// Returns the directory.
    pub(crate) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// Returns the name in the directory.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Returns the resolved path, for messages: links may have changed since.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path to the entry that leads through the open directory, for functions that take paths.
    pub(crate) fn descriptor_path(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.directory.as_raw_fd().to_string()).join(&self.name)
    }

    /// Returns the status of the entry, of a link itself; `None` if it does not exist.
    pub(crate) fn status(&self) -> io::Result<Option<FileStat>> {
        match fstatat(&self.directory, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(status) => Ok(Some(status)),
            Err(Errno::ENOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the entry stands for an open file of a process.
    pub(crate) fn is_descriptor(&self) -> bool {
        self.is_descriptor
    }

    /// Opens the entry for reading. A pipe without a writer is empty.
    pub(crate) fn open_to_read(&self) -> io::Result<File> {
        // The pipe of a process is one that it waits for.
        let flags = if self.is_descriptor { OFlag::O_RDONLY } else { OFlag::O_RDONLY | OFlag::O_NONBLOCK };
        self.open(flags, 0)
    }

    /// Opens the entry, which must not be a link.
    pub(crate) fn open(&self, flags: OFlag, mode: u32) -> io::Result<File> {
        let flags = flags | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
        let flags = if self.is_descriptor { flags } else { flags | OFlag::O_NOFOLLOW };
        Ok(File::from(openat(&self.directory, self.name.as_os_str(), flags, Mode::from_bits_truncate(mode))?))
    }

    /// Opens the regular file at the entry for writing in place, or for a change of its attributes. A file with several
    /// names is refused where others could have added this one.
    pub(crate) fn open_own(&self, flags: OFlag) -> io::Result<(File, FileStat)> {
        // A pipe that nobody reads or writes must not block.
        let file = self.open(flags | OFlag::O_NONBLOCK, 0)?;
        let status = fstat(&file)?;
        self.check_names(&status)?;
        Ok((file, status))
    }

    /// Refuses a file with several names where others than its owner could have added this one.
    pub(crate) fn check_names(&self, status: &FileStat) -> io::Result<()> {
        if kind(status) != SFlag::S_IFREG || status.st_nlink < 2 || !self.may_be_planted(status)? {
            return Ok(());
        }
        let message = format!(
            "{} is one of several names (hard links) of a file, and users other than its owner can write the directory; remove this name, or copy the file",
            self.path.display()
        );
        Err(io::Error::other(message))
    }

    /// Whether somebody else than the owner of a file may have put it here.
    pub(crate) fn may_be_planted(&self, status: &FileStat) -> io::Result<bool> {
        let directory = fstat(&self.directory)?;
        let mode = Mode::from_bits_truncate(directory.st_mode);
        let others = mode.contains(Mode::S_IWOTH) || (mode.contains(Mode::S_IWGRP) && directory.st_gid != 0);
        Ok(others || (!is_trusted(directory.st_uid) && directory.st_uid != status.st_uid))
    }
}

/// Returns the type of a file.
pub(crate) fn kind(status: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(status.st_mode & SFlag::S_IFMT.bits())
}

/// Returns the permissions of a file.
pub(crate) fn permissions(status: &FileStat) -> u32 {
    status.st_mode & 0o7777
}

/// Whether a user is root or that of this process.
pub(crate) fn is_trusted(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

fn check_owner(user: u32, link: &Path, status: &FileStat) -> io::Result<()> {
    if status.st_uid == user {
        return Ok(());
    }
    let message = format!(
        "the link {} of user {user} leads to a file or directory of user {}: links of other users are followed only to what they own; replace the link, or name its target",
        link.display(),
        status.st_uid
    );
    Err(io::Error::other(message))
}

/// Opens the directory where a path starts.
fn open_start(path: &Path) -> io::Result<OwnedFd> {
    if path.as_os_str().is_empty() {
        return Err(ErrorKind::NotFound.into());
    }
    let start = if path.is_absolute() { "/" } else { "." };
    Ok(openat(AT_FDCWD, start, path_flags() | OFlag::O_DIRECTORY, Mode::empty())?)
}

/// Adds the components of a path to the steps, the first on top.
fn push(steps: &mut Vec<Step>, path: &Path) {
    let names = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    let names: Vec<Step> = names.map(|part| Step::Name(part.as_os_str().to_owned())).collect();
    steps.extend(names.into_iter().rev());
}

fn path_flags() -> OFlag {
    OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

/// Opens a descriptor of the entry that stands for the file itself, also for a link or a device.
pub(crate) fn open_path(entry: &Entry) -> io::Result<OwnedFd> {
    Ok(openat(&entry.directory, entry.name.as_os_str(), path_flags(), Mode::empty())?)
}

#[cfg(test)]
mod tests;

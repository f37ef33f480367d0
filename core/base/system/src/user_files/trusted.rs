//! Paths that other users cannot exchange.

use std::fs::{Metadata, symlink_metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::sys::stat::Mode;

use crate::files::entry::{MAX_LINKS, is_trusted as is_trusted_user};

/// Whether only root and this process's user can place or exchange the entry at an absolute path, or a directory or link on
/// the way to it. Programs, which follow the links of others, may then use the path. The entry need not exist; if it is a
/// directory, others cannot write it either.
pub fn is_trusted(path: impl AsRef<Path>) -> io::Result<bool> {
    let path = path.as_ref();
    if path.is_relative() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the path is not absolute"));
    }
    let mut steps: Vec<PathBuf> = Vec::new();
    push(&mut steps, path);
    let mut here = PathBuf::from("/");
    let mut directory = symlink_metadata(&here)?;
    let mut links = 0;
    loop {
        let access = Access::of(&directory);
        if access == Access::Exchange {
            return Ok(false);
        }
        let Some(name) = steps.pop() else { return Ok(access == Access::Own) };
        if name.as_os_str() == ".." {
            // There is no link in `here`.
            here.pop();
            directory = symlink_metadata(&here)?;
            continue;
        }
        let next = here.join(&name);
        let status = match symlink_metadata(&next) {
            // Others may create it first.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(access == Access::Own),
            status => status?,
        };
        // In a directory such as /tmp, others create names, and may not exchange those of root.
        if access == Access::Create && !(is_trusted_user(status.uid()) && (status.is_dir() || status.nlink() == 1)) {
            return Ok(false);
        }
        if status.is_symlink() {
            links += 1;
            if links > MAX_LINKS {
                return Err(Errno::ELOOP.into());
            }
            let target = std::fs::read_link(&next)?;
            if target.is_absolute() {
                here = PathBuf::from("/");
                directory = symlink_metadata(&here)?;
            }
            push(&mut steps, &target);
        } else if status.is_dir() {
            (here, directory) = (next, status);
        } else {
            return Ok(true);
        }
    }
}

/// As [`is_trusted`], for a file that a program is going to write: in a sticky directory, such as /tmp, an empty file is
/// created, which others can then neither exchange nor create first.
pub fn claim(path: impl AsRef<Path>) -> io::Result<bool> {
    let path = path.as_ref();
    if is_trusted(path)? {
        return Ok(true);
    }
    match super::create_new(path, 0o666) {
        Ok(_) if is_trusted(path)? => Ok(true),
        Ok(_) => super::remove_file(path).map(|()| false),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// What other users can do with the names in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Own,
    /// The directory is sticky: create names, but not exchange those of others.
    Create,
    Exchange,
}

impl Access {
    fn of(directory: &Metadata) -> Self {
        let mode = Mode::from_bits_truncate(directory.mode());
        let writable = mode.contains(Mode::S_IWOTH) || (mode.contains(Mode::S_IWGRP) && directory.gid() != 0);
        match (is_trusted_user(directory.uid()), writable) {
            (true, false) => Access::Own,
            (true, true) if mode.contains(Mode::S_ISVTX) => Access::Create,
            _ => Access::Exchange,
        }
    }
}

/// Adds the components of a path to the steps, the first on top.
fn push(steps: &mut Vec<PathBuf>, path: &Path) {
    let names = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    let names: Vec<PathBuf> = names.map(|part| PathBuf::from(part.as_os_str())).collect();
    steps.extend(names.into_iter().rev());
}

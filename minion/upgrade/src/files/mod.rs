//! The program and its neighbours: `brine.new`, which is tried, and `brine.previous`. The directory must be one that only
//! root, or the minion's user, can change; files are placed by renames, and flushed with their directory.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use brine_digest::{Digest, hex};
use brine_system::files::{Attributes, Draft, Entry, FileError, Flush, Links};
use brine_system::user_files;
use nix::unistd::{getegid, geteuid};

use crate::UpgradeError;

/// The running program, also if its file was replaced.
pub(crate) const RUNNING: &str = "/proc/self/exe";
/// The mode of programs.
const MODE: u32 = 0o755;

/// The path of a program, with those beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(PathBuf);

impl Program {
    /// Creates the names beside a program.
    pub fn at(path: PathBuf) -> Self {
        Program(path)
    }

    /// Returns the running program.
    ///
    /// # Errors
    /// Its file was removed or replaced.
    pub fn running() -> Result<Self, UpgradeError> {
        let path = std::env::current_exe().map_err(UpgradeError::at("finding the path of this program"))?;
        if !is_same_file(Path::new(RUNNING), &path) {
            return Err(UpgradeError::Refused(format!(
                "the running program is not that of {} any more: restart the minion first",
                path.display()
            )));
        }
        Ok(Program(path))
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of the new program.
    pub fn new_path(&self) -> PathBuf {
        self.beside(".new")
    }

    /// Returns the path of the program before the last upgrade.
    pub fn previous_path(&self) -> PathBuf {
        self.beside(".previous")
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.0.file_name().map(OsString::from).unwrap_or_default();
        name.push(suffix);
        self.0.with_file_name(name)
    }

    /// Checks that nobody but root and this user can exchange the program and its neighbours.
    pub fn check_trust(&self) -> Result<(), UpgradeError> {
        for path in [self.0.clone(), self.new_path(), self.previous_path()] {
            match user_files::is_trusted(&path) {
                Ok(true) => {}
                Ok(false) => return Err(UpgradeError::Untrusted(path)),
                Err(error) => return Err(FileError::at("read", &path)(error).into()),
            }
        }
        Ok(())
    }

    /// Writes the new program. Nothing is left if `write` fails.
    pub fn write_new<T>(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<T, UpgradeError>,
    ) -> Result<T, UpgradeError> {
        let path = self.new_path();
        let at = || FileError::at("write", &path);
        let mut draft = Entry::resolve(&path, Links::Keep).and_then(Draft::create).map_err(at())?;
        let result = write(&mut draft.file)?;
        let (uid, gid) = (Some(geteuid().as_raw()), Some(getegid().as_raw()));
        let attributes = Attributes { uid, gid, mode: Some(MODE) };
        draft.finish(attributes, Flush::Now).map_err(at())?;
        Ok(result)
    }

    /// Makes the previous program the new one.
    ///
    /// # Errors
    /// There is none.
    pub fn take_previous(&self) -> Result<(), UpgradeError> {
        let previous = self.previous_path();
        let status = previous.symlink_metadata().map_err(FileError::at("read", &previous))?;
        if !status.is_file() {
            return Err(UpgradeError::Refused(format!("{} is not a regular file", previous.display())));
        }
        if is_same_file(&previous, &self.0) {
            return Err(UpgradeError::Refused("the previous program is the running one".into()));
        }
        let new = self.new_path();
        user_files::replace_hard_link(&previous, &new).map_err(FileError::at("link", &new))?;
        self.flush()
    }

    /// Gives the new program the place of the old one, which becomes the previous one.
    pub fn exchange(&self) -> Result<(), UpgradeError> {
        let (new, previous) = (self.new_path(), self.previous_path());
        // A rename between two names of one file would do nothing.
        if !is_same_file(&self.0, &previous) {
            user_files::replace_hard_link(&self.0, &previous).map_err(FileError::at("link", &previous))?;
        }
        user_files::rename(&new, &self.0).map_err(FileError::at("replace", &self.0))?;
        self.flush()
    }

    /// Flushes the directory.
    fn flush(&self) -> Result<(), UpgradeError> {
        let directory = self.0.parent().unwrap_or(Path::new("/"));
        let flushed = File::open(directory).and_then(|directory| directory.sync_all());
        Ok(flushed.map_err(FileError::at("flush", directory))?)
    }

    /// Removes the new program, and the drafts of one.
    pub fn remove_new(&self) {
        let new = self.new_path();
        let name = new.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_draft = |other: &str| other.strip_prefix('.').is_some_and(|other| is_draft_of(other, &name));
        let directory = self.0.parent().unwrap_or(Path::new("/"));
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let drafts = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_draft)).map(|entry| entry.path());
        for path in std::iter::once(new.clone()).chain(drafts) {
            match user_files::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "removing a program that is not used failed");
                }
                _ => {}
            }
        }
    }
}

/// Whether this is `NAME.16 digits.tmp`, as drafts are called.
fn is_draft_of(other: &str, name: &str) -> bool {
    let digits = other.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".tmp"));
    digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// Whether two paths lead to one file.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    let number = |path: &Path| path.metadata().ok().map(|status| (status.dev(), status.ino()));
    number(one).is_some_and(|identity| number(other) == Some(identity))
}

/// Returns the SHA-256 digest of a file.
pub fn sha256_of(path: &Path) -> Result<String, UpgradeError> {
    let digest = File::open(path).and_then(|mut file: File| Digest::Sha256.of_reader(&mut file));
    Ok(hex(digest.map_err(FileError::at("read", path))?))
}

/// Writes up to a size.
pub struct Counted<'a> {
    into: &'a mut dyn Write,
    left: u64,
}

impl<'a> Counted<'a> {
    /// Creates a writer of at most this many bytes.
    pub fn new(into: &'a mut dyn Write, limit: u64) -> Self {
        Counted { into, left: limit }
    }
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            return Err(io::Error::other("it is too large for a program"));
        }
        let written = self.into.write(bytes)?;
        self.left -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.into.flush()
    }
}

#[cfg(test)]
mod tests;

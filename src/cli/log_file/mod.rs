//! The log file: opened by its first line, created with mode 0640, and reopened after it was moved or removed, as in
//! Salt, so that logrotate needs no signal. A write error is reported once on stderr, and each further line tries
//! again.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use brine_system::user_files;

use crate::ui::print_plain_error;

/// The mode of a new log file before the umask, as in Salt, which sets the umask 027.
const FILE_MODE: u32 = 0o640;
/// The mode of the directory of a new log file before the umask.
const DIRECTORY_MODE: u32 = 0o755;

/// A log file that follows its path.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    open: Option<(File, Identity)>,
    /// Whether missing directories are created and failures reported. False for a tool that logs to the daemon's file
    /// if it can.
    is_wanted: bool,
    /// Whether a failure has been reported since the last success.
    is_reported: bool,
}

/// Device and inode.
type Identity = (u64, u64);

fn identity(metadata: &fs::Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

impl LogFile {
    /// Creates a log file without opening it.
    pub fn new(path: &Path, is_wanted: bool) -> Self {
        LogFile { path: path.to_owned(), open: None, is_wanted, is_reported: false }
    }

    /// Opens the file, so that a failure is reported at the start.
    pub fn open_now(&mut self) {
        let opened = self.current().map(|_| ());
        self.report(opened);
    }

    /// Returns the file at the path, reopened if it was replaced.
    fn current(&mut self) -> io::Result<&mut File> {
        let at_path = fs::metadata(&self.path).ok().map(|status| identity(&status));
        if at_path.is_none() || self.open.as_ref().map(|(_, open)| *open) != at_path {
            self.open = None;
        }
        let open = self.open.take().map_or_else(|| self.create(), Ok)?;
        let (file, _) = self.open.insert(open);
        Ok(file)
    }

    fn create(&self) -> io::Result<(File, Identity)> {
        if let Some(directory) = self.path.parent().filter(|_| self.is_wanted) {
            DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory)?;
        }
        let file = user_files::open_to_append(&self.path, FILE_MODE)?;
        let identity = identity(&file.metadata()?);
        Ok((file, identity))
    }

    fn report(&mut self, result: io::Result<()>) {
        match result {
            Ok(()) => self.is_reported = false,
            Err(error) => {
                if self.is_wanted && !std::mem::replace(&mut self.is_reported, true) {
                    print_plain_error(format_args!(
                        "WARNING: writing the log file {} failed: {error}; lines are lost until it can be written",
                        self.path.display()
                    ));
                }
            }
        }
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let written = self.current().and_then(|file| file.write_all(line));
        self.report(written);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Temporary directories of calls, in that of the system: removed at the end of the call, and those of killed processes
//! by the next one.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

/// The start of their names.
const PREFIX: &str = "brine-ssh-";
/// The file that the owner of a directory keeps locked. The kernel releases the lock of a killed process.
const LOCK: &str = "lock";
/// The maximum number of directories that are removed at once.
const MAX_REMOVED: usize = 1000;
/// The age from which a directory without the file counts as left behind: its creation was interrupted.
const MAX_CREATION: Duration = Duration::from_secs(3600);

/// A private directory, removed on drop.
#[derive(Debug)]
pub(crate) struct Temporary {
    directory: TempDir,
    _lock: File,
}

impl Temporary {
    /// Creates a directory. Blocks.
    pub fn new() -> std::io::Result<Self> {
        let parent = std::env::temp_dir();
        remove_left(&parent);
        Self::within(&parent)
    }

    fn within(parent: &Path) -> std::io::Result<Self> {
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        // The directory is private.
        #[allow(clippy::disallowed_methods)]
        let lock = File::create_new(directory.path().join(LOCK))?;
        lock.lock()?;
        Ok(Temporary { directory, _lock: lock })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes the directories of this user that processes have left behind.
fn remove_left(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)));
    for path in ours.map(|entry| entry.path()).filter(|path| is_left(path)).take(MAX_REMOVED) {
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(path = %path.display(), %error, "removing the directory of a killed salt-ssh failed");
            }
            _ => tracing::info!(path = %path.display(), "the directory of a killed salt-ssh is removed"),
        }
    }
}

fn is_left(path: &Path) -> bool {
    let is_own = |metadata: &fs::Metadata| metadata.is_dir() && metadata.uid() == nix::unistd::geteuid().as_raw();
    let Some(metadata) = fs::symlink_metadata(path).ok().filter(is_own) else { return false };
    match File::open(path.join(LOCK)) {
        Ok(lock) => lock.try_lock().is_ok(),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let age = metadata.modified().ok().and_then(|time| time.elapsed().ok());
            age.is_some_and(|age| age > MAX_CREATION)
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_killed_processes_are_removed_and_others_stay() {
        let parent = tempfile::tempdir().unwrap();
        let used = Temporary::within(parent.path()).unwrap();
        let left = parent.path().join("brine-ssh-left");
        fs::create_dir(&left).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        fs::write(left.join("password"), "").unwrap();
        for name in ["brine-ssh-new", "other"] {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        std::os::unix::fs::symlink(parent.path().join("other"), parent.path().join("brine-ssh-link")).unwrap();
        remove_left(parent.path());
        let exist = |name: &str| parent.path().join(name).symlink_metadata().is_ok();
        assert_eq!(
            ["brine-ssh-left", "brine-ssh-new", "other", "brine-ssh-link"].map(exist),
            [false, true, true, true]
        );
        let path = used.path().to_owned();
        assert!(path.exists());
        drop(used);
        assert!(!path.exists());
    }
}

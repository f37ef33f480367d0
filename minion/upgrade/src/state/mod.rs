//! The file about the last upgrade, below `cachedir`. It is written atomically and flushed, so that each step that follows
//! is known after a crash; all changes are made under a lock, because the watcher makes some.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use brine_system::files::{self, FileError};
use brine_system::user_files;
use brine_value::{Value, map};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::stat::Mode;
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

use crate::UpgradeError;
use crate::process::Identity;

/// The directory below `cachedir`.
const DIRECTORY: &str = "upgrade";

/// How far an upgrade is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The new program is fetched and checked.
    Fetching,
    /// It is beside the old one; the job's return is not accepted yet, or other jobs run.
    Staged,
    /// It runs, and has to show that it works.
    Trial,
    /// It works, and takes the place of the old one.
    Committing,
    /// It has the place of the old one.
    Done,
    /// The old program stays, or has come back.
    RolledBack,
}

impl Phase {
    /// Whether an upgrade in this phase is complete.
    pub fn is_final(self) -> bool {
        matches!(self, Phase::Done | Phase::RolledBack)
    }
}

/// A program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// Its version.
    pub version: String,
    /// The SHA-256 digest of its file.
    pub sha256: String,
}

/// The last upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// How far it is.
    pub phase: Phase,
    /// The job that started it.
    pub jid: String,
    /// The path of the program.
    pub program: PathBuf,
    /// The old program.
    pub from: Release,
    /// The new program.
    pub to: Release,
    /// The process that tries the new program.
    pub trial: Option<Identity>,
    /// Why it was rolled back.
    pub reason: String,
    /// Whether a minion has begun with the outcome.
    pub is_settled: bool,
    /// Whether a master knows the outcome.
    pub is_reported: bool,
}

impl State {
    /// Ends the upgrade with the old program.
    pub(crate) fn roll_back(&mut self, reason: impl Into<String>) {
        self.phase = Phase::RolledBack;
        self.reason = reason.into();
    }

    /// Returns the outcome for the master: `from`, `to`, `result`, `reason` and `jid`.
    pub fn report(&self) -> Value {
        let result = match self.phase {
            Phase::Done => "done",
            Phase::RolledBack => "rolled_back",
            Phase::Fetching | Phase::Staged | Phase::Trial | Phase::Committing => "under_way",
        };
        let release = |release: &Release| map! {"version" => &release.version, "sha256" => &release.sha256};
        map! {
            "result" => result, "from" => release(&self.from), "to" => release(&self.to), "reason" => &self.reason,
            "jid" => &self.jid,
        }
        .into()
    }
}

/// Access to the file.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// Creates the access to the file below this cache directory.
    pub fn below(cachedir: &Path) -> Self {
        Store { directory: cachedir.join(DIRECTORY) }
    }

    /// Creates the access to the file in this directory.
    pub fn at(directory: &Path) -> Self {
        Store { directory: directory.to_owned() }
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn path(&self) -> PathBuf {
        self.directory.join("state")
    }

    /// Reads the file; `None` if there was no upgrade.
    ///
    /// # Errors
    /// The file is damaged, or another user could have written it.
    pub fn load(&self) -> Result<Option<State>, UpgradeError> {
        let path = self.path();
        let status = match path.symlink_metadata() {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            status => status.map_err(FileError::at("read", &path))?,
        };
        // It names a program that is executed.
        let is_own = status.is_file()
            && status.uid() == geteuid().as_raw()
            && !Mode::from_bits_truncate(status.mode()).intersects(Mode::S_IRWXG | Mode::S_IRWXO);
        if !is_own || !user_files::is_trusted(&path).map_err(FileError::at("read", &path))? {
            return Err(UpgradeError::Untrusted(path));
        }
        let bytes = files::read(&path)?;
        serde_json::from_slice(&bytes).map(Some).map_err(|source| UpgradeError::State { path, source })
    }

    /// Changes the file under the lock. It is written only if `change` has changed the state and did not fail.
    pub fn update<T>(
        &self,
        change: impl FnOnce(&mut Option<State>) -> Result<T, UpgradeError>,
    ) -> Result<T, UpgradeError> {
        let _lock = self.lock()?;
        let mut state = self.load()?;
        let before = state.clone();
        let result = change(&mut state)?;
        if state != before {
            self.save(state.as_ref())?;
        }
        Ok(result)
    }

    /// Takes the lock.
    pub(crate) fn lock(&self) -> Result<Flock<File>, UpgradeError> {
        files::create_private_dir(&self.directory)?;
        let path = self.directory.join("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits())
            .open(&path);
        let file = file.map_err(FileError::at("open", &path))?;
        Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, error)| FileError::at("lock", &path)(error.into()).into())
    }

    /// Writes the state, or removes the file. The caller has the lock.
    pub(crate) fn save(&self, state: Option<&State>) -> Result<(), UpgradeError> {
        let path = self.path();
        let Some(state) = state else {
            return match std::fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(FileError::at("remove", &path)(error).into()),
                _ => Ok(()),
            };
        };
        let bytes = serde_json::to_vec(state).map_err(|source| UpgradeError::State { path: path.clone(), source })?;
        Ok(files::write_atomic(&path, &bytes, 0o600)?)
    }
}

#[cfg(test)]
mod tests;

//! The public keys of minions: Salt's `pki_dir` with a directory for each state and a PEM file for each minion.
//!
//! The daemon and `salt-key` change the same directories at the same time, so every change is a rename or an atomic write,
//! made under the lock of the id (`lock.rs`). `decide/` decides about key requests. Everything blocks: async code reaches
//! it through the executor `disk`.

mod decide;
mod lock;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brine_crypt::{CryptError, PrivateKey, PublicKey};
use brine_ids::{InvalidMinionId, MinionId};
use brine_system::files::{self, FileError};
use brine_text::glob::Glob;
use parking_lot::Mutex;

pub use decide::Decision;
use lock::{Locked, Locks};

use crate::autosign::Autosign;

/// The maximum size of a key file, in bytes: the PEM text of an RSA key of 16384 bits has 3 KB.
const MAX_KEY_FILE: u64 = 64 << 10;

/// The state of a minion's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyState {
    /// The key is pending: an operator has to decide.
    Pending,
    /// The minion is rejected.
    Rejected,
    /// The minion is accepted.
    Accepted,
    /// A different key than the known one was submitted for the id.
    Denied,
}

impl KeyState {
    /// All states, in the order in which Salt lists them.
    pub const ALL: [KeyState; 4] = [KeyState::Pending, KeyState::Rejected, KeyState::Accepted, KeyState::Denied];

    /// Returns the directory below `pki_dir`, which is also the state's name in results of wheel functions.
    pub fn directory(self) -> &'static str {
        match self {
            KeyState::Pending => "minions_pre",
            KeyState::Rejected => "minions_rejected",
            KeyState::Accepted => "minions",
            KeyState::Denied => "minions_denied",
        }
    }

    /// Returns the state that a directory below `pki_dir` stands for.
    pub fn of_directory(directory: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.directory() == directory)
    }

    /// Returns the name for operators: `unaccepted`, `rejected`, `accepted`, `denied`.
    pub fn word(self) -> &'static str {
        match self {
            KeyState::Pending => "unaccepted",
            KeyState::Rejected => "rejected",
            KeyState::Accepted => "accepted",
            KeyState::Denied => "denied",
        }
    }

    /// Parses a state name of `salt-key -l` or `key.list`. As in Salt, only the prefix counts: `un`, `pre`, `acc`,
    /// `rej`, `den`, `all`.
    pub fn of_word(word: &str) -> Option<&'static [Self]> {
        let words: [(&str, &[Self]); 6] = [
            ("acc", &[KeyState::Accepted]),
            ("pre", &[KeyState::Pending]),
            ("un", &[KeyState::Pending]),
            ("rej", &[KeyState::Rejected]),
            ("den", &[KeyState::Denied]),
            ("all", &Self::ALL),
        ];
        words.into_iter().find(|(start, _)| word.starts_with(start)).map(|(_, states)| states)
    }
}

/// A key file. A minion can have several, in different states.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The minion's id.
    pub id: MinionId,
    /// The state, which is the directory of the file.
    pub state: KeyState,
}

/// An action on keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Accepts the minion.
    Accept,
    /// Rejects the minion.
    Reject,
    /// Deletes the key.
    Delete,
}

impl Act {
    /// Returns the value of `act` in `salt/key` events.
    pub fn event_act(self) -> &'static str {
        match self {
            Act::Accept => "accepted",
            Act::Reject => "rejected",
            Act::Delete => "delete",
        }
    }

    /// Returns the state of a key after the action; `None` if it is deleted.
    pub fn new_state(self) -> Option<KeyState> {
        match self {
            Act::Accept => Some(KeyState::Accepted),
            Act::Reject => Some(KeyState::Rejected),
            Act::Delete => None,
        }
    }

    /// Returns the name of the action in the past tense, for operators.
    pub fn past_tense(self) -> &'static str {
        match self {
            Act::Accept => "accepted",
            Act::Reject => "rejected",
            Act::Delete => "deleted",
        }
    }
}

/// The error of an action on a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Reading or writing a directory or file failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The text is not a valid minion id.
    #[error(transparent)]
    Id(#[from] InvalidMinionId),
    /// The key does not exist (any more).
    #[error("there is no {} key of {id}", .state.word())]
    Gone {
        /// The minion's id.
        id: MinionId,
        /// The expected state.
        state: KeyState,
    },
    /// The file does not hold a public key.
    #[error("the key of {id}: {source}")]
    NotAKey {
        /// The minion's id.
        id: MinionId,
        /// The reason.
        source: CryptError,
    },
}

/// The directories of keys.
pub struct KeyStore {
    pki_dir: PathBuf,
    autosign: Mutex<Autosign>,
    /// Serializes decisions about the same id, and changes of its files.
    locks: Locks,
    counted: Mutex<HashMap<KeyState, Counted>>,
}

/// A cached number of keys in a state.
struct Counted {
    keys: usize,
    when: Instant,
}

/// The time for which a count is cached: other processes change keys, too.
const COUNT_LIFETIME: Duration = Duration::from_secs(5);

impl KeyStore {
    /// Opens the directories below `pki_dir`. Missing ones are created with access for the owner only.
    pub fn open(pki_dir: impl Into<PathBuf>) -> Result<Self, FileError> {
        let pki_dir = pki_dir.into();
        files::create_private_dir(&pki_dir)?;
        for state in KeyState::ALL {
            files::create_private_dir(pki_dir.join(state.directory()))?;
        }
        let autosign = Autosign::new(pki_dir.join("minions_autosign"));
        files::create_private_dir(autosign.directory())?;
        let locks = Locks::open(&pki_dir);
        Ok(KeyStore { pki_dir, autosign: Mutex::new(autosign), locks, counted: Mutex::default() })
    }

    /// Returns the directory of all keys.
    pub fn pki_dir(&self) -> &Path {
        &self.pki_dir
    }

    /// Returns the minions with a key in a state, sorted case-insensitively, as in Salt. Links and files whose names are not
    /// valid ids are skipped.
    pub fn list(&self, state: KeyState) -> Result<Vec<String>, FileError> {
        Ok(self.sorted(state)?.iter().map(ToString::to_string).collect())
    }

    /// Returns the number of accepted minions.
    pub fn count_accepted(&self) -> Result<usize, FileError> {
        Ok(self.read_directory(KeyState::Accepted)?.len())
    }

    /// Locks an id: no other thread or process changes its files until the guard is dropped.
    pub fn lock(&self, id: &MinionId) -> Locked<'_> {
        self.locks.lock(id)
    }

    /// Returns whether another key may be stored in a state with this limit; 0 is unlimited. Counts that key.
    fn has_room(&self, state: KeyState, most: usize) -> Result<bool, FileError> {
        if most == 0 {
            return Ok(true);
        }
        let mut counted = self.counted.lock();
        let count = counted.get(&state).filter(|count| count.when.elapsed() < COUNT_LIFETIME);
        let (keys, when) = match count {
            Some(count) => (count.keys, count.when),
            None => (self.read_directory(state)?.len(), Instant::now()),
        };
        let has_room = keys < most;
        counted.insert(state, Counted { keys: keys + usize::from(has_room), when });
        Ok(has_room)
    }

    fn sorted(&self, state: KeyState) -> Result<Vec<MinionId>, FileError> {
        let mut ids = self.read_directory(state)?;
        ids.sort_by_cached_key(|id| (id.as_str().to_lowercase(), id.clone()));
        Ok(ids)
    }

    fn read_directory(&self, state: KeyState) -> Result<Vec<MinionId>, FileError> {
        let directory = self.pki_dir.join(state.directory());
        let read = || {
            let mut ids = Vec::new();
            for entry in fs::read_dir(&directory)? {
                let entry = entry?;
                let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
                if let Some(id) = id.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_file())) {
                    ids.push(id);
                }
            }
            Ok(ids)
        };
        read().map_err(FileError::at("read", &directory))
    }

    /// Returns the keys in these states whose ids match the pattern, which is one or more globs separated by commas.
    pub fn select(&self, pattern: &str, states: &[KeyState]) -> Result<Vec<Key>, FileError> {
        // An invalid glob can still be a literal id.
        let patterns: Vec<_> = pattern.split(',').map(|part| (part, Glob::new(part).ok())).collect();
        let matches = |id: &MinionId| {
            patterns.iter().any(|(text, glob)| glob.as_ref().map_or(*text == id.as_str(), |g| g.is_match(id.as_str())))
        };
        let mut keys = Vec::new();
        for &state in states {
            keys.extend(self.sorted(state)?.into_iter().filter(matches).map(|id| Key { id, state }));
        }
        Ok(keys)
    }

    /// Reads the PEM text of a key; `None` if it does not exist.
    pub fn get(&self, state: KeyState, id: &MinionId) -> Result<Option<String>, FileError> {
        let path = self.path(state, id);
        let read = || -> io::Result<Option<String>> {
            // Links are not followed: their targets are not keys.
            if !fs::symlink_metadata(&path)?.is_file() {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            File::open(&path)?.take(MAX_KEY_FILE).read_to_end(&mut bytes)?;
            Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
        };
        match read() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            other => other.map_err(FileError::at("read", &path)),
        }
    }

    /// Returns a minion's current key and its state. If a crash has left two, the stricter state counts: rejected, pending,
    /// accepted. Denied keys never count.
    pub fn current(&self, id: &MinionId) -> Result<Option<(KeyState, String)>, FileError> {
        let _unchanged = self.lock(id);
        // A program of Salt, which does not know the lock, may move the key from a state that is looked at later to an
        // earlier one: then it is found at the second attempt.
        let states = [KeyState::Rejected, KeyState::Pending, KeyState::Accepted];
        for state in states.into_iter().chain(states) {
            if let Some(pem) = self.get(state, id)? {
                return Ok(Some((state, pem)));
            }
        }
        Ok(None)
    }

    /// Stores a key in a state and removes the minion's keys in other states. A denied key is stored in addition, and
    /// only the first one, so that an unauthenticated peer that tries many keys leaves a single file. The text is
    /// encoded again, so that nothing but the key is stored.
    pub fn set(&self, id: &MinionId, state: KeyState, pem: &str) -> Result<(), KeyError> {
        let key = PublicKey::from_pem(pem).map_err(|source| KeyError::NotAKey { id: id.clone(), source })?;
        let _changing = self.lock(id);
        self.store(id, state, &key.to_pem(), true)
    }

    /// Stores the PEM text of a key. With `flush` it survives a power failure.
    fn store(&self, id: &MinionId, state: KeyState, pem: &str, flush: bool) -> Result<(), KeyError> {
        let path = self.path(state, id);
        if state == KeyState::Denied {
            // Nothing is written if it exists: a flood of keys must not load the disk.
            if !path.exists() {
                files::write_new(path, pem.as_bytes(), 0o644)?;
            }
            return Ok(());
        }
        let write = if flush { files::write_atomic } else { files::write_soon };
        write(path.as_path(), pem.as_bytes(), 0o644)?;
        Ok(self.leave_only(state, id)?)
    }

    /// Stores the first key of an id. A power failure or a crash may lose it: a truncated key counts as missing.
    fn store_first(&self, id: &MinionId, state: KeyState, pem: &str) -> Result<(), KeyError> {
        // Another process may have created the file first, or it contains a truncated key.
        if files::create_soon(self.path(state, id), pem.as_bytes(), 0o644)? {
            return Ok(());
        }
        self.store(id, state, pem, false)
    }

    /// Moves a key from one state to another.
    fn move_key(&self, id: &MinionId, from: KeyState, to: KeyState) -> Result<(), KeyError> {
        let from = self.path(from, id);
        fs::rename(&from, self.path(to, id)).map_err(FileError::at("move", &from))?;
        Ok(self.leave_only(to, id)?)
    }

    /// Applies an action to keys in order, and returns the result of each. Files without a public key are neither accepted
    /// nor rejected.
    pub fn apply(&self, act: Act, keys: &[Key]) -> Vec<(Key, Result<(), KeyError>)> {
        let results = keys.iter().map(|key| (key.clone(), self.apply_one(act, key))).collect();
        // A rename is durable once its directory is flushed, which is done once for all keys.
        for state in KeyState::ALL {
            let directory = self.pki_dir.join(state.directory());
            if let Err(error) = File::open(&directory).and_then(|directory| directory.sync_all()) {
                tracing::warn!(directory = %directory.display(), %error, "flushing changed keys failed");
            }
        }
        results
    }

    fn apply_one(&self, act: Act, key: &Key) -> Result<(), KeyError> {
        let _changing = self.lock(&key.id);
        let gone = || KeyError::Gone { id: key.id.clone(), state: key.state };
        let from = self.path(key.state, &key.id);
        let Some(to) = act.new_state() else { return if remove(&from)? { Ok(()) } else { Err(gone()) } };
        let pem = self.get(key.state, &key.id)?.ok_or_else(gone)?;
        PublicKey::from_pem(&pem).map_err(|source| KeyError::NotAKey { id: key.id.clone(), source })?;
        self.move_key(&key.id, key.state, to)
    }

    /// Removes a minion's keys in other states than this one, except for denied ones.
    fn leave_only(&self, state: KeyState, id: &MinionId) -> Result<(), FileError> {
        for other in [KeyState::Accepted, KeyState::Pending, KeyState::Rejected] {
            if other != state {
                remove(&self.path(other, id))?;
            }
        }
        Ok(())
    }

    fn path(&self, state: KeyState, id: &MinionId) -> PathBuf {
        self.pki_dir.join(state.directory()).join(id.as_str())
    }

    /// Returns the fingerprint of a minion's key, equal to that of `key.finger` on the minion.
    pub fn finger(&self, key: &Key) -> Result<String, KeyError> {
        let gone = || KeyError::Gone { id: key.id.clone(), state: key.state };
        let pem = self.get(key.state, &key.id)?.ok_or_else(gone)?;
        let public = PublicKey::from_pem(&pem).map_err(|source| KeyError::NotAKey { id: key.id.clone(), source })?;
        Ok(public.fingerprint())
    }

    /// Returns the names of the master's own key files, sorted: `master.pem`, `master.pub`, ...
    pub fn local(&self) -> Result<Vec<String>, FileError> {
        let read = || {
            let mut names = Vec::new();
            for entry in fs::read_dir(&self.pki_dir)? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_key = Path::new(&name).extension().is_some_and(|end| end == "pem" || end == "pub");
                if is_key && entry.file_type()?.is_file() {
                    names.push(name);
                }
            }
            names.sort();
            Ok(names)
        };
        read().map_err(FileError::at("read", &self.pki_dir))
    }

    /// Returns the fingerprint of one of the master's own key files, by its name in [`local`](Self::local). Both halves of a
    /// pair have the same.
    pub fn local_finger(&self, name: &str) -> Result<String, CryptError> {
        let text = files::read_to_string(self.pki_dir.join(name))?;
        let public = PublicKey::from_pem(&text);
        Ok(public.or_else(|_| PrivateKey::from_pem(&text).map(|key| key.public()))?.fingerprint())
    }
}

/// Removes a file. Returns whether it existed.
fn remove(path: &Path) -> Result<bool, FileError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FileError::at("remove", path)(error)),
    }
}

#[cfg(test)]
mod tests;

//! The minions' public keys: Salt's `pki_dir` with one folder a state and one PEM file a minion.
//!
//! The daemon and `salt-key` work on the same folders at the same time, so every change is one rename
//! or one file that appears whole. What a key request leads to is in `decide.rs`. Everything blocks:
//! callers on the asynchronous runtime hand it to a blocking thread.

mod decide;

use std::collections::HashMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brine_crypt::{CryptError, PrivateKey, PublicKey};
use brine_ids::{InvalidMinionId, MinionId};
use brine_system::files::{self, FileError};
use brine_text::glob::Glob;
use parking_lot::{Mutex, MutexGuard};

pub use decide::Decision;

use crate::autosign::Autosign;

/// The largest key file that is read, in bytes: the PEM of an RSA key of 16384 bits has 3 KB.
const MAX_KEY_FILE: u64 = 64 << 10;

/// What has been decided about a minion's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyState {
    /// Nobody has decided yet.
    Pending,
    /// The minion may not join.
    Rejected,
    /// The minion has joined.
    Accepted,
    /// Another key than the known one was shown for this id.
    Denied,
}

impl KeyState {
    /// All states, in the order of Salt's lists.
    pub const ALL: [KeyState; 4] = [KeyState::Pending, KeyState::Rejected, KeyState::Accepted, KeyState::Denied];

    /// The folder below `pki_dir`, which is also the name in what wheel functions return.
    pub fn folder(self) -> &'static str {
        match self {
            KeyState::Pending => "minions_pre",
            KeyState::Rejected => "minions_rejected",
            KeyState::Accepted => "minions",
            KeyState::Denied => "minions_denied",
        }
    }

    /// The state that a folder below `pki_dir` holds.
    pub fn of_folder(folder: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.folder() == folder)
    }

    /// The word that people read: `unaccepted`, `rejected`, `accepted`, `denied`.
    pub fn word(self) -> &'static str {
        match self {
            KeyState::Pending => "unaccepted",
            KeyState::Rejected => "rejected",
            KeyState::Accepted => "accepted",
            KeyState::Denied => "denied",
        }
    }

    /// The states that a word for `salt-key -l` or `key.list` means: only the first letters count
    /// (`un`, `pre`, `acc`, `rej`, `den`, `all`), as in Salt.
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

/// One key file: whose it is, and in which folder. A minion can have several, in different states.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The minion's name.
    pub id: MinionId,
    /// The folder it is in.
    pub state: KeyState,
}

/// What an operator does with keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// The minion may join.
    Accept,
    /// The minion may not join.
    Reject,
    /// The key is forgotten.
    Delete,
}

impl Act {
    /// The word in `salt/key` events.
    pub fn event_word(self) -> &'static str {
        match self {
            Act::Accept => "accepted",
            Act::Reject => "rejected",
            Act::Delete => "delete",
        }
    }

    /// The state that a key has afterwards; none if it is forgotten.
    pub fn leads_to(self) -> Option<KeyState> {
        match self {
            Act::Accept => Some(KeyState::Accepted),
            Act::Reject => Some(KeyState::Rejected),
            Act::Delete => None,
        }
    }

    /// The word in what people read.
    pub fn past(self) -> &'static str {
        match self {
            Act::Accept => "accepted",
            Act::Reject => "rejected",
            Act::Delete => "deleted",
        }
    }
}

/// Why something could not be done with a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A folder or file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The text cannot be a minion's name.
    #[error(transparent)]
    Id(#[from] InvalidMinionId),
    /// There is no such key, or no more.
    #[error("there is no {} key of {id}", .state.word())]
    Gone {
        /// The minion's name.
        id: MinionId,
        /// Where it was looked for.
        state: KeyState,
    },
    /// What is in the file is no public key.
    #[error("the key of {id}: {source}")]
    NotAKey {
        /// The minion's name.
        id: MinionId,
        /// What is wrong with it.
        source: CryptError,
    },
}

/// The folders of keys.
pub struct KeyStore {
    pki_dir: PathBuf,
    autosign: Mutex<Autosign>,
    /// One lock for each group of ids.
    deciding: [Mutex<()>; 64],
    counted: Mutex<HashMap<KeyState, Counted>>,
}

/// How many keys there are in a state.
struct Counted {
    keys: usize,
    when: Instant,
}

/// After this time keys are counted anew, as others delete and accept them.
const COUNT_LIFETIME: Duration = Duration::from_secs(5);

impl KeyStore {
    /// Opens the folders below `pki_dir`; those that are missing are made, for their owner alone.
    pub fn open(pki_dir: impl Into<PathBuf>) -> Result<Self, FileError> {
        let pki_dir = pki_dir.into();
        files::create_private_dir(&pki_dir)?;
        for state in KeyState::ALL {
            files::create_private_dir(pki_dir.join(state.folder()))?;
        }
        let autosign = Autosign::new(pki_dir.join("minions_autosign"));
        files::create_private_dir(autosign.folder())?;
        let deciding = std::array::from_fn(|_| Mutex::new(()));
        Ok(KeyStore { pki_dir, autosign: Mutex::new(autosign), deciding, counted: Mutex::default() })
    }

    /// The folder of all of this.
    pub fn pki_dir(&self) -> &Path {
        &self.pki_dir
    }

    /// The minions that have a key in this state, sorted without regard to case, as Salt does. Files
    /// that cannot be keys (links, names that no minion can have) are left out.
    pub fn list(&self, state: KeyState) -> Result<Vec<String>, FileError> {
        Ok(self.sorted(state)?.iter().map(ToString::to_string).collect())
    }

    /// How many minions have joined.
    pub fn count_accepted(&self) -> Result<usize, FileError> {
        Ok(self.read_folder(KeyState::Accepted)?.len())
    }

    /// Waits until no other request about this id is being decided.
    fn deciding(&self, id: &MinionId) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        self.deciding[hasher.finish() as usize % self.deciding.len()].lock()
    }

    /// Returns whether one more key may be stored in a state, where at most this many may be; 0 for any number. Counts
    /// that key.
    fn has_room(&self, state: KeyState, most: usize) -> Result<bool, FileError> {
        if most == 0 {
            return Ok(true);
        }
        let mut counted = self.counted.lock();
        let known = counted.get(&state).filter(|known| known.when.elapsed() < COUNT_LIFETIME);
        let (keys, when) = match known {
            Some(known) => (known.keys, known.when),
            None => (self.read_folder(state)?.len(), Instant::now()),
        };
        let has_room = keys < most;
        counted.insert(state, Counted { keys: keys + usize::from(has_room), when });
        Ok(has_room)
    }

    fn sorted(&self, state: KeyState) -> Result<Vec<MinionId>, FileError> {
        let mut ids = self.read_folder(state)?;
        ids.sort_by_cached_key(|id| (id.as_str().to_lowercase(), id.clone()));
        Ok(ids)
    }

    fn read_folder(&self, state: KeyState) -> Result<Vec<MinionId>, FileError> {
        let folder = self.pki_dir.join(state.folder());
        let read = || {
            let mut ids = Vec::new();
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
                if let Some(id) = id.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_file())) {
                    ids.push(id);
                }
            }
            Ok(ids)
        };
        read().map_err(FileError::at("read", &folder))
    }

    /// All keys in these states, state by state, whose ids match the pattern: globs, several with
    /// commas between them.
    pub fn select(&self, pattern: &str, states: &[KeyState]) -> Result<Vec<Key>, FileError> {
        // A pattern that is no glob can still be somebody's name.
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

    /// The PEM text of a key, if there is one.
    pub fn get(&self, state: KeyState, id: &MinionId) -> Result<Option<String>, FileError> {
        let path = self.path(state, id);
        let read = || -> io::Result<Option<String>> {
            // Links are not followed: what they lead to is no key.
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

    /// The one key of a minion that counts, and its state. Should a crash have left two, then the
    /// more careful state holds: rejected before pending before accepted. Denied keys never count.
    pub fn current(&self, id: &MinionId) -> Result<Option<(KeyState, String)>, FileError> {
        for state in [KeyState::Rejected, KeyState::Pending, KeyState::Accepted] {
            if let Some(pem) = self.get(state, id)? {
                return Ok(Some((state, pem)));
            }
        }
        Ok(None)
    }

    /// Stores a key in a state, in place of the minion's key in any other state. A denied one is stored
    /// beside those, and only the first: an unauthenticated peer that tries many keys leaves one file. The text is
    /// encoded anew, so that nothing but the key is stored.
    pub fn set(&self, id: &MinionId, state: KeyState, pem: &str) -> Result<(), KeyError> {
        let key = PublicKey::from_pem(pem).map_err(|source| KeyError::NotAKey { id: id.clone(), source })?;
        self.store(id, state, &key.to_pem(), true)
    }

    /// Stores the PEM text of a key, with a flush to the disk if it must outlive a power failure.
    fn store(&self, id: &MinionId, state: KeyState, pem: &str, flush: bool) -> Result<(), KeyError> {
        let path = self.path(state, id);
        if state == KeyState::Denied {
            // Looked for first: a flood of keys must not keep the disk busy.
            if !path.exists() {
                files::write_new(path, pem.as_bytes(), 0o644)?;
            }
            return Ok(());
        }
        let write = if flush { files::write_atomic } else { files::write_soon };
        write(path.as_path(), pem.as_bytes(), 0o644)?;
        Ok(self.leave_only(state, id)?)
    }

    /// Moves a key from one state to another.
    fn move_key(&self, id: &MinionId, from: KeyState, to: KeyState) -> Result<(), KeyError> {
        let from = self.path(from, id);
        fs::rename(&from, self.path(to, id)).map_err(FileError::at("move", &from))?;
        Ok(self.leave_only(to, id)?)
    }

    /// Does this to keys, one after the other, and says of each whether it was done. Keys that are no
    /// public keys are neither accepted nor rejected.
    pub fn apply(&self, act: Act, keys: &[Key]) -> Vec<(Key, Result<(), KeyError>)> {
        let results = keys.iter().map(|key| (key.clone(), self.apply_one(act, key))).collect();
        // Names are on disk when their folder is; once for all keys is enough.
        for state in KeyState::ALL {
            let folder = self.pki_dir.join(state.folder());
            if let Err(error) = File::open(&folder).and_then(|folder| folder.sync_all()) {
                tracing::warn!(folder = %folder.display(), %error, "changed keys may not be on disk yet");
            }
        }
        results
    }

    fn apply_one(&self, act: Act, key: &Key) -> Result<(), KeyError> {
        let gone = || KeyError::Gone { id: key.id.clone(), state: key.state };
        let from = self.path(key.state, &key.id);
        let Some(to) = act.leads_to() else { return if remove(&from)? { Ok(()) } else { Err(gone()) } };
        let pem = self.get(key.state, &key.id)?.ok_or_else(gone)?;
        PublicKey::from_pem(&pem).map_err(|source| KeyError::NotAKey { id: key.id.clone(), source })?;
        self.move_key(&key.id, key.state, to)
    }

    /// Removes what the minion has in other states than this one, denied keys aside.
    fn leave_only(&self, state: KeyState, id: &MinionId) -> Result<(), FileError> {
        for other in [KeyState::Accepted, KeyState::Pending, KeyState::Rejected] {
            if other != state {
                remove(&self.path(other, id))?;
            }
        }
        Ok(())
    }

    fn path(&self, state: KeyState, id: &MinionId) -> PathBuf {
        self.pki_dir.join(state.folder()).join(id.as_str())
    }

    /// The fingerprint of a minion's key, as the minion's own `key.finger` says it.
    pub fn finger(&self, key: &Key) -> Result<String, KeyError> {
        let gone = || KeyError::Gone { id: key.id.clone(), state: key.state };
        let pem = self.get(key.state, &key.id)?.ok_or_else(gone)?;
        let public = PublicKey::from_pem(&pem).map_err(|source| KeyError::NotAKey { id: key.id.clone(), source })?;
        Ok(public.fingerprint())
    }

    /// The names of the master's own key files, sorted: `master.pem`, `master.pub`, ...
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

    /// The fingerprint of one of the master's own keys, by the name that [`local`](Self::local) gave.
    /// Both halves of a pair have the same.
    pub fn local_finger(&self, name: &str) -> Result<String, CryptError> {
        let text = files::read_to_string(self.pki_dir.join(name))?;
        let public = PublicKey::from_pem(&text);
        Ok(public.or_else(|_| PrivateKey::from_pem(&text).map(|key| key.public()))?.fingerprint())
    }
}

/// Removes a file; whether there was one.
fn remove(path: &Path) -> Result<bool, FileError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FileError::at("remove", path)(error)),
    }
}

#[cfg(test)]
pub(crate) mod tests;

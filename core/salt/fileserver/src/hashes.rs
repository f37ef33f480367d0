//! Caches hashes of files until the file changes.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use brine_digest::{Digest, hex};
use brine_system::files::FileError;
use parking_lot::Mutex;

/// The maximum number of cached hashes. It bounds memory, since a file may have any number of paths through links.
const CAPACITY: usize = 100_000;

/// A cache of hashes of one algorithm.
#[derive(Debug)]
pub(super) struct Hashes {
    pub kind: Digest,
    /// By path: the state of the file when it was hashed, and the hash.
    cache: Mutex<HashMap<PathBuf, (State, String)>>,
}

/// The metadata that identifies a file's state: device, inode, size, mtime and ctime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State([i64; 7]);

impl State {
    fn of(stat: &Metadata) -> Self {
        State([
            stat.dev() as i64,
            stat.ino() as i64,
            stat.size() as i64,
            stat.mtime(),
            stat.mtime_nsec(),
            stat.ctime(),
            stat.ctime_nsec(),
        ])
    }
}

impl Hashes {
    pub(super) fn new(kind: Digest) -> Self {
        Hashes { kind, cache: Mutex::default() }
    }

    /// Returns the hash of a file in hexadecimal.
    pub(super) fn of(&self, path: &Path) -> Result<String, FileError> {
        let at = || FileError::at("read", path);
        let mut file = File::open(path).map_err(at())?;
        let before = State::of(&file.metadata().map_err(at())?);
        if let Some((state, hash)) = self.cache.lock().get(path)
            && *state == before
        {
            return Ok(hash.clone());
        }
        let hash = hex(&self.kind.of_reader(&mut file).map_err(at())?);
        // The hash of a file that changed while it was read is not cached.
        if State::of(&file.metadata().map_err(at())?) == before {
            let mut cache = self.cache.lock();
            if cache.len() >= CAPACITY {
                cache.clear();
            }
            cache.insert(path.to_owned(), (before, hash.clone()));
        }
        Ok(hash)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_hash_is_cached_until_the_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let hashes = Hashes::new(Digest::Sha256);
        fs::write(&path, "brine").unwrap();
        let first = hashes.of(&path).unwrap();
        assert_eq!(first, hex(Digest::Sha256.of("brine")));
        let state = hashes.cache.lock().get(&path).unwrap().0;
        hashes.cache.lock().insert(path.clone(), (state, "from the cache".into()));
        assert_eq!(hashes.of(&path).unwrap(), "from the cache");
        // The same size, but another inode.
        brine_system::files::write_atomic(&path, b"BRINE", 0o644).unwrap();
        assert_eq!(hashes.of(&path).unwrap(), hex(Digest::Sha256.of("BRINE")));
    }
}

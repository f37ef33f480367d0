//! The position of an upstream master: the sequence number of the last event that it has stored. Persisted in a file,
//! so that a restart neither loses events nor sends many of them twice.

use std::path::{Path, PathBuf};

use brine_system::files::{self, FileError};
use parking_lot::Mutex;

/// The position of one upstream master.
#[derive(Debug)]
pub(crate) struct Position {
    path: PathBuf,
    last: Mutex<Option<u64>>,
}

impl Position {
    /// Reads the position. A missing or damaged file counts as one for a master that has received nothing yet. Blocks.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let text = files::read_if_exists(path)?;
        let last = text.as_deref().and_then(|text| text.trim().parse().ok());
        if text.is_some() && last.is_none() {
            tracing::error!(path = %path.display(), "reading the position of forwarded events failed: only new events are forwarded");
        }
        Ok(Position { path: path.to_owned(), last: Mutex::new(last) })
    }

    /// Returns the sequence number of the last forwarded event.
    pub fn last(&self) -> Option<u64> {
        *self.last.lock()
    }

    /// Stores a position. Blocks.
    pub fn advance(&self, seq: u64) {
        *self.last.lock() = Some(seq);
        if let Err(error) = files::write_soon(&self.path, seq.to_string().as_bytes(), 0o600) {
            tracing::error!(%error, "storing the position of forwarded events failed: events are sent twice after a restart");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("position");
        let position = Position::open(&path).unwrap();
        assert_eq!(position.last(), None);
        position.advance(7);
        assert_eq!(Position::open(&path).unwrap().last(), Some(7));
        std::fs::write(&path, "half").unwrap();
        assert_eq!(Position::open(&path).unwrap().last(), None);
    }
}

//! The position of an upstream master: the sequence number of the last event that it has stored. Persisted in a file,
//! so that a restart neither loses events nor sends many of them twice.

use std::path::{Path, PathBuf};

use brine_system::files::{self, FileError};
use parking_lot::Mutex;

use crate::metrics;

/// The position of one upstream master.
#[derive(Debug)]
pub(crate) struct Position {
    path: PathBuf,
    last: Mutex<Option<u64>>,
}

impl Position {
    /// Reads the position. Without a file, the master has received nothing yet, and receives new events. A damaged file,
    /// such as an empty one, does not tell what it has received: it receives all events of the journal. Blocks.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let last = match files::read(path) {
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
            Ok(bytes) => {
                let seq = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok());
                if seq.is_none() {
                    metrics::POSITIONS_DAMAGED.add(1);
                    tracing::error!(path = %path.display(), "reading the position of forwarded events failed: the file is damaged; all events of the journal are sent again");
                }
                Some(seq.unwrap_or(0))
            }
        };
        Ok(Position { path: path.to_owned(), last: Mutex::new(last) })
    }

    /// Returns the sequence number of the last forwarded event.
    pub fn last(&self) -> Option<u64> {
        *self.last.lock()
    }

    /// Stores a position on disk. Blocks.
    pub fn advance(&self, seq: u64) {
        *self.last.lock() = Some(seq);
        if let Err(error) = files::write_atomic(&self.path, seq.to_string().as_bytes(), 0o600) {
            metrics::POSITIONS_NOT_STORED.add(1);
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
    }

    #[test]
    fn a_damaged_position_skips_no_event() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("position");
        for damaged in [&b""[..], b"\0\0", b"half", b"-1", &[0xff, 0xfe], b"99999999999999999999999"] {
            std::fs::write(&path, damaged).unwrap();
            let before = metrics::POSITIONS_DAMAGED.get();
            assert_eq!(Position::open(&path).unwrap().last(), Some(0), "{damaged:?}");
            assert!(metrics::POSITIONS_DAMAGED.get() > before);
        }
        // A file that cannot be read stops the syndic, with the path.
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(Position::open(&path).unwrap_err().to_string().contains("position"));
    }
}

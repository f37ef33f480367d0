//! Files that minions give the master to keep (`cp.push`): `minions/<id>/files` below `cachedir`.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use brine_ids::MinionId;
use brine_system::files::{self, FileError};
use brine_wire::FilePiece;

use crate::Shared;

/// Why a piece is not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReceiveError {
    /// The configuration does not take files.
    #[error("file_recv is off")]
    Off,
    /// The file would be larger than the configuration allows.
    #[error("it would be larger than the {0} MiB that file_recv_max_size allows")]
    TooLarge(u64),
    /// The path leads out of the minion's folder.
    #[error("its path leads out of the folder of the minion's files")]
    Path,
    /// It cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Shared {
    /// Keeps a piece of a file; whether it is kept. Blocks.
    pub(crate) fn receive(&self, id: &MinionId, piece: &FilePiece) -> bool {
        let folder = self.config.cachedir.join("minions").join(id.as_str()).join("files");
        let kept = if self.config.file_recv {
            keep(&folder, piece, self.config.file_recv_max_size)
        } else {
            Err(ReceiveError::Off)
        };
        if let Err(error) = &kept {
            brine_wire::metrics::REQUESTS_REFUSED.add(1);
            let path = piece.path.join("/");
            tracing::warn!(minion = %id, %path, %error, "a file of a minion is not kept");
        }
        kept.is_ok()
    }
}

/// Writes a piece below a folder. The first one begins the file anew.
fn keep(folder: &Path, piece: &FilePiece, max_mib: u64) -> Result<(), ReceiveError> {
    if piece.loc.saturating_add(piece.data.len() as u64) > max_mib.saturating_mul(1 << 20) {
        return Err(ReceiveError::TooLarge(max_mib));
    }
    files::create_private_dir(folder)?;
    // Each name must be one, and what is there already must not lead elsewhere.
    let relative = piece.path.iter().try_fold(PathBuf::new(), |path, name| {
        let one = files::relative_path(name)?;
        (one.components().count() == 1).then(|| path.join(one))
    });
    let path = relative.and_then(|relative| files::path_within(folder, relative.to_str()?));
    let path = path.ok_or(ReceiveError::Path)?;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(FileError::at("create", parent))?;
    }
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(piece.loc == 0).open(&path)?;
        file.seek(SeekFrom::Start(piece.loc))?;
        file.write_all(&piece.data)
    };
    Ok(write().map_err(FileError::at("write", &path))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(path: &[&str], loc: u64, data: &[u8]) -> FilePiece {
        FilePiece { path: path.iter().map(ToString::to_string).collect(), loc, data: data.to_vec() }
    }

    #[test]
    fn pieces_make_a_file_and_the_first_one_begins_it_anew() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("files");
        for (loc, data, whole) in [(0, "one ", "one "), (4, "two", "one two"), (0, "new", "new"), (0, "", "")] {
            keep(&at, &piece(&["etc", "x.conf"], loc, data.as_bytes()), 1).unwrap();
            assert_eq!(fs::read_to_string(at.join("etc/x.conf")).unwrap(), whole);
        }
    }

    #[test]
    fn what_leads_elsewhere_or_is_too_large_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (at, out) = (folder.path().join("files"), folder.path().join("out"));
        fs::create_dir_all(&at).unwrap();
        fs::create_dir(&out).unwrap();
        std::os::unix::fs::symlink(&out, at.join("link")).unwrap();
        for path in [&["..", "x"][..], &["/etc/x"], &["a/../../x"], &["a/b"], &["link", "x"], &[], &["a\0"], &[""]] {
            assert!(matches!(keep(&at, &piece(path, 0, b"x"), 1), Err(ReceiveError::Path)), "{path:?}");
        }
        let large = piece(&["x"], 1 << 20, b"x");
        assert!(matches!(keep(&at, &large, 1), Err(ReceiveError::TooLarge(1))));
        assert!(keep(&at, &large, 2).is_ok());
        assert!(matches!(keep(&at, &piece(&["x"], u64::MAX, b"x"), 2), Err(ReceiveError::TooLarge(2))));
        assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
    }
}

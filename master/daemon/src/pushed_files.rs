//! Files that minions push to the master (`cp.push`): `minions/<id>/files` below `cachedir`.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use brine_config::MasterConfig;
use brine_ids::MinionId;
use brine_system::files::{self, FileError};
use brine_system::user_files;
use brine_wire::FilePiece;

/// The reason why a chunk is not stored.
#[derive(Debug, thiserror::Error)]
enum PushError {
    /// The configuration does not permit pushes.
    #[error("file_recv is disabled")]
    Disabled,
    /// The file would exceed the configured maximum size. The value is the maximum in MiB.
    #[error("it would be larger than the {0} MiB that file_recv_max_size allows")]
    TooLarge(u64),
    /// The path is outside of the minion's directory.
    #[error("the path is outside of the directory of the minion's files")]
    Path,
    /// Writing the chunk failed.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Stores a chunk of a minion's file. Returns whether it is stored. Blocks.
pub(crate) fn receive(config: &MasterConfig, id: &MinionId, piece: &FilePiece) -> bool {
    let directory = config.cachedir.join("minions").join(id.as_str()).join("files");
    let stored =
        if config.file_recv { store(&directory, piece, config.file_recv_max_size) } else { Err(PushError::Disabled) };
    if let Err(error) = &stored {
        brine_wire::metrics::REQUESTS_REFUSED.add(1);
        let path = piece.path.join("/");
        tracing::warn!(minion = %id, %path, %error, "pushed file refused");
    }
    stored.is_ok()
}

/// Writes a chunk below a directory. The first chunk truncates the file.
fn store(directory: &Path, piece: &FilePiece, max_mib: u64) -> Result<(), PushError> {
    if piece.loc.saturating_add(piece.data.len() as u64) > max_mib.saturating_mul(1 << 20) {
        return Err(PushError::TooLarge(max_mib));
    }
    files::create_private_dir(directory)?;
    // Each element must be a single path component, and existing links must not lead out of the directory.
    let relative = piece.path.iter().try_fold(PathBuf::new(), |path, name| {
        let one = files::relative_path(name)?;
        (one.components().count() == 1).then(|| path.join(one))
    });
    let path = relative.and_then(|relative| files::path_within(directory, relative.to_str()?));
    let path = path.ok_or(PushError::Path)?;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(FileError::at("create", parent))?;
    }
    let write = || {
        if piece.loc == 0 {
            return user_files::write(&path, &piece.data);
        }
        user_files::create(&path)?;
        let mut file = user_files::open_in_place(&path)?;
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
    fn the_first_chunk_truncates_the_file_and_others_extend_it() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().join("files");
        for (loc, data, whole) in [(0, "one ", "one "), (4, "two", "one two"), (0, "new", "new"), (0, "", "")] {
            store(&at, &piece(&["etc", "x.conf"], loc, data.as_bytes()), 1).unwrap();
            assert_eq!(fs::read_to_string(at.join("etc/x.conf")).unwrap(), whole);
        }
    }

    #[test]
    fn paths_outside_and_large_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (at, out) = (directory.path().join("files"), directory.path().join("out"));
        fs::create_dir_all(&at).unwrap();
        fs::create_dir(&out).unwrap();
        std::os::unix::fs::symlink(&out, at.join("link")).unwrap();
        for path in [&["..", "x"][..], &["/etc/x"], &["a/../../x"], &["a/b"], &["link", "x"], &[], &["a\0"], &[""]] {
            assert!(matches!(store(&at, &piece(path, 0, b"x"), 1), Err(PushError::Path)), "{path:?}");
        }
        let large = piece(&["x"], 1 << 20, b"x");
        assert!(matches!(store(&at, &large, 1), Err(PushError::TooLarge(1))));
        assert!(store(&at, &large, 2).is_ok());
        assert!(matches!(store(&at, &piece(&["x"], u64::MAX, b"x"), 2), Err(PushError::TooLarge(2))));
        assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
    }
}

//! Reactor SLS files, compiled once and read again when they change.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_core::sls::render::{RenderError, Sls};
use parking_lot::Mutex;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SlsError {
    #[error("{path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}:{line}: {message}", path = .path.display(), line = .error.line().unwrap_or(1), message = .error.message())]
    Render { path: PathBuf, error: RenderError },
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    size: u64,
    inode: u64,
}

#[derive(Default)]
pub(crate) struct SlsCache {
    files: Mutex<HashMap<PathBuf, (Stamp, Arc<Sls>)>>,
}

impl SlsCache {
    /// The compiled file as it is now. A look at the file's status is cheap beside rendering it.
    pub fn get(&self, path: &Path, renderer: &str) -> Result<Arc<Sls>, SlsError> {
        let failed = |source| SlsError::Read { path: path.to_owned(), source };
        let status = std::fs::metadata(path).map_err(failed)?;
        let stamp = Stamp { modified: (status.mtime(), status.mtime_nsec()), size: status.size(), inode: status.ino() };
        if let Some((known, sls)) = self.files.lock().get(path)
            && *known == stamp
        {
            return Ok(Arc::clone(sls));
        }
        let source = std::fs::read_to_string(path).map_err(failed)?;
        let compiled = Sls::compile(&path.display().to_string(), &source, renderer);
        let sls = Arc::new(compiled.map_err(|error| SlsError::Render { path: path.to_owned(), error })?);
        self.files.lock().insert(path.to_owned(), (stamp, Arc::clone(&sls)));
        Ok(sls)
    }
}

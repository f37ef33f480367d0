//! Token files for Salt's own programs on the master's host (`salt_client_files`): Salt's `salt-api` ends a session by
//! removing the file of its token.
//!
//! As in Salt, the file is named by the token. A token that was created with files is revoked once one of them is
//! missing.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use brine_system::files::{self, FileError};
use brine_value::{Map, msgpack};

use super::token;

/// The maximum number of files that are read.
const MAX_FILES: usize = 40_000;
/// The endings of a token's files: that of Salt up to 3007, and that of 3008.
const SUFFIXES: [&str; 2] = ["", ".p"];

/// The directory of the files.
#[derive(Debug, Clone)]
pub(super) struct TokenFiles(PathBuf);

impl TokenFiles {
    pub fn new(directory: &Path) -> Self {
        TokenFiles(directory.to_owned())
    }

    /// Writes the files of a token. `secret` must have been created by the master, as it becomes part of a path.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, secret: &str, data: &Map) -> Result<(), FileError> {
        files::create_private_dir(&self.0)?;
        let mut data = data.clone();
        data.insert("token".into(), secret.into());
        SUFFIXES
            .iter()
            .try_for_each(|suffix| files::write_soon(self.path(secret, suffix), &msgpack::pack_map(&data), 0o600))
    }

    /// Returns whether both files of a token are there. `secret` must be that of a known token.
    pub fn has(&self, secret: &str) -> bool {
        SUFFIXES.iter().all(|suffix| fs::symlink_metadata(self.path(secret, suffix)).is_ok_and(|about| about.is_file()))
    }

    /// Returns the digests of the tokens with files; `None` if these cannot be listed, or are too many.
    pub fn digests(&self) -> Option<HashSet<String>> {
        let secrets = self.secrets();
        let whole = secrets.len() < MAX_FILES && self.0.is_dir();
        whole.then(|| secrets.iter().filter(|secret| self.has(secret)).map(|secret| token::digest(secret)).collect())
    }

    /// Removes the files of the tokens for which `is_kept` returns `false`.
    pub fn remove(&self, is_kept: impl Fn(&str) -> bool) {
        for secret in self.secrets().into_iter().filter(|secret| !is_kept(secret)) {
            for suffix in SUFFIXES {
                if let Err(error) = fs::remove_file(self.path(&secret, suffix))
                    && error.kind() != std::io::ErrorKind::NotFound
                {
                    tracing::warn!(%error, "removing the file of a token failed");
                }
            }
        }
    }

    /// Returns the secrets of the tokens that have a file.
    fn secrets(&self) -> BTreeSet<String> {
        let names =
            fs::read_dir(&self.0).into_iter().flatten().flatten().take(MAX_FILES).map(|entry| entry.file_name());
        let secret = |name: OsString| {
            let name = name.into_string().ok()?;
            let secret = name.strip_suffix(".p").unwrap_or(&name).to_owned();
            let is_token = secret.len() == 64 && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_token.then_some(secret)
        };
        names.filter_map(secret).collect()
    }

    fn path(&self, secret: &str, suffix: &str) -> PathBuf {
        self.0.join(format!("{secret}{suffix}"))
    }
}

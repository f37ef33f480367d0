//! Paths as users write them.

use std::path::PathBuf;

/// Replaces a leading `~/` with the home directory of the user that the minion runs as.
pub fn expand(path: &str) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(rest) => std::env::home_dir().unwrap_or_default().join(rest),
        None => PathBuf::from(path),
    }
}

//! Snapshots: the results of tests, stored beside their file as YAML.

use std::path::{Path, PathBuf};

use brine_system::user_files;
use brine_value::{Map, Value};

use crate::expect::{Failed, yaml};

/// Returns the path of the snapshots of a test file: `init.test.snap.yml` for `init.test.yml`.
pub fn path(file: &Path) -> PathBuf {
    file.with_extension("snap.yml")
}

/// Reads the snapshots of a test file, by test; none without a file.
///
/// # Errors
/// The file cannot be read, or is not a mapping.
pub fn read(file: &Path) -> Result<Map, String> {
    let path = path(file);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(format!("reading {} failed: {error}", path.display())),
    };
    match brine_yaml::load(&text) {
        Ok(Value::Map(stored)) => Ok(stored),
        Ok(Value::Nil) => Ok(Map::new()),
        Ok(other) => Err(format!("{} is invalid: expected a mapping, got {}", path.display(), other.type_name())),
        Err(error) => Err(format!("{}:{}: the YAML is invalid: {}", path.display(), error.line, error.message)),
    }
}

/// Writes the snapshots of a test file, and removes the file if there are none. Returns whether anything changed.
///
/// # Errors
/// The file cannot be written.
pub fn write(file: &Path, snapshots: &Map) -> Result<bool, String> {
    let path = path(file);
    let failed = |error: std::io::Error| format!("writing {} failed: {error}", path.display());
    let before = std::fs::read_to_string(&path).ok();
    if snapshots.is_empty() {
        if before.is_some() {
            user_files::remove_file(&path).map_err(failed)?;
        }
        return Ok(before.is_some());
    }
    let text = format!("# Written by `brine test --update`.\n{}", yaml(&Value::Map(snapshots.clone())));
    if before.as_ref() == Some(&text) {
        return Ok(false);
    }
    user_files::write(&path, &text).map_err(failed)?;
    Ok(true)
}

/// Compares the data of a test with its snapshot.
pub fn compare(stored: &Map, test: &str, data: &Value) -> Option<Failed> {
    match stored.get(test) {
        None => Some(Failed::new("there is no snapshot yet: write it with --update")),
        Some(snapshot) => {
            let (snapshot, data) = (yaml(snapshot), yaml(data));
            (snapshot != data).then(|| {
                Failed::differs(
                    "the snapshot differs: if the new state is right, store it with --update",
                    &snapshot,
                    &data,
                )
            })
        }
    }
}

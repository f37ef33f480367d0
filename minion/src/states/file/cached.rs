//! `file.cached`: a file of the file server or a web server, kept on this host.

use std::path::{Path, PathBuf};

use brine_core::{Value, files, map};
use sha2::Digest;

use super::source::{self, Problem, Verify};
use crate::states::{StateContext, StateReturn};

/// Where a file is kept; nothing for a name that leads out of the cache.
pub(in crate::states) fn place(context: &StateContext, name: &str) -> Option<PathBuf> {
    let (folder, path) = match (name.strip_prefix("salt://"), name.split_once("://")) {
        (Some(path), _) => ("files", path),
        (None, Some((_, path))) => ("extrn_files", path),
        (None, None) => {
            let path = files::relative_path(name.trim_start_matches('/'))?;
            return Some(context.call.config().cachedir.join("localfiles").join(path));
        }
    };
    let path = files::relative_path(path)?;
    Some(context.call.config().cachedir.join(folder).join(&context.saltenv).join(path))
}

pub(in crate::states) fn state(context: &StateContext, name: &str, verify: &Verify) -> StateReturn {
    if !name.contains("://") && !Path::new(name).is_absolute() {
        return StateReturn::failed(name, format!("'{name}' is neither an absolute path nor the URL of a file"));
    }
    let Some(place) = place(context, name) else {
        return StateReturn::failed(name, format!("{name} does not name a file below its root"));
    };
    let told = place.display().to_string();
    if context.test {
        return if place.exists() {
            StateReturn::ok(name, format!("File already cached: {name}"))
        } else {
            StateReturn::would(name, format!("File will be cached: {name}"))
        };
    }
    let content = match source::read(context, &told, name, verify) {
        Ok(content) => content,
        Err(Problem::Differs(error)) => return StateReturn::failed(name, error),
        Err(problem) => {
            tracing::error!(name, ?problem, "a file cannot be cached");
            let comment = format!("Failed to cache {name}, check minion log for more information");
            return StateReturn::failed(name, comment);
        }
    };
    let sum = |bytes: &[u8]| source::hex(&sha2::Sha256::digest(bytes));
    let old = std::fs::read(&place).ok().map(|bytes| sum(&bytes));
    let new = sum(&content);
    let comment = format!("File is cached to {told}");
    if old.as_ref() == Some(&new) {
        return StateReturn::ok(name, comment);
    }
    let folder = place.parent().unwrap_or(&place);
    let written = files::create_private_dir(folder)
        .map_err(|error| error.to_string())
        .and_then(|()| files::write_atomic(&place, &content, 0o600).map_err(|error| error.to_string()));
    match written {
        Ok(()) => StateReturn::ok(name, comment)
            .with_changes(map! {"hash" => map! {"old" => old.map_or(Value::Nil, Value::from), "new" => new}}),
        Err(error) => StateReturn::failed(name, format!("Failed to cache {name}: {error}")),
    }
}

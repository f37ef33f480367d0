//! What the cache has.

use std::path::PathBuf;

use brine_context::Context;
use brine_function::{CallResult, function};
use brine_system::files;

use super::environment;
use crate::file_cache;

/// Return the path at which `cache_file` stores a file, whether it exists or not.
///
/// CLI Example:
///
///     salt '*' cp.cache_dest salt://my/file
#[function]
pub fn cache_dest(
    context: &Context,
    /// URL of the file, such as `salt://web/index.html`.
    url: String,
    /// Environment of the file server; that of the configuration or `base` by default.
    saltenv: Option<String>,
) -> CallResult {
    if !url.contains("://") {
        return Ok(url.into());
    }
    let path = file_cache::path_of(&context.config().cachedir, &url, &environment(context, saltenv));
    Ok(path.map_or_else(|| "Invalid path".into(), |path| path.display().to_string().into()))
}

/// Return the path of a file in the cache; an empty string if it is not cached.
///
/// CLI Example:
///
///     salt '*' cp.is_cached salt://path/to/file
#[function]
pub fn is_cached(
    context: &Context,
    /// Path on the file server, such as `salt://web/index.html`.
    path: String,
    /// Environment of the file server; that of the configuration or `base` by default.
    saltenv: Option<String>,
) -> CallResult {
    let cached_file = file_cache::found(&context.config().cachedir, &path, &environment(context, saltenv));
    let mark = if path.strip_prefix("salt://").unwrap_or(&path).starts_with('|') { "|" } else { "" };
    Ok(cached_file.map_or_else(String::new, |file| format!("{mark}{}", file.display())).into())
}

/// Return the paths of all cached files.
///
/// CLI Example:
///
///     salt '*' cp.list_minion
#[function]
pub fn list_minion(
    context: &Context,
    /// Environment of the file server; that of the configuration or `base` by default.
    saltenv: Option<String>,
) -> CallResult {
    let cachedir = &context.config().cachedir;
    let environment = files::relative_path(&environment(context, saltenv));
    let directories =
        environment.map(|name| cachedir.join("files").join(name)).into_iter().chain([cachedir.join("localfiles")]);
    let mut paths: Vec<String> = Vec::new();
    let mut open: Vec<PathBuf> = directories.collect();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.path().is_dir() { open.push(entry.path()) } else { paths.push(entry.path().display().to_string()) }
        }
    }
    paths.sort();
    Ok(paths.into())
}

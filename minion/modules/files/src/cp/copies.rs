//! Copies of files outside of the cache.

use std::path::Path;

use brine_context::Context;
use brine_function::CallError;
use brine_host::web;
use brine_system::files::{Attributes, Draft, Entry, Flush, Links};
use brine_system::user_files;
use brine_value::Value;

use crate::file;
use crate::file_cache;

/// Copies a file of the file server to a path or into a directory, and returns the path. Returns false if the file
/// or the directory does not exist.
pub(super) fn copied(
    context: &Context,
    name: &str,
    saltenv: &str,
    dest: &str,
    makedirs: bool,
) -> Result<Value, CallError> {
    let Some(hash) = context.minion.files.hash(name, saltenv).map_err(CallError::execution)? else {
        return Ok(false.into());
    };
    let target = within(dest, last_name(name));
    if file_cache::is_current(Path::new(&target), &hash) {
        return Ok(target.into());
    }
    if !has_directory_for(&target, makedirs)? {
        return Ok(false.into());
    }
    // If the path is a symbolic link, its target is replaced, so the new file is written next to the target.
    let failed = |error: std::io::Error| file::error_at(&target, &error);
    let mut draft = Entry::resolve(Path::new(&target), Links::Follow).and_then(Draft::create).map_err(failed)?;
    if !context.minion.files.fetch(name, saltenv, &mut draft.file).map_err(CallError::execution)? {
        return Ok(false.into());
    }
    draft.finish_over(Attributes::default(), 0o644, Flush::Later).map_err(failed)?;
    Ok(target.into())
}

/// Copies a file of a web server to a path, and returns the path. An existing file keeps its mode and owner.
pub(super) fn fetched(context: &Context, url: &str, target: String) -> Result<Value, CallError> {
    let failed = |error: std::io::Error| file::error_at(&target, &error);
    let mut draft = Entry::resolve(Path::new(&target), Links::Follow).and_then(Draft::create).map_err(failed)?;
    web::fetch_into(&context.web(), url, false, None, &mut draft.file).map_err(CallError::execution)?;
    draft.finish_over(Attributes::default(), 0o644, Flush::Later).map_err(failed)?;
    Ok(target.into())
}

/// Returns the path `dest`; if that is a directory or ends with a slash, the path of `name` in it.
pub(super) fn within(dest: &str, name: &str) -> String {
    let is_directory = dest.ends_with('/') || Path::new(dest).is_dir();
    if is_directory { Path::new(dest).join(name).display().to_string() } else { dest.to_owned() }
}

/// Returns the last component of a URL or a path.
pub(super) fn last_name(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split_once("?saltenv=").map_or(rest, |(rest, _)| rest);
    match rest.rsplit('/').next() {
        Some(name)
            if !name.is_empty() && (rest.contains('/') || !url.contains("://") || url.starts_with("salt://")) =>
        {
            name
        }
        _ => "index.html",
    }
}

/// Whether the directory of a file exists; with `makedirs`, it is created.
pub(super) fn has_directory_for(target: &str, makedirs: bool) -> Result<bool, CallError> {
    let directory = Path::new(target).parent().filter(|directory| !directory.as_os_str().is_empty());
    let Some(directory) = directory.filter(|directory| !directory.is_dir()) else { return Ok(true) };
    if makedirs {
        user_files::create_dir_all(directory)
            .map_err(|error| file::error_at(&directory.display().to_string(), &error))?;
    }
    Ok(makedirs)
}

/// Returns the content of a file as a string; false if the file server has no such file.
pub(super) fn content(context: &Context, url: &str, saltenv: &str) -> Result<Value, CallError> {
    let content = brine_context::files::content(context, url, saltenv).map_err(CallError::execution)?;
    match content {
        Some(content) => Ok(String::from_utf8_lossy(&content).into_owned().into()),
        None if url.starts_with("salt://") => Ok(false.into()),
        None => Err(CallError::Execution(format!("[Errno 2] No such file or directory: '{url}'"))),
    }
}

//! Symbolic and hard links.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use brine_context::Context;
use brine_function::{CallError, CallResult, function};
use brine_host::paths::expand;
use brine_system::user_files;
use brine_value::Value;

use super::operations::normal;
use super::{errno, error_at, invalid};

/// Create a symbolic link at `path` to `src`. With `atomic`, an existing path is replaced atomically.
///
/// CLI Example:
///
///     salt '*' file.symlink /path/to/file /path/to/link
#[function]
pub fn symlink(
    _context: &Context,
    /// Path that the link leads to.
    src: String,
    /// Absolute path of the link.
    path: String,
    /// Whether an existing path is replaced.
    #[default(false)]
    force: bool,
    /// Whether an existing path is replaced by a rename.
    #[default(false)]
    atomic: bool,
    /// Whether a link counts as existing only if what it leads to exists.
    #[default(true)]
    follow_symlinks: bool,
) -> CallResult {
    let link = expand(&path);
    if !link.is_absolute() {
        return Err(invalid("symlink", &format!("Link path must be absolute: {path}")));
    }
    let is_link = link.is_symlink();
    if is_link && std::fs::read_link(&link).is_ok_and(|leads| normal(&leads) == normal(Path::new(&src))) {
        return Ok(true.into());
    }
    let exists = if follow_symlinks { link.exists() } else { link.symlink_metadata().is_ok() };
    if is_link && !force && !atomic {
        return Err(CallError::Execution(format!("Found existing symlink: {path}")));
    }
    if exists && !force && !atomic {
        return Err(CallError::Execution(format!("Existing path is not a symlink: {path}")));
    }
    let failed = |_| CallError::Execution(format!("Could not create '{path}'"));
    if atomic {
        crate::file::state::replace_link(&link, &src).map_err(failed)?;
        return Ok(true.into());
    }
    if is_link || exists {
        user_files::remove_file(&link).map_err(|error| error_at(&path, &error))?;
    }
    user_files::symlink(&src, &link).map_err(failed)?;
    Ok(true.into())
}

/// Create a hard link at `path` to `src`.
///
/// CLI Example:
///
///     salt '*' file.link /path/to/file /path/to/link
#[function]
pub fn link(
    _context: &Context,
    /// Absolute path of an existing file.
    src: String,
    /// Path of the new link.
    path: String,
) -> CallResult {
    let file = expand(&src);
    if !file.is_absolute() {
        return Err(invalid("link", "File path must be absolute."));
    }
    user_files::hard_link(file, &path).map_err(|error| {
        CallError::Execution(format!("Could not create '{path}': {}: '{src}' -> '{path}'", errno(&error)))
    })?;
    Ok(true.into())
}

/// Return whether there is a symbolic link at this path. `nostat` is without effect: links are never followed.
///
/// CLI Example:
///
///     salt '*' file.is_link /path/to/link
#[function]
pub fn is_link(
    _context: &Context,
    /// Path of the link.
    path: String,
    /// Without effect: links are never followed.
    #[default(false)]
    nostat: bool,
) -> CallResult {
    // The check never follows links.
    _ = nostat;
    Ok(expand(&path).is_symlink().into())
}

/// Return whether the file at this path has other hard links.
///
/// CLI Example:
///
///     salt '*' file.is_hardlink /path/to/link
#[function]
pub fn is_hardlink(
    _context: &Context,
    /// Path of the file.
    path: String,
) -> CallResult {
    Ok(std::fs::symlink_metadata(expand(&path)).map_or(Value::map(), |status| (status.nlink() > 1).into()))
}

/// Return the target of a symbolic link.
///
/// CLI Example:
///
///     salt '*' file.readlink /path/to/link
#[function]
pub fn readlink(
    _context: &Context,
    /// Absolute path of the link.
    path: String,
    /// Whether all links are followed, to the real path.
    #[default(false)]
    canonicalize: bool,
) -> CallResult {
    let link = expand(&path);
    if !link.is_absolute() {
        return Err(invalid("readlink", &format!("Path to link must be absolute: {path}")));
    }
    if !link.is_symlink() {
        return Err(invalid("readlink", &format!("A valid link was not specified: {path}")));
    }
    let leads = if canonicalize { link.canonicalize() } else { std::fs::read_link(&link) };
    Ok(leads.map_err(|error| error_at(&path, &error))?.display().to_string().into())
}

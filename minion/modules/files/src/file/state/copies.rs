//! `file.copy` and `file.rename`.

use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, function};
use brine_value::{Map, Value};

use super::attributes::OwnerArgs;
use super::further::further_copy;
use super::operations::{self, CopyTarget, ParentDirectories};

/// Order of the keys in results of copies.
const COPY_RESULT_KEYS: [&str; 4] = ["name", "changes", "comment", "result"];

/// The arguments of `file.copy`.
#[derive(Args)]
pub struct CopyArgs {
    /// Path of the copy.
    name: String,
    /// Path of the file on this host.
    source: String,
    /// Whether a file that exists is replaced.
    #[default(false)]
    force: bool,
    /// Whether missing parent directories are created.
    #[default(false)]
    makedirs: bool,
    #[args]
    owner: OwnerArgs,
    /// Permissions of the copy, as an octal string.
    #[default]
    mode: Value,
    /// Permissions of directories that `makedirs` creates, as an octal string.
    #[default]
    dir_mode: Value,
    /// Whether the copy goes into `name` if that is a directory.
    #[default(false)]
    subdir: bool,
    /// Whether the copy keeps the mode of the source, whatever `mode`, `user` and `group` are. What is in a copied directory
    /// keeps its owner, too.
    #[default(false)]
    preserve: bool,
    /// Further arguments, ignored.
    #[keywords(further_copy)]
    _kwargs: Map,
}

/// Copy a file of this host if the copy is missing; `force` replaces an existing one.
///
/// SLS Example:
///
///     /etc/app.conf:
///       file.copy:
///         - source: /usr/share/app/app.conf.example
///         - user: app
///         - mode: '0640'
#[function]
pub fn copy(context: &StateContext, #[args] args: CopyArgs) -> CallResult {
    let (name, source) = (&args.name, &args.source);
    let directories = ParentDirectories::new(args.makedirs, &args.dir_mode);
    let attributes = (!args.preserve).then_some((args.mode, args.owner));
    let copy = |path: &str| operations::copy(context, source, args.force, CopyTarget { path, directories, attributes });
    let destination = operations::destination(name, source);
    if destination != *name {
        return Ok(named(copy(&destination), &destination, args.name).in_order(COPY_RESULT_KEYS));
    }
    if !(args.subdir && Path::new(name).is_dir()) {
        return Ok(copy(name).in_order(COPY_RESULT_KEYS));
    }
    let inside = Path::new(name).join(Path::new(source).file_name().unwrap_or_default()).display().to_string();
    let outcome = copy(&inside);
    // The comment names the directory, not the copy in it, as in Salt.
    let (from, to) = (format!("Copied \"{source}\" to \"{inside}\""), format!("Copied \"{source}\" to \"{name}\""));
    Ok(StateReturn { comment: outcome.comment.replace(&from, &to), name: args.name, ..outcome }
        .in_order(COPY_RESULT_KEYS))
}

/// Move a file to another path, if the source still exists.
///
/// SLS Example:
///
///     /etc/app/app.conf:
///       file.rename:
///         - source: /etc/app.conf
///         - makedirs: True
#[function]
pub fn rename(
    context: &StateContext,
    /// Path that the file gets; if it is a directory, the file is moved into it.
    name: String,
    /// Path of the file or directory.
    source: String,
    /// Whether a file at the new path is replaced; otherwise it is a failure.
    #[default(false)]
    force: bool,
    /// Whether missing parent directories of the new path are created.
    #[default(false)]
    makedirs: bool,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    let moved = operations::destination(&name, &source);
    let outcome = operations::rename(context, &moved, &source, force, makedirs);
    Ok(named(outcome, &moved, name).into())
}

/// Returns the result with the name of the state instead of the path of the file, as in Salt.
fn named(outcome: StateReturn, path: &str, name: String) -> StateReturn {
    let comment = outcome.comment.replace(&format!("\"{path}\""), &format!("\"{name}\""));
    let key = |key: Value| if key.as_str() == Some(path) { name.as_str().into() } else { key };
    let changes = outcome.changes.into_iter().map(|(path, change)| (key(path), change)).collect();
    StateReturn { comment, changes, name, ..outcome }
}

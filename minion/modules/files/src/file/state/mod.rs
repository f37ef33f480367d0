//! `file`: states of files and directories.
//!
//! `managed.rs` handles whole files and `contents.rs` their contents, `attributes.rs` modes and owners, `directory.rs`
//! directories, `tree.rs` trees from a source, `edits.rs` and `edit.rs` edits of files, `operations.rs` links, copies
//! and the like.

mod accumulated;
pub(crate) mod attributes;
mod beacon;
pub(crate) mod cached;
mod comment;
mod contents;
mod decode;
mod directory;
mod edit;
pub(crate) mod edits;
mod ignored;
mod keyvalue;
mod line;
mod managed;
mod node;
mod operations;
mod patch;
mod pattern;
mod pruned;
mod retention;
mod serialize;
mod signature;
pub(crate) mod source;
mod tidied;
mod tree;
mod tree_plan;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_system::user_files;
use brine_value::{Map, Value, map};

use attributes::{Attributes, OwnerArgs};
pub use contents::content;
pub use managed::difference;
use operations::ParentDirectories;

use crate::file::operations::seconds;
pub(crate) use operations::{copy_tree, replace_link};
pub(crate) use pattern::Selection;

/// Order of the keys in results of copies.
const COPY_RESULT_KEYS: [&str; 4] = ["name", "changes", "comment", "result"];

/// State functions of `file`.
pub static FUNCTIONS: Functions<StateContext> = registry!(
    "file",
    [
        managed::managed,
        directory::directory,
        serialize::serialize,
        tree::recurse,
        symlink,
        hardlink,
        touch,
        copy,
        rename,
        tidied::tidied,
        accumulated,
        cached::cached,
        cached::not_cached,
        pruned,
        decode,
        mknod,
        patch::patch,
        retention_schedule,
        absent,
        exists,
        missing,
        beacon::mod_beacon
    ]
);

/// The arguments of `file.symlink`.
#[derive(Args)]
pub struct SymlinkArgs {
    /// Path of the link.
    name: String,
    /// Path that the link refers to.
    target: String,
    /// Whether a file at the link's path is removed.
    #[default(false)]
    force: bool,
    /// Whether missing parent directories are created.
    #[default(false)]
    makedirs: bool,
    #[args]
    owner: OwnerArgs,
    /// Permissions of directories that `makedirs` creates, as an octal string.
    #[default]
    mode: Value,
    /// Name to which a file at the link's path is renamed.
    backupname: Option<String>,
    /// Whether a link with another target is replaced by one of the same user and group, where these are not given.
    #[default(false)]
    inherit_user_and_group: bool,
    /// Further arguments. `atomic`, `disallow_copy_and_unlink` and `follow_symlinks` are without effect: links are replaced
    /// atomically, whether or not their target exists, and backups are renamed. `win_owner`, `win_perms`, `win_deny_perms`
    /// and `win_inheritance` are without effect.
    #[keywords]
    _kwargs: Map,
}

/// Ensure that a symbolic link to a target exists. `force` removes a file in its place.
#[function]
pub fn symlink(context: &StateContext, #[args] args: SymlinkArgs) -> CallResult {
    let mut args = args;
    if args.inherit_user_and_group
        && let Ok(status) = std::fs::symlink_metadata(&args.name)
        && status.is_symlink()
    {
        for (owner, id) in [(&mut args.owner.user, status.uid()), (&mut args.owner.group, status.gid())] {
            if !owner.is_truthy() {
                *owner = i64::from(id).into();
            }
        }
    }
    if let Some(backup) = args.backupname.filter(|_| !context.test)
        && let Err(error) = operations::back_up(&args.name, &backup, args.force)
    {
        return Ok(StateReturn::failed(&args.name, error).into());
    }
    Ok(operations::symlink(
        context,
        &args.name,
        &args.target,
        args.force,
        ParentDirectories::new(args.makedirs, &args.mode),
        &args.owner.user,
        &args.owner.group,
    )
    .into())
}

/// Ensure that a hard link to a file exists. `force` removes a file in its place.
#[function]
pub fn hardlink(
    context: &StateContext,
    name: String,
    target: String,
    #[default(false)] force: bool,
    #[default(false)] makedirs: bool,
    #[args] owner: OwnerArgs,
    #[default] dir_mode: Value,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let directories = ParentDirectories::new(makedirs, &dir_mode);
    let owner = Attributes::from_state(context, &Value::Nil, &owner.user, &owner.group);
    Ok(operations::hardlink(context, &name, &target, force, directories, owner).into())
}

/// Update the times of a file to now, and create it if it is missing.
#[function]
pub fn touch(
    context: &StateContext,
    name: String,
    #[default] atime: Value,
    #[default] mtime: Value,
    #[default(false)] makedirs: bool,
) -> CallResult {
    match (seconds(&atime), seconds(&mtime)) {
        (Ok(atime), Ok(mtime)) => Ok(operations::touch(context, &name, (atime, mtime), makedirs).into()),
        _ => Ok(StateReturn::failed(&name, "atime and mtime must be integers").into()),
    }
}

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
    /// Whether the copy keeps mode and owner of the source, whatever `mode`, `user` and `group` are.
    #[default(false)]
    preserve: bool,
    /// Further arguments, ignored.
    #[keywords]
    _kwargs: Map,
}

/// Copy a file of this host if the copy is missing; `force` replaces an existing one.
#[function]
pub fn copy(context: &StateContext, #[args] args: CopyArgs) -> CallResult {
    let name = &args.name;
    let source = &args.source;
    // A new owner's primary group becomes the group, too.
    let group = if args.owner.group.is_truthy() || !args.owner.user.is_truthy() {
        args.owner.group
    } else {
        attributes::primary_group(&args.owner.user)
    };
    let attributes = if args.preserve {
        Ok(Attributes::default())
    } else {
        Attributes::from_state(context, &args.mode, &args.owner.user, &group)
    };
    let directories = ParentDirectories::new(args.makedirs, &args.dir_mode);
    let copy = operations::destination(name, source);
    if copy != *name {
        let done = operations::copy(context, &copy, source, args.force, directories, attributes);
        return Ok(named(done, &copy, args.name).in_order(COPY_RESULT_KEYS));
    }
    if !(args.subdir && Path::new(name).is_dir()) {
        let done = operations::copy(context, name, source, args.force, directories, attributes);
        return Ok(done.in_order(COPY_RESULT_KEYS));
    }
    let inside = Path::new(name).join(Path::new(source).file_name().unwrap_or_default()).display().to_string();
    let done = operations::copy(context, &inside, source, args.force, directories, attributes);
    // The comment names the directory, not the copy in it, as in Salt.
    let (from, to) = (format!("Copied \"{source}\" to \"{inside}\""), format!("Copied \"{source}\" to \"{name}\""));
    Ok(StateReturn { comment: done.comment.replace(&from, &to), name: args.name, ..done }.in_order(COPY_RESULT_KEYS))
}

/// Move a file to another path, if the source still exists.
#[function]
pub fn rename(
    context: &StateContext,
    name: String,
    source: String,
    #[default(false)] force: bool,
    #[default(false)] makedirs: bool,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let moved = operations::destination(&name, &source);
    let done = operations::rename(context, &moved, &source, force, makedirs);
    Ok(named(done, &moved, name).into())
}

/// Returns the result with the name of the state instead of the path of the file, as in Salt.
fn named(done: StateReturn, path: &str, name: String) -> StateReturn {
    let comment = done.comment.replace(&format!("\"{path}\""), &format!("\"{name}\""));
    let key = |key: Value| if key.as_str() == Some(path) { name.as_str().into() } else { key };
    let changes = done.changes.into_iter().map(|(path, change)| (key(path), change)).collect();
    StateReturn { comment, changes, name, ..done }
}

/// Accumulate texts for a file of another state, which requires this one: its template reads them as `accumulator`,
/// or they are written into its block.
#[function]
pub fn accumulated(
    context: &StateContext,
    name: String,
    filename: String,
    text: Value,
    #[keywords] _kwargs: Map,
) -> CallResult {
    Ok(accumulated::state(context, &name, &filename, &text).into())
}

/// Ensure that an empty directory is absent; with `recurse`, also remove empty subdirectories, and with
/// `ignore_errors` leave non-empty ones in place. With `older_than`, only those unchanged for this many days are
/// removed.
#[function]
pub fn pruned(
    context: &StateContext,
    name: String,
    #[default(false)] recurse: bool,
    #[default(false)] ignore_errors: bool,
    older_than: Option<u64>,
) -> CallResult {
    pruned::state(context, &name, recurse || ignore_errors, ignore_errors, older_than)
}

/// Ensure that a file has the decoded content of a base64 string from the state or from the pillar. `encoding_type` is
/// without effect: there is no other than `base64`.
#[function]
pub fn decode(
    context: &StateContext,
    name: String,
    encoded_data: Option<String>,
    contents_pillar: Option<String>,
    #[default("base64".into())] encoding_type: String,
    #[default("md5".into())] checksum: String,
) -> CallResult {
    // Salt supports no other encoding either.
    _ = encoding_type;
    Ok(decode::state(context, &name, encoded_data, contents_pillar, &checksum)
        .unwrap_or_else(|error| StateReturn::failed(&name, error))
        .into())
}

/// Ensure that a character device (`c`), a block device (`b`) or a named pipe (`p`) exists.
#[function]
pub fn mknod(
    context: &StateContext,
    name: String,
    ntype: String,
    #[default(0)] major: i64,
    #[default(0)] minor: i64,
    #[default] user: Value,
    #[default] group: Value,
    #[default("0600".into())] mode: Value,
) -> CallResult {
    node::Node { kind: ntype, number: (major, minor), user, group, mode }.state(context, &name)
}

/// Ensure that a directory of backups keeps those selected by `retain` (`most_recent`, `first_of_hour`,
/// `first_of_day`, `first_of_week`, `first_of_month`, `first_of_year`: the number of each, or `all`) and no others.
/// With `strptime_format`, the time of a file is parsed from its name, and files with other names are kept.
#[function]
pub fn retention_schedule(
    context: &StateContext,
    name: String,
    retain: Value,
    strptime_format: Option<String>,
    timezone: Option<String>,
) -> CallResult {
    let rules = retain.as_map().cloned().unwrap_or_default();
    Ok(retention::state(context, &name, &rules, strptime_format.as_deref(), timezone.as_deref())
        .unwrap_or_else(|error| StateReturn::failed(&name, error))
        .into())
}

/// Ensure that there is no file or directory at this path.
#[function]
pub fn absent(context: &StateContext, name: String, #[keywords] _kwargs: Map) -> CallResult {
    Ok(absent_state(context, &name).into())
}

/// Check that there is a file or directory at this path.
#[function]
pub fn exists(_context: &StateContext, name: String, #[keywords] _kwargs: Map) -> CallResult {
    let there = Path::new(&name).exists();
    Ok(if there {
        StateReturn::ok(&name, format!("Path {name} exists"))
    } else {
        StateReturn::failed(&name, format!("Specified path {name} does not exist"))
    }
    .into())
}

/// Check that there is no file or directory at this path.
#[function]
pub fn missing(_context: &StateContext, name: String, #[keywords] _kwargs: Map) -> CallResult {
    let there = Path::new(&name).exists();
    Ok(if there {
        StateReturn::failed(&name, format!("Specified path {name} exists"))
    } else {
        StateReturn::ok(&name, format!("Path {name} is missing"))
    }
    .into())
}

/// Returns the failure for an invalid path.
fn invalid_path(name: &str) -> Option<StateReturn> {
    if name.is_empty() {
        return Some(StateReturn::failed(name, "Must provide name to file.managed"));
    }
    (!Path::new(name).is_absolute())
        .then(|| StateReturn::failed(name, format!("Specified file {name} is not an absolute path")))
}

fn absent_state(context: &StateContext, name: &str) -> StateReturn {
    if name.is_empty() {
        return StateReturn::failed(name, "Must provide name to file.absent");
    }
    if let Some(bad) = invalid_path(name) {
        return bad;
    }
    if name == "/" {
        return StateReturn::failed(name, "Refusing to make \"/\" absent");
    }
    let path = Path::new(name);
    let Ok(status) = std::fs::symlink_metadata(path) else {
        return StateReturn::ok(name, format!("File {name} is not present"));
    };
    let kind = if status.is_dir() { "Directory" } else { "File" };
    if context.test {
        return StateReturn::predicted(name, format!("{kind} {name} is set for removal"))
            .with_changes(map! {"removed" => name});
    }
    let removed = user_files::remove_dir_all(path);
    match removed {
        Ok(()) => StateReturn::ok(name, format!("Removed {} {name}", kind.to_lowercase()))
            .with_changes(map! {"removed" => name}),
        Err(error) => StateReturn::failed(name, format!("Failed to remove {name}: {error}")),
    }
}

#[cfg(test)]
mod tests;

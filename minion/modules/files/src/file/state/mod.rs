//! `file`: states of files and directories.
//!
//! `managed.rs` handles whole files and `contents.rs` their contents, `attributes.rs` modes and owners, `directory.rs`
//! directories, `tree.rs` trees from a source, `edits.rs` and `edit.rs` edits of files, `operations.rs` links, copies
//! and the like.

mod accumulated;
pub(crate) mod attributes;
mod beacon;
mod block;
pub(crate) mod cached;
mod comment;
mod contents;
mod copies;
mod decode;
mod directory;
mod edit;
pub(crate) mod edits;
mod further;
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

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
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
        copies::copy,
        copies::rename,
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
    #[keywords(further::further_symlink)]
    _kwargs: Map,
}

/// Ensure that a symbolic link to a target exists. `force` removes a file in its place.
///
/// SLS Example:
///
///     /etc/nginx/sites-enabled/app.conf:
///       file.symlink:
///         - target: /etc/nginx/sites-available/app.conf
///         - makedirs: True
///
///     /srv/app/current:
///       file.symlink:
///         - target: /srv/app/releases/1.2
///         - user: app
///         - group: app
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
///
/// SLS Example:
///
///     /srv/app/data.db:
///       file.hardlink:
///         - target: /srv/data/data.db
#[function]
pub fn hardlink(
    context: &StateContext,
    /// Absolute path of the link.
    name: String,
    /// Absolute path of an existing file that the link is another name of.
    target: String,
    /// Whether a file or directory at the link's path is removed.
    #[default(false)]
    force: bool,
    /// Whether missing parent directories are created.
    #[default(false)]
    makedirs: bool,
    #[args] owner: OwnerArgs,
    /// Permissions of directories that `makedirs` creates, as an octal string.
    #[default]
    dir_mode: Value,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    let directories = ParentDirectories::new(makedirs, &dir_mode);
    let owner = Attributes::from_state(context, &Value::Nil, &owner.user, &owner.group);
    Ok(operations::hardlink(context, &name, &target, force, directories, owner).into())
}

/// Update the times of a file to now, and create it if it is missing.
///
/// SLS Example:
///
///     /var/lib/app/installed:
///       file.touch:
///         - makedirs: True
#[function]
pub fn touch(
    context: &StateContext,
    /// Absolute path of the file.
    name: String,
    /// Time of the last access, in seconds since 1970; now by default.
    #[default]
    atime: Value,
    /// Time of the last modification, in seconds since 1970; now by default.
    #[default]
    mtime: Value,
    /// Whether missing parent directories are created.
    #[default(false)]
    makedirs: bool,
) -> CallResult {
    match (seconds(&atime), seconds(&mtime)) {
        (Ok(atime), Ok(mtime)) => Ok(operations::touch(context, &name, (atime, mtime), makedirs).into()),
        _ => Ok(StateReturn::failed(&name, "atime and mtime must be integers").into()),
    }
}

/// Accumulate texts for a file of another state, which requires this one: its template reads them as `accumulator`,
/// or they are written into its block.
///
/// SLS Example:
///
///     app_hosts:
///       file.accumulated:
///         - filename: /etc/hosts
///         - text: 10.0.0.5 db
///         - require_in:
///           - file: hosts_block
///
///     hosts_block:
///       file.blockreplace:
///         - name: /etc/hosts
///         - append_if_not_found: True
#[function]
pub fn accumulated(
    context: &StateContext,
    /// Name under which the template finds the texts: `accumulator['NAME']`.
    name: String,
    /// Path of the file that receives the texts. A state that manages this file and requires this state must exist, by
    /// `require_in` or `watch_in`.
    filename: String,
    /// Text, or list of texts, to add. Texts that were added already are not repeated.
    text: Value,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    Ok(accumulated::state(context, &name, &filename, &text).into())
}

/// Ensure that an empty directory is absent; with `recurse`, also remove empty subdirectories, and with
/// `ignore_errors` leave non-empty ones in place. With `older_than`, only those unchanged for this many days are
/// removed.
///
/// SLS Example:
///
///     /var/spool/app:
///       file.pruned:
///         - recurse: True
///         - ignore_errors: True
#[function]
pub fn pruned(
    context: &StateContext,
    /// Path of the directory.
    name: String,
    /// Whether empty directories below it are removed, too.
    #[default(false)]
    recurse: bool,
    /// Whether directories that are not empty are left in place without a failure. Implies `recurse`.
    #[default(false)]
    ignore_errors: bool,
    /// Number of days: only directories unchanged for longer are removed.
    older_than: Option<u64>,
) -> CallResult {
    pruned::state(context, &name, recurse || ignore_errors, ignore_errors, older_than)
}

/// Ensure that a file has the decoded content of a base64 string from the state or from the pillar. `encoding_type` is
/// without effect: there is no other than `base64`.
///
/// SLS Example:
///
///     /etc/app/licence.bin:
///       file.decode:
///         - encoding_type: base64
///         - contents_pillar: app:licence
#[function]
pub fn decode(
    context: &StateContext,
    /// Path of the file.
    name: String,
    /// Content of the file in base64, in one or several lines.
    encoded_data: Option<String>,
    /// Pillar key of the content in base64, instead of `encoded_data`.
    contents_pillar: Option<String>,
    /// Without effect: there is no other encoding than `base64`.
    #[default("base64".into())]
    encoding_type: String,
    /// Hash by which the old and the new content are compared, such as `sha256`.
    #[default("md5".into())]
    checksum: String,
) -> CallResult {
    // Salt supports no other encoding either.
    _ = encoding_type;
    Ok(decode::state(context, &name, encoded_data, contents_pillar, &checksum)
        .unwrap_or_else(|error| StateReturn::failed(&name, error))
        .into())
}

/// Ensure that a character device (`c`), a block device (`b`) or a named pipe (`p`) exists.
///
/// SLS Example:
///
///     /srv/chroot/dev/null:
///       file.mknod:
///         - ntype: c
///         - major: 1
///         - minor: 3
///         - mode: '0666'
///
///     /run/app.pipe:
///       file.mknod:
///         - ntype: p
///         - user: app
#[function]
pub fn mknod(
    context: &StateContext,
    /// Absolute path of the node.
    name: String,
    /// Type: `c` (character device), `b` (block device) or `p` (named pipe).
    ntype: String,
    /// Major number of a device.
    #[default(0)]
    major: i64,
    /// Minor number of a device.
    #[default(0)]
    minor: i64,
    /// Name or id of the owner.
    #[default]
    user: Value,
    /// Name or id of the owning group.
    #[default]
    group: Value,
    /// Permissions, as an octal string.
    #[default("0600".into())]
    mode: Value,
) -> CallResult {
    node::Node { kind: ntype, number: (major, minor), user, group, mode }.state(context, &name)
}

/// Ensure that a directory of backups keeps those selected by `retain` (`most_recent`, `first_of_hour`,
/// `first_of_day`, `first_of_week`, `first_of_month`, `first_of_year`: the number of each, or `all`) and no others.
/// With `strptime_format`, the time of a file is parsed from its name, and files with other names are kept.
///
/// SLS Example:
///
///     /var/backups/db:
///       file.retention_schedule:
///         - retain:
///             most_recent: 5
///             first_of_day: 7
///             first_of_month: all
///         - strptime_format: db-%Y%m%dT%H%M.sql.gz
#[function]
pub fn retention_schedule(
    context: &StateContext,
    /// Path of the directory.
    name: String,
    /// Number of files to keep by rule, or `all`: a mapping with the rules above.
    retain: Value,
    /// Format of the time in the names of files, such as `backup-%Y%m%d.tar`.
    strptime_format: Option<String>,
    /// Time zone of the times, such as `Europe/Berlin`; that of the minion by default.
    timezone: Option<String>,
) -> CallResult {
    let rules = retain.as_map().cloned().unwrap_or_default();
    Ok(retention::state(context, &name, &rules, strptime_format.as_deref(), timezone.as_deref())
        .unwrap_or_else(|error| StateReturn::failed(&name, error))
        .into())
}

/// Ensure that there is no file or directory at this path.
///
/// SLS Example:
///
///     /etc/nginx/sites-enabled/default:
///       file.absent: []
///
///     old_files:
///       file.absent:
///         - names:
///           - /tmp/install.log
///           - /tmp/install.d
#[function]
pub fn absent(
    context: &StateContext,
    /// Absolute path of the file, directory or link. A directory is removed with its content, a link without its
    /// target.
    name: String,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    Ok(absent_state(context, &name).into())
}

/// Check that there is a file or directory at this path.
///
/// SLS Example:
///
///     /etc/app/licence.bin:
///       file.exists: []
#[function]
pub fn exists(
    _context: &StateContext,
    /// Path to check. A link counts as existing if its target exists.
    name: String,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    let there = Path::new(&name).exists();
    Ok(if there {
        StateReturn::ok(&name, format!("Path {name} exists"))
    } else {
        StateReturn::failed(&name, format!("Specified path {name} does not exist"))
    }
    .into())
}

/// Check that there is no file or directory at this path.
///
/// SLS Example:
///
///     /etc/nologin:
///       file.missing: []
#[function]
pub fn missing(
    _context: &StateContext,
    /// Path to check. A link to a missing target counts as missing.
    name: String,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
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

/// Returns the directory of a path as Python's `dirname` does: that of `/a/b/` is `/a/b`, so a slash at the end never makes
/// a file.
fn directory_of(path: &Path) -> &Path {
    match path.as_os_str().as_bytes() {
        [start @ .., b'/'] if !start.is_empty() => Path::new(OsStr::from_bytes(start)),
        _ => path.parent().unwrap_or(Path::new("/")),
    }
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

//! `file`: execution functions on files.
//!
//! This file contains general queries; `content.rs` reads and writes contents, `changes.rs` edits them, `operations.rs`
//! creates, moves and removes files, `owners.rs` handles modes and owners, `flags.rs` attributes, `backups.rs` backups.
//! `edit/`, `line.rs` and `diff.rs` are pure functions on text, which the states use, too.

pub mod backups;
pub(super) mod changes;
mod content;
pub(crate) mod diff;
pub(crate) mod edit;
pub(crate) mod encoding;
pub(super) mod find;
pub(crate) mod flags;
mod hashes;
pub(crate) mod line;
mod links;
mod nodes;
pub(super) mod operations;
pub(super) mod owners;
pub mod patch;
mod search;
mod sed;
mod selinux;
pub(crate) mod state;
mod stats;

use std::collections::{BTreeSet, HashSet};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::paths::expand;
use brine_state::Source;
use brine_value::{Map, Value, map};
use indexmap::IndexMap;
use nix::unistd::{AccessFlags, Gid, Group, Uid, User};

pub use crate::checksum::{digest, hash_kind, hex_digest};
pub use diff::{unified, unified_lines};
pub use state::{content, difference};

pub(super) static MODULE: Module = Module {
    functions: &[
        &FUNCTIONS,
        &backups::FUNCTIONS,
        &changes::FUNCTIONS,
        &find::FUNCTIONS,
        &flags::FUNCTIONS,
        &hashes::FUNCTIONS,
        &owners::FUNCTIONS,
        &patch::FUNCTIONS,
        &operations::FUNCTIONS,
        &selinux::FUNCTIONS,
    ],
    states: &[&state::FUNCTIONS, &state::edits::FUNCTIONS],
    ..Module::EMPTY
};

/// Execution functions of `file`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "file",
    [
        file_exists,
        directory_exists,
        path_exists_glob,
        content::write,
        content::append,
        content::prepend,
        content::seek_read,
        content::seek_write,
        content::truncate,
        readdir,
        diskusage,
        open_files,
        check_hash,
        apply_template_on_contents,
        content::read,
        get_hash,
        get_sum,
        dirname,
        basename,
        join,
        normpath,
        pardir,
        content::contains_glob,
        access,
        content::contains,
        content::contains_regex
    ]
);

/// Return whether there is a file, not a directory, at this path.
///
/// CLI Example:
///
///     salt '*' file.file_exists /etc/passwd
#[function]
pub fn file_exists(
    _context: &Context,
    /// Path of the file.
    path: String,
) -> CallResult {
    Ok(expand(&path).is_file().into())
}

/// Return whether there is a directory at this path.
///
/// CLI Example:
///
///     salt '*' file.directory_exists /etc
#[function]
pub fn directory_exists(
    _context: &Context,
    /// Path of the file.
    path: String,
) -> CallResult {
    Ok(expand(&path).is_dir().into())
}

/// Return whether a path or glob matches anything.
///
/// CLI Example:
///
///     salt '*' file.path_exists_glob '/etc/pam*/pass*'
#[function]
pub fn path_exists_glob(
    _context: &Context,
    /// Path of the file.
    path: String,
) -> CallResult {
    Ok((!brine_text::glob::paths(Path::new(""), &expand(&path).to_string_lossy()).is_empty()).into())
}

/// Return the names in a directory.
///
/// CLI Example:
///
///     salt '*' file.readdir /path/to/dir/
#[function]
pub fn readdir(
    _context: &Context,
    /// Path of the directory.
    path: String,
) -> CallResult {
    if !expand(&path).is_absolute() {
        return Err(invalid("readdir", "Dir path must be absolute."));
    }
    let entries = std::fs::read_dir(expand(&path))
        .map_err(|_| invalid("readdir", &format!("A valid directory was not specified: {path}")))?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names.splice(0..0, [".".to_owned(), "..".to_owned()]);
    Ok(names.into())
}

/// Return the size of a file, or of all files in a directory, in bytes.
///
/// CLI Example:
///
///     salt '*' file.diskusage /path/to/check
#[function]
pub fn diskusage(
    _context: &Context,
    /// Path of the file.
    path: String,
) -> CallResult {
    let (mut total, mut seen, mut open) = (0, HashSet::new(), vec![PathBuf::from(path)]);
    while let Some(path) = open.pop() {
        let Ok(status) = std::fs::metadata(&path) else { continue };
        if !status.is_dir() {
            // A file with several hard links counts once.
            total += if seen.insert(status.ino()) { status.size() } else { 0 };
        } else if !path.is_symlink() {
            open.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    Ok(total.into())
}

/// Return the open files with the processes that have them open; with `by_pid`, the open files of each process.
///
/// CLI Example:
///
///     salt '*' file.open_files
#[function]
pub fn open_files(
    _context: &Context,
    /// Whether the files are listed by process.
    #[default(false)]
    by_pid: bool,
) -> CallResult {
    let mut open = BTreeSet::new();
    for (pid, process) in numbered(Path::new("/proc")) {
        for (_, task) in numbered(&process.join("task")) {
            let descriptors = numbered(&task.join("fd")).into_iter().map(|(_, descriptor)| descriptor);
            let real = descriptors.chain([task.join("exe")]).filter_map(|path| path.canonicalize().ok());
            open.extend(real.map(|path| (pid, path.display().to_string())));
        }
    }
    let mut groups: IndexMap<Value, Vec<Value>> = IndexMap::new();
    for (pid, path) in open {
        let (key, value) = if by_pid { (pid.into(), path.into()) } else { (path.into(), pid.into()) };
        groups.entry(key).or_default().push(value);
    }
    Ok(groups.into_iter().map(|(key, values)| (key, values.into())).collect::<Map>().into())
}

/// Return whether a file has this hash: hex digits, or its type, `=` and hex digits.
///
/// CLI Example:
///
///     salt '*' file.check_hash /etc/fstab md5=e138491e9d5b97023cea823fe17bac22
#[function]
pub fn check_hash(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Expected hash, as `sha256=...` or as hex digits.
    file_hash: String,
) -> CallResult {
    let (form, hash) = match file_hash.split_once([':', '=']) {
        Some(pair) => pair,
        None => (
            hash_kind(&file_hash).ok_or_else(|| {
                CallError::Execution(format!("hash is invalid: expected hex digits or type=hash, got {file_hash}"))
            })?,
            file_hash.as_str(),
        ),
    };
    Ok((digest(&expand(&path), form)? == hash).into())
}

/// Render a string with a template engine: `jinja`.
///
/// CLI Example:
///
///     salt '*' file.apply_template_on_contents contents='This is a {{ template }} string.' template=jinja "context={}" "defaults={'template': 'cool'}" saltenv=base
#[function]
pub fn apply_template_on_contents(
    host: &Context,
    /// Text of the template.
    contents: String,
    /// Template engine, such as `jinja`.
    template: String,
    /// Variables of the template.
    context: Value,
    /// Variables of the template, below those of `context`.
    defaults: Value,
    /// Environment of the file server.
    saltenv: String,
) -> CallResult {
    if template != "jinja" {
        return Ok(
            map! {"result" => false, "comment" => format!("Specified template format {template} is not supported")}
                .into(),
        );
    }
    let mut variables = defaults.as_map().cloned().unwrap_or_default();
    variables.extend(context.as_map().cloned().unwrap_or_default());
    let source = Source::new(host, host.pillar());
    source.render_template("contents", &contents, &variables, &saltenv).map(Value::from).map_err(CallError::execution)
}

/// Return the hash of a file in hex. `chunk_size` is without effect: a file is read as fits.
///
/// CLI Example:
///
///     salt '*' file.get_hash /etc/shadow
#[function]
pub fn get_hash(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Type of the hash, such as `sha256`.
    #[default("sha256".into())]
    form: String,
    #[keywords] _kwargs: Map,
) -> CallResult {
    Ok(digest(&expand(&path), &form)?.into())
}

/// Return the hash of a file in hex, as `get_hash`.
///
/// CLI Example:
///
///     salt '*' file.get_sum /etc/passwd sha512
#[function]
pub fn get_sum(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Type of the hash, such as `sha256`.
    #[default("sha256".into())]
    form: String,
) -> CallResult {
    Ok(digest(&expand(&path), &form)?.into())
}

/// Return the directory part of a path, before its last `/`.
///
/// CLI Example:
///
///     salt '*' file.dirname '/etc/salt/minion'
#[function]
pub fn dirname(
    _context: &Context,
    /// Path of the file.
    path: String,
) -> CallResult {
    Ok(path.rfind('/').map_or("", |at| if at == 0 { "/" } else { path[..at].trim_end_matches('/') }).into())
}

/// Return the last component of a path.
///
/// CLI Example:
///
///     salt '*' file.basename '/etc/salt/minion'
#[function]
pub fn basename(
    _context: &Context,
    /// Path of the file.
    path: String,
) -> CallResult {
    Ok(path.rsplit('/').next().unwrap_or_default().into())
}

/// Join the components of a path. An absolute component discards those before it.
///
/// CLI Example:
///
///     salt '*' file.join '/' 'usr' 'local' 'bin'
#[function]
pub fn join(
    _context: &Context,
    /// Parts of the path.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    let joined: PathBuf = args.iter().map(ToString::to_string).collect();
    Ok(joined.display().to_string().into())
}

/// Normalize a path: resolve `.`, `..` and repeated slashes.
///
/// CLI Example:
///
///     salt '*' file.normpath 'a/b/c/..'
#[function]
pub fn normpath(
    _context: &Context,
    /// Path of the file.
    path: String,
) -> CallResult {
    Ok(operations::normal(Path::new(&path)).display().to_string().into())
}

/// Return the name of the parent directory: `..`.
///
/// CLI Example:
///
///     salt '*' file.pardir
#[function]
pub fn pardir(_context: &Context) -> CallResult {
    Ok("..".into())
}

/// Return whether the minion can find (`f`), read (`r`), write (`w`) or execute (`x`) a file.
///
/// CLI Example:
///
///     salt '*' file.access /path/to/file r
#[function]
pub fn access(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// What is checked: `r`, `w`, `x` or `f` (exists).
    mode: String,
) -> CallResult {
    let flags = match mode.as_str() {
        "f" => AccessFlags::F_OK,
        "r" => AccessFlags::R_OK,
        "w" => AccessFlags::W_OK,
        "x" => AccessFlags::X_OK,
        _ => return Err(invalid("access", "Invalid mode specified.")),
    };
    Ok(nix::unistd::access(&expand(&path), flags).is_ok().into())
}

/// Returns the error of a call with invalid arguments.
fn invalid(function: &str, message: &str) -> CallError {
    CallError::Invocation { function: format!("file.{function}"), message: message.to_owned() }
}

/// Whether this is test mode: the option `test`.
fn is_test(context: &Context) -> bool {
    context.config().test
}

/// Returns the message of an I/O error, without its `errno`.
fn reason(error: &std::io::Error) -> String {
    error
        .raw_os_error()
        .map_or_else(|| error.to_string(), |number| nix::errno::Errno::from_raw(number).desc().to_owned())
}

/// Returns the message of an I/O error with its `errno`, in Python's form: `[Errno 2] No such file or directory`.
fn errno(error: &std::io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), |number| format!("[Errno {number}] {}", reason(error)))
}

/// Returns the entries of a directory whose names are integers.
fn numbered(directory: &Path) -> Vec<(u64, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path()))).collect()
}

/// Returns an I/O error as the error of a call, with the path in front.
pub(super) fn error_at(path: &str, error: &std::io::Error) -> CallError {
    CallError::Execution(format!("{path}: {error}"))
}

fn status(path: &str, follow: bool) -> Result<std::fs::Metadata, CallError> {
    let file = expand(path);
    let metadata = if follow { std::fs::metadata(&file) } else { std::fs::symlink_metadata(&file) };
    metadata.map_err(|_| CallError::Execution(format!("Path not found: {path}")))
}

fn user_name(uid: u32) -> String {
    User::from_uid(Uid::from_raw(uid)).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
}

fn group_name(gid: u32) -> String {
    Group::from_gid(Gid::from_raw(gid)).ok().flatten().map_or_else(|| gid.to_string(), |group| group.name)
}

fn mode_text(status: &std::fs::Metadata) -> String {
    format!("{:04o}", status.mode() & 0o7777)
}

fn kind(status: &std::fs::Metadata) -> &'static str {
    let kind = status.file_type();
    if kind.is_dir() {
        "dir"
    } else if kind.is_symlink() {
        "link"
    } else if kind.is_block_device() {
        "block"
    } else if kind.is_char_device() {
        "char"
    } else if kind.is_fifo() {
        "pipe"
    } else if kind.is_socket() {
        "socket"
    } else {
        "file"
    }
}

#[cfg(test)]
mod tests;

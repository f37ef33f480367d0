//! `file`: looking at files and changing them, one call at a time.
//!
//! Here is what reads files and writes all of them; `changes.rs` changes text within, `places.rs` makes, moves and
//! removes, `owners.rs` owns modes and owners, `flags.rs` flags, `backups.rs` copies that were kept. `edit.rs`,
//! `line.rs` and `diff.rs` are about texts alone: the states use them, too.

pub(crate) mod backups;
pub(super) mod changes;
pub(crate) mod diff;
pub(crate) mod edit;
pub(super) mod find;
pub(crate) mod flags;
pub(crate) mod line;
pub(super) mod owners;
pub mod patch;
pub(super) mod places;

use std::collections::{BTreeSet, HashSet};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use brine_digest::{Digest, hex};
use brine_function::{CallError, functions};
use brine_text::glob::fnmatch;
use brine_value::{Map, Value, map};
use indexmap::IndexMap;
use nix::unistd::{AccessFlags, Gid, Group, Uid, User};
use regex::Regex;

use crate::context::Context;
use crate::state::Source;

functions! {
    module "file", context Context;

    /// Whether there is a file, not a folder, at this path.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.file_exists /etc/passwd
    fn file_exists(_context, path: String) {
        Ok(expand(&path).is_file().into())
    }

    /// Whether there is a folder at this path.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.directory_exists /etc
    fn directory_exists(_context, path: String) {
        Ok(expand(&path).is_dir().into())
    }

    /// Whether there is anything at this path.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.path_exists_glob '/etc/pam*/pass*'
    fn path_exists_glob(_context, path: String) {
        Ok((!brine_text::glob::paths(Path::new(""), &expand(&path).to_string_lossy()).is_empty()).into())
    }

    /// Writes lines to a file, which has nothing else then.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.write /etc/motd "With all thine offerings thou shalt offer salt."
    fn write(_context, path: String, *args, **kwargs) {
        let lines = lines(&args, &kwargs);
        std::fs::write(expand(&path), lines.concat()).map_err(|error| at(&path, &error))?;
        Ok(format!("Wrote {} lines to \"{path}\"", lines.len()).into())
    }

    /// Writes lines to the end of a file.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.append /etc/motd "With all thine offerings thou shalt offer salt."
    fn append(_context, path: String, *args, **kwargs) {
        let lines = lines(&args, &kwargs);
        let mut text = std::fs::read(expand(&path)).map_err(|error| at(&path, &error))?;
        if !text.is_empty() && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        text.extend(lines.concat().into_bytes());
        std::fs::write(expand(&path), text).map_err(|error| at(&path, &error))?;
        Ok(format!("Wrote {} lines to \"{path}\"", lines.len()).into())
    }

    /// Writes lines to the start of a file.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.prepend /etc/motd "With all thine offerings thou shalt offer salt."
    fn prepend(_context, path: String, *args, **kwargs) {
        let lines = lines(&args, &kwargs);
        let before = std::fs::read(expand(&path)).unwrap_or_default();
        let text = [lines.concat().into_bytes(), before].concat();
        std::fs::write(expand(&path), text).map_err(|error| at(&path, &error))?;
        Ok(format!("Prepended {} lines to \"{path}\"", lines.len()).into())
    }

    /// A part of a file: so many bytes behind so many.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.seek_read /path/to/file 4096 0
    fn seek_read(_context, path: String, size: u64, offset: u64) {
        let mut data = Vec::new();
        let read = std::fs::File::open(expand(&path)).and_then(|mut file| {
            file.seek(SeekFrom::Start(offset))?;
            file.take(size).read_to_end(&mut data)
        });
        read.map_err(|error| at(&path, &error))?;
        // As Salt's, text where it can be text.
        Ok(String::from_utf8(data).map_or_else(|error| error.into_bytes().into(), Value::from))
    }

    /// Writes into a file that is there, behind so many bytes. Gives the number of bytes.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.seek_write /path/to/file 'some data' 4096
    fn seek_write(_context, path: String, data: Value, offset: u64) {
        let data = data.as_bytes().map_or_else(|| data.to_string().into_bytes(), <[u8]>::to_vec);
        let written = std::fs::OpenOptions::new().write(true).open(expand(&path)).and_then(|mut file| {
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(&data)?;
            file.sync_all()
        });
        written.map_err(|error| at(&path, &error))?;
        Ok(data.len().into())
    }

    /// Cuts a file off behind so many bytes.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.truncate /path/to/file 512
    fn truncate(_context, path: String, length: u64) {
        let cut = std::fs::OpenOptions::new().write(true).open(expand(&path)).and_then(|file| file.set_len(length));
        cut.map_err(|error| at(&path, &error))?;
        Ok(Value::Nil)
    }

    /// The names in a folder.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.readdir /path/to/dir/
    fn readdir(_context, path: String) {
        if !expand(&path).is_absolute() {
            return Err(invalid("readdir", "Dir path must be absolute."));
        }
        let entries = std::fs::read_dir(expand(&path)).map_err(|_| invalid("readdir", &format!("A valid directory was not specified: {path}")))?;
        let mut names: Vec<String> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names.splice(0..0, [".".to_owned(), "..".to_owned()]);
        Ok(names.into())
    }

    /// How many bytes a file has, or all files in a folder together.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.diskusage /path/to/check
    fn diskusage(_context, path: String) {
        let (mut total, mut seen, mut open) = (0, HashSet::new(), vec![PathBuf::from(path)]);
        while let Some(path) = open.pop() {
            let Ok(status) = std::fs::metadata(&path) else { continue };
            if !status.is_dir() {
                // A file with several names counts once.
                total += if seen.insert(status.ino()) { status.size() } else { 0 };
            } else if !path.is_symlink() {
                open.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
        }
        Ok(total.into())
    }

    /// Which files are open, and by which processes; with `by_pid`, which files each process has open.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.open_files
    fn open_files(_context, by_pid: bool = false) {
        let mut open = BTreeSet::new();
        for (pid, process) in numbered(Path::new("/proc")) {
            for (_, task) in numbered(&process.join("task")) {
                let descriptors = numbered(&task.join("fd")).into_iter().map(|(_, descriptor)| descriptor);
                let real = descriptors.chain([task.join("exe")]).filter_map(|path| path.canonicalize().ok());
                open.extend(real.map(|path| (pid, path.display().to_string())));
            }
        }
        let mut found: IndexMap<Value, Vec<Value>> = IndexMap::new();
        for (pid, path) in open {
            let (key, value) = if by_pid { (pid.into(), path.into()) } else { (path.into(), pid.into()) };
            found.entry(key).or_default().push(value);
        }
        Ok(found.into_iter().map(|(key, values)| (key, values.into())).collect::<Map>().into())
    }

    /// Whether a file has this hash: hex digits, or its kind, `=` and hex digits.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.check_hash /etc/fstab md5=e138491e9d5b97023cea823fe17bac22
    fn check_hash(_context, path: String, file_hash: String) {
        let (form, hash) = match file_hash.split_once([':', '=']) {
            Some(pair) => pair,
            None => (hash_kind(&file_hash).ok_or_else(|| CallError::Execution(format!("{file_hash} is no hash of a known kind: write kind=hash")))?, file_hash.as_str()),
        };
        Ok((digest(&expand(&path), form)? == hash).into())
    }

    /// Renders a text with a template engine: `jinja`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.apply_template_on_contents contents='This is a {{ template }} string.' template=jinja "context={}" "defaults={'template': 'cool'}" saltenv=base
    fn apply_template_on_contents(host, contents: String, template: String, context: Value, defaults: Value, saltenv: String) {
        if template != "jinja" {
            return Ok(map! {"result" => false, "comment" => format!("Specified template format {template} is not supported")}.into());
        }
        let mut variables = defaults.as_map().cloned().unwrap_or_default();
        variables.extend(context.as_map().cloned().unwrap_or_default());
        let source = Source::new(host, host.pillar());
        source.render_template("contents", &contents, &variables, &saltenv).map(Value::from).map_err(CallError::Execution)
    }

    /// The content of a file.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.read /path/to/file
    fn read(_context, path: String, binary: bool = false) {
        let bytes = std::fs::read(expand(&path)).map_err(|error| at(&path, &error))?;
        Ok(if binary { bytes.into() } else { String::from_utf8_lossy(&bytes).into_owned().into() })
    }

    /// The hash of a file in hex.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.get_hash /etc/shadow
    fn get_hash(_context, path: String, form: String = "sha256".into(), **_kwargs) {
        Ok(digest(&expand(&path), &form)?.into())
    }

    /// As `get_hash`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.get_sum /etc/passwd sha512
    fn get_sum(_context, path: String, form: String = "sha256".into()) {
        Ok(digest(&expand(&path), &form)?.into())
    }

    /// The part of a path before its last `/`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.dirname '/etc/salt/minion'
    fn dirname(_context, path: String) {
        Ok(path.rfind('/').map_or("", |at| if at == 0 { "/" } else { path[..at].trim_end_matches('/') }).into())
    }

    /// The part of a path behind its last `/`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.basename '/etc/salt/minion'
    fn basename(_context, path: String) {
        Ok(path.rsplit('/').next().unwrap_or_default().into())
    }

    /// Joins parts of a path. What is absolute begins anew.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.join '/' 'usr' 'local' 'bin'
    fn join(_context, *args) {
        let joined: PathBuf = args.iter().map(ToString::to_string).collect();
        Ok(joined.display().to_string().into())
    }

    /// A path without `.`, `..` behind a name, and strokes that stand twice.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.normpath 'a/b/c/..'
    fn normpath(_context, path: String) {
        Ok(places::normal(Path::new(&path)).display().to_string().into())
    }

    /// The name of the folder that a folder is in: `..`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.pardir
    fn pardir(_context) {
        Ok("..".into())
    }

    /// Whether a pattern with `*`, `?` and `[]` fits the whole of a file.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.contains_glob /etc/foobar '*cheese*'
    fn contains_glob(_context, path: String, glob_expr: String) {
        let have = std::fs::read(expand(&path)).unwrap_or_default();
        Ok((!have.is_empty() && fnmatch(&glob_expr, &String::from_utf8_lossy(&have))).into())
    }

    /// Whether the minion can find (`f`), read (`r`), write (`w`) or run (`x`) a file.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.access /path/to/file r
    fn access(_context, path: String, mode: String) {
        let flags = match mode.as_str() {
            "f" => AccessFlags::F_OK,
            "r" => AccessFlags::R_OK,
            "w" => AccessFlags::W_OK,
            "x" => AccessFlags::X_OK,
            _ => return Err(invalid("access", "Invalid mode specified.")),
        };
        Ok(nix::unistd::access(&expand(&path), flags).is_ok().into())
    }

    /// Whether a text is somewhere in a file.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.contains /etc/crontab 'mymaintenance.sh'
    fn contains(_context, path: String, text: String) {
        let have = std::fs::read(expand(&path)).unwrap_or_default();
        Ok(String::from_utf8_lossy(&have).contains(text.trim()).into())
    }

    /// Whether a regular expression matches in a line of a file, behind the characters of `lchar`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.contains_regex /etc/crontab '^@daily'
    fn contains_regex(_context, path: String, regex: String, lchar: String = String::new()) {
        let regex = Regex::new(&regex).map_err(CallError::execution)?;
        let have = std::fs::read(expand(&path)).unwrap_or_default();
        let mut lines = String::from_utf8_lossy(&have).lines().map(str::to_owned).collect::<Vec<_>>().into_iter();
        Ok(lines.any(|line| regex.is_match(line.trim_start_matches(|c| lchar.contains(c)))).into())
    }
}

/// `~` is the home of who runs the minion.
pub(crate) fn expand(path: &str) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(rest) => std::env::home_dir().unwrap_or_default().join(rest),
        None => PathBuf::from(path),
    }
}

/// A call that makes no sense.
fn invalid(function: &str, message: &str) -> CallError {
    CallError::Invocation { function: format!("file.{function}"), message: message.to_owned() }
}

/// Whether nothing is to be changed: `test` of the configuration.
fn is_test(context: &Context) -> bool {
    context.config().opts.get("test").is_some_and(Value::is_truthy)
}

/// What the system says of an error, without its number.
fn reason(error: &std::io::Error) -> String {
    error
        .raw_os_error()
        .map_or_else(|| error.to_string(), |number| nix::errno::Errno::from_raw(number).desc().to_owned())
}

/// What the system says of an error, with its number.
fn errno(error: &std::io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), |number| format!("[Errno {number}] {}", reason(error)))
}

/// The entries of a folder whose names are numbers.
fn numbered(folder: &Path) -> Vec<(u64, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path()))).collect()
}

/// What went wrong with a path.
pub(super) fn at(path: &str, error: &std::io::Error) -> CallError {
    CallError::Execution(format!("{path}: {error}"))
}

fn status(path: &str, follow: bool) -> Result<std::fs::Metadata, CallError> {
    let file = expand(path);
    let found = if follow { std::fs::metadata(&file) } else { std::fs::symlink_metadata(&file) };
    found.map_err(|_| CallError::Execution(format!("Path not found: {path}")))
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

/// The lines to write: positional values, or those of `args`.
fn lines(args: &[Value], kwargs: &Map) -> Vec<String> {
    let given = match kwargs.get("args") {
        Some(Value::List(lines)) => lines,
        Some(line) => std::slice::from_ref(line),
        None => args,
    };
    given.iter().map(|line| format!("{line}\n")).collect()
}

/// The hash of a file in hex, of the kind with this name.
pub fn digest(path: &Path, form: &str) -> Result<String, CallError> {
    let digest = digest_named(form)?.of_file(path).map_err(|error| at(&path.display().to_string(), &error))?;
    Ok(hex(digest))
}

fn digest_named(form: &str) -> Result<Digest, CallError> {
    Digest::named(form).ok_or_else(|| CallError::Execution(format!("Invalid hash type: {form}")))
}

/// The kind of a hash, by how many hex digits it has.
pub fn hash_kind(hex: &str) -> Option<&'static str> {
    let kind = match hex.len() {
        32 => "md5",
        40 => "sha1",
        56 => "sha224",
        64 => "sha256",
        96 => "sha384",
        128 => "sha512",
        _ => return None,
    };
    hex.chars().all(|c| c.is_ascii_hexdigit()).then_some(kind)
}

/// A hash of bytes, in hex digits.
pub fn hex_digest(bytes: &[u8], form: &str) -> Result<String, CallError> {
    Ok(hex(digest_named(form)?.of(bytes)))
}

#[cfg(test)]
mod tests;

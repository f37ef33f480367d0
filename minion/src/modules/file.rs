//! `file`: looking at files and changing them, one call at a time.

pub(crate) mod diff;
pub(crate) mod edit;
pub(crate) mod flags;
pub(crate) mod line;

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use brine_core::crypt::token::hex;
use brine_core::function::CallError;
use brine_core::glob::fnmatch;
use brine_core::value::FromValue;
use brine_core::{Map, Value, functions, map};
use nix::unistd::{AccessFlags, Gid, Group, Uid, User};
use regex::Regex;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use crate::context::Context;

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
        Ok((!brine_core::glob::paths(Path::new(""), &expand(&path).to_string_lossy()).is_empty()).into())
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

    /// What the system knows of a file.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.stats /etc/passwd
    fn stats(_context, path: String, hash_type: Option<String> = None, follow_symlinks: bool = true) {
        let file = expand(&path);
        let found = if follow_symlinks { std::fs::metadata(&file) } else { std::fs::symlink_metadata(&file) };
        let Ok(status) = found else { return Ok(Value::map()) };
        let time = |seconds: i64, nanos: i64| seconds as f64 + nanos as f64 / 1e9;
        let mut stats = map! {
            "inode" => status.ino(),
            "uid" => status.uid(),
            "gid" => status.gid(),
            "group" => group_name(status.gid()),
            "user" => user_name(status.uid()),
            "atime" => time(status.atime(), status.atime_nsec()),
            "mtime" => time(status.mtime(), status.mtime_nsec()),
            "ctime" => time(status.ctime(), status.ctime_nsec()),
            "size" => status.size(),
            "mode" => mode_text(&status),
            "type" => kind(&status),
            "target" => file.canonicalize().unwrap_or(file.clone()).display().to_string(),
        };
        if let Some(form) = hash_type {
            stats.insert("sum".into(), digest(&file, &form)?.into());
        }
        Ok(stats.into())
    }

    /// The hash of a file in hex.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.get_hash /etc/shadow
    fn get_hash(_context, path: String, form: String = "sha256".into(), **_kwargs) {
        Ok(digest(&expand(&path), &form)?.into())
    }

    /// Whether a file has this hash: hex digits, or its kind, `=` and hex digits.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.check_hash /etc/fstab md5=e138491e9d5b97023cea823fe17bac22
    fn check_hash(_context, path: String, file_hash: String) {
        let unknown = || CallError::Execution(format!("{file_hash} is no hash of a known kind: write kind=hash"));
        let (form, hash) = match file_hash.split_once([':', '=']) {
            Some(pair) => pair,
            None => (hash_kind(&file_hash).ok_or_else(unknown)?, file_hash.as_str()),
        };
        Ok((digest(&expand(&path), form)? == hash).into())
    }

    /// As `get_hash`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.get_sum /etc/passwd sha512
    fn get_sum(_context, path: String, form: String = "sha256".into()) {
        Ok(digest(&expand(&path), &form)?.into())
    }

    /// The mode of a file: four octal digits.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.get_mode /etc/passwd
    fn get_mode(_context, path: String, follow_symlinks: bool = true) {
        Ok(mode_text(&status(&path, follow_symlinks)?).into())
    }

    /// The name of the user who owns a file.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.get_user /etc/passwd
    fn get_user(_context, path: String, follow_symlinks: bool = true) {
        Ok(user_name(status(&path, follow_symlinks)?.uid()).into())
    }

    /// The name of the group that owns a file.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.get_group /etc/passwd
    fn get_group(_context, path: String, follow_symlinks: bool = true) {
        Ok(group_name(status(&path, follow_symlinks)?.gid()).into())
    }

    /// Gives a file an owner. Nothing is returned when that worked.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.chown /etc/passwd root root
    fn chown(_context, path: String, user: String = String::new(), group: String = String::new()) {
        let uid = match user.parse() {
            Ok(number) => Some(number),
            Err(_) if user.is_empty() => None,
            Err(_) => match User::from_name(&user).ok().flatten() {
                Some(user) => Some(user.uid.as_raw()),
                None => return Ok("User does not exist".into()),
            },
        };
        let gid = match group.parse() {
            Ok(number) => Some(number),
            Err(_) if group.is_empty() => None,
            Err(_) => match Group::from_name(&group).ok().flatten() {
                Some(group) => Some(group.gid.as_raw()),
                None => return Ok("Group does not exist".into()),
            },
        };
        let file = expand(&path);
        if !file.exists() {
            return Ok("File not found".into());
        }
        std::os::unix::fs::chown(file, uid, gid).map_err(|error| at(&path, &error))?;
        Ok(Value::Nil)
    }

    /// Gives a file a mode, and gives the mode back.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.set_mode /etc/passwd 0644
    fn set_mode(_context, path: String, mode: Value) {
        let file = expand(&path);
        if !file.exists() {
            return Err(CallError::Execution(format!("{path}: File not found")));
        }
        let text = mode.to_string();
        let bits = u32::from_str_radix(text.trim_start_matches("0o"), 8).ok().filter(|bits| *bits <= 0o7777);
        let Some(bits) = bits else { return Ok(format!("Invalid Mode {mode}").into()) };
        std::fs::set_permissions(&file, PermissionsExt::from_mode(bits)).map_err(|error| at(&path, &error))?;
        Ok(mode_text(&status(&path, true)?).into())
    }

    /// Makes a folder, and the folders that it is in.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.mkdir /opt/jetty/context
    fn mkdir(context, dir_path: String, user: Option<String> = None, group: Option<String> = None, mode: Value = Value::Nil) {
        let folder = expand(&dir_path);
        if !folder.is_dir() {
            std::fs::create_dir_all(&folder).map_err(|error| at(&dir_path, &error))?;
            if user.is_some() || group.is_some() {
                chown(context, dir_path.clone(), user.unwrap_or_default(), group.unwrap_or_default())?;
            }
            if mode.is_truthy() {
                set_mode(context, dir_path, mode)?;
            }
        }
        Ok(true.into())
    }

    /// Makes the folders that a path is in.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.makedirs /opt/code/
    fn makedirs(context, path: String, user: Option<String> = None, group: Option<String> = None, mode: Value = Value::Nil) {
        let folder = if path.ends_with('/') { expand(&path) } else { expand(&path).parent().unwrap_or(Path::new("/")).to_owned() };
        let folder = folder.display().to_string();
        if Path::new(&folder).is_dir() {
            return Ok(format!("Directory '{folder}' already exists").into());
        }
        mkdir(context, folder, user, group, mode)?;
        Ok(Value::Nil)
    }

    /// Removes a file or a folder with all in it. False if there was none.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.remove /tmp/foo
    fn remove(_context, path: String, **_kwargs) {
        let file = expand(&path);
        if !file.is_absolute() {
            return Err(CallError::Execution(format!("File path must be absolute: {path}")));
        }
        if file == Path::new("/") {
            return Err(CallError::Execution("Refusing to remove /".into()));
        }
        let Ok(status) = std::fs::symlink_metadata(&file) else { return Ok(false.into()) };
        let removed = if status.is_dir() { std::fs::remove_dir_all(&file) } else { std::fs::remove_file(&file) };
        removed.map_err(|error| at(&path, &error))?;
        Ok(true.into())
    }

    /// Moves a file or folder.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.rename /path/to/src /path/to/dst
    fn rename(_context, src: String, dst: String) {
        std::fs::rename(expand(&src), expand(&dst)).map_err(|error| at(&src, &error))?;
        Ok(true.into())
    }

    /// Copies a file, or with `recurse` a folder.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.copy /path/to/src /path/to/dst
    fn copy(_context, src: String, dst: String, recurse: bool = false, remove_existing: bool = false) {
        let (from, mut to) = (expand(&src), expand(&dst));
        if from.is_dir() && !recurse {
            return Err(CallError::Execution(format!("Cannot copy overwriting a directory without recurse flag set to true: {src}")));
        }
        if !from.is_dir() && to.is_dir() {
            to.push(from.file_name().unwrap_or_default());
        }
        if remove_existing && to.is_dir() {
            std::fs::remove_dir_all(&to).map_err(|error| at(&dst, &error))?;
        }
        crate::states::copy_tree(&from, &to).map_err(|error| at(&src, &error))?;
        Ok(true.into())
    }

    /// Makes a symbolic link at `path` to `src`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.symlink /path/to/file /path/to/link
    fn symlink(_context, src: String, path: String, force: bool = false) {
        let link = expand(&path);
        if !link.is_absolute() {
            return Err(CallError::Execution(format!("Link path must be absolute: {path}")));
        }
        if std::fs::read_link(&link).is_ok_and(|leads| leads == expand(&src)) {
            return Ok(true.into());
        }
        if std::fs::symlink_metadata(&link).is_ok() {
            if !force {
                return Err(CallError::Execution(format!("Found existing symlink: {path}")));
            }
            std::fs::remove_file(&link).map_err(|error| at(&path, &error))?;
        }
        std::os::unix::fs::symlink(expand(&src), &link).map_err(|error| at(&path, &error))?;
        Ok(true.into())
    }

    /// Whether there is a symbolic link at this path.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.is_link /path/to/link
    fn is_link(_context, path: String) {
        Ok(expand(&path).is_symlink().into())
    }

    /// Where a symbolic link leads.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.readlink /path/to/link
    fn readlink(_context, path: String, canonicalize: bool = false) {
        let link = expand(&path);
        if !link.is_symlink() {
            return Err(CallError::Execution(format!("A valid link was not specified: {path}")));
        }
        let leads = if canonicalize { link.canonicalize() } else { std::fs::read_link(&link) };
        Ok(leads.map_err(|error| at(&path, &error))?.display().to_string().into())
    }

    /// Sets the times of a file, to now if nothing is said, and makes it if it is missing.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.touch /var/log/emptyfile
    fn touch(_context, name: String, atime: Option<u64> = None, mtime: Option<u64> = None) {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(expand(&name)).map_err(|error| at(&name, &error))?;
        let time = |given: Option<u64>, other: Option<u64>| {
            given.or(other).map_or_else(SystemTime::now, |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
        };
        let times = std::fs::FileTimes::new().set_accessed(time(atime, mtime)).set_modified(time(mtime, atime));
        file.set_times(times).map_err(|error| at(&name, &error))?;
        Ok(true.into())
    }

    /// The paths below a path that fit all of `name`, `iname`, `type` (letters of `bcdpfls`), `regex`,
    /// `mindepth`, `maxdepth` and `print` (`path` or `name`).
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.find / type=f name=\*.bak
    fn find(_context, path: String, **kwargs) {
        find_paths(&expand(&path), &kwargs)
    }

    /// The names in a folder.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.readdir /path/to/dir/
    fn readdir(_context, path: String) {
        let entries = std::fs::read_dir(expand(&path)).map_err(|_| CallError::Execution(format!("A valid directory was not specified: {path}")))?;
        let mut names: Vec<String> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names.splice(0..0, [".".to_owned(), "..".to_owned()]);
        Ok(names.into())
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

    /// Joins parts of a path.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.join '/' 'usr' 'local' 'bin'
    fn join(_context, *args) {
        let mut joined = String::new();
        for part in args.iter().map(ToString::to_string) {
            if !joined.is_empty() && !joined.ends_with('/') {
                joined.push('/');
            }
            joined.push_str(if joined.is_empty() { &part } else { part.trim_start_matches('/') });
        }
        Ok(joined.into())
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
            _ => return Err(CallError::Execution("Invalid mode specified.".into())),
        };
        Ok(nix::unistd::access(&expand(&path), flags).is_ok().into())
    }

    /// Whether a regular expression matches somewhere in a file.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.search /etc/crontab 'mymaintenance.sh'
    fn search(_context, path: String, pattern: String, ignore_if_missing: bool = false, multiline: bool = false) {
        let file = expand(&path);
        if !file.exists() && ignore_if_missing {
            return Ok(false.into());
        }
        let text = std::fs::read(&file).map_err(|_| CallError::Execution(format!("File not found: {path}")))?;
        let text = String::from_utf8_lossy(&text);
        let regex = regex::RegexBuilder::new(&pattern).multi_line(true).dot_matches_new_line(multiline).build();
        Ok(regex.map_err(CallError::execution)?.is_match(&text).into())
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

fn at(path: &str, error: &std::io::Error) -> CallError {
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
    let given = kwargs.get("args").map(Vec::<String>::from_value).unwrap_or_default().unwrap_or_default();
    let positional = args.iter().map(ToString::to_string);
    positional.chain(given).map(|line| format!("{}\n", line.trim_end_matches('\n'))).collect()
}

fn digest(path: &Path, form: &str) -> Result<String, CallError> {
    hex_digest(&std::fs::read(path).map_err(|error| at(&path.display().to_string(), &error))?, form)
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
    match form {
        "md5" => Ok(hex(md5::Md5::digest(bytes))),
        "sha1" => Ok(hex(sha1::Sha1::digest(bytes))),
        "sha224" => Ok(hex(Sha224::digest(bytes))),
        "sha256" => Ok(hex(Sha256::digest(bytes))),
        "sha384" => Ok(hex(Sha384::digest(bytes))),
        "sha512" => Ok(hex(Sha512::digest(bytes))),
        other => Err(CallError::Execution(format!("Invalid hash type: {other}"))),
    }
}

/// `find`'s search. Links are not followed.
fn find_paths(start: &Path, criteria: &Map) -> Result<Value, CallError> {
    let text = |name: &str| criteria.get(name).filter(|value| !value.is_nil()).map(ToString::to_string);
    let number = |name: &str| criteria.get(name).and_then(usize::from_value);
    let known = ["name", "iname", "type", "regex", "iregex", "mindepth", "maxdepth", "print"];
    let unknown = criteria.keys().filter_map(Value::as_str).find(|key| !known.contains(key) && !key.starts_with("__"));
    if let Some(unknown) = unknown {
        return Err(CallError::Execution(format!("error: invalid or not supported criterion: {unknown}")));
    }
    let regex = text("regex").map(|regex| Regex::new(&regex)).transpose().map_err(CallError::execution)?;
    let any_case = |regex: String| regex::RegexBuilder::new(&regex).case_insensitive(true).build();
    let iregex = text("iregex").map(any_case).transpose().map_err(CallError::execution)?;
    let (name, iname, types) = (text("name"), text("iname").map(|name| name.to_lowercase()), text("type"));
    let letter = |status: &std::fs::Metadata| match kind(status) {
        "dir" => 'd',
        "link" => 'l',
        "block" => 'b',
        "char" => 'c',
        "pipe" => 'p',
        "socket" => 's',
        _ => 'f',
    };
    let (least, most) = (number("mindepth").unwrap_or(0), number("maxdepth").unwrap_or(usize::MAX));
    let only_name = text("print").as_deref() == Some("name");
    let (mut found, mut open) = (Vec::new(), vec![(start.to_owned(), 0)]);
    while let Some((path, depth)) = open.pop() {
        let Ok(status) = std::fs::symlink_metadata(&path) else { continue };
        let full = path.to_string_lossy().into_owned();
        let own = path.file_name().map_or_else(|| full.clone(), |name| name.to_string_lossy().into_owned());
        let fits = depth >= least
            && name.as_ref().is_none_or(|pattern| fnmatch(pattern, &own))
            && iname.as_ref().is_none_or(|pattern| fnmatch(pattern, &own.to_lowercase()))
            && types.as_ref().is_none_or(|types| types.contains(letter(&status)))
            && [&regex, &iregex].iter().all(|regex| regex.as_ref().is_none_or(|regex| regex.is_match(&full)));
        if fits {
            found.push(if only_name { own } else { full });
        }
        if status.is_dir() && depth < most {
            open.extend(
                std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| (entry.path(), depth + 1)),
            );
        }
    }
    found.sort();
    Ok(found.into())
}

#[cfg(test)]
mod tests;

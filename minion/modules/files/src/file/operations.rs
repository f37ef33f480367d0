//! Creates, moves, copies and removes files, directories and links.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::paths::expand;
use brine_system::files::Attributes;
use brine_system::user_files;
use brine_value::{Map, Value, list, map};

use super::owners::{check_perms, get_group, get_user};
use super::{errno, error_at, invalid};

/// Execution functions of `file`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "file",
    [
        mkdir,
        makedirs,
        makedirs_perms,
        remove,
        rmdir,
        rename,
        move_to,
        copy,
        super::links::symlink,
        super::links::link,
        super::links::is_link,
        super::links::is_hardlink,
        super::links::readlink,
        touch,
        super::nodes::mknod,
        super::nodes::mknod_chrdev,
        super::nodes::mknod_blkdev,
        super::nodes::mknod_fifo,
        super::nodes::is_chrdev,
        super::nodes::is_blkdev,
        super::nodes::is_fifo,
        super::nodes::get_devmm
    ]
);

/// Create a directory, and its parent directories.
///
/// CLI Example:
///
///     salt '*' file.mkdir /opt/jetty/context
#[function]
pub fn mkdir(
    context: &Context,
    /// Path of the directory.
    dir_path: String,
    /// Name or id of the owner.
    #[default]
    user: Value,
    /// Name or id of the owning group.
    #[default]
    group: Value,
    /// Permissions, as an octal string.
    #[default]
    mode: Value,
) -> CallResult {
    let directory = normal(&expand(&dir_path));
    if !directory.is_dir() {
        make_directories(context, &directory, &user, &group, &mode)?;
    }
    Ok(true.into())
}

/// Create the parent directories of a path.
///
/// CLI Example:
///
///     salt '*' file.makedirs /opt/code/
#[function]
pub fn makedirs(
    context: &Context,
    /// Path of the directory.
    path: String,
    /// Name or id of the owner.
    #[default]
    user: Value,
    /// Name or id of the owning group.
    #[default]
    group: Value,
    /// Permissions, as an octal string.
    #[default]
    mode: Value,
) -> CallResult {
    let whole = expand(&path);
    let directory = if path.ends_with('/') { whole } else { whole.parent().unwrap_or(Path::new("/")).to_owned() };
    let directory = normal(&directory);
    if directory.is_dir() {
        return Ok(format!("Directory '{}' already exists", directory.display()).into());
    }
    if directory.exists() {
        return Ok(format!("The path '{}' already exists and is not a directory", directory.display()).into());
    }
    make_directories(context, &directory, &user, &group, &mode)?;
    Ok(Value::Nil)
}

/// Create a directory and its parent directories, all with this owner and mode.
///
/// CLI Example:
///
///     salt '*' file.makedirs_perms /opt/code
#[function]
pub fn makedirs_perms(
    context: &Context,
    /// Path of the file.
    name: String,
    /// Name or id of the owner.
    #[default]
    user: Value,
    /// Name or id of the owning group.
    #[default]
    group: Value,
    /// Permissions, as an octal string.
    #[default("0755".into())]
    mode: Value,
) -> CallResult {
    let directory = expand(&name);
    if directory.exists() {
        return Err(CallError::Execution(format!("{name} already exists")));
    }
    make_directories(context, &directory, &user, &group, &mode)?;
    Ok(Value::Nil)
}

/// Remove a file, or a directory with all its content. Returns False if there was none.
///
/// CLI Example:
///
///     salt '*' file.remove /tmp/foo
#[function]
pub fn remove(
    _context: &Context,
    /// Path of the file.
    path: String,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let file = expand(&path);
    if !file.is_absolute() {
        return Err(invalid("remove", &format!("File path must be absolute: {path}")));
    }
    if file == Path::new("/") {
        return Err(CallError::Execution("Refusing to remove /".into()));
    }
    let Ok(status) = std::fs::symlink_metadata(&file) else { return Ok(false.into()) };
    let removed = if status.is_dir() { user_files::remove_dir_all(&file) } else { user_files::remove_file(&file) };
    removed.map_err(|error| error_at(&path, &error))?;
    Ok(true.into())
}

/// Remove a directory if it is empty; with `recurse`, also remove empty subdirectories; with `older_than`, only
/// those unchanged for this many days. `verbose` reports each removal.
///
/// CLI Example:
///
///     salt '*' file.rmdir /tmp/foo/
#[function]
pub fn rmdir(
    _context: &Context,
    /// Path of the directory.
    path: String,
    /// Whether everything below a directory is included.
    #[default(false)]
    recurse: bool,
    /// Whether the removed directories are returned, too.
    #[default(false)]
    verbose: bool,
    /// Number of days: only what is unchanged for longer is removed.
    older_than: Option<u64>,
) -> CallResult {
    let directory = expand(&path);
    if !directory.is_absolute() {
        return Err(invalid("rmdir", "File path must be absolute."));
    }
    if !directory.is_dir() {
        return Err(invalid("rmdir", &format!("A valid directory was not specified: {path}")));
    }
    let mut directories = if recurse { directories_below(&directory) } else { Vec::new() };
    directories.push(directory);
    let (mut deleted, mut errors) = (Vec::new(), Vec::new());
    let age = older_than.filter(|days| *days > 0).map(|days| Duration::from_secs(days * 86400));
    let is_old = |directory: &Path| {
        let changed = std::fs::metadata(directory).and_then(|status| status.modified()).ok();
        age.is_none_or(|age| changed.and_then(|changed| changed.elapsed().ok()).is_some_and(|passed| passed > age))
    };
    for directory in directories.iter().filter(|directory| is_old(directory)) {
        let name = directory.display().to_string();
        match user_files::remove_dir(directory) {
            Ok(()) => deleted.push(name),
            Err(error) => {
                let message = format!("{}: '{name}'", errno(&error));
                errors.push(list![name, message]);
            }
        }
    }
    let is_complete = errors.is_empty() && (recurse || !deleted.is_empty());
    Ok(if verbose {
        map! {"deleted" => deleted, "errors" => errors, "result" => is_complete}.into()
    } else {
        is_complete.into()
    })
}

/// Rename a file or directory.
///
/// CLI Example:
///
///     salt '*' file.rename /path/to/src /path/to/dst
#[function]
pub fn rename(
    _context: &Context,
    /// Path of the source.
    src: String,
    /// Path of the destination.
    dst: String,
) -> CallResult {
    if !expand(&src).is_absolute() {
        return Err(invalid("rename", "File path must be absolute."));
    }
    user_files::rename(expand(&src), expand(&dst))
        .map_err(|_| CallError::Execution(format!("Could not rename '{src}' to '{dst}'")))?;
    Ok(true.into())
}

/// Move a file or directory, also into an existing directory or to another file system.
///
/// CLI Example:
///
///     salt '*' file.move /path/to/src /path/to/dst
#[function(name = "move")]
pub fn move_to(
    context: &Context,
    /// Absolute path of the file or directory.
    src: String,
    /// Absolute path of the target.
    dst: String,
    /// Whether it is only renamed, which fails between file systems.
    #[default(false)]
    disallow_copy_and_unlink: bool,
) -> CallResult {
    if disallow_copy_and_unlink {
        return rename(context, src, dst);
    }
    let (from, mut to) = (expand(&src), expand(&dst));
    for (path, what) in [(&from, "Source"), (&to, "Destination")] {
        if !path.is_absolute() {
            return Err(invalid("move", &format!("{what} path must be absolute.")));
        }
    }
    if to.is_dir() {
        to.push(from.file_name().unwrap_or_default());
    }
    let moved = match user_files::rename(&from, &to) {
        Err(error) if error.kind() == std::io::ErrorKind::CrossesDevices => {
            crate::file::state::copy_tree(&from, &to).and_then(|()| user_files::remove_dir_all(&from))
        }
        result => result,
    };
    moved.map_err(|error| {
        CallError::Execution(format!("Unable to move '{src}' to '{dst}': {}: '{src}'", errno(&error)))
    })?;
    Ok(map! {"result" => true, "comment" => format!("'{src}' moved to '{dst}'")}.into())
}

/// Copy a file, or with `recurse` a directory; other files of an existing target directory are kept, unless
/// `remove_existing` is set.
///
/// CLI Example:
///
///     salt '*' file.copy /path/to/src /path/to/dst
#[function]
pub fn copy(
    _context: &Context,
    /// Absolute path of the file or directory.
    src: String,
    /// Path of the copy.
    dst: String,
    /// Whether a directory is copied.
    #[default(false)]
    recurse: bool,
    /// Whether an existing target directory is removed first.
    #[default(false)]
    remove_existing: bool,
) -> CallResult {
    let (from, to) = (expand(&src), expand(&dst));
    if !from.is_absolute() {
        return Err(invalid("copy", "File path must be absolute."));
    }
    if !from.exists() {
        return Err(CallError::Execution(format!("No such file or directory '{src}'")));
    }
    if (from.is_dir() || to.is_dir()) && !recurse {
        return Err(invalid("copy", "Cannot copy overwriting a directory without recurse flag set to true!"));
    }
    if remove_existing && to.is_dir() {
        user_files::remove_dir_all(&to).map_err(|error| error_at(&dst, &error))?;
    }
    crate::file::state::copy_tree(&from, &to)
        .map_err(|_| CallError::Execution(format!("Could not copy '{src}' to '{dst}'")))?;
    Ok(true.into())
}

/// Set the times of a file, to now by default, and create it if it is missing.
///
/// CLI Example:
///
///     salt '*' file.touch /var/log/emptyfile
#[function]
pub fn touch(
    _context: &Context,
    /// Path of the file.
    name: String,
    /// Time of the last access, in seconds since 1970; now by default.
    #[default]
    atime: Value,
    /// Time of the last modification, in seconds since 1970; now by default.
    #[default]
    mtime: Value,
) -> CallResult {
    let now = SystemTime::now();
    let time = |argument| seconds(argument).ok()?.map_or(Some(now), file_time);
    let (Some(accessed), Some(modified)) = (time(&atime), time(&mtime)) else {
        return Err(CallError::Invocation {
            function: "file.touch".into(),
            message: "atime and mtime must be integers".into(),
        });
    };
    let path = expand(&name);
    user_files::create(&path).map_err(|error| CallError::Execution(super::reason(&error)))?;
    user_files::set_times(&path, accessed, modified).map_err(|error| error_at(&name, &error))?;
    Ok(true.into())
}

/// The error of a time that is no integer.
pub(super) struct NoInteger;

/// Reads a time in seconds since 1970, also as text, if there is one.
pub(super) fn seconds(time: &Value) -> Result<Option<i64>, NoInteger> {
    match time {
        Value::Nil => Ok(None),
        Value::Str(text) => text.trim().parse().map(Some).map_err(|_| NoInteger),
        time => time.as_i64().map(Some).ok_or(NoInteger),
    }
}

/// Returns a time that file systems know; `None` is one that they do not.
pub(super) fn file_time(seconds: i64) -> Option<SystemTime> {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let epoch = SystemTime::UNIX_EPOCH;
    if seconds < 0 { epoch.checked_sub(distance) } else { epoch.checked_add(distance) }
}

/// Creates a directory and its parents; new ones get this owner and mode.
fn make_directories(
    context: &Context,
    directory: &Path,
    user: &Value,
    group: &Value,
    mode: &Value,
) -> Result<(), CallError> {
    let new = user_files::create_dir_all_with(directory, Attributes::default())
        .map_err(|error| error_at(&directory.display().to_string(), &error))?;
    for directory in new {
        let name = directory.display().to_string();
        let or = |argument: &Value, own: Result<Value, CallError>| {
            if argument.is_truthy() { Ok(argument.clone()) } else { own }
        };
        let user = or(user, get_user(context, name.clone(), true))?;
        let group = or(group, get_group(context, name.clone(), true))?;
        let mode = if mode.is_truthy() { mode.clone() } else { Value::Nil };
        check_perms(context, name, Value::Nil, user, group, mode, None, false, Map::new())?;
    }
    Ok(())
}

/// Returns the subdirectories of a directory, deepest first.
fn directories_below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut directories: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir() && !path.is_symlink()).collect();
    directories.sort();
    let below: Vec<PathBuf> = directories.iter().flat_map(|directory| directories_below(directory)).collect();
    below.into_iter().chain(directories).collect()
}

/// Normalizes a path: removes `.`, `..` with the preceding name, and repeated slashes.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        use std::path::Component::{CurDir, Normal, ParentDir, RootDir};
        match (part, normal.components().next_back()) {
            (CurDir, _) | (ParentDir, Some(RootDir)) => {}
            (ParentDir, Some(Normal(_))) => _ = normal.pop(),
            (part, _) => normal.push(part),
        }
    }
    if normal.as_os_str().is_empty() { PathBuf::from(".") } else { normal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalized() {
        for (path, expected) in [
            ("a/./b//c/", "a/b/c"),
            ("a/../b", "b"),
            ("/../a", "/a"),
            ("../../a", "../../a"),
            ("a/..", "."),
            ("", "."),
            ("/", "/"),
        ] {
            assert_eq!(normal(Path::new(path)), Path::new(expected), "{path}");
        }
    }
}

//! `cp.push` and `cp.push_dir`: send files of this host to the master, in chunks.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use brine_context::Context;
use brine_fileserver::BUFFER_SIZE;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::user_files;
use brine_text::glob::fnmatch;
use brine_value::{Value, map};

use crate::file;

/// Execution functions of `cp`.
pub static FUNCTIONS: Functions<Context> = registry!("cp", [push, push_dir]);

/// Send a file to the master, which must have `file_recv: True` and stores it below `cachedir/minions/<id>/files`.
/// Returns false if the path is not absolute, is not a file, or the master refuses it, such as for its size
/// (`file_recv_max_size`).
///
/// `keep_symlinks` sends a link under its own name instead of its target's, `upload_path` is the path of the file on
/// the master, and `remove_source` removes the file on this host once the master has stored it.
///
/// CLI Example:
///
///     salt '*' cp.push /etc/fstab
///     salt '*' cp.push /tmp/report upload_path=/reports/today remove_source=True
#[function]
pub fn push(
    context: &Context,
    /// URL or path of the file, or of the directory.
    path: String,
    /// Whether symbolic links are sent as links.
    #[default(false)]
    keep_symlinks: bool,
    /// Path of the copy on the master, below the files of the minion.
    upload_path: Option<String>,
    /// Whether the file is removed from the minion afterwards.
    #[default(false)]
    remove_source: bool,
) -> CallResult {
    if !is_plain(&path) {
        return Ok(Value::Bool(false));
    }
    let real = if keep_symlinks { Ok(PathBuf::from(&path)) } else { fs::canonicalize(&path) };
    let Ok(real) = real else { return Ok(Value::Bool(false)) };
    send(context, &real, upload_path.as_deref(), remove_source).map(Value::from)
}

/// Send the files of a directory, with those of all directories below it, to the master. `glob` selects files by
/// their names, and `upload_path` names the directory on the master. Returns false if there is no such file, and
/// at the first file that the master refuses.
///
/// CLI Example:
///
///     salt '*' cp.push_dir /etc/modprobe.d glob='*.conf'
///     salt '*' cp.push_dir /usr/lib/mysql upload_path=/newmysql/path
#[function]
pub fn push_dir(
    context: &Context,
    /// URL or path of the file, or of the directory.
    path: String,
    /// Glob of the names of files that are sent.
    glob: Option<String>,
    /// Path of the copy on the master, below the files of the minion.
    upload_path: Option<String>,
) -> CallResult {
    if !is_plain(&path) {
        return Ok(Value::Bool(false));
    }
    let Ok(root) = fs::canonicalize(&path) else { return Ok(Value::Bool(false)) };
    if root.is_file() {
        return send(context, &root, upload_path.as_deref(), false).map(Value::from);
    }
    let is_selected = |path: &Path| {
        glob.as_ref().is_none_or(|glob| path.file_name().is_some_and(|name| fnmatch(glob, &name.to_string_lossy())))
    };
    let files = files_below(&root).map_err(|error| file::error_at(&path, &error))?;
    let mut sent = false;
    for file in files.iter().filter(|file| is_selected(file)) {
        let below = file.strip_prefix(&root).unwrap_or(file);
        let upload = upload_path.as_ref().filter(|upload| !upload.is_empty());
        let upload = upload.map(|upload| format!("/{}/{}", upload.trim_matches('/'), below.display()));
        let real = fs::canonicalize(file).ok();
        sent = match real {
            Some(real) => send(context, &real, upload.as_deref(), false)?,
            None => false,
        };
        if !sent {
            break;
        }
    }
    Ok(sent.into())
}

/// Whether a path may be sent. As in Salt, it must be absolute and without `../`.
fn is_plain(path: &str) -> bool {
    path.starts_with('/') && !path.contains("../")
}

/// Sends a file, and returns whether the master received all of it.
fn send(context: &Context, path: &Path, upload_path: Option<&str>, remove_source: bool) -> Result<bool, CallError> {
    let name = match upload_path.filter(|upload| !upload.is_empty()) {
        Some(upload) if upload.contains("../") => return Ok(false),
        Some(upload) => upload,
        None => path.to_str().ok_or_else(|| {
            CallError::Execution(format!(
                "sending {} failed: its path is not UTF-8: name another by upload_path",
                path.display()
            ))
        })?,
    };
    if !path.is_file() {
        return Ok(false);
    }
    let pathname = path.display().to_string();
    let at = |error: &io::Error| file::error_at(&pathname, error);
    // The file may have become a named pipe since it was checked; opening it must not block the job.
    let file =
        OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path).map_err(|error| at(&error))?;
    let metadata = file.metadata().map_err(|error| at(&error))?;
    if !metadata.is_file() || !transfer(context, file, &components(name), metadata.len(), &pathname)? {
        return Ok(false);
    }
    if remove_source && let Err(error) = user_files::remove_file(path) {
        tracing::error!(path = pathname, %error, "removing a file that was sent to the master failed");
        return Ok(false);
    }
    Ok(true)
}

fn transfer(context: &Context, mut file: File, name: &[String], size: u64, pathname: &str) -> Result<bool, CallError> {
    let mut loc = 0;
    loop {
        if context.job.cancel.is_cancelled() {
            return Err(CallError::Execution(format!("sending {pathname} failed: the job was ended")));
        }
        let mut piece = Vec::new();
        file.by_ref().take(BUFFER_SIZE).read_to_end(&mut piece).map_err(|error| file::error_at(pathname, &error))?;
        // An empty file is sent as one empty chunk.
        if piece.is_empty() && loc > 0 {
            return Ok(true);
        }
        let is_last = (piece.len() as u64) < BUFFER_SIZE;
        let sent = piece.len() as u64;
        let load = map! {"cmd" => "_file_recv", "path" => name.to_vec(), "size" => size, "loc" => loc, "data" => piece};
        if !context.minion.upstream.ask(load).map_err(CallError::execution)?.is_truthy() {
            tracing::error!(
                path = pathname,
                "sending a file failed: the master refuses it: set file_recv there, and a file_recv_max_size above its size"
            );
            return Ok(false);
        }
        loc += sent;
        if is_last {
            return Ok(true);
        }
    }
}

/// Returns the components of a path, with `.` and `..` resolved lexically.
fn components(path: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." if names.last().is_some_and(|last| last != "..") => _ = names.pop(),
            name => names.push(name.to_owned()),
        }
    }
    names
}

/// Returns all files below a directory, sorted in each directory; links to directories are not followed.
fn files_below(root: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut directories, mut paths) = (vec![root.to_owned()], Vec::new());
    while let Some(directory) = directories.pop() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            // As in Salt, a directory that cannot be read has no files.
            Err(error) if directory == root && error.kind() != io::ErrorKind::NotADirectory => return Err(error),
            Err(_) => continue,
        };
        let mut files = Vec::new();
        for entry in entries.filter_map(Result::ok) {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(path);
            } else if !path.is_dir() {
                files.push(path);
            }
        }
        files.sort();
        paths.append(&mut files);
    }
    Ok(paths)
}

#[cfg(test)]
mod tests;

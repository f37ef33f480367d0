//! The status of files and file systems.

use std::os::unix::fs::MetadataExt;

use brine_context::Context;
use brine_function::{CallError, CallResult, function};
use brine_host::paths::expand;
use brine_value::{Value, map};

use super::{group_name, kind, mode_text, user_name};
use crate::checksum::digest;

/// Return the status of a file.
///
/// CLI Example:
///
///     salt '*' file.stats /etc/passwd
#[function]
pub fn stats(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Type of the checksum that is returned, too, such as `sha256`; none by default.
    hash_type: Option<String>,
    /// Whether links are followed.
    #[default(true)]
    follow_symlinks: bool,
) -> CallResult {
    let file = expand(&path);
    let metadata = if follow_symlinks {
        std::fs::metadata(&file).or_else(|_| std::fs::symlink_metadata(&file))
    } else {
        std::fs::symlink_metadata(&file)
    };
    let status = metadata.map_err(|_| CallError::Execution(format!("Path not found: {path}")))?;
    let mut stats = map! {
        "inode" => status.ino(),
        "uid" => status.uid(),
        "gid" => status.gid(),
        "group" => group_name(status.gid()),
        "user" => user_name(status.uid()),
        "atime" => seconds(status.atime(), status.atime_nsec()),
        "mtime" => seconds(status.mtime(), status.mtime_nsec()),
        "ctime" => seconds(status.ctime(), status.ctime_nsec()),
        "size" => status.size(),
        "mode" => mode_text(&status),
        "type" => kind(&status),
        "target" => if follow_symlinks { file.canonicalize().unwrap_or(file.clone()) } else { file.clone() }.display().to_string(),
    };
    if let Some(form) = hash_type {
        stats.insert("sum".into(), digest(&file, &form)?.into());
    }
    Ok(stats.into())
}

/// Return the status of a file without following links, by the names of C's `struct stat`.
///
/// CLI Example:
///
///     salt '*' file.lstat /path/to/file
#[function]
pub fn lstat(
    _context: &Context,
    /// Absolute path of the file.
    path: String,
) -> CallResult {
    let file = expand(&path);
    if !file.is_absolute() {
        return Err(super::invalid("lstat", "Path to file must be absolute."));
    }
    let Ok(status) = std::fs::symlink_metadata(file) else { return Ok(Value::map()) };
    Ok(map! {
        "st_atime" => seconds(status.atime(), status.atime_nsec()),
        "st_ctime" => seconds(status.ctime(), status.ctime_nsec()),
        "st_gid" => status.gid(),
        "st_mode" => status.mode(),
        "st_mtime" => seconds(status.mtime(), status.mtime_nsec()),
        "st_nlink" => status.nlink(),
        "st_size" => status.size(),
        "st_uid" => status.uid(),
    }
    .into())
}

/// Return the status of the file system of a path.
///
/// CLI Example:
///
///     salt '*' file.statvfs /path/to/file
#[function]
pub fn statvfs(
    _context: &Context,
    /// Absolute path of a file or directory.
    path: String,
) -> CallResult {
    let file = expand(&path);
    if !file.is_absolute() {
        return Err(super::invalid("statvfs", "File path must be absolute."));
    }
    let filesystem =
        nix::sys::statvfs::statvfs(&file).map_err(|_| CallError::Execution(format!("Could not statvfs '{path}'")))?;
    Ok(map! {
        "f_bavail" => filesystem.blocks_available(),
        "f_bfree" => filesystem.blocks_free(),
        "f_blocks" => filesystem.blocks(),
        "f_bsize" => filesystem.block_size(),
        "f_favail" => filesystem.files_available(),
        "f_ffree" => filesystem.files_free(),
        "f_files" => filesystem.files(),
        "f_flag" => filesystem.flags().bits(),
        "f_frsize" => filesystem.fragment_size(),
        "f_namemax" => filesystem.name_max(),
    }
    .into())
}

fn seconds(seconds: i64, nanos: i64) -> f64 {
    seconds as f64 + nanos as f64 / 1e9
}

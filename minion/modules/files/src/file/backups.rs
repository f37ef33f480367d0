//! Backups of changed files, in `file_backup` of the cache directory.

use std::path::{Path, PathBuf};

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::paths::expand;
use brine_system::user_files;
use brine_value::{Map, Value, map};
use jiff::civil::DateTime;

/// Execution functions of `file`.
pub static FUNCTIONS: Functions<Context> =
    registry!("file", [list_backups, list_backup, list_backups_dir, restore_backup, delete_backup, remove_backup]);

/// Return the backups of a file, newest first.
///
/// CLI Example:
///
///     salt '*' file.list_backups /foo/bar/baz.txt
#[function]
pub fn list_backups(
    context: &Context,
    /// Path of the file.
    path: String,
    /// Lines to which the change is limited: a regular expression or an address of sed.
    limit: Option<usize>,
) -> CallResult {
    Ok(to_map(backups(context, &expand(&path)), limit).into())
}

/// Return the backups of a file, as `list_backups`.
///
/// CLI Example:
///
///     salt '*' file.list_backup /foo/bar/baz.txt
#[function]
pub fn list_backup(
    context: &Context,
    /// Path of the file.
    path: String,
    /// Lines to which the change is limited: a regular expression or an address of sed.
    limit: Option<usize>,
) -> CallResult {
    list_backups(context, path, limit)
}

/// Return the backups of all files of a directory.
///
/// CLI Example:
///
///     salt '*' file.list_backups_dir /foo/bar/
#[function]
pub fn list_backups_dir(
    context: &Context,
    /// Path of the file.
    path: String,
    /// Lines to which the change is limited: a regular expression or an address of sed.
    limit: Option<usize>,
) -> CallResult {
    // As in Salt, the part after the last slash is ignored: `/foo/bar/` and `/foo/bar/x` are the same directory.
    let directory = path.rfind('/').map_or("", |at| &path[..at]);
    let backup_dir = backup_directory(context, &expand(directory));
    let entries = std::fs::read_dir(&backup_dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| Some(entry.file_name().to_str()?.split('_').next()?.to_owned())).collect();
    names.sort();
    names.dedup();
    let of = |name: String| (Value::from(&name), to_map(backups_in(&backup_dir, &name), limit).into());
    Ok(names.into_iter().map(of).collect::<Map>().into())
}

/// Restore a backup. The replaced file is backed up, too.
///
/// CLI Example:
///
///     salt '*' file.restore_backup /foo/bar/baz.txt 0
#[function]
pub fn restore_backup(
    context: &Context,
    /// Path of the file.
    path: String,
    /// Number of the backup, as `file.list_backups` lists them; 0 is the newest.
    backup_id: Value,
) -> CallResult {
    let file = expand(&path);
    let backup = match find_backup(context, &path, &backup_id) {
        Ok(backup) => backup,
        Err(reported) => return Ok(reported.into()),
    };
    if file.exists() {
        create(context, &file).map_err(CallError::Execution)?;
    }
    // Only the content is restored; the file keeps its owner and mode.
    let restored = std::fs::read(&backup.path).and_then(|content| user_files::write(&file, content));
    Ok(match restored {
        Ok(()) => outcome(true, format!("Successfully restored {} to {path}", backup.path.display())),
        Err(error) => outcome(false, format!("Unable to restore {} to {path}: {error}", backup.path.display())),
    }
    .into())
}

/// Delete a backup.
///
/// CLI Example:
///
///     salt '*' file.delete_backup /foo/bar/baz.txt 0
#[function]
pub fn delete_backup(
    context: &Context,
    /// Path of the file.
    path: String,
    /// Number of the backup, as `file.list_backups` lists them; 0 is the newest.
    backup_id: Value,
) -> CallResult {
    let backup = match find_backup(context, &path, &backup_id) {
        Ok(backup) => backup,
        Err(reported) => return Ok(reported.into()),
    };
    let path = backup.path.display();
    Ok(match user_files::remove_file(&backup.path) {
        Ok(()) => outcome(true, format!("Successfully removed {path}")),
        Err(error) => outcome(false, format!("Unable to remove {path}: {error}")),
    }
    .into())
}

/// Delete a backup, as `delete_backup`.
///
/// CLI Example:
///
///     salt '*' file.remove_backup /foo/bar/baz.txt 0
#[function]
pub fn remove_backup(
    context: &Context,
    /// Path of the file.
    path: String,
    /// Number of the backup, as `file.list_backups` lists them; 0 is the newest.
    backup_id: Value,
) -> CallResult {
    delete_backup(context, path, backup_id)
}

/// A backup of a file.
struct Backup {
    time: DateTime,
    path: PathBuf,
}

/// Format of the timestamp after the file name in a backup's name.
const TIMESTAMP_FORMAT: &str = "%a_%b_%d_%H:%M:%S_%f_%Y";

/// Whether a replaced file is backed up: according to the argument `backup` of a state or, if that is unset, the option
/// `backup_mode`.
pub(crate) fn is_enabled(context: &Context, backup: &Value) -> bool {
    let mode = if backup.is_truthy() { &backup.to_string() } else { &context.config().backup_mode };
    matches!(mode.as_str(), "minion" | "both")
}

/// Backs up an existing file that is about to be replaced, if the argument `backup` of a state or the option
/// `backup_mode` asks for it.
///
/// # Errors
/// The file cannot be copied.
pub fn create_if_enabled(context: &Context, path: &Path, backup: &Value) -> Result<(), String> {
    if !is_enabled(context, backup) || !path.exists() {
        return Ok(());
    }
    create(context, path)
}

/// Copies a file to `file_backup` in the cache directory, under a name with a timestamp.
pub(crate) fn create(context: &Context, path: &Path) -> Result<(), String> {
    let directory = backup_directory(context, path.parent().unwrap_or(path));
    let now = brine_clock::now();
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let micros = now.subsec_nanosecond() / 1000;
    let target = directory.join(format!("{file}_{}_{micros:06}_{}", now.strftime("%a_%b_%d_%H:%M:%S"), now.year()));
    brine_system::files::create_private_dir(&directory).map_err(|error| error.to_string())?;
    user_files::back_up(path, &target).map_err(|error| format!("backing up {} failed: {error}", path.display()))
}

/// Returns the directory with the backups of the files in a directory.
fn backup_directory(context: &Context, directory: &Path) -> PathBuf {
    context.config().cachedir.join("file_backup").join(directory.strip_prefix("/").unwrap_or(directory))
}

fn backups(context: &Context, file: &Path) -> Vec<Backup> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    backups_in(&backup_directory(context, file.parent().unwrap_or(file)), &name)
}

/// Returns the backups of a file in a directory, newest first.
fn backups_in(directory: &Path, name: &str) -> Vec<Backup> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().filter(|entry| entry.path().is_file());
    let mut backups: Vec<Backup> = entries
        .filter_map(|entry| {
            let stamp = entry.file_name().to_str()?.strip_prefix(name)?.strip_prefix('_')?.to_owned();
            Some(Backup { time: DateTime::strptime(TIMESTAMP_FORMAT, stamp).ok()?, path: entry.path() })
        })
        .collect();
    backups.sort_by_key(|backup| std::cmp::Reverse(backup.time));
    backups
}

fn to_map(backups: Vec<Backup>, limit: Option<usize>) -> Map {
    let one = |(number, backup): (usize, Backup)| {
        let report = map! {
            "Backup Time" => backup.time.strftime("%a %b %d %Y %H:%M:%S.%6f").to_string(),
            "Size" => std::fs::metadata(&backup.path).map_or(0, |status| status.len()),
            "Location" => backup.path.display().to_string(),
        };
        (number.into(), report.into())
    };
    backups.into_iter().take(limit.unwrap_or(usize::MAX)).enumerate().map(one).collect()
}

fn find_backup(context: &Context, path: &str, id: &Value) -> Result<Backup, Map> {
    let number = id.to_string().parse::<usize>().ok().filter(|number| number.to_string() == id.to_string());
    let Some(number) = number else { return Err(outcome(false, format!("Invalid backup_id '{id}'"))) };
    let backup = backups(context, &expand(path)).into_iter().nth(number);
    backup.ok_or_else(|| outcome(false, format!("backup_id '{id}' does not exist for {path}")))
}

fn outcome(result: bool, comment: String) -> Map {
    map! {"result" => result, "comment" => comment}
}

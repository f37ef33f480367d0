//! Links, copies, moved and touched files.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_system::files::{self, Links};
use brine_system::user_files;
use brine_value::{Map, Value, map};
use nix::unistd::{Gid, Group, Uid, User};

use super::attributes::{Attributes, OwnerArgs, directory_mode, parse_mode, primary_group};
use super::{directory_of, invalid_path};
use crate::file::operations::file_time;

/// Whether missing parent directories are created, and their mode and owner.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ParentDirectories {
    pub make: bool,
    pub attributes: files::Attributes,
}

impl ParentDirectories {
    /// Parses a state's arguments.
    pub fn new(make: bool, mode: &Value) -> Self {
        let attributes = files::Attributes { mode: parse_mode(mode), ..files::Attributes::default() };
        ParentDirectories { make, attributes }
    }
}

/// Creates the parent directory of a file, if requested. The error is the comment of the state.
fn parent_for(path: &Path, directories: ParentDirectories, missing: impl FnOnce(&str) -> String) -> Result<(), String> {
    let parent = directory_of(path);
    if parent.is_dir() {
        return Ok(());
    }
    if !directories.make {
        return Err(missing(&parent.display().to_string()));
    }
    user_files::create_dir_all_with(parent, directories.attributes)
        .map(|_| ())
        .map_err(|error| format!("Failed to create {}: {error}", parent.display()))
}

/// Returns the names of a file's owner and group, or their IDs.
fn owner_of(path: &Path) -> Option<(String, String)> {
    let status = std::fs::symlink_metadata(path).ok()?;
    let user = User::from_uid(Uid::from_raw(status.uid())).ok().flatten().map(|user| user.name);
    let group = Group::from_gid(Gid::from_raw(status.gid())).ok().flatten().map(|group| group.name);
    Some((user.unwrap_or_else(|| status.uid().to_string()), group.unwrap_or_else(|| status.gid().to_string())))
}

/// Renames the file at a link's path, unless it is a link itself.
pub(super) fn back_up(name: &str, backup: &str, force: bool) -> Result<(), String> {
    let path = Path::new(name);
    if path.is_symlink() || !path.exists() {
        return Ok(());
    }
    let backup = path.with_file_name(backup);
    if backup.exists() && !force {
        return Err(format!("File exists where the backup target {} should go", backup.display()));
    }
    user_files::rename(path, &backup)
        .map_err(|error| format!("renaming {name} to {} failed: {error}", backup.display()))
}

/// Returns the owner of a link: by default the user of the minion, and the primary group of the user.
fn owner_of_link(user: &Value, group: &Value) -> (Value, Value) {
    let own = || User::from_uid(Uid::effective()).ok().flatten().map_or(Value::Nil, |user| user.name.into());
    let user = if user.is_truthy() { user.clone() } else { own() };
    let group = if group.is_truthy() { group.clone() } else { primary_group(&user) };
    (user, group)
}

pub(super) fn symlink(
    context: &StateContext,
    name: &str,
    target: &str,
    force: bool,
    directories: ParentDirectories,
    user: &Value,
    group: &Value,
) -> StateReturn {
    if let Some(bad) = invalid_path(name) {
        return bad;
    }
    let (user, group) = owner_of_link(user, group);
    let owner = match Attributes::new(&Value::Nil, &user, &group) {
        Ok(owner) => owner,
        Err(error) => {
            let missing = |user: &Value, group: &Value| Attributes::new(&Value::Nil, user, group).err();
            let message = |error: String| error.trim_end().replace("is not available", "does not exist");
            let comment = match (missing(&user, &Value::Nil), missing(&Value::Nil, &group)) {
                (Some(user), Some(group)) => format!("{}. {}.", message(user), message(group)),
                _ => message(error),
            };
            return StateReturn::failed(name, comment);
        }
    };
    let path = Path::new(name);
    let status = std::fs::symlink_metadata(path).ok();
    let is_link = status.as_ref().is_some_and(std::fs::Metadata::is_symlink);
    let leads = is_link.then(|| std::fs::read_link(path).unwrap_or_default());
    let present = leads.as_deref() == Some(Path::new(target));
    let what = if status.as_ref().is_some_and(std::fs::Metadata::is_dir) { "Directory" } else { "File" };
    if context.test {
        if present && owner.link_differs(path) {
            let (old_user, old_group) = owner_of(path).unwrap_or_default();
            let comment = format!(
                "The symlink {name} is present, but the ownership of the symlink would be changed from {old_user}:{old_group} to {user}:{group}"
            );
            let changes = map! {"ownership" => format!("{old_user}:{old_group}")};
            return StateReturn::predicted(name, comment).with_changes(changes);
        }
        if present {
            return StateReturn::ok(name, format!("The symlink {name} is present"));
        }
        if is_link {
            let comment = format!("Link {name} target is set to be changed to {target}");
            return StateReturn::predicted(name, comment).with_changes(map! {"change" => name});
        }
        if status.is_some() && !force {
            return StateReturn::failed(
                name,
                format!("File or directory exists where the symlink {name} should be. Did you mean to use force?"),
            );
        }
        if status.is_some() {
            let comment = format!(
                "The file or directory {name} is set for removal to make way for a new symlink targeting {target}"
            );
            return StateReturn::predicted(name, comment);
        }
        let mut comment = format!("Symlink {name} to {target} is set for creation");
        if directories.make && !directory_of(path).is_dir() {
            comment = format!("{comment}\n{} will be created", directory_of(path).display());
        }
        if !directories.make
            && let Err(missing) =
                parent_for(path, directories, |parent| format!("Directory {parent} for symlink is not present"))
        {
            comment = format!("{comment}\n{missing}");
        }
        return StateReturn::predicted(name, comment).with_changes(map! {"new" => name});
    }
    let directories =
        ParentDirectories { attributes: owner.of_directories(directories.attributes.mode), ..directories };
    if let Err(error) = parent_for(path, directories, |parent| format!("Directory {parent} for symlink is not present"))
    {
        return StateReturn::failed(name, error);
    }
    if present {
        return match owner.apply_to_link(path) {
            Ok(changed) => {
                let (user, group) = owner_of(path).unwrap_or_default();
                if changed {
                    let comment = format!("Set ownership of symlink {name} to {user}:{group}");
                    return StateReturn::ok(name, comment)
                        .with_changes(map! {"ownership" => format!("{user}:{group}")});
                }
                StateReturn::ok(name, format!("Symlink {name} is present and owned by {user}:{group}"))
            }
            Err(error) => StateReturn::failed(name, error),
        };
    }
    if status.is_some() && !is_link {
        if !force {
            return StateReturn::failed(name, format!("{what} exists where the symlink {name} should be"));
        }
        let removed = user_files::remove_dir_all(path);
        if let Err(error) = removed {
            return StateReturn::failed(name, format!("Unable to remove {name}: {error}"));
        }
    }
    let failed = |error: std::io::Error| format!("Unable to create new symlink {name} -> {target}: {error}");
    match replace_link(path, target).map_err(failed).and_then(|()| owner.apply_to_link(path)) {
        Ok(_) => {
            StateReturn::ok(name, format!("Created new symlink {name} -> {target}")).with_changes(map! {"new" => name})
        }
        Err(error) => StateReturn::failed(name, error),
    }
}

/// Creates a link under a temporary name and renames it, so that the path always exists.
pub(crate) fn replace_link(path: &Path, target: &str) -> std::io::Result<()> {
    user_files::replace_symlink(target, path)
}

/// Applies `file.hardlink`: ensures that a path is another name of the same file.
pub(super) fn hardlink(
    context: &StateContext,
    name: &str,
    target: &str,
    force: bool,
    directories: ParentDirectories,
    owner: Result<Attributes, String>,
) -> StateReturn {
    if let Some(bad) = invalid_path(name) {
        return bad;
    }
    let directories = match owner {
        Ok(owner) => ParentDirectories { attributes: owner.of_directories(directories.attributes.mode), ..directories },
        Err(error) => return StateReturn::failed(name, error),
    };
    if !Path::new(target).is_absolute() {
        return StateReturn::failed(name, format!("Specified target {target} is not an absolute path"));
    }
    let Ok(target_metadata) = std::fs::metadata(target) else {
        return StateReturn::failed(name, format!("Target {target} for hard link does not exist"));
    };
    let path = Path::new(name);
    // Directories have one name; `force` never removes one.
    let ends = [(target_metadata.is_dir(), "from", target), (path.is_dir(), "to", name)];
    if let Some((_, direction, directory)) = ends.into_iter().find(|(is_dir, ..)| *is_dir) {
        return StateReturn::failed(name, format!("Unable to hard link {direction} directory {directory}"));
    }
    let status = std::fs::symlink_metadata(path).ok();
    // A file with several names is a hard link.
    let is_link = status.as_ref().is_some_and(|status| status.is_file() && status.nlink() > 1);
    let present = status
        .as_ref()
        .is_some_and(|status| status.dev() == target_metadata.dev() && status.ino() == target_metadata.ino());
    if context.test {
        return if present {
            StateReturn::ok(name, format!("The hard link {name} is presently targetting {target}"))
        } else if is_link {
            StateReturn::predicted(name, format!("Link {name} target is set to be changed to {target}"))
                .with_changes(map! {"change" => name})
        } else if status.is_none() {
            StateReturn::predicted(name, format!("Hard link {name} to {target} is set for creation"))
                .with_changes(map! {"new" => name})
        } else if force {
            let comment = format!(
                "The file or directory {name} is set for removal to make way for a new hard link targeting {target}"
            );
            StateReturn::predicted(name, comment)
        } else {
            let comment =
                format!("File or directory exists where the hard link {name} should be. Did you mean to use force?");
            StateReturn::failed(name, comment)
        };
    }
    if let Err(error) =
        parent_for(path, directories, |parent| format!("Directory {parent} for hard link is not present"))
    {
        return StateReturn::failed(name, error);
    }
    if present {
        return StateReturn::ok(name, format!("Target of hard link {name} is already pointing to {target}"));
    }
    let mut changes = Map::new();
    if status.is_some() && !is_link {
        if !force {
            return StateReturn::failed(name, format!("File exists where the hard link {name} should be"));
        }
        changes.insert("forced".into(), "File for hard link was forcibly replaced".into());
    }
    if let Err(error) = user_files::replace_hard_link(target, path) {
        return StateReturn::failed(name, format!("Unable to create new hard link {name} -> {target}: {error}"));
    }
    changes.insert("new".into(), name.into());
    let action = if is_link { "Set target of" } else { "Created new" };
    StateReturn::ok(name, format!("{action} hard link {name} -> {target}")).with_changes(changes)
}

/// Sets the access and modification times of a file, in seconds, by default now, and creates it if it is missing.
pub(super) fn touch(
    context: &StateContext,
    name: &str,
    (accessed, modified): (Option<i64>, Option<i64>),
    makedirs: bool,
) -> StateReturn {
    if let Some(bad) = invalid_path(name) {
        return bad;
    }
    let path = Path::new(name);
    let exists = path.exists();
    if context.test {
        let has = |desired_time: Option<i64>, have: i64| desired_time.is_none_or(|time| have == time);
        let has_times =
            path.symlink_metadata().is_ok_and(|file| has(accessed, file.atime()) && has(modified, file.mtime()));
        if exists && !has_times {
            let comment = format!("Times set to be updated on file {name}");
            return StateReturn::predicted(name, comment).with_changes(map! {"touched" => name});
        }
        let outcome = if exists {
            StateReturn::ok(name, format!("File {name} exists and has the correct times"))
        } else {
            StateReturn::predicted(name, format!("File {name} is set to be created"))
        };
        return outcome.with_changes(map! {"new" => name});
    }
    if let Err(error) = parent_for(path, ParentDirectories::new(makedirs, &Value::Nil), |_| {
        format!("Directory not present to touch file {name}")
    }) {
        return StateReturn::failed(name, error);
    }
    let now = std::time::SystemTime::now();
    let at = |seconds: Option<i64>| {
        let time = seconds.map_or(Some(now), file_time);
        time.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::InvalidInput))
    };
    match user_files::create(path).and_then(|()| user_files::set_times(path, at(accessed)?, at(modified)?)) {
        Ok(()) if exists => {
            let what = if path.is_dir() { "directory" } else { "file" };
            StateReturn::ok(name, format!("Updated times on {what} {name}")).with_changes(map! {"touched" => name})
        }
        Ok(()) => StateReturn::ok(name, format!("Created empty file {name}")).with_changes(map! {"new" => name}),
        Err(error) => StateReturn::failed(name, format!("Failed to touch {name}: {error}")),
    }
}

/// What a copy becomes.
pub(super) struct CopyTarget<'a> {
    pub path: &'a str,
    pub directories: ParentDirectories,
    /// Mode and owner of the copy; `None` if it keeps the mode of the source, and its directories the owner (`preserve`).
    pub attributes: Option<(Value, OwnerArgs)>,
}

/// Applies `file.copy`. As in Salt, a link is followed at the source and replaced at the destination, and the copy
/// belongs to the user of the minion, unless the state names another one. Entries of a copied directory get the owner,
/// too.
pub(super) fn copy(context: &StateContext, source: &str, force: bool, target: CopyTarget<'_>) -> StateReturn {
    let name = target.path;
    if let Some(bad) = invalid_path(name) {
        return bad;
    }
    let Ok(status) = std::fs::metadata(source) else {
        return StateReturn::failed(name, format!("Source file \"{source}\" is not present"));
    };
    let preserve = target.attributes.is_none();
    let attributes = match target.attributes {
        None => Attributes::new(&Value::Nil, &status.uid().into(), &status.gid().into()),
        Some((mode, OwnerArgs { user, group })) => {
            let (user, group) = owner_of_link(&user, &group);
            Attributes::from_state(context, &mode, &user, &group)
        }
    };
    let attributes = match attributes {
        Ok(attributes) => attributes,
        Err(error) => return StateReturn::failed(name, error),
    };
    let path = Path::new(name);
    let exists = std::fs::symlink_metadata(path).is_ok();
    if exists && !force {
        return StateReturn::ok(name, format!("The target file \"{name}\" exists and will not be overwritten"));
    }
    let same = || exists && status.is_file() && std::fs::read(source).ok() == std::fs::read(path).ok();
    if context.test {
        return StateReturn::predicted(name, format!("File \"{source}\" is set to be copied to \"{name}\""));
    }
    let note = if same() { " - files are identical but force flag is set" } else { "" };
    // Readers of the copy may search the directories created for it.
    let directories = target.directories;
    let of_file = attributes.mode.unwrap_or(status.mode()) & 0o777;
    let mode = directories.attributes.mode.unwrap_or(directory_mode(of_file));
    let parents = ParentDirectories { attributes: attributes.of_directories(Some(mode)), ..directories };
    let missing = |parent: &str| format!("The target directory {parent} is not present");
    let copied = parent_for(path, parents, missing).and_then(|()| {
        let failed = |error| format!("Failed to copy \"{source}\" to \"{name}\": {error}");
        if exists && (status.is_dir() || path.is_dir() && !path.is_symlink()) {
            user_files::remove_dir_all(path).map_err(failed)?;
        }
        if status.is_dir() {
            copy_directory(Path::new(source), path, &attributes.owner_alone()).map_err(failed)
        } else {
            user_files::copy_as_own(source, path).map_err(failed)
        }
    });
    match copied.and_then(|()| if preserve { Ok(Map::new()) } else { attributes.apply(path) }) {
        Ok(attributes) => {
            let mut changes = map! {name => source};
            changes.extend(attributes);
            StateReturn::ok(name, format!("Copied \"{source}\" to \"{name}\"{note}")).with_changes(changes)
        }
        Err(error) => StateReturn::failed(name, error),
    }
}

/// Copies a directory and what is in it, with modes and times; links stay links. What is in it gets an owner.
fn copy_directory(from: &Path, to: &Path, owner: &Attributes) -> std::io::Result<()> {
    user_files::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let status = entry.metadata()?;
        if status.is_symlink() {
            user_files::replace_symlink(std::fs::read_link(&from)?, &to)?;
        } else if status.is_dir() {
            copy_directory(&from, &to, owner)?;
        } else {
            user_files::copy_as_own(&from, &to)?;
            user_files::set_times(&to, status.accessed()?, status.modified()?)?;
        }
        // Only root may change owners. That of a link is its own.
        _ = owner.apply_to_link(&to);
    }
    let status = std::fs::metadata(from)?;
    user_files::set_mode(to, status.mode() & 0o7777, Links::Follow)?;
    user_files::set_times(to, status.accessed()?, status.modified()?)
}

/// Returns the path of a copied or moved file: that of `name`, or with a slash at its end, one in the directory.
pub(super) fn destination(name: &str, source: &str) -> String {
    if name.len() > 1 && name.ends_with('/') && !Path::new(name).exists() && !Path::new(source).is_dir() {
        return format!("{name}{}", Path::new(source).file_name().unwrap_or_default().to_string_lossy());
    }
    name.to_owned()
}

/// Copies a file, a link or a directory with its content, with modes and owners.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    let status = std::fs::symlink_metadata(from)?;
    if status.is_symlink() {
        user_files::replace_symlink(std::fs::read_link(from)?, to)?;
        return user_files::set_owner(to, Some(status.uid()), Some(status.gid()), Links::Keep);
    }
    if status.is_dir() {
        user_files::create_dir_all(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy_tree(&entry.path(), &to.join(entry.file_name()))?;
        }
        // Only root may change owners.
        _ = user_files::set_owner(to, Some(status.uid()), Some(status.gid()), Links::Follow);
        user_files::set_mode(to, status.mode() & 0o7777, Links::Follow)
    } else {
        user_files::copy(from, to)
    }
}

pub(super) fn rename(context: &StateContext, name: &str, source: &str, force: bool, makedirs: bool) -> StateReturn {
    if let Some(bad) = invalid_path(name) {
        return bad;
    }
    if !Path::new(source).is_absolute() {
        return StateReturn::failed(name, format!("Specified file {source} is not an absolute path"));
    }
    if std::fs::symlink_metadata(source).is_err() {
        return StateReturn::ok(name, format!("Source file \"{source}\" has already been moved out of place"));
    }
    let path = Path::new(name);
    let in_place = std::fs::symlink_metadata(path).ok();
    if in_place.is_some() && !force {
        return StateReturn::ok(name, format!("The target file \"{name}\" exists and will not be overwritten"));
    }
    if context.test {
        return StateReturn::predicted(name, format!("File \"{source}\" is set to be moved to \"{name}\""));
    }
    let moved = parent_for(path, ParentDirectories::new(makedirs, &Value::Nil), |parent| {
        format!("The target directory {parent} is not present")
    })
    .and_then(|()| {
        let failed = |error| format!("Failed to move \"{source}\" to \"{name}\": {error}");
        if in_place.is_some_and(|status| status.is_dir()) {
            user_files::remove_dir_all(path).map_err(failed)?;
        }
        match user_files::rename(source, path) {
            Err(error) if error.kind() == std::io::ErrorKind::CrossesDevices => {
                let from = Path::new(source);
                copy_tree(from, path).map_err(failed)?;
                user_files::remove_dir_all(from).map_err(failed)
            }
            result => result.map_err(failed),
        }
    });
    match moved {
        Ok(()) => {
            StateReturn::ok(name, format!("Moved \"{source}\" to \"{name}\"")).with_changes(map! {name => source})
        }
        Err(error) => StateReturn::failed(name, error),
    }
}

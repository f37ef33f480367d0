//! `file.directory`: a directory, the attributes of its content, and the removal of unmanaged files.

use std::path::{Path, PathBuf};

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, function};
use brine_system::user_files;
use brine_value::{Map, Value, map};

use super::attributes::{Attributes, OwnerArgs};
use super::invalid_path;
use super::pattern::{self, Pattern};

/// The arguments of `file.directory`.
#[derive(Args)]
pub struct DirectoryArgs {
    /// Path of the directory.
    name: String,
    /// Permissions of the directory, as an octal string.
    #[default]
    mode: Value,
    /// Permissions of the directory and, with `recurse`, of those below it; that of `mode` by default.
    #[default]
    dir_mode: Value,
    /// Permissions of files below the directory, with `recurse`, as an octal string.
    #[default]
    file_mode: Value,
    #[args]
    owner: OwnerArgs,
    /// Attributes that are also managed below the directory: `user`, `group`, `mode`; `ignore_files` and `ignore_dirs`
    /// exclude files or directories.
    #[default]
    recurse: Vec<String>,
    /// Number of levels that `recurse` descends.
    max_depth: Option<usize>,
    /// Whether files are removed that are not managed by a state that this one requires.
    #[default(false)]
    clean: bool,
    /// Paths that `clean` keeps: a glob, or a regular expression after `E@`.
    #[default]
    exclude_pat: Value,
    /// Whether missing parent directories are created.
    #[default(false)]
    makedirs: bool,
    /// Whether a file at the directory's path is removed.
    #[default(false)]
    force: bool,
    /// Name to which a file at the directory's path is renamed.
    backupname: Option<String>,
    /// Whether the directory may be a symbolic link to one.
    #[default(true)]
    allow_symlink: bool,
    /// Whether the directory itself keeps its attributes.
    #[default(false)]
    children_only: bool,
    /// Whether symbolic links below the directory are followed.
    #[default(false)]
    follow_symlinks: bool,
    /// Further arguments, ignored; those whose names begin with `win_` are for Windows.
    #[keywords(super::further::further_directory)]
    _kwargs: Map,
}

/// Ensure that a directory exists with this mode and owner; with `recurse`, also set those of its content. `clean`
/// removes files that are not managed by a state that this one requires.
///
/// SLS Example:
///
///     /srv/app:
///       file.directory:
///         - user: app
///         - group: app
///         - dir_mode: '0750'
///         - file_mode: '0640'
///         - makedirs: True
///         - recurse:
///           - user
///           - group
///           - mode
///
///     # Only files of states that this one requires stay:
///     /etc/app.d:
///       file.directory:
///         - clean: True
///         - exclude_pat: '*.local'
///         - require:
///           - file: /etc/app.d/main.conf
#[function]
pub fn directory(context: &StateContext, #[args] args: DirectoryArgs) -> CallResult {
    const INSIDE: [&str; 6] = ["user", "group", "mode", "ignore_files", "ignore_dirs", "silent"];
    let name = &args.name;
    if args.max_depth.is_some() && args.clean {
        return Ok(StateReturn::failed(name, "Cannot specify both max_depth and clean").into());
    }
    let is_link = Path::new(name.trim_end_matches('/')).is_symlink();
    if !args.allow_symlink && is_link && !args.force && args.backupname.is_none() {
        return Ok(StateReturn::failed(name, format!("Specified location {name} exists and is a symlink")).into());
    }
    if args.recurse.iter().any(|word| !INSIDE.contains(&word.as_str())) {
        let keywords = INSIDE.map(|word| format!("\"{word}\"")).join(", ");
        return Ok(StateReturn::failed(name, format!("Types for \"recurse\" limited to {keywords}.")).into());
    }
    if ["ignore_files", "ignore_dirs"].iter().all(|word| args.recurse.iter().any(|given| given == word)) {
        let comment = "Must not specify \"recurse\" options \"ignore_files\" and \"ignore_dirs\" at the same time.";
        return Ok(StateReturn::failed(name, comment).into());
    }
    let own_mode = if args.dir_mode.is_truthy() { &args.dir_mode } else { &args.mode };
    let inside = |keyword: &str| args.recurse.iter().any(|word| word == keyword);
    let nothing = Value::Nil;
    // As in Salt, files get the mode of directories unless they have their own.
    let file_mode = if args.file_mode.is_truthy() { &args.file_mode } else { own_mode };
    let only = |keyword: &str, value: &Value| if inside(keyword) { value.clone() } else { nothing.clone() };
    let (user_inside, group_inside) = (only("user", &args.owner.user), only("group", &args.owner.group));
    let read = || {
        Ok(DesiredDirectory {
            attributes: Attributes::from_state(context, own_mode, &args.owner.user, &args.owner.group)?,
            files: Attributes::from_state(context, &only("mode", file_mode), &user_inside, &group_inside)?,
            directories: Attributes::from_state(context, &only("mode", own_mode), &user_inside, &group_inside)?,
            recurse: (!args.recurse.is_empty()).then_some(Recurse {
                max_depth: args.max_depth.unwrap_or(usize::MAX),
                files: !inside("ignore_files"),
                directories: !inside("ignore_dirs"),
                silent: inside("silent"),
            }),
            follow: args.follow_symlinks,
            clean: args.clean,
            exclude: pattern::patterns(&args.exclude_pat),
            makedirs: args.makedirs,
            force: args.force,
            replaces_link: is_link && (args.force || !args.allow_symlink),
            children_only: args.children_only,
            backup: args.backupname.clone(),
        })
    };
    let result: Result<_, String> = read();
    Ok(result.map_or_else(|error| StateReturn::failed(name, error), |desired| state(context, name, &desired)).into())
}

/// The desired directory.
pub(super) struct DesiredDirectory {
    pub attributes: Attributes,
    /// Attributes of the files in it, at any depth.
    pub files: Attributes,
    /// Attributes of the directories in it, at any depth.
    pub directories: Attributes,
    pub recurse: Option<Recurse>,
    /// Whether attributes apply to the targets of links instead of the links.
    pub follow: bool,
    pub clean: bool,
    pub exclude: Vec<Pattern>,
    pub makedirs: bool,
    pub force: bool,
    /// Whether the path is a symbolic link that is replaced, wherever it leads.
    pub replaces_link: bool,
    /// Whether modes and owners are set only on the content of the directory.
    pub children_only: bool,
    /// Name to which a file at the directory's path is renamed.
    pub backup: Option<String>,
}

/// Scope of `recurse`.
pub(super) struct Recurse {
    pub max_depth: usize,
    pub files: bool,
    pub directories: bool,
    /// Whether the changes are reported without their paths.
    pub silent: bool,
}

pub(super) fn state(context: &StateContext, name: &str, desired: &DesiredDirectory) -> StateReturn {
    StateReturn { name: name.to_owned(), ..managed(context, name, desired) }
}

fn managed(context: &StateContext, name: &str, desired: &DesiredDirectory) -> StateReturn {
    if let Some(bad) = invalid_path(name) {
        return bad;
    }
    let trimmed = name.trim_end_matches('/');
    let name = if trimmed.is_empty() { "/" } else { trimmed };
    let path = Path::new(name);
    let status = std::fs::symlink_metadata(path).ok();
    let is_directory = path.is_dir() && !desired.replaces_link;
    if status.is_some() && !is_directory && !desired.force && desired.backup.is_none() {
        return StateReturn::failed(name, format!("Specified location {name} exists and is a file"));
    }
    if !is_directory && !desired.makedirs && !path.parent().is_some_and(Path::is_dir) && !context.test {
        let changes = map! {name => map! {"directory" => "new"}};
        return StateReturn::failed(name, format!("No directory to create {name} in")).with_changes(changes);
    }
    if context.test {
        return predict(context, name, path, desired, is_directory);
    }
    let is_silent = desired.recurse.as_ref().is_some_and(|recurse| recurse.silent);
    let mut changes = Map::new();
    if !is_directory {
        let path_was_file = !is_link_to_no_file(path);
        if let Some(backup) = desired.backup.as_deref().filter(|_| status.is_some())
            && let Err(error) = back_up(name, backup, desired.force)
        {
            return StateReturn::failed(name, error);
        }
        let made = (|| {
            if status.is_some() && desired.backup.is_none() {
                user_files::remove_file(path)?;
            }
            if desired.makedirs {
                user_files::create_dir_all_with(path, desired.attributes.to_write()).map(|_| ())
            } else {
                user_files::create_dir(path, 0o777)
            }
        })();
        if let Err(error) = made {
            return StateReturn::failed(name, format!("Failed to create directory {name}: {error}"));
        }
        if status.is_some() && desired.backup.is_none() {
            let kind = if path_was_file { "File" } else { "Symlink" };
            changes.insert("forced".into(), format!("{kind} was forcibly replaced").into());
        }
        changes.insert(name.into(), map! {"directory" => "new"}.into());
    }
    match apply(path, desired) {
        // For a new directory, only its creation is reported.
        Ok(_) if !is_directory => {}
        Ok((own, inside)) if is_silent => {
            let mut attributes: Map = inside.values().filter_map(Value::as_map).flat_map(Clone::clone).collect();
            attributes.extend(own);
            if !attributes.is_empty() {
                changes.insert("recursion".into(), "Changes silenced".into());
                changes.extend(attributes);
            }
        }
        Ok((own, inside)) => {
            let inside: Vec<_> = inside.into_iter().collect();
            if desired.children_only {
                // It is reported together with the attributes that were changed last.
                let all = inside.iter().filter_map(|(_, changed)| changed.as_map()).flat_map(Clone::clone);
                let last: Map = all.collect();
                changes.extend(inside);
                changes.extend(last);
            } else {
                changes.extend(inside);
            }
            if !own.is_empty() {
                // It is reported together with the attributes that were changed last.
                let last = changes.values().filter_map(Value::as_map).fold(own.clone(), |mut all, changed| {
                    all.extend(changed.clone());
                    all
                });
                changes.insert(path.display().to_string().into(), own.into());
                changes.extend(last);
            }
        }
        Err(error) => return StateReturn::failed(name, error).with_changes(changes),
    }
    if desired.clean {
        let report =
            clean(context, path, &desired.exclude, false).map(|paths| removal_changes(path, &desired.exclude, paths));
        match report.and_then(|report| Ok((report, clean(context, path, &desired.exclude, true)?))) {
            Ok((report, removed)) if !removed.is_empty() => {
                if !is_silent {
                    changes.extend(report);
                }
                changes.insert("removed".into(), removed.into());
                return StateReturn::ok(name, format!("Files cleaned from directory {name}")).with_changes(changes);
            }
            Ok(_) => {}
            Err(error) => return StateReturn::failed(name, error).with_changes(changes),
        }
    }
    if changes.is_empty() {
        return StateReturn::ok(name, format!("The directory {name} is in the correct state"));
    }
    let comment = match (is_directory, desired.children_only) {
        (true, true) => format!("Directory {name}/* updated"),
        (true, false) => format!("Directory {name} updated"),
        (false, _) => String::new(),
    };
    StateReturn::ok(name, comment).with_changes(changes)
}

/// Returns the pending changes, in test mode.
fn predict(
    context: &StateContext,
    name: &str,
    path: &Path,
    desired: &DesiredDirectory,
    is_directory: bool,
) -> StateReturn {
    let mut changes = Map::new();
    if is_directory {
        let own =
            if desired.children_only { Map::new() } else { desired.attributes.differences_of(path, desired.follow) };
        if !own.is_empty() {
            changes.insert(name.into(), own.into());
        }
        for (entry, attributes) in inside(path, desired) {
            let differs = attributes.differences_of(&entry, desired.follow);
            if !differs.is_empty() {
                changes.insert(entry.display().to_string().into(), differs.into());
            }
        }
        if desired.clean {
            match clean(context, path, &desired.exclude, false) {
                Ok(removed) => changes.extend(removal_changes(path, &desired.exclude, removed)),
                Err(error) => return StateReturn::failed(name, error),
            }
        }
    } else {
        let in_place = std::fs::symlink_metadata(path).is_ok();
        if let Some(backup) = desired.backup.as_deref().filter(|_| in_place) {
            if std::fs::symlink_metadata(backup).is_ok() {
                if !desired.force {
                    return StateReturn::failed(name, backup_exists(backup));
                }
                changes
                    .insert("forced".into(), format!("Existing file at backup path {backup} would be removed").into());
            }
            changes.insert("backup".into(), format!("{name} would be renamed to {backup}").into());
            changes.insert(name.into(), map! {"directory" => "new"}.into());
            let comment = format!("{name} would be backed up and replaced with a new directory");
            return StateReturn::predicted(name, comment).with_changes(changes);
        }
        if in_place {
            let kind = if is_link_to_no_file(path) { "Symlink" } else { "File" };
            changes.insert("forced".into(), format!("{kind} would be forcibly replaced").into());
        }
        changes.insert(name.into(), map! {"directory" => "new"}.into());
    }
    if changes.is_empty() {
        return StateReturn::ok(name, format!("The directory {name} is in the correct state"));
    }
    let report = changes.iter().flat_map(|(path, what)| {
        what.as_map().into_iter().flatten().map(move |(key, value)| format!("{path}: {key} - {value}\n"))
    });
    let comment = format!("The following files will be changed:\n{}", report.collect::<Vec<_>>().concat());
    StateReturn::predicted(name, comment).with_changes(changes)
}

/// Whether a path is a symbolic link, and not one to a file.
fn is_link_to_no_file(path: &Path) -> bool {
    path.is_symlink() && !path.is_file()
}

/// Renames the file at the directory's path to the backup name. With `force`, an existing backup is removed.
fn back_up(name: &str, backup: &str, force: bool) -> Result<(), String> {
    if std::fs::symlink_metadata(backup).is_ok() {
        if !force {
            return Err(backup_exists(backup));
        }
        let removed = user_files::remove_dir_all(backup);
        removed.map_err(|error| format!("Failed to remove {backup}: {error}"))?;
    }
    user_files::rename(name, backup).map_err(|error| format!("renaming {name} to {backup} failed: {error}"))
}

fn backup_exists(backup: &str) -> String {
    format!("File exists where the backup target {backup} should go")
}

/// Sets modes and owners, and returns the changes of the directory and of its content.
fn apply(path: &Path, desired: &DesiredDirectory) -> Result<(Map, Map), String> {
    let mut changes = Vec::new();
    // From the inside out: whoever gets a directory cannot change what is still to be done in it.
    for (entry, attributes) in inside(path, desired).into_iter().rev() {
        let changed = attributes.apply_to(&entry, desired.follow)?;
        if !changed.is_empty() {
            changes.push((Value::from(entry.display().to_string()), changed.into()));
        }
    }
    let own = if desired.children_only { Map::new() } else { desired.attributes.apply_to(path, desired.follow)? };
    Ok((own, changes.into_iter().rev().collect()))
}

/// Returns the paths below the directory that `recurse` selects, with their desired attributes. Symbolic links are not
/// followed: their targets may be anywhere.
fn inside<'f>(path: &Path, desired: &'f DesiredDirectory) -> Vec<(PathBuf, &'f Attributes)> {
    let mut targets = Vec::new();
    let Some(recurse) = &desired.recurse else { return targets };
    let mut open = vec![(path.to_owned(), 0)];
    while let Some((directory, depth)) = open.pop() {
        if depth >= recurse.max_depth {
            continue;
        }
        for (entry, status) in entries(&directory) {
            if desired.follow && !entry.exists() {
                continue;
            }
            let leads_to_directory = status.is_symlink() && entry.is_dir();
            if status.is_dir() || leads_to_directory {
                if recurse.directories {
                    targets.push((entry.clone(), &desired.directories));
                }
                if !leads_to_directory {
                    open.push((entry, depth + 1));
                }
            } else if recurse.files {
                targets.push((entry, &desired.files));
            }
        }
    }
    targets.retain(|(_, attributes)| !attributes.is_empty());
    targets.sort_by(|a, b| a.0.cmp(&b.0));
    targets
}

/// Returns the entries of a directory, sorted.
fn entries(directory: &Path) -> Vec<(PathBuf, std::fs::Metadata)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut children: Vec<_> = entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?))).collect();
    children.sort_by(|a, b| a.0.cmp(&b.0));
    children
}

/// Removes the content of a directory except paths kept by a pattern or managed by a state that this one requires.
/// Returns the removed paths, directories before their content.
pub(super) fn clean(
    context: &StateContext,
    path: &Path,
    exclude: &[Pattern],
    remove: bool,
) -> Result<Vec<String>, String> {
    let required = context.required.iter().filter(|(module, _)| module == "file");
    let protected: Vec<PathBuf> = required.map(|(_, name)| PathBuf::from(name)).collect();
    clean_except(path, &protected, exclude, remove)
}

/// Removes content as [`clean`] does, except the paths to keep, with their parent directories and everything below
/// them.
pub(super) fn clean_except(
    path: &Path,
    protected: &[PathBuf],
    exclude: &[Pattern],
    remove: bool,
) -> Result<Vec<String>, String> {
    let (mut removed, mut open) = (Vec::new(), vec![path.to_owned()]);
    while let Some(directory) = open.pop() {
        for (entry, status) in entries(&directory) {
            let relative = entry.strip_prefix(path).unwrap_or(&entry).to_string_lossy().into_owned();
            let leads_to_kept = protected.iter().any(|required| required.starts_with(&entry));
            // A state of the directory itself does not protect its content.
            let is_kept = protected
                .iter()
                .any(|required| required != path && entry.starts_with(required) && required.starts_with(path));
            if is_kept {
                continue;
            }
            // As in Salt, a pattern keeps the paths that it matches: the content of a directory is matched on its own.
            let is_excluded = exclude.iter().any(|pattern| pattern.is_match(&relative));
            if is_excluded && !status.is_dir() {
                continue;
            }
            if leads_to_kept || is_excluded {
                open.push(entry);
                continue;
            }
            if remove {
                user_files::remove_dir_all(&entry)
                    .map_err(|error| format!("Failed to remove {}: {error}", entry.display()))?;
            }
            removed.push(entry.display().to_string());
        }
    }
    Ok(removed)
}

/// Returns the changes of a clean-up: each removed path, and everything below it.
fn removal_changes(root: &Path, exclude: &[Pattern], paths: Vec<String>) -> Map {
    let mut report = Map::new();
    for path in paths {
        let relative = Path::new(&path).strip_prefix(root).unwrap_or(Path::new(&path)).to_string_lossy().into_owned();
        if exclude.iter().any(|pattern| pattern.is_match(&relative)) {
            continue;
        }
        if !Path::new(&path).is_symlink() {
            let inside = entries(Path::new(&path)).into_iter().map(|(entry, _)| entry.display().to_string());
            report.extend(removal_changes(root, exclude, inside.collect()));
        }
        report.insert(path.into(), map! {"removed" => "Removed due to clean"}.into());
    }
    report
}

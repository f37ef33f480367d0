//! `file.recurse`: a tree of files as it is under `salt://`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use brine_core::files::relative_path;
use brine_core::{Map, Value};

use super::attributes::Attributes;
use super::bad_path;
use super::contents::Contents;
use super::folder::{self, Folder, Pattern};
use super::managed::{self, How};
use crate::states::{StateContext, StateReturn};

/// How a tree should be.
pub(super) struct Tree {
    pub source: Value,
    pub clean: bool,
    pub user: Value,
    pub group: Value,
    pub dir_mode: Value,
    pub file_mode: Value,
    pub template: Option<String>,
    pub defaults: Value,
    pub more: Map,
    pub include_empty: bool,
    pub replace: bool,
    pub include: Vec<Pattern>,
    pub exclude: Vec<Pattern>,
    pub backup: bool,
    /// How many folders deep files may be.
    pub max_depth: usize,
}

pub(super) fn state(context: &StateContext, name: &str, wanted: &Tree) -> StateReturn {
    if let Some(bad) = bad_path(name) {
        return bad;
    }
    let root = Path::new(name);
    if root.exists() && !root.is_dir() {
        return StateReturn::failed(name, format!("The path {name} exists and is not a directory"));
    }
    let (source, files) = match sources(context, wanted) {
        Ok(Some((source, mut files))) => {
            files.retain(|(path, _)| path.components().count() <= wanted.max_depth.saturating_add(1));
            (source, files)
        }
        Ok(None) => return StateReturn::failed(name, "Recurse failed: none of the specified sources were found"),
        Err(error) => return StateReturn::failed(name, format!("Recurse failed: {error}")),
    };
    // By what is told of them: with empty folders, Salt tells of the root as one more, by the name `root/.`.
    let mut folders: BTreeSet<String> = BTreeSet::new();
    if wanted.include_empty {
        folders.insert(format!("{name}/."));
    }
    for (path, is_folder) in &files {
        // Those between are made with the folders in them, and not told of.
        let target = root.join(path);
        let folder = if *is_folder { Some(target.as_path()) } else { target.parent() };
        folders.extend(folder.map(|folder| folder.display().to_string()));
    }
    let is_new = !root.exists();
    if is_new && !context.test {
        folders.insert(name.to_owned());
    }
    let mut all = Results { changes: Map::new(), comments: Vec::new(), failed: false };
    for target in &folders {
        let is_new_root = Path::new(target) == root && is_new && !context.test;
        let attributes = match Attributes::of_state(context, &wanted.dir_mode, &wanted.user, &wanted.group) {
            Ok(attributes) => attributes,
            Err(error) => return StateReturn::failed(name, error),
        };
        let folder = Folder {
            attributes,
            files: Attributes::default(),
            folders: Attributes::default(),
            recurse: None,
            clean: false,
            exclude: Vec::new(),
            makedirs: true,
            force: false,
            children_only: false,
            backup: None,
        };
        let mut done = folder::state(context, target, &folder);
        if is_new_root && done.result == Some(true) {
            // What is in it says enough.
            done.changes.clear();
        }
        all.add(target, done);
    }
    for (path, _) in files.iter().filter(|(_, is_folder)| !is_folder) {
        let target = root.join(path).display().to_string();
        let contents = Contents {
            source: format!("salt://{source}/{}", path.display()).into(),
            contents: Value::Nil,
            contents_pillar: Value::Nil,
            contents_grains: Value::Nil,
            newline: true,
            template: wanted.template.clone(),
            defaults: wanted.defaults.clone(),
            more: wanted.more.clone(),
            verify: super::source::Verify::default(),
        };
        let attributes = Attributes::of_state(context, &wanted.file_mode, &wanted.user, &wanted.group);
        let how = How {
            new_file_diff: false,
            follow_symlinks: true,
            attrs: None,
            makedirs: true,
            dir_mode: wanted.dir_mode.clone(),
            replace: wanted.replace,
            create: true,
            show_changes: true,
            backup: wanted.backup,
            umask: managed::umask(context),
            check_cmd: None,
        };
        all.add(&target, managed::managed(context, &target, &contents, attributes, &how));
    }
    if wanted.clean && root.is_dir() {
        let mut kept: Vec<PathBuf> = files.iter().map(|(path, _)| root.join(path)).collect();
        kept.extend(context.required.iter().filter(|(module, _)| module == "file").map(|(_, name)| name.into()));
        match folder::clean_except(root, &kept, &wanted.exclude, !context.test) {
            Ok(removed) if !removed.is_empty() => _ = all.changes.insert("removed".into(), removed.into()),
            Ok(_) => {}
            Err(error) => return StateReturn::failed(name, error).with_changes(all.changes),
        }
    }
    all.told(context, name)
}

/// What came of the single files and folders.
struct Results {
    changes: Map,
    comments: Vec<String>,
    failed: bool,
}

impl Results {
    fn add(&mut self, target: &str, done: StateReturn) {
        if done.result != Some(true) {
            self.comments.push(format!("#### {target} ####\n{}", done.comment));
        }
        self.failed |= done.result == Some(false);
        if !done.changes.is_empty() {
            self.changes.insert(target.into(), done.changes.into());
        }
    }

    fn told(self, context: &StateContext, name: &str) -> StateReturn {
        let comment = self.comments.join("\n\n");
        let done = if self.failed {
            StateReturn::failed(name, comment)
        } else if self.changes.is_empty() {
            return StateReturn::ok(name, format!("The directory {name} is in the correct state"));
        } else if context.test {
            StateReturn::would(name, comment)
        } else {
            StateReturn::ok(name, format!("Recursively updated {name}"))
        };
        done.with_changes(self.changes)
    }
}

/// The paths below the first source that there is, and whether each is a folder. A path that would
/// lead out of the tree is left out.
type Found = (String, Vec<(PathBuf, bool)>);

fn sources(context: &StateContext, wanted: &Tree) -> Result<Option<Found>, String> {
    let files = context.call.minion.files.list(&context.saltenv)?;
    let folders = if wanted.include_empty { context.call.minion.files.folders(&context.saltenv)? } else { Vec::new() };
    let single = [wanted.source.clone()];
    for source in wanted.source.as_list().unwrap_or(&single) {
        let source = source.to_string();
        let Some(path) = source.strip_prefix("salt://") else {
            return Err(format!("Invalid source '{source}' (must be a salt:// URI)"));
        };
        let prefix = path.trim_matches('/').to_owned();
        let below =
            |path: &str| relative_path(path.strip_prefix(&prefix)?.strip_prefix('/').filter(|rest| !rest.is_empty())?);
        let chosen = |path: &PathBuf| {
            let text = path.to_string_lossy();
            (wanted.include.is_empty() || wanted.include.iter().any(|pattern| pattern.is_match(&text)))
                && !wanted.exclude.iter().any(|pattern| pattern.is_match(&text))
        };
        let mut found: Vec<(PathBuf, bool)> =
            files.iter().filter_map(|path| below(path)).map(|path| (path, false)).collect();
        found.extend(folders.iter().filter_map(|path| below(path)).map(|path| (path, true)));
        if !found.is_empty() {
            found.retain(|(path, _)| chosen(path));
            return Ok(Some((prefix, found)));
        }
    }
    Ok(None)
}

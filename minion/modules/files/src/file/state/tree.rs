//! `file.recurse`: a tree of files copied from `salt://`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, function};
use brine_system::user_files;
use brine_value::{Map, Value};

use super::attributes::{Attributes, OwnerArgs};
use super::contents::{self, Contents};
use super::directory::{self, DesiredDirectory};
use super::invalid_path;
use super::managed::{self, ManagedOptions};
use super::operations::{self, ParentDirectories};
use super::pattern::Selection;
use super::tree_plan::{Plan, Sources};
use crate::file::backups;

/// The arguments of `file.recurse`.
#[derive(Args)]
pub struct RecurseArgs {
    /// Path of the directory.
    name: String,
    /// URL of the directory to copy, such as `salt://code`, or a list of them.
    source: Value,
    /// Whether files are removed that the source does not have.
    #[default(false)]
    clean: bool,
    #[args]
    owner: OwnerArgs,
    /// Permissions of directories, as an octal string.
    #[default]
    dir_mode: Value,
    /// Permissions of files, as an octal string; `keep` takes those of the source.
    #[default]
    file_mode: Value,
    /// Template engine that renders the source, such as `jinja`.
    template: Option<String>,
    /// Variables of the template, below those of `context`.
    #[default]
    defaults: Value,
    /// Whether empty directories are created.
    #[default(false)]
    include_empty: bool,
    /// Paths that are copied: a glob, or a regular expression after `E@`.
    #[default]
    include_pat: Value,
    /// Paths that are not copied: a glob, or a regular expression after `E@`.
    #[default]
    exclude_pat: Value,
    /// Whether files that exist get the content of the source.
    #[default(true)]
    replace: bool,
    /// Whether a replaced file is kept in the minion's cache: `minion`.
    #[default]
    backup: Value,
    /// Number of levels to descend.
    maxdepth: Option<usize>,
    /// Whether symbolic links of the source become links.
    #[default(false)]
    keep_symlinks: bool,
    /// Whether a symbolic link replaces a file at its path.
    #[default(false)]
    force_symlinks: bool,
    /// Permissions of symbolic links.
    #[default]
    sym_mode: Value,
    /// Whether all sources are merged, not only the first that exists copied.
    #[default(false)]
    merge: bool,
    /// Further arguments: `context`, the variables of the template, and the state's own. `keep_source` is without effect.
    #[keywords(super::further::further_recurse)]
    kwargs: Map,
}

/// Ensure that a directory has the files of a directory under `salt://`.
///
/// SLS Example:
///
///     /srv/app/code:
///       file.recurse:
///         - source: salt://app/code
///         - user: app
///         - group: app
///         - dir_mode: '0755'
///         - file_mode: '0644'
///         - exclude_pat: 'E@(\.git|\.pyc$)'
///         - clean: True
#[function]
pub fn recurse(context: &StateContext, #[args] args: RecurseArgs) -> CallResult {
    if args.kwargs.contains_key("mode") {
        let comment = "'mode' is not allowed in 'file.recurse'. Please use 'file_mode' and 'dir_mode'.";
        return Ok(StateReturn::failed(&args.name, comment).into());
    }
    let more = contents::variables(args.kwargs);
    let selection = Selection::new(&args.include_pat, &args.exclude_pat);
    let sources = Sources {
        source: args.source,
        merge: args.merge,
        include_empty: args.include_empty,
        keep_links: args.keep_symlinks,
        selection,
        max_depth: args.maxdepth.unwrap_or(usize::MAX),
    };
    let tree = Tree {
        sources,
        clean: args.clean,
        user: args.owner.user,
        group: args.owner.group,
        dir_mode: args.dir_mode,
        file_mode: args.file_mode,
        template: args.template,
        defaults: args.defaults,
        more,
        replace: args.replace,
        backup: backups::is_enabled(&context.call, &args.backup),
        force_links: args.force_symlinks,
        link_mode: args.sym_mode,
    };
    Ok(state(context, &args.name, &tree).into())
}

/// The desired tree.
pub(super) struct Tree {
    pub sources: Sources,
    pub clean: bool,
    pub user: Value,
    pub group: Value,
    pub dir_mode: Value,
    pub file_mode: Value,
    pub template: Option<String>,
    pub defaults: Value,
    pub more: Map,
    pub replace: bool,
    pub backup: bool,
    /// Whether a link replaces a file in its place.
    pub force_links: bool,
    /// Mode of directories that are created for links.
    pub link_mode: Value,
}

pub(super) fn state(context: &StateContext, name: &str, tree: &Tree) -> StateReturn {
    if let Some(bad) = invalid_path(name) {
        return bad;
    }
    let root = Path::new(name);
    if root.exists() && !root.is_dir() {
        return StateReturn::failed(name, format!("The path {name} exists and is not a directory"));
    }
    let plan = match Plan::new(context, &tree.sources) {
        Ok(Some(plan)) => plan,
        Ok(None) => return StateReturn::failed(name, "Recurse failed: none of the specified sources were found"),
        Err(error) => return StateReturn::failed(name, format!("Recurse failed: {error}")),
    };
    // By reported name: with empty directories, Salt reports the root once more as `root/.`.
    let mut directories: BTreeSet<String> = BTreeSet::new();
    if tree.sources.include_empty {
        directories.insert(format!("{name}/."));
    }
    // Joining an empty path would append a slash.
    let target_of = |path: &PathBuf| if path.as_os_str().is_empty() { root.to_owned() } else { root.join(path) };
    directories.extend(plan.directories.iter().map(|path| target_of(path).display().to_string()));
    let is_new = !root.exists();
    if is_new && !context.test {
        directories.insert(name.to_owned());
    }
    let mut all = Results { changes: Map::new(), comments: Vec::new(), failed: false, foreseen: false };
    for target in &directories {
        if tree.clean && Path::new(target).symlink_metadata().is_ok() && !Path::new(target).is_dir() {
            match all.remove_obstacle(context, name, target, "with a directory") {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => return StateReturn::failed(name, error),
            }
        }
        let is_new_root = Path::new(target) == root && is_new && !context.test;
        let attributes = match Attributes::from_state(context, &tree.dir_mode, &tree.user, &tree.group) {
            Ok(attributes) => attributes,
            Err(error) => return StateReturn::failed(name, error),
        };
        let directory = DesiredDirectory {
            attributes,
            files: Attributes::default(),
            directories: Attributes::default(),
            recurse: None,
            follow: false,
            clean: false,
            exclude: Vec::new(),
            makedirs: true,
            force: false,
            replaces_link: false,
            children_only: false,
            backup: None,
        };
        let mut outcome = directory::state(context, target, &directory);
        if is_new_root && outcome.result == Some(true) {
            // The changes of its content suffice.
            outcome.changes.clear();
        }
        all.add(target, outcome);
    }
    for (path, source) in &plan.files {
        let target = root.join(path).display().to_string();
        if tree.clean && tree.replace && Path::new(&target).is_dir() {
            match all.remove_obstacle(context, name, &target, "with a file") {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => return StateReturn::failed(name, error),
            }
        }
        let contents = Contents {
            source: source.as_str().into(),
            contents: Value::Nil,
            contents_pillar: Value::Nil,
            contents_grains: Value::Nil,
            newline: true,
            verbatim: false,
            template: tree.template.clone(),
            defaults: tree.defaults.clone(),
            more: tree.more.clone(),
            verify: super::source::Verify::default(),
        };
        let attributes = Attributes::from_state(context, &tree.file_mode, &tree.user, &tree.group);
        let how = ManagedOptions {
            new_file_diff: false,
            follow_symlinks: true,
            attrs: None,
            makedirs: true,
            dir_mode: tree.dir_mode.clone(),
            replace: tree.replace,
            create: true,
            show_changes: true,
            backup: tree.backup,
            umask: managed::umask(context),
            check_cmd: None,
        };
        all.add(&target, managed::state(context, &target, &contents, attributes, &how));
    }
    for (path, leads_to) in &plan.links {
        let target = root.join(path).display().to_string();
        let directories = ParentDirectories::new(true, &tree.link_mode);
        let outcome =
            operations::symlink(context, &target, leads_to, tree.force_links, directories, &tree.user, &tree.group);
        all.add(&target, outcome);
    }
    if tree.clean && root.is_dir() {
        let paths = plan.files.keys().chain(plan.links.keys()).chain(&plan.empty);
        let mut protected: Vec<PathBuf> = paths.map(|path| root.join(path)).collect();
        protected.extend(context.required.iter().filter(|(module, _)| module == "file").map(|(_, name)| name.into()));
        match directory::clean_except(root, &protected, &tree.sources.selection.exclude, !context.test) {
            Ok(removed) if !removed.is_empty() => {
                if context.test {
                    all.comments.push(format!("#### removed ####\n{}", removed.join("\n")));
                }
                all.changes.insert("removed".into(), removed.into());
            }
            Ok(_) => {}
            Err(error) => return StateReturn::failed(name, error).with_changes(all.changes),
        }
    }
    all.report(context, name)
}

/// Results of the single files and directories.
struct Results {
    changes: Map,
    comments: Vec<String>,
    failed: bool,
    /// Whether a change is pending.
    foreseen: bool,
}

impl Results {
    fn add(&mut self, target: &str, outcome: StateReturn) {
        if outcome.result != Some(true) {
            self.comments.push(format!("#### {target} ####\n{}", outcome.comment));
        }
        self.failed |= outcome.result == Some(false);
        self.foreseen |= outcome.result.is_none();
        if !outcome.changes.is_empty() {
            self.changes.insert(target.into(), outcome.changes.into());
        }
    }

    /// Removes a path that is in the way of a file or directory. Returns false if that is only predicted.
    fn remove_obstacle(
        &mut self,
        context: &StateContext,
        name: &str,
        target: &str,
        with: &str,
    ) -> Result<bool, String> {
        let path = Path::new(target);
        if context.test {
            let what = if path.is_dir() { "directory " } else { "" };
            self.add(target, StateReturn::predicted(name, format!("Replacing {what}{target} {with}")));
            return Ok(false);
        }
        user_files::remove_dir_all(path).map(|()| true).map_err(|error| format!("Failed to remove {target}: {error}"))
    }

    fn report(self, context: &StateContext, name: &str) -> StateReturn {
        let comment = self.comments.join("\n\n");
        let outcome = if self.failed {
            StateReturn::failed(name, comment)
        } else if self.changes.is_empty() && !self.foreseen {
            return StateReturn::ok(name, format!("The directory {name} is in the correct state"));
        } else if context.test {
            StateReturn::predicted(name, comment)
        } else {
            StateReturn::ok(name, format!("Recursively updated {name}"))
        };
        outcome.with_changes(self.changes)
    }
}

//! The content of a tree on the file server: files, directories and links, of one source or several merged ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use brine_context::files::in_environment;
use brine_context::{FetchError, StateContext};
use brine_system::files::relative_path;
use brine_value::Value;

use super::pattern::Selection;

/// The selected parts of the sources.
pub(super) struct Sources {
    /// One source or several: the first that exists, or with `merge` all.
    pub source: Value,
    pub merge: bool,
    pub include_empty: bool,
    /// Whether links are created as links instead of copying their targets.
    pub keep_links: bool,
    pub selection: Selection,
    /// Maximum depth of files, in directories.
    pub max_depth: usize,
}

/// Content of a tree, by relative path. Paths that lead out of the tree are omitted.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The URL of each file.
    pub files: BTreeMap<PathBuf, String>,
    /// Directories with files, and with `include_empty` those without. Intermediate ones are created implicitly.
    pub directories: BTreeSet<PathBuf>,
    /// Target of each link.
    pub links: BTreeMap<PathBuf, String>,
    /// Directories without files among `directories`.
    pub empty: BTreeSet<PathBuf>,
    /// All parent directories of files, and those in `directories`.
    parents: BTreeSet<PathBuf>,
}

impl Plan {
    /// Merges the existing sources, the first one on top. `None` if none exists.
    pub fn new(context: &StateContext, options: &Sources) -> Result<Option<Self>, String> {
        let single = [options.source.clone()];
        let sources: Vec<String> =
            options.source.as_list().unwrap_or(&single).iter().map(ToString::to_string).collect();
        if let Some(wrong) = sources.iter().find(|source| !source.starts_with("salt://")) {
            return Err(format!("Invalid source '{wrong}' (must be a salt:// URI)"));
        }
        let mut plan: Option<Plan> = None;
        for source in &sources {
            let (root, saltenv) = in_environment(source, &context.saltenv);
            let client = &context.call.minion.files;
            let failed = |error: FetchError| error.to_string();
            let files = client.list(saltenv).map_err(failed)?;
            let directories = client.directories(saltenv).map_err(failed)?;
            let root = root.trim_matches('/');
            let inside = |path: &String| is_below(path, root);
            if !files.iter().any(inside) && !directories.iter().any(|path| path == root || inside(path)) {
                continue;
            }
            let layer = Layer { options, root, saltenv, files, directories };
            let links =
                if options.keep_links { client.links(saltenv).map_err(failed)? } else { brine_value::Map::new() };
            let links = links.iter().filter_map(|(path, target)| Some((path.as_str()?.to_owned(), target.to_string())));
            layer.insert_below(plan.get_or_insert_default(), links.collect());
            if !options.merge {
                break;
            }
        }
        Ok(plan)
    }

    /// Whether a higher source has an entry at this path, or a file or link where a directory would be.
    fn is_occupied(&self, path: &Path) -> bool {
        self.parents.contains(path)
            || path.ancestors().any(|path| self.files.contains_key(path) || self.links.contains_key(path))
    }

    fn has(&self, path: &Path) -> bool {
        self.files.contains_key(path) || self.parents.contains(path) || self.links.contains_key(path)
    }
}

fn is_below(path: &str, root: &str) -> bool {
    root.is_empty() || path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'))
}

/// One source, and the paths that the file server lists for its environment.
struct Layer<'a> {
    options: &'a Sources,
    root: &'a str,
    saltenv: &'a str,
    files: Vec<String>,
    directories: Vec<String>,
}

impl Layer<'_> {
    /// Returns the path in the tree of a file of the file server, if it is selected.
    fn path_of(&self, path: &str) -> Option<PathBuf> {
        let below = relative_path(path.strip_prefix(self.root)?.trim_start_matches('/'))?;
        let is_wanted = is_below(path, self.root)
            && below.components().count() <= self.options.max_depth.saturating_add(1)
            && self.options.selection.selects(&below.to_string_lossy());
        is_wanted.then_some(below)
    }

    fn insert_below(mut self, plan: &mut Plan, links: Vec<(String, String)>) {
        let dropped = self.insert_links(plan, links);
        for path in &self.files {
            let Some(place) = self.path_of(path).filter(|place| !plan.is_occupied(place)) else { continue };
            plan.directories.insert(place.parent().unwrap_or(Path::new("")).to_owned());
            plan.parents.extend(place.ancestors().skip(1).map(Path::to_owned));
            plan.files.insert(place, format!("salt://{path}?saltenv={}", self.saltenv));
        }
        if !self.options.include_empty {
            self.drop_links_to_missing_directories(plan);
            return;
        }
        for path in &self.directories {
            let Some(place) = self.path_of(path) else { continue };
            if !dropped.contains(&place) && !plan.is_occupied(&place) {
                plan.directories.insert(place.clone());
                plan.parents.insert(place.clone());
                plan.empty.insert(place);
            }
        }
    }

    /// Adds symbolic links, and drops the files that the server lists below them: they belong to the targets. Returns
    /// the links omitted because a higher source has a file where they point to a directory.
    fn insert_links(&mut self, plan: &mut Plan, links: Vec<(String, String)>) -> BTreeSet<PathBuf> {
        let mut dropped = BTreeSet::new();
        for (path, target) in links.into_iter().filter(|(path, _)| is_below(path, self.root)) {
            let leads_to_directory = self.files.iter().any(|file| file != &path && is_below(file, &path));
            self.files.retain(|file| file != &path && !is_below(file, &path));
            let Some(place) = self.path_of(&path).filter(|place| !plan.is_occupied(place)) else { continue };
            let leads_to = joined(place.parent().unwrap_or(Path::new("")), &target);
            let has = |places: &dyn Fn(&Path) -> bool| leads_to.as_deref().is_some_and(places);
            if leads_to_directory && has(&|path| plan.files.contains_key(path)) {
                dropped.insert(place);
            } else if leads_to_directory || !has(&|path| plan.directories.contains(path)) {
                plan.links.insert(place, target);
            }
        }
        dropped
    }

    /// Drops links to directories that are not created, and links to such links.
    fn drop_links_to_missing_directories(&self, plan: &mut Plan) {
        loop {
            let is_lost = |target: &String| {
                let leads_to = joined(Path::new(""), target);
                leads_to.is_some_and(|place| {
                    let path = Path::new(self.root).join(&place);
                    self.directories.iter().any(|directory| Path::new(directory) == path) && !plan.has(&place)
                })
            };
            let lost: Vec<PathBuf> =
                plan.links.iter().filter(|(_, target)| is_lost(target)).map(|(path, _)| path.clone()).collect();
            if lost.is_empty() {
                return;
            }
            plan.links.retain(|path, _| !lost.contains(path));
        }
    }
}

/// Resolves the target of a link in a directory of the tree; `None` if it is out of the tree.
fn joined(directory: &Path, target: &str) -> Option<PathBuf> {
    let mut path = directory.to_owned();
    for part in Path::new(target).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir => path.pop().then_some(())?,
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

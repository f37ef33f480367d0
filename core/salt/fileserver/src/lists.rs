//! Lists the contents of an environment: one walk over its roots yields all four lists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Root, Roots};

/// The contents of an environment, as paths below their roots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileLists {
    /// All entries but directories; includes broken links, as in Salt.
    pub files: BTreeSet<String>,
    /// The directories, and links to directories.
    pub dirs: BTreeSet<String>,
    /// The empty directories.
    pub empty_dirs: BTreeSet<String>,
    /// The links with their targets. If links are followed, omits links with an absolute target outside of their root:
    /// they are served as their targets.
    pub links: BTreeMap<String, String>,
}

impl Roots {
    /// Returns all lists of an environment; empty if it is unknown. Skips unreadable directories and names that are not
    /// UTF-8, which cannot be requested.
    pub fn lists(&self, saltenv: &str) -> FileLists {
        self.lists_of(saltenv, &|_| true)
    }

    /// Returns the paths of the files below `_modules`, `_states` and the like, sorted. Reads no other directories.
    pub fn custom_modules(&self, saltenv: &str) -> Vec<String> {
        let lists = self.lists_of(saltenv, &|name| name.starts_with('_'));
        lists.files.into_iter().filter(|path| path.contains('/')).collect()
    }

    /// Returns the lists of an environment without the entries of its roots whose names are not wanted.
    fn lists_of(&self, saltenv: &str, is_wanted: &dyn Fn(&str) -> bool) -> FileLists {
        let mut lists = FileLists::default();
        for root in self.roots_of(saltenv) {
            if !root.mountpoint.is_empty() && !is_wanted(&root.mountpoint) {
                continue;
            }
            let Ok(real) = root.path.canonicalize() else {
                tracing::debug!(root = %root.path.display(), saltenv, "a file root does not exist");
                continue;
            };
            if !root.mountpoint.is_empty() {
                lists.dirs.insert(root.mountpoint.clone());
            }
            let above = Vec::new();
            let mut walk = Walk { roots: self, root: &root, real: &real, lists: &mut lists, is_wanted, above };
            walk.directory(&root.path, &root.mountpoint);
        }
        lists
    }
}

struct Walk<'a> {
    roots: &'a Roots,
    root: &'a Root,
    /// The path of the root with links resolved.
    real: &'a Path,
    lists: &'a mut FileLists,
    /// Whether an entry of the root is listed, by its name.
    is_wanted: &'a dyn Fn(&str) -> bool,
    /// Device and inode of the parent directories: a link to one of them is not followed.
    above: Vec<(u64, u64)>,
}

impl Walk<'_> {
    fn directory(&mut self, path: &Path, relative: &str) {
        let Ok(identity) = fs::metadata(path).map(|stat| (stat.dev(), stat.ino())) else { return };
        if self.above.contains(&identity) {
            return;
        }
        self.above.push(identity);
        for name in names(path) {
            if relative.is_empty() && !(self.is_wanted)(&name) {
                continue;
            }
            let below = if relative.is_empty() { name.clone() } else { format!("{relative}/{name}") };
            self.entry(&path.join(name), &below);
        }
        self.above.pop();
    }

    fn entry(&mut self, path: &Path, relative: &str) {
        let link = fs::read_link(path).ok();
        let is_dir = path.is_dir();
        let is_refused = self.root.is_pushed && (link.is_some() || !self.root.may_serve(relative));
        let is_hidden = self.roots.is_ignored(relative) || is_refused;
        if !(is_hidden || link.is_some() && self.roots.ignore_symlinks) {
            let list = if is_dir { &mut self.lists.dirs } else { &mut self.lists.files };
            list.insert(relative.to_owned());
            if is_dir && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()) {
                self.lists.empty_dirs.insert(relative.to_owned());
            }
            if let Some(target) = link.as_deref().filter(|target| self.is_listed(path, target)) {
                self.lists.links.insert(relative.to_owned(), target.to_string_lossy().into_owned());
            }
        }
        // Salt descends even into ignored directories.
        if is_dir && (link.is_none() || self.root.follow_symlinks) {
            self.directory(path, relative);
        }
    }

    fn is_listed(&self, path: &Path, target: &Path) -> bool {
        let within = || path.canonicalize().map_or(target.is_relative(), |real| real.starts_with(self.real));
        !self.root.follow_symlinks || target.starts_with("..") || within()
    }
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).inspect_err(|error| {
        tracing::debug!(path = %path.display(), %error, "reading a directory of the file server failed");
    });
    entries.into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

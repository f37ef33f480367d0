//! What is in an environment: one walk over its roots gives all four lists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Roots;

/// Everything in an environment, as paths below their roots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileLists {
    /// What is no folder. Links that lead nowhere are here too, as in Salt.
    pub files: BTreeSet<String>,
    /// The folders, and links to folders.
    pub dirs: BTreeSet<String>,
    /// Those folders that have nothing in them.
    pub empty_dirs: BTreeSet<String>,
    /// The links, and the text that each holds. Links with an absolute path out of their root are
    /// left out where links are followed: those are served as what they lead to.
    pub links: BTreeMap<String, String>,
}

impl Roots {
    /// All lists of an environment; empty if it is not known. Folders that cannot be read are passed
    /// over, as are names that are not UTF-8: nobody could ask for those.
    pub fn lists(&self, saltenv: &str) -> FileLists {
        let mut lists = FileLists::default();
        for root in self.roots_of(saltenv) {
            let Ok(real) = root.path.canonicalize() else {
                tracing::debug!(root = %root.path.display(), saltenv, "a file root is not there");
                continue;
            };
            let mut walk =
                Walk { roots: self, root: &real, follow: root.follow_symlinks, lists: &mut lists, above: Vec::new() };
            walk.folder(&root.path, "");
        }
        lists
    }
}

struct Walk<'a> {
    roots: &'a Roots,
    root: &'a Path,
    /// Whether links may lead out of the root, and are walked.
    follow: bool,
    lists: &'a mut FileLists,
    /// Device and inode of the folders that this one is in: a link to one of them is not walked.
    above: Vec<(u64, u64)>,
}

impl Walk<'_> {
    fn folder(&mut self, path: &Path, relative: &str) {
        let Ok(identity) = fs::metadata(path).map(|stat| (stat.dev(), stat.ino())) else { return };
        if self.above.contains(&identity) {
            return;
        }
        self.above.push(identity);
        for name in names(path) {
            let below = if relative.is_empty() { name.clone() } else { format!("{relative}/{name}") };
            self.entry(&path.join(name), &below);
        }
        self.above.pop();
    }

    fn entry(&mut self, path: &Path, relative: &str) {
        let link = fs::read_link(path).ok();
        let is_dir = path.is_dir();
        if !(self.roots.is_ignored(relative) || link.is_some() && self.roots.ignore_symlinks) {
            let list = if is_dir { &mut self.lists.dirs } else { &mut self.lists.files };
            list.insert(relative.to_owned());
            if is_dir && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()) {
                self.lists.empty_dirs.insert(relative.to_owned());
            }
            if let Some(target) = link.as_deref().filter(|target| self.is_listed(path, target)) {
                self.lists.links.insert(relative.to_owned(), target.to_string_lossy().into_owned());
            }
        }
        // Salt walks on even where the folder itself is ignored.
        if is_dir && (link.is_none() || self.follow) {
            self.folder(path, relative);
        }
    }

    fn is_listed(&self, path: &Path, target: &Path) -> bool {
        let within = || path.canonicalize().map_or(target.is_relative(), |real| real.starts_with(self.root));
        !self.follow || target.starts_with("..") || within()
    }
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).inspect_err(|error| {
        tracing::debug!(path = %path.display(), %error, "a folder of the file server cannot be read");
    });
    entries.into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

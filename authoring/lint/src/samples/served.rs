//! The files of a tree that templates import. Links that leave the tree are not followed.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use brine_authoring_model::Tree;
use brine_jinja::{Files, FilesError};

/// The largest file that a template imports, in bytes.
const MAX_SIZE: u64 = 1 << 20;

/// The files of a tree.
pub(super) struct Served {
    /// The directory; empty for a tree in memory.
    root: PathBuf,
    roots: Vec<String>,
    paths: BTreeSet<String>,
    /// The paths by their last part.
    by_name: HashMap<String, Vec<String>>,
    /// Files that may be changed and not saved.
    texts: HashMap<String, Arc<str>>,
}

impl Served {
    pub(super) fn of(tree: &Tree) -> Self {
        let mut by_name: HashMap<String, Vec<String>> = HashMap::new();
        for path in tree.paths() {
            let last = path.rsplit('/').next().unwrap_or(path);
            by_name.entry(last.to_owned()).or_default().push(path.clone());
        }
        Served {
            root: tree.root.canonicalize().unwrap_or_default(),
            roots: tree.layout().state_roots.clone(),
            paths: tree.paths().clone(),
            by_name,
            texts: tree.files().map(|file| (file.path.clone(), Arc::clone(&file.text))).collect(),
        }
    }

    /// Returns the path in the tree of a path below `salt://`.
    pub(super) fn path(&self, path: &str) -> Option<String> {
        let path = path.trim_start_matches('/');
        let full = |root: &String| if root.is_empty() { path.to_owned() } else { format!("{root}/{path}") };
        let direct = self.roots.iter().map(full).find(|full| self.paths.contains(full));
        // The root may be a directory of the tree that is not known as one.
        let end = format!("/{path}");
        let named = || self.by_name.get(path.rsplit('/').next().unwrap_or(path)).into_iter().flatten();
        direct.or_else(|| named().find(|full| full.ends_with(&end)).cloned())
    }
}

/// A layer of these files.
pub(super) struct Layer(pub(super) Arc<Served>);

impl Files for Layer {
    fn template(&self, path: &str, _saltenv: &str) -> Result<Option<String>, FilesError> {
        let Self(served) = self;
        let Some(path) = served.path(path) else { return Ok(None) };
        if let Some(text) = served.texts.get(&path) {
            return Ok(Some(text.to_string()));
        }
        if served.root.as_os_str().is_empty() {
            return Ok(None);
        }
        let failed = |source| FilesError::DiskAt { path: path.clone().into(), source };
        let full = served.root.join(&path).canonicalize().map_err(failed)?;
        let status = full.metadata().map_err(failed)?;
        if !full.starts_with(&served.root) || !status.is_file() || status.len() > MAX_SIZE {
            return Ok(None);
        }
        std::fs::read_to_string(&full).map(Some).map_err(failed)
    }
}

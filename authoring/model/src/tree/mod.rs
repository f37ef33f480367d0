//! All files of a tree; incremental by file.

mod custom;
pub mod index;
pub mod master;
pub mod missing;
mod same;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::file::File;
use crate::layout::{self, FileKind, Layout};
use index::Index;

/// The largest file that is read, in bytes.
const MAX_SIZE: u64 = 1 << 20;
/// The largest number of configuration files.
const MAX_CONFIGURATIONS: usize = 1000;
/// The largest number of paths.
const MAX_PATHS: usize = 200_000;
/// Directories that no file server serves.
const SKIPPED: [&str; 8] = [".git", ".hg", ".svn", ".tox", ".venv", "node_modules", "__pycache__", ".kitchen"];

/// A tree of files.
#[derive(Debug)]
pub struct Tree {
    /// The directory; empty for a tree in memory.
    pub root: PathBuf,
    layout: Layout,
    files: BTreeMap<String, Arc<File>>,
    paths: BTreeSet<String>,
    /// The configuration files of masters and minions, which are no SLS.
    configurations: BTreeMap<String, Arc<File>>,
    links: BTreeSet<String>,
    index: OnceLock<Index>,
    /// Whether files of the disk keep what is needed about other files alone.
    is_lean: bool,
}

impl Tree {
    /// Reads all files below a directory. The roots are found if no layout is given.
    ///
    /// # Errors
    /// The directory cannot be read. Files that cannot be read are left out.
    pub fn load(root: &Path, layout: Option<Layout>) -> io::Result<Self> {
        Self::read(root, layout, false)
    }

    /// Reads all files below a directory as [`Tree::load`] does, and forgets the data of files with states. A file whose
    /// text is [set](Tree::set_text) keeps them.
    ///
    /// # Errors
    /// As for [`Tree::load`].
    pub fn load_lean(root: &Path, layout: Option<Layout>) -> io::Result<Self> {
        Self::read(root, layout, true)
    }

    fn read(root: &Path, layout: Option<Layout>, is_lean: bool) -> io::Result<Self> {
        let paths = Self::paths_below(root)?;
        let layout = layout.unwrap_or_else(|| Layout::detect(paths.iter().map(String::as_str)));
        let sources: Vec<(&String, FileKind)> = paths.iter().map(|path| (path, layout.kind(path))).collect();
        let sources: Vec<_> = sources.into_iter().filter(|(_, kind)| *kind != FileKind::Other).collect();
        let (next, files) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        let read = || {
            let mut own = Vec::new();
            while let Some((path, kind)) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Some(text) = text_of(root, path) {
                    let mut file = File::read(path, *kind, &text);
                    if is_lean {
                        file.shrink();
                    }
                    own.push(((*path).clone(), Arc::new(file)));
                }
            }
            files.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
        };
        let workers = std::thread::available_parallelism().map_or(2, usize::from).min(8);
        std::thread::scope(|scope| {
            for _ in 0..workers.min(sources.len().div_ceil(8)) {
                scope.spawn(read);
            }
        });
        let files = files.into_inner().unwrap_or_else(PoisonError::into_inner);
        // What is below a link to a directory is not read.
        let links = paths.iter().filter(|path| !path.contains('.') && root.join(path).is_dir()).cloned().collect();
        let configuration = |path: &String| {
            let file = File::configuration(path, &text_of(root, path)?);
            Some((path.clone(), Arc::new(file)))
        };
        let of_daemons = paths.iter().filter(|path| layout::is_configuration(path)).take(MAX_CONFIGURATIONS);
        let configurations = of_daemons.filter_map(configuration).collect();
        let root = root.to_owned();
        Ok(Tree { root, layout, files, paths, configurations, links, index: OnceLock::new(), is_lean })
    }

    /// Returns the paths of all files below a directory.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn paths_below(root: &Path) -> io::Result<BTreeSet<String>> {
        let mut paths = BTreeSet::new();
        walk(root, "", &mut paths)?;
        Ok(paths)
    }

    /// Creates a tree of files in memory: paths and texts.
    pub fn of_texts<'t>(texts: impl IntoIterator<Item = (&'t str, &'t str)>) -> Self {
        let texts: Vec<(&str, &str)> = texts.into_iter().collect();
        let layout = Layout::detect(texts.iter().map(|(path, _)| *path));
        let read =
            |(path, text): &(&str, &str)| ((*path).to_owned(), Arc::new(File::read(path, layout.kind(path), text)));
        let files = texts.iter().map(read).collect();
        let paths = texts.iter().map(|(path, _)| (*path).to_owned()).collect();
        let of_daemons = texts.iter().filter(|(path, _)| layout::is_configuration(path));
        let configurations =
            of_daemons.map(|(path, text)| ((*path).to_owned(), Arc::new(File::configuration(path, text)))).collect();
        Tree {
            root: PathBuf::new(),
            layout,
            files,
            paths,
            configurations,
            links: BTreeSet::new(),
            index: OnceLock::new(),
            is_lean: false,
        }
    }

    /// Replaces the text of a file, or adds the file. Of one that is too large, only the path counts.
    pub fn set_text(&mut self, path: &str, text: &str) {
        let kind = self.layout.kind(path);
        let is_new = self.paths.insert(path.to_owned());
        if layout::is_configuration(path) && text.len() as u64 <= MAX_SIZE {
            self.configurations.insert(path.to_owned(), Arc::new(File::configuration(path, text)));
        }
        let before = if kind == FileKind::Other || text.len() as u64 > MAX_SIZE {
            self.files.remove(path)
        } else {
            self.files.insert(path.to_owned(), Arc::new(File::read(path, kind, text)))
        };
        let is_same = before.is_some_and(|before| self.files.get(path).is_some_and(|new| same::is_same(&before, new)));
        if is_new || !is_same {
            self.index = OnceLock::new();
        }
    }

    /// Reads a file of the directory again; one that is gone is removed. Whether anything changed.
    pub fn reread(&mut self, path: &str) -> bool {
        if std::fs::symlink_metadata(self.root.join(path)).is_err() {
            let was_there = self.paths.contains(path);
            self.remove(path);
            return was_there;
        }
        if layout::is_configuration(path) {
            match self.text(path) {
                Some(text) => self.set_text(path, &text),
                None => _ = self.configurations.remove(path),
            }
            return true;
        }
        match Some(path).filter(|path| self.layout.kind(path) != FileKind::Other).and_then(|path| self.text(path)) {
            Some(text) => {
                if !self.is_lean && self.files.get(path).is_some_and(|file| *file.text == *text) {
                    return false;
                }
                self.set_text(path, &text);
                // It is not shared yet.
                if let Some(file) = self.files.get_mut(path).filter(|_| self.is_lean).and_then(Arc::get_mut) {
                    file.shrink();
                }
            }
            None if self.paths.contains(path) && !self.files.contains_key(path) => return false,
            None => {
                self.files.remove(path);
                self.paths.insert(path.to_owned());
                self.index = OnceLock::new();
            }
        }
        true
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &str) {
        self.paths.remove(path);
        self.files.remove(path);
        self.configurations.remove(path);
        self.index = OnceLock::new();
    }

    /// Reads the text of a file of the directory, unless a link leads to another place or it is too large.
    pub fn text(&self, path: &str) -> Option<String> {
        let root = self.root.canonicalize().ok()?;
        let directory = self.root.join(path).parent()?.canonicalize().ok()?;
        directory.starts_with(root).then(|| text_of(&self.root, path)).flatten()
    }

    /// Returns the roots.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns a file that is not only a path.
    pub fn file(&self, path: &str) -> Option<&Arc<File>> {
        self.files.get(path).or_else(|| self.configurations.get(path))
    }

    /// Returns the configuration files of masters and minions.
    pub fn configurations(&self) -> impl Iterator<Item = &Arc<File>> {
        self.configurations.values()
    }

    /// Returns all files that are not only paths, sorted by path.
    pub fn files(&self) -> impl Iterator<Item = &Arc<File>> {
        self.files.values()
    }

    /// Returns the paths of all files.
    pub fn paths(&self) -> &BTreeSet<String> {
        &self.paths
    }

    /// Whether a path is below a link to a directory, so that its files are not known.
    pub fn is_linked(&self, path: &str) -> bool {
        self.links.iter().any(|link| path == link || layout::below(link, path).is_some())
    }

    /// Returns what the files define. It is made when it is first needed after a change.
    pub fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(self))
    }
}

/// Reads a text that is not too large; other bytes than UTF-8 are replaced. A link that leads out of the tree is not
/// followed.
fn text_of(root: &Path, path: &str) -> Option<String> {
    let path = root.join(path);
    if std::fs::symlink_metadata(&path).ok()?.is_symlink() {
        let (root, target) = (root.canonicalize().ok()?, path.canonicalize().ok()?);
        if !target.starts_with(root) {
            return None;
        }
    }
    let status = std::fs::metadata(&path).ok()?;
    if !status.is_file() || status.len() > MAX_SIZE {
        return None;
    }
    let bytes = std::fs::read(&path).ok()?;
    Some(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

fn walk(root: &Path, below: &str, paths: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in std::fs::read_dir(root.join(below))? {
        let Ok(entry) = entry else { continue };
        let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if kind.is_dir() {
            if !SKIPPED.contains(&name.as_str()) && paths.len() < MAX_PATHS {
                // A directory that cannot be read is left out.
                _ = walk(root, &path, paths);
            }
        } else {
            paths.insert(path);
        }
    }
    Ok(())
}

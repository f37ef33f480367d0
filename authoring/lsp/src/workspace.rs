//! The trees of the client's folders, and the documents that are open. An open document has the text of the client, all
//! others that of the disk.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use brine_authoring_model::lines::Units;
use brine_authoring_model::{Catalogue, File, Lines, Tree};
use brine_lint::{Finding, Options, check_ids};
use lsp_types::{Position, Range, TextDocumentContentChangeEvent, Uri};

use crate::{convert, uri};

/// The largest number of open documents; others are not analysed.
const MAX_DOCUMENTS: usize = 2000;
/// The largest document that is analysed outside of a folder, in bytes.
const MAX_LOOSE: usize = 1 << 20;

/// A folder of the client.
pub(crate) struct Root {
    /// The directory.
    pub directory: PathBuf,
    /// Its files.
    pub tree: Tree,
    /// The choice of findings.
    pub options: Options,
    /// The times of the files when they were read.
    times: HashMap<String, Option<SystemTime>>,
    /// The findings about all files, since the last change.
    repeated: OnceLock<Vec<Finding>>,
}

/// Where a document is.
enum Home {
    /// In a folder: its number, and the path there.
    Root(usize, String),
    /// In none: a tree of its own.
    Loose(Box<Tree>),
}

/// An open document.
struct Document {
    text: String,
    version: i32,
    home: Home,
}

/// Everything that the server knows.
pub(crate) struct Workspace {
    pub roots: Vec<Root>,
    documents: BTreeMap<String, Document>,
    /// The functions.
    pub catalogue: Catalogue,
    /// What columns count.
    pub units: Units,
}

/// A file, and what it is a part of.
pub(crate) struct Here<'w> {
    pub workspace: &'w Workspace,
    pub tree: &'w Tree,
    pub file: &'w File,
    /// The folder; `None` for a document outside of all.
    pub root: Option<&'w Root>,
}

impl Root {
    /// Reads a folder. The second value is what is wrong with its `brine.toml`.
    pub(crate) fn load(directory: &Path) -> std::io::Result<(Self, Option<String>)> {
        let mut tree = Tree::of_texts([]);
        directory.clone_into(&mut tree.root);
        let (options, wrong) = match tree.text("brine.toml").map(|text| Options::parse(&text)) {
            Some(Ok(options)) => (options, None),
            Some(Err(error)) => {
                let path = directory.join("brine.toml");
                (Options::default(), Some(format!("reading {} failed: {error}", path.display())))
            }
            None => (Options::default(), None),
        };
        let tree = Tree::load_lean(directory, options.layout())?;
        let mut root =
            Root { directory: directory.to_owned(), tree, options, times: HashMap::new(), repeated: OnceLock::new() };
        root.times = root.tree.files().map(|file| (file.path.clone(), modified(directory, &file.path))).collect();
        Ok((root, wrong))
    }

    /// Returns the findings about ids in several files.
    pub(crate) fn repeated(&self) -> &[Finding] {
        self.repeated.get_or_init(|| check_ids(&self.tree, &self.options))
    }

    /// Reads a file again.
    fn reread(&mut self, path: &str) {
        self.repeated = OnceLock::new();
        self.tree.reread(path);
        self.times.insert(path.to_owned(), modified(&self.directory, path));
    }
}

fn modified(directory: &Path, path: &str) -> Option<SystemTime> {
    std::fs::metadata(directory.join(path)).and_then(|status| status.modified()).ok()
}

impl Workspace {
    pub(crate) fn new(catalogue: Catalogue, units: Units) -> Self {
        Workspace { roots: Vec::new(), documents: BTreeMap::new(), catalogue, units }
    }

    /// Adds a folder, and moves open documents into it. Returns what the client is told.
    pub(crate) fn add_root(&mut self, directory: &Path) -> Option<String> {
        let failed = |error: std::io::Error| format!("reading {} failed: {error}", directory.display());
        if self.roots.iter().any(|root| root.directory == directory) {
            return None;
        }
        match Root::load(directory) {
            Ok((root, wrong)) => {
                self.roots.push(root);
                self.reopen_all();
                wrong
            }
            Err(error) => Some(failed(error)),
        }
    }

    /// Removes a folder.
    pub(crate) fn remove_root(&mut self, directory: &Path) {
        self.roots.retain(|root| root.directory != directory);
        self.reopen_all();
    }

    /// Reads a folder again, with its configuration.
    fn reload(&mut self, number: usize) -> Option<String> {
        let directory = self.roots[number].directory.clone();
        let (root, wrong) = Root::load(&directory).ok()?;
        self.roots[number] = root;
        self.reopen_all();
        wrong
    }

    fn reopen_all(&mut self) {
        for (uri, document) in std::mem::take(&mut self.documents) {
            self.open(uri, document.version, document.text);
        }
    }

    /// Returns the innermost folder of a path, and the path in it.
    fn home(&self, path: &Path) -> Option<(usize, String)> {
        let inside = self.roots.iter().enumerate().filter_map(|(number, root)| {
            let inside = path.strip_prefix(&root.directory).ok()?.to_str()?;
            (!inside.is_empty()).then(|| (number, inside.to_owned()))
        });
        inside.min_by_key(|(_, path)| path.len())
    }

    /// Opens a document, or replaces its text.
    pub(crate) fn open(&mut self, uri: String, version: i32, text: String) {
        if self.documents.len() >= MAX_DOCUMENTS && !self.documents.contains_key(&uri) {
            return;
        }
        let path = uri::path(&uri);
        let home = if let Some((number, path)) = path.as_ref().and_then(|path| self.home(path)) {
            let root = &mut self.roots[number];
            root.repeated = OnceLock::new();
            root.tree.set_text(&path, &text);
            Home::Root(number, path)
        } else {
            let name = path.as_ref().and_then(|path| path.file_name()?.to_str()).unwrap_or("document.sls");
            let text = if text.len() > MAX_LOOSE { "" } else { &text };
            Home::Loose(Box::new(Tree::of_texts([(name, text)])))
        };
        self.documents.insert(uri, Document { text, version, home });
    }

    /// Applies changes to an open document. One that does not fit the text is applied as near as possible.
    pub(crate) fn change(&mut self, uri: &str, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
        let Some(mut document) = self.documents.remove(uri) else { return };
        for change in changes {
            match change.range {
                None => document.text = change.text,
                Some(Range { start, end }) => {
                    let lines = Lines::of(&document.text);
                    let byte = |at: Position| convert::byte(&document.text, &lines, at, self.units);
                    let (start, end) = (byte(start), byte(end));
                    document.text.replace_range(start..end.max(start), &change.text);
                }
            }
        }
        self.open(uri.to_owned(), version, document.text);
    }

    /// Closes a document: what is on the disk counts again.
    pub(crate) fn close(&mut self, uri: &str) {
        if let Some(Document { home: Home::Root(number, path), .. }) = self.documents.remove(uri)
            && let Some(root) = self.roots.get_mut(number)
        {
            root.reread(&path);
        }
    }

    /// Reads a file that changed on the disk, unless it is open. Returns what the client is told.
    pub(crate) fn changed_on_disk(&mut self, uri: &str) -> Option<String> {
        let (number, path) = self.home(&uri::path(uri)?)?;
        if path == "brine.toml" {
            return self.reload(number);
        }
        // A directory that came or went: all that is below it.
        let directory = format!("{path}/");
        let root = &self.roots[number];
        if root.directory.join(&path).is_dir() || root.tree.paths().iter().any(|have| have.starts_with(&directory)) {
            self.refresh();
        } else if !self.is_open(number, &path) {
            self.roots[number].reread(&path);
        }
        None
    }

    /// Looks for files that came, changed or went, for clients that do not watch them.
    pub(crate) fn refresh(&mut self) {
        for number in 0..self.roots.len() {
            let root = &self.roots[number];
            let Ok(paths) = Tree::paths_below(&root.directory) else { continue };
            let is_changed = |path: &&String| {
                !paths.contains(*path)
                    || !root.tree.paths().contains(*path)
                    || root.times.get(*path).is_some_and(|before| *before != modified(&root.directory, path))
            };
            let all = paths.iter().chain(root.tree.paths().difference(&paths));
            let changed: Vec<String> = all.filter(is_changed).cloned().collect();
            for path in changed {
                if !self.is_open(number, &path) {
                    self.roots[number].reread(&path);
                }
            }
        }
    }

    fn is_open(&self, number: usize, path: &str) -> bool {
        self.documents
            .values()
            .any(|document| matches!(&document.home, Home::Root(of, own) if *of == number && own == path))
    }

    /// Returns the URIs of the open documents, with their versions.
    pub(crate) fn open_documents(&self) -> Vec<(String, i32)> {
        self.documents.iter().map(|(uri, document)| (uri.clone(), document.version)).collect()
    }

    /// Returns the text of an open document.
    #[cfg(test)]
    pub(crate) fn text(&self, uri: &str) -> Option<&str> {
        self.documents.get(uri).map(|document| document.text.as_str())
    }

    /// Returns the file of an open document, or of another one in a folder.
    pub(crate) fn here(&self, uri: &str) -> Option<Here<'_>> {
        match self.documents.get(uri).map(|document| &document.home) {
            Some(Home::Loose(tree)) => {
                let file = tree.files().next()?;
                Some(Here { workspace: self, tree, file, root: None })
            }
            Some(Home::Root(number, path)) => self.in_root(*number, path),
            None => {
                let (number, path) = self.home(&uri::path(uri)?)?;
                self.in_root(number, &path)
            }
        }
    }

    fn in_root(&self, number: usize, path: &str) -> Option<Here<'_>> {
        let root = self.roots.get(number)?;
        let file = root.tree.file(path)?;
        Some(Here { workspace: self, tree: &root.tree, file, root: Some(root) })
    }

    /// Returns the URI of a file of a folder: that of the client if the file is open.
    fn uri(&self, root: &Root, path: &str) -> Option<Uri> {
        let own = self.roots.iter().position(|other| std::ptr::eq(other, root))?;
        let open = self.documents.iter().find_map(|(uri, document)| match &document.home {
            Home::Root(number, open) if *number == own && open == path => uri.parse().ok(),
            _ => None,
        });
        open.or_else(|| uri::of(&root.directory.join(path)))
    }
}

impl<'w> Here<'w> {
    /// Returns the byte of a position.
    pub(crate) fn byte(&self, at: Position) -> usize {
        convert::byte(&self.file.text, &self.file.lines, at, self.workspace.units)
    }

    /// Returns a range in this file.
    pub(crate) fn range(&self, span: &std::ops::Range<usize>) -> Range {
        convert::range(&self.file.text, &self.file.lines, span, self.workspace.units)
    }

    /// Returns another file of the tree, or a configuration beside it.
    pub(crate) fn other(&self, path: &str) -> Option<&'w File> {
        self.tree.file(path).map(|file| &**file)
    }

    /// Returns the configurations.
    pub(crate) fn configurations(&self) -> Vec<&'w File> {
        self.tree.configurations().map(|file| &**file).collect()
    }

    /// Returns the URI of a file of the tree.
    pub(crate) fn uri(&self, path: &str) -> Option<Uri> {
        match self.root {
            Some(root) => self.workspace.uri(root, path),
            None => self.workspace.documents.iter().find_map(|(uri, document)| match &document.home {
                Home::Loose(tree) if std::ptr::eq(std::ptr::from_ref(&**tree), self.tree) => uri.parse().ok(),
                _ => None,
            }),
        }
    }

    /// Returns the place of bytes in a file of the tree.
    pub(crate) fn location(&self, place: &brine_authoring_model::Place) -> Option<lsp_types::Location> {
        let range = match self.other(&place.path) {
            Some(file) => convert::range(&file.text, &file.lines, &(place.start..place.end), self.workspace.units),
            None => Range::default(),
        };
        Some(lsp_types::Location { uri: self.uri(&place.path)?, range })
    }
}

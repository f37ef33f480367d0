//! What the files of a tree define: names of SLS files, ids, pillar keys and custom functions, and what is in one run.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::OnceLock;

use brine_jinja::view::{Kind, is_dynamic};
use brine_text::glob::{fnmatch, is_pattern};
use brine_yaml::SourceNode;
use brine_yaml::nodes::Content;

use super::Tree;
use super::master::Master;
use super::missing::Missing;
use crate::catalogue::Catalogue;
use crate::file::File;
use crate::layout::{FileKind, below, name};
use crate::states::{Requisite, State};

/// A place in a file of the tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The path of the file.
    pub path: String,
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl Place {
    /// Creates a place.
    pub fn new(path: &str, span: &Range<usize>) -> Self {
        Place { path: path.to_owned(), start: span.start, end: span.end }
    }
}

/// What a reference to files finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// These files.
    Paths(Vec<String>),
    /// Nothing.
    Nothing,
    /// It is known only when a template is run.
    Unknown,
}

/// What the files of a tree define.
#[derive(Debug, Default)]
pub struct Index {
    /// The files of each SLS, by its name.
    sls: HashMap<String, Vec<String>>,
    /// The files of each pillar SLS, by its name.
    pillar_sls: HashMap<String, Vec<String>>,
    /// All paths by the last part.
    by_name: HashMap<String, Vec<String>>,
    /// The files that a file includes, and the reverse.
    includes: HashMap<String, Vec<String>>,
    included_by: HashMap<String, Vec<String>>,
    /// Files with an include that only a render knows.
    open_includes: HashSet<String>,
    /// The states by each of their names: path and number.
    named: HashMap<String, Vec<(String, usize)>>,
    /// The names of states that have placeholders: pattern, module, path, number.
    patterns: Vec<(String, String, String, usize)>,
    /// Functions of custom modules.
    pub custom: Catalogue,
    /// Files that templates of other files include or import.
    pub templates: HashSet<String>,
    /// Names of custom renderers.
    pub renderers: BTreeSet<String>,
    /// Whether the tree has custom grains.
    pub has_custom_grains: bool,
    /// The keys of the pillar, with `:` between the parts, and their places.
    pub pillar_keys: BTreeMap<String, Vec<Place>>,
    /// Keys below which only a render knows the pillar; the empty key is the whole pillar.
    pub open_pillar: BTreeSet<String>,
    /// The modules of states: the number of uses, and the first one.
    pub state_modules: HashMap<String, (usize, Place)>,
    /// The modules of functions that templates call: the number of uses, and the first one.
    pub called_modules: HashMap<String, (usize, Place)>,
    /// Ids whose states another state extends, or gives requisites by `use_in`.
    extended: HashSet<String>,
    /// Whether only a render knows some of them.
    has_open_extension: bool,
    /// Whether the tree has a top file of states.
    pub has_top: bool,
    /// The top files of the pillar.
    pub pillar_tops: Vec<String>,
    /// Directories with templates whose includes only a render knows.
    pub open_directories: HashSet<String>,
    missing: OnceLock<Missing>,
    master: OnceLock<Master>,
}

impl Index {
    /// Reads what the files define.
    pub(super) fn of(tree: &Tree) -> Self {
        let mut index = Index::default();
        for path in tree.paths() {
            let last = path.rsplit('/').next().unwrap_or(path);
            index.by_name.entry(last.to_owned()).or_default().push(path.clone());
        }
        for file in tree.files() {
            let names = tree.layout().names(&file.path, file.kind);
            let by_sls = match file.kind {
                FileKind::Pillar => &mut index.pillar_sls,
                FileKind::State | FileKind::Reactor => &mut index.sls,
                FileKind::Python => {
                    index.python(file);
                    continue;
                }
                _ => continue,
            };
            for name in names {
                by_sls.entry(name).or_default().push(file.path.clone());
            }
        }
        for file in tree.files() {
            let facts = file.view.iter().flat_map(|view| &view.facts);
            let paths = facts.filter_map(|fact| match &fact.kind {
                Kind::Template { path: Some(path), .. } => {
                    Some(path.trim_start_matches("./").trim_start_matches("../"))
                }
                _ => None,
            });
            for path in paths {
                if let Found::Paths(templates) = index.served_for(tree, file, path) {
                    index.templates.extend(templates);
                }
            }
            index.modules(file);
            index.extensions(file);
            match file.kind {
                FileKind::State => index.states(tree, file),
                FileKind::Pillar => index.pillar(file),
                FileKind::Top => index.has_top = true,
                FileKind::PillarTop => index.pillar_tops.push(file.path.clone()),
                _ => {}
            }
        }
        index
    }

    /// Counts the modules that a file uses.
    fn modules(&mut self, file: &File) {
        for state in &file.states {
            let place = || Place::new(&file.path, &state.span);
            self.state_modules.entry(state.module.clone()).or_insert_with(|| (0, place())).0 += 1;
        }
        for fact in file.view.iter().flat_map(|view| &view.facts) {
            match &fact.kind {
                Kind::Call { function, .. } => {
                    let module = function.split('.').next().unwrap_or(function).to_owned();
                    self.called_modules.entry(module).or_insert_with(|| (0, Place::new(&file.path, &fact.span))).0 += 1;
                }
                Kind::Template { path: None, .. } => {
                    let directory = file.path.rsplit_once('/').map_or("", |(directory, _)| directory);
                    self.open_directories.insert(directory.to_owned());
                }
                _ => {}
            }
        }
    }

    /// Notes the states that a file extends.
    fn extensions(&mut self, file: &File) {
        for state in &file.states {
            let used = state.requisites.iter().filter(|requisite| requisite.keyword == "use_in");
            let ids = used.map(|requisite| &requisite.name).chain(state.is_extension.then_some(&state.id));
            for id in ids {
                self.has_open_extension |= is_dynamic(id);
                self.extended.insert(id.clone());
            }
        }
    }

    /// Whether another state may add arguments to those of this id.
    pub fn is_extended(&self, id: &str) -> bool {
        self.has_open_extension || self.extended.contains(id)
    }

    /// Returns the references to what the tree does not have.
    pub fn missing(&self, tree: &Tree) -> &Missing {
        self.missing.get_or_init(|| Missing::of(tree, self))
    }

    /// Returns what the master configurations define.
    pub fn master(&self, tree: &Tree) -> &Master {
        self.master.get_or_init(|| Master::of(tree))
    }

    fn states(&mut self, tree: &Tree, file: &File) {
        for include in &file.includes {
            match self.include(tree, file, &include.name) {
                Found::Paths(paths) => {
                    for path in paths {
                        self.included_by.entry(path.clone()).or_default().push(file.path.clone());
                        self.includes.entry(file.path.clone()).or_default().push(path);
                    }
                }
                Found::Unknown => _ = self.open_includes.insert(file.path.clone()),
                Found::Nothing => {}
            }
        }
        for (number, state) in file.states.iter().enumerate().filter(|(_, state)| !state.is_extension) {
            for name in state.names() {
                if is_dynamic(name) {
                    self.patterns.push((name.to_owned(), state.module.clone(), file.path.clone(), number));
                } else {
                    self.named.entry(name.to_owned()).or_default().push((file.path.clone(), number));
                }
            }
        }
    }

    fn pillar(&mut self, file: &File) {
        if file.is_open {
            self.open_pillar.insert(String::new());
        }
        for document in &file.documents {
            self.pillar_node(file, "", document);
        }
    }

    fn pillar_node(&mut self, file: &File, prefix: &str, node: &SourceNode) {
        match &node.content {
            Content::Map(entries) => {
                for (key, value) in entries {
                    let text = key.text().unwrap_or_default();
                    if is_dynamic(text) {
                        self.open_pillar.insert(prefix.to_owned());
                        continue;
                    }
                    let full = if prefix.is_empty() { text.to_owned() } else { format!("{prefix}:{text}") };
                    let places = self.pillar_keys.entry(full.clone()).or_default();
                    let place = Place::new(&file.path, &key.span);
                    if !places.contains(&place) {
                        places.push(place);
                    }
                    self.pillar_node(file, &full, value);
                }
            }
            Content::Scalar { text, .. } if is_dynamic(text) => _ = self.open_pillar.insert(prefix.to_owned()),
            Content::Scalar { .. } | Content::List(_) => {}
        }
    }

    /// Returns the files that a name below `include` of a file means.
    pub fn include(&self, tree: &Tree, file: &File, written: &str) -> Found {
        if is_dynamic(written) {
            return Found::Unknown;
        }
        if !written.starts_with('.') {
            let mut files = self.sls_files(written);
            // A formula of the same name as the file, which is somewhere else.
            if let Found::Paths(paths) = &mut files
                && !self.has_sls(written)
            {
                paths.retain(|path| *path != file.path);
                if paths.is_empty() {
                    files = Found::Nothing;
                }
            }
            let is_linked = files == Found::Nothing && is_below_link(tree, &written.replace('.', "/"));
            return if is_linked { Found::Unknown } else { files };
        }
        let levels = written.len() - written.trim_start_matches('.').len();
        let rest = &written[levels..];
        let is_init = file.path.ends_with("/init.sls");
        for own in tree.layout().names(&file.path, FileKind::State) {
            let mut parts: Vec<&str> = own.split('.').collect();
            if is_init {
                parts.push("init");
            }
            if levels > parts.len() {
                continue;
            }
            parts.truncate(parts.len() - levels);
            parts.extend(Some(rest).filter(|rest| !rest.is_empty()));
            if let files @ Found::Paths(_) = self.sls_files(&parts.join(".")) {
                return files;
            }
            if is_below_link(tree, &parts.join("/")) {
                return Found::Unknown;
            }
        }
        Found::Nothing
    }

    /// Returns the files of an SLS, or of a glob. An SLS may also be below a root that is not known.
    pub fn sls_files(&self, name: &str) -> Found {
        found_in(&self.sls, name)
    }

    /// Whether a file below a known root has the name of an SLS, or the name is a glob.
    pub fn has_sls(&self, name: &str) -> bool {
        let name = name.replace('/', ".");
        let name = name.strip_suffix(".init").unwrap_or(&name);
        is_pattern(name) || is_dynamic(name) || self.sls.contains_key(name)
    }

    /// Returns the files of a pillar SLS, or of a glob.
    pub fn pillar_files(&self, name: &str) -> Found {
        found_in(&self.pillar_sls, name)
    }

    /// Returns the names of all SLS files.
    pub fn sls_names(&self) -> impl Iterator<Item = &str> {
        self.sls.keys().map(String::as_str)
    }

    /// Returns the names of all pillar SLS files.
    pub fn pillar_names(&self) -> impl Iterator<Item = &str> {
        self.pillar_sls.keys().map(String::as_str)
    }

    /// Returns the files that a path in a template of a file means: one of the pillar reads those of the pillar first.
    pub fn served_for(&self, tree: &Tree, file: &File, path: &str) -> Found {
        let path = path.trim_start_matches("salt://");
        // Relative to the file.
        let path = path.trim_start_matches("./").trim_start_matches("../");
        if matches!(file.kind, FileKind::Pillar | FileKind::PillarTop) && !is_dynamic(path) {
            let roots = tree.layout().pillar_roots.iter().filter(|root| below(root, &file.path).is_some());
            let inside: Vec<String> =
                roots.map(|root| format!("{root}/{path}")).filter(|full| tree.paths().contains(full)).collect();
            if !inside.is_empty() {
                return Found::Paths(inside);
            }
        }
        self.served(tree, path)
    }

    /// Returns the files that a path below `salt://` means, also below a root that is not known.
    pub fn served(&self, tree: &Tree, path: &str) -> Found {
        if is_dynamic(path) {
            return Found::Unknown;
        }
        let path = path.split(['?', '|']).next().unwrap_or_default().trim_matches('/');
        let roots = tree.layout().state_roots.iter();
        let direct: Vec<String> = roots
            .map(|root| if root.is_empty() { path.to_owned() } else { format!("{root}/{path}") })
            .filter(|full| tree.paths().contains(full))
            .collect();
        if !direct.is_empty() {
            return Found::Paths(direct);
        }
        let last = path.rsplit('/').next().unwrap_or(path);
        let all = self.by_name.get(last).map(Vec::as_slice).unwrap_or_default();
        let inside: Vec<String> = all.iter().filter(|full| below_some_root(full, path)).cloned().collect();
        if !inside.is_empty() {
            return Found::Paths(inside);
        }
        if is_below_link(tree, path) { Found::Unknown } else { Found::Nothing }
    }

    /// Whether a directory below `salt://` has files.
    pub fn serves_directory(&self, tree: &Tree, path: &str) -> bool {
        let inside = format!("{}/", path.trim_matches('/'));
        tree.paths().iter().any(|full| full.starts_with(&inside) || full.contains(&format!("/{inside}")))
    }

    /// Returns the files that a file includes.
    pub fn includes(&self, path: &str) -> &[String] {
        self.includes.get(path).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the files that include a file.
    pub fn included_by(&self, path: &str) -> &[String] {
        self.included_by.get(path).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the files that are in a run with a file: what it includes, what includes it, and what these include.
    pub fn run_with(&self, path: &str) -> BTreeSet<String> {
        let above = reached(&self.included_by, [path.to_owned()]);
        reached(&self.includes, above)
    }

    /// Returns a file with all that it includes.
    pub fn closure(&self, path: &str) -> BTreeSet<String> {
        reached(&self.includes, [path.to_owned()])
    }

    /// Whether a file has an include that only a render knows.
    pub fn has_open_include(&self, path: &str) -> bool {
        self.open_includes.contains(path)
    }

    /// Returns the states of a name: their files and numbers.
    pub fn states_named(&self, name: &str) -> &[(String, usize)] {
        self.named.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns all names of states.
    pub fn state_names(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// Returns the states that a requisite means, and whether a state that only a render knows may be meant.
    pub fn required<'t>(&'t self, tree: &'t Tree, requisite: &Requisite) -> (Vec<(&'t File, &'t State)>, bool) {
        let module = requisite.module.as_deref();
        let fits = |of: &str| {
            module.is_none_or(|module| module == "id" || module == of || is_dynamic(module) || is_dynamic(of))
        };
        let state = |(path, number): &(String, usize)| {
            let file = tree.file(path)?;
            Some((&**file, file.states.get(*number)?))
        };
        let mut states: Vec<(&File, &State)> = Vec::new();
        if is_dynamic(&requisite.name) {
            return (states, true);
        }
        if is_pattern(&requisite.name) {
            for (_, places) in self.named.iter().filter(|(name, _)| fnmatch(&requisite.name, name)) {
                states.extend(places.iter().filter_map(state));
            }
        }
        states.extend(self.states_named(&requisite.name).iter().filter_map(state));
        states.retain(|(_, state)| fits(&state.module));
        let may_be =
            self.patterns.iter().any(|(pattern, module, ..)| fits(module) && may_equal(pattern, &requisite.name));
        (states, may_be)
    }
}

/// Whether a path of the file server is below a link to a directory.
fn is_below_link(tree: &Tree, path: &str) -> bool {
    let full = |root: &String| if root.is_empty() { path.to_owned() } else { format!("{root}/{path}") };
    tree.layout().state_roots.iter().any(|root| tree.is_linked(&full(root)))
}

/// Whether a text with placeholders may become another text.
pub fn may_equal(pattern: &str, text: &str) -> bool {
    let mut glob = String::new();
    for c in pattern.chars() {
        match c {
            c if is_dynamic(c.encode_utf8(&mut [0; 4])) => glob.push('*'),
            '[' | ']' | '*' | '?' => glob.push('?'),
            c => glob.push(c),
        }
    }
    fnmatch(&glob, text)
}

fn reached(next: &HashMap<String, Vec<String>>, from: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    let mut open: Vec<String> = from.into_iter().collect();
    let mut seen: BTreeSet<String> = open.iter().cloned().collect();
    while let Some(path) = open.pop() {
        for path in next.get(&path).into_iter().flatten() {
            if seen.insert(path.clone()) {
                open.push(path.clone());
            }
        }
    }
    seen
}

fn found_in(by_name: &HashMap<String, Vec<String>>, written: &str) -> Found {
    if is_dynamic(written) {
        return Found::Unknown;
    }
    let written = &written.replace('/', ".");
    // The file `a/init.sls` is called `a` or `a.init`.
    let written = written.strip_suffix(".init").filter(|name| !name.is_empty()).unwrap_or(written);
    let paths: Vec<String> = if is_pattern(written) {
        let fitting = by_name.iter().filter(|(name, _)| fnmatch(written, name));
        fitting.flat_map(|(_, paths)| paths.iter().cloned()).collect()
    } else {
        by_name.get(written).cloned().unwrap_or_else(|| {
            // The root may be a directory of the tree that is not known as one.
            let end = format!(".{written}");
            let inside = by_name.iter().filter(|(name, _)| name.ends_with(&end));
            inside.flat_map(|(_, paths)| paths.iter().cloned()).collect()
        })
    };
    if paths.is_empty() { Found::Nothing } else { Found::Paths(paths) }
}

fn below_some_root(full: &str, path: &str) -> bool {
    full.strip_suffix(path).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Returns the name of an SLS file below a directory.
pub fn name_below(root: &str, path: &str) -> Option<String> {
    name(below(root, path)?)
}

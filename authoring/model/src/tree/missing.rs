//! References of a tree that reach outside of it: to formulas of other repositories, to a private pillar, to modules of a
//! package. Several of one kind show that the tree is a part; a single one is a mistake.

use std::collections::{BTreeMap, BTreeSet};

use brine_jinja::view::{Kind, is_dynamic};
use brine_text::glob::is_pattern;
use brine_yaml::SourceNode;

use super::Tree;
use super::index::{Found, Index, Place};
use crate::file::File;
use crate::layout::FileKind;
use crate::states::State;

/// The number of names below directories that the tree has.
const MANY: usize = 5;
/// The number of uses of what the tree has nothing of.
const SEVERAL: usize = 2;

/// A kind of reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wanted {
    /// An SLS that another one includes, or the top file names.
    Sls,
    /// An SLS of the pillar.
    Pillar,
    /// A template that is imported.
    Template,
    /// A file that a state copies.
    Source,
}

/// The references of a tree to what it does not have.
#[derive(Debug, Default)]
pub struct Missing {
    /// By kind and name: the places.
    names: BTreeMap<(Wanted, String), Vec<Place>>,
    /// Kinds of which the tree lacks many names.
    open: BTreeSet<Wanted>,
    /// By kind and first part: what the tree has nothing of, and the number of uses.
    outside: BTreeMap<(Wanted, String), usize>,
    /// The directories of submodules that are not there.
    submodules: Vec<String>,
    /// Whether the tree is a formula, which is used with others.
    is_formula: bool,
}

impl Missing {
    /// Collects the references of a tree.
    pub(super) fn of(tree: &Tree, index: &Index) -> Self {
        let is_formula = ["FORMULA", "pillar.example"].iter().any(|path| tree.paths().contains(*path));
        let mut missing = Missing { submodules: submodules(tree), is_formula, ..Self::default() };
        for file in tree.files() {
            for source in file.states.iter().flat_map(sources) {
                let (path, node) = source;
                if index.served(tree, path) == Found::Nothing && !index.serves_directory(tree, path) {
                    missing.add(Wanted::Source, path, Place::new(&file.path, &node.span));
                }
            }
            for include in file.includes.iter().filter(|include| include.saltenv.is_none()) {
                if index.include(tree, file, &include.name) == Found::Nothing && !include.name.starts_with('.') {
                    missing.add(Wanted::Sls, &include.name, Place::new(&file.path, &include.span));
                }
            }
            for requisite in file.states.iter().flat_map(|state| &state.requisites) {
                let is_sls = requisite.module.as_deref() == Some("sls");
                if is_sls
                    && index.include(tree, file, &requisite.name) == Found::Nothing
                    && !is_pattern(&requisite.name)
                {
                    missing.add(Wanted::Sls, &requisite.name, Place::new(&file.path, &requisite.span));
                }
            }
            if matches!(file.kind, FileKind::Top | FileKind::PillarTop) {
                missing.top(index, file);
            }
            for fact in file.view.iter().flat_map(|view| &view.facts) {
                if let Kind::Template { path: Some(path), may_be_missing: false, .. } = &fact.kind
                    && index.served_for(tree, file, path) == Found::Nothing
                {
                    missing.add(Wanted::Template, path, Place::new(&file.path, &fact.span));
                }
            }
        }
        let names = missing.names.keys().map(|(kind, _)| *kind);
        let mut counts = BTreeMap::<Wanted, usize>::new();
        names.for_each(|kind| *counts.entry(kind).or_default() += 1);
        missing.open = counts.into_iter().filter(|(_, count)| *count >= MANY).map(|(kind, _)| kind).collect();
        for ((kind, name), places) in &missing.names {
            let first = first_part(name);
            if !has_first(tree, index, *kind, first, is_formula) {
                *missing.outside.entry((*kind, first.to_owned())).or_default() += places.len();
            }
        }
        missing
    }

    fn top(&mut self, index: &Index, file: &File) {
        let is_pillar = file.kind == FileKind::PillarTop;
        for document in &file.documents {
            for (saltenv, targets) in document.map().unwrap_or_default() {
                if saltenv.text() != Some("base") {
                    continue;
                }
                let items =
                    targets.map().unwrap_or_default().iter().flat_map(|(_, items)| items.list().unwrap_or_default());
                for item in items {
                    let Some(name) = item.text().filter(|name| !is_dynamic(name) && !is_pattern(name)) else {
                        continue;
                    };
                    let (files, kind) = if is_pillar {
                        (index.pillar_files(name), Wanted::Pillar)
                    } else {
                        (index.sls_files(name), Wanted::Sls)
                    };
                    if files == Found::Nothing && !item.is_nil() {
                        self.add(kind, name, Place::new(&file.path, &item.span));
                    }
                }
            }
        }
    }

    fn add(&mut self, kind: Wanted, name: &str, place: Place) {
        let places = self.names.entry((kind, name.to_owned())).or_default();
        if !places.contains(&place) {
            places.push(place);
        }
    }

    /// Whether a name that the tree lacks is probably somewhere else.
    pub fn is_elsewhere(&self, kind: Wanted, name: &str) -> bool {
        let first = first_part(name);
        let least = if self.is_formula { 1 } else { SEVERAL };
        let is_outside = self.outside.get(&(kind, first.to_owned())).is_some_and(|uses| *uses >= least);
        let dotted = format!(".{}", name.replace('/', "."));
        let is_in_submodule = self.submodules.iter().any(|path| {
            let last = path.rsplit('/').next().unwrap_or(path);
            dotted.starts_with(&format!(".{last}.")) || dotted == format!(".{last}")
        });
        is_outside || is_in_submodule || self.open.contains(&kind) || name.starts_with('/')
    }

    /// Returns the number of names of a kind that are probably elsewhere, without known ones, and the first one with its
    /// place.
    pub fn elsewhere(&self, kind: Wanted, is_known: impl Fn(&str) -> bool) -> Option<(usize, &str, &Place)> {
        let of_kind = || {
            let own = self.names.iter().filter(|((own, _), _)| *own == kind);
            own.filter(|((_, name), _)| !is_known(name) && self.is_elsewhere(kind, name))
        };
        let ((_, name), places) = of_kind().next()?;
        Some((of_kind().count(), name, places.first()?))
    }

    /// Whether the tree is a formula, which is used with others.
    pub fn is_formula(&self) -> bool {
        self.is_formula
    }

    /// Whether the pillar has parts elsewhere.
    pub fn has_pillar_elsewhere(&self) -> bool {
        self.names.keys().any(|(kind, _)| *kind == Wanted::Pillar)
    }
}

/// Returns the paths below `salt://` that a state copies.
fn sources(state: &State) -> impl Iterator<Item = (&str, &SourceNode)> {
    let nodes = state.arguments.iter().filter(|argument| argument.name == "source").map(|argument| &argument.value);
    nodes.filter_map(|node| Some((node.text()?.strip_prefix("salt://")?, node))).filter(|(path, _)| !path.is_empty())
}

fn first_part(name: &str) -> &str {
    name.trim_start_matches("salt://").split(['.', '/']).next().unwrap_or_default()
}

/// Whether the tree has something whose name begins with a part. What a formula has begins with its own name; other trees
/// may have roots that are not known.
fn has_first(tree: &Tree, index: &Index, kind: Wanted, first: &str, is_formula: bool) -> bool {
    let mut names: Box<dyn Iterator<Item = &str>> = match kind {
        Wanted::Sls => Box::new(index.sls_names()),
        Wanted::Pillar => Box::new(index.pillar_names()),
        Wanted::Template | Wanted::Source => Box::new(tree.paths().iter().map(String::as_str)),
    };
    let parts = if is_formula { 1 } else { usize::MAX };
    names.any(|name| name.split(['.', '/']).take(parts).any(|part| part == first))
}

/// Returns the directories of git submodules without files.
fn submodules(tree: &Tree) -> Vec<String> {
    if !tree.paths().contains(".gitmodules") || tree.root.as_os_str().is_empty() {
        return Vec::new();
    }
    let text = std::fs::read_to_string(tree.root.join(".gitmodules")).unwrap_or_default();
    let paths = text.lines().filter_map(|line| line.trim().strip_prefix("path")?.trim().strip_prefix('='));
    let is_empty = |path: &String| !tree.paths().iter().any(|full| full.starts_with(&format!("{path}/")));
    paths.map(|path| path.trim().trim_matches('/').to_owned()).filter(is_empty).collect()
}

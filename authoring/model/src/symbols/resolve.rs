//! Where symbols are defined.

use brine_jinja::view::{Inclusion, Kind};

use super::{Occurrence, Symbol};
use crate::file::File;
use crate::layout::FileKind;
use crate::states::Requisite;
use crate::tree::Tree;
use crate::tree::index::{Found, Place};

/// The largest number of templates through which a name is followed.
const MAX_IMPORTS: usize = 8;

/// Returns the places where a symbol of a file is defined; the start of a file for a reference to a file.
pub fn definitions(tree: &Tree, file: &File, occurrence: &Occurrence) -> Vec<Place> {
    let index = tree.index();
    let starts = |reference: Found| match reference {
        Found::Paths(paths) => paths.iter().map(|path| Place::new(path, &(0..0))).collect(),
        Found::Nothing | Found::Unknown => Vec::new(),
    };
    let own = || vec![Place::new(&file.path, &occurrence.span)];
    match &occurrence.symbol {
        Symbol::Id { .. } if occurrence.is_definition => own(),
        Symbol::Id { name, module } => ids(tree, file, name, module.as_deref()),
        Symbol::Sls(name) if file.kind == FileKind::Top => starts(index.sls_files(name)),
        Symbol::Sls(name) => starts(index.include(tree, file, name)),
        Symbol::PillarSls(name) => starts(index.pillar_files(name)),
        Symbol::Served(path) => starts(served(tree, path)),
        Symbol::Path(path) => starts(on_host(tree, path)),
        Symbol::Pillar(path) => index.pillar_keys.get(&path.join(":")).cloned().unwrap_or_default(),
        Symbol::Variable(name) => variables(file, name),
        Symbol::Member { template, name } => members(tree, template, name, MAX_IMPORTS),
        Symbol::State(name) => custom(tree, "_states", name),
        Symbol::Argument { function, .. } => custom(tree, "_states", function),
        Symbol::Function(name) | Symbol::Parameter { function: name, .. } => custom(tree, "_modules", name),
        Symbol::Reaction { kind, function } => match kind.as_str() {
            "runner" => custom(tree, "_runners", function),
            "wheel" => custom(tree, "_wheel", function),
            _ => custom(tree, "_modules", function),
        },
        Symbol::Grain(_) | Symbol::Keyword(_) | Symbol::Filter(_) | Symbol::Test(_) => Vec::new(),
    }
}

/// Returns the files that a path below `salt://` means.
pub(super) fn served(tree: &Tree, path: &str) -> Found {
    tree.index().served(tree, path.trim_start_matches("./").trim_start_matches("../"))
}

/// Returns the files of the tree that a path on the host may mean: those with its longest end.
pub(super) fn on_host(tree: &Tree, path: &str) -> Found {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let ends = (0..parts.len()).map(|from| parts[from..].join("/"));
    for end in ends {
        let is_it = |path: &&String| path.strip_suffix(end.as_str()).is_some_and(|s| s.is_empty() || s.ends_with('/'));
        let files: Vec<String> = tree.paths().iter().filter(is_it).cloned().collect();
        if !files.is_empty() {
            return Found::Paths(files);
        }
    }
    Found::Nothing
}

/// Returns the ids of the states that a name means: those in a run with the file if there are some.
fn ids(tree: &Tree, file: &File, name: &str, module: Option<&str>) -> Vec<Place> {
    let index = tree.index();
    let requisite = Requisite {
        keyword: "require".to_owned(),
        module: module.map(str::to_owned),
        name: name.to_owned(),
        span: 0..0,
    };
    let (states, _) = index.required(tree, &requisite);
    let run = index.run_with(&file.path);
    let mut near: Vec<_> = states.iter().filter(|(of, _)| run.contains(&of.path)).collect();
    if near.is_empty() {
        near = states.iter().collect();
    }
    let mut places: Vec<Place> = Vec::new();
    for (of, state) in near {
        let place = Place::new(&of.path, &super::read::bare(&of.text, &state.id_span));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Returns where a template assigns a name.
pub(super) fn variables(file: &File, name: &str) -> Vec<Place> {
    let facts = file.view.iter().flat_map(|view| &view.facts);
    let assigned = facts.filter(|fact| match &fact.kind {
        Kind::Assign { name: own } | Kind::Macro { name: own, .. } => own == name,
        _ => false,
    });
    assigned.map(|fact| Place::new(&file.path, &fact.span)).collect()
}

/// Returns where another template assigns a name, also through its imports.
fn members(tree: &Tree, template: &str, name: &str, left: usize) -> Vec<Place> {
    let Found::Paths(paths) = served(tree, template.trim_start_matches("salt://")) else { return Vec::new() };
    let mut places = Vec::new();
    for file in paths.iter().filter_map(|path| tree.file(path)) {
        let passed_on = file.view.iter().flat_map(|view| &view.facts).find_map(|fact| match &fact.kind {
            Kind::Template { path: Some(path), by: Inclusion::From, names, .. }
                if names.iter().any(|own| own == name) =>
            {
                Some(path)
            }
            _ => None,
        });
        let further = passed_on.filter(|_| left > 0).map(|path| members(tree, path, name, left - 1));
        match further.filter(|places| !places.is_empty()) {
            Some(further) => places.extend(further),
            None => places.extend(variables(file, name)),
        }
    }
    places
}

/// Returns where a custom module of the tree defines a function.
fn custom(tree: &Tree, directory: &str, full: &str) -> Vec<Place> {
    let Some((module, function)) = full.split_once('.') else { return Vec::new() };
    let is_of = |file: &&std::sync::Arc<File>| {
        let mut parts = file.path.rsplit('/');
        let stem = parts.next().and_then(|name| name.strip_suffix(".py"));
        file.kind == FileKind::Python
            && parts.any(|part| part == directory)
            && (stem == Some(module) || file.text.contains(&format!("__virtualname__ = \"{module}\"")))
    };
    let mut places = Vec::new();
    for file in tree.files().filter(is_of) {
        for name in [function.to_owned(), format!("{function}_")] {
            let start = format!("def {name}(");
            let at = if file.text.starts_with(&start) {
                Some(0)
            } else {
                file.text.find(&format!("\n{start}")).map(|at| at + 1)
            };
            places.extend(at.map(|at| Place::new(&file.path, &(at + 4..at + 4 + name.len()))));
        }
    }
    places
}

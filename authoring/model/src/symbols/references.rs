//! Where symbols are used.

use std::collections::BTreeSet;

use brine_text::glob::is_pattern;

use super::resolve::{definitions, on_host, served};
use super::{Occurrence, Symbol};
use crate::file::File;
use crate::layout::FileKind;
use crate::tree::Tree;
use crate::tree::index::{Found, Place};

/// What all uses of a symbol have in common.
enum Target {
    /// States with one of these ids at these places.
    Ids(String, BTreeSet<Place>),
    /// One of these files.
    Files(BTreeSet<String>),
    /// The variable with one of these definitions.
    Variable(String, BTreeSet<Place>),
    /// The same symbol everywhere.
    Same(Symbol),
}

/// Returns the places where the symbol of an occurrence is used and defined, in the tree and in further files, such as
/// configurations.
pub fn references(tree: &Tree, further: &[&File], file: &File, occurrence: &Occurrence) -> Vec<(Place, bool)> {
    let target = target(tree, file, occurrence);
    let word = match &target {
        Target::Ids(name, _) | Target::Variable(name, _) => Some(name.clone()),
        Target::Files(_) => None,
        Target::Same(symbol) => word(symbol).map(str::to_owned),
    };
    let files = tree.files().map(|file| &**file).chain(further.iter().copied());
    let may_use = |file: &&File| match &target {
        Target::Files(paths) => paths.iter().any(|path| may_use_file(file, path)),
        _ => word.as_ref().is_none_or(|word| file.text.contains(word.as_str())),
    };
    let mut places = Vec::new();
    for file in files.filter(may_use) {
        for occurrence in file.symbols() {
            if is_use(tree, file, &occurrence, &target) {
                places.push((Place::new(&file.path, &occurrence.span), occurrence.is_definition));
            }
        }
    }
    places.sort();
    places.dedup();
    places
}

/// Returns all uses of a file: includes, imports, `salt://` paths, entries of top files and of `reactor`.
pub fn uses_of_file(tree: &Tree, further: &[&File], path: &str) -> Vec<Place> {
    let target = Target::Files(BTreeSet::from([path.to_owned()]));
    let files = tree.files().map(|file| &**file).chain(further.iter().copied());
    let mut places = Vec::new();
    for file in files.filter(|file| may_use_file(file, path)) {
        let used = file.symbols().into_iter().filter(|occurrence| is_use(tree, file, occurrence, &target));
        places.extend(used.map(|occurrence| Place::new(&file.path, &occurrence.span)));
    }
    places
}

fn target(tree: &Tree, file: &File, occurrence: &Occurrence) -> Target {
    let places = || -> BTreeSet<Place> { definitions(tree, file, occurrence).into_iter().collect() };
    match &occurrence.symbol {
        Symbol::Id { .. } => {
            let places = places();
            // A requisite may use another name than the id.
            let name = places.first().and_then(|place| tree.file(&place.path)?.text.get(place.start..place.end));
            let written = file.text.get(occurrence.span.clone()).unwrap_or_default();
            let name = name.unwrap_or(written).to_owned();
            // Other branches of a template may have the same id.
            let mut all = places.clone();
            for file in places.iter().filter_map(|place| tree.file(&place.path)) {
                let same = file.symbols().into_iter().filter(|one| {
                    one.is_definition && matches!(&one.symbol, Symbol::Id { name: own, .. } if *own == name)
                });
                all.extend(same.map(|one| Place::new(&file.path, &one.span)));
            }
            Target::Ids(name, all)
        }
        Symbol::Sls(_) | Symbol::PillarSls(_) | Symbol::Served(_) | Symbol::Path(_) => {
            Target::Files(places().into_iter().map(|place| place.path).collect())
        }
        Symbol::Variable(name) => {
            let mut places = places();
            if places.is_empty() {
                // Salt provides it: its uses in this file.
                places.insert(Place::new(&file.path, &(0..0)));
            }
            Target::Variable(name.clone(), places)
        }
        Symbol::Member { name, .. } => Target::Variable(name.clone(), places()),
        same => Target::Same(same.clone()),
    }
}

fn is_use(tree: &Tree, file: &File, occurrence: &Occurrence, target: &Target) -> bool {
    let finds =
        |places: &BTreeSet<Place>| definitions(tree, file, occurrence).iter().any(|place| places.contains(place));
    match (&occurrence.symbol, target) {
        (Symbol::Id { .. }, Target::Ids(_, places)) | (Symbol::Member { .. }, Target::Variable(_, places)) => {
            finds(places)
        }
        (Symbol::Sls(name), Target::Files(paths)) => {
            let index = tree.index();
            let reference =
                if file.kind == FileKind::Top { index.sls_files(name) } else { index.include(tree, file, name) };
            is_one_of(&reference, paths)
        }
        (Symbol::PillarSls(name), Target::Files(paths)) => is_one_of(&tree.index().pillar_files(name), paths),
        (Symbol::Served(path), Target::Files(paths)) => is_one_of(&served(tree, path), paths),
        (Symbol::Path(path), Target::Files(paths)) => is_one_of(&on_host(tree, path), paths),
        (Symbol::Variable(own), Target::Variable(name, places)) => {
            own == name && places.iter().any(|place| place.path == file.path)
        }
        (own, Target::Same(symbol)) => own == symbol,
        _ => false,
    }
}

fn is_one_of(reference: &Found, paths: &BTreeSet<String>) -> bool {
    matches!(reference, Found::Paths(files) if files.iter().any(|path| paths.contains(path)))
}

/// Whether a file may refer to a path: it contains its last word, or has relative names or globs.
fn may_use_file(file: &File, path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let mut stem = parts.next().unwrap_or(path).strip_suffix(".sls").unwrap_or_default();
    if stem == "init" {
        stem = parts.next().unwrap_or_default();
    }
    if stem.is_empty() {
        stem = path.rsplit('/').next().unwrap_or(path);
    }
    file.text.contains(stem)
        || matches!(file.kind, FileKind::Top | FileKind::PillarTop)
        || file.includes.iter().any(|include| include.name.starts_with('.') || is_pattern(&include.name))
}

/// Returns a word that each file with a symbol contains.
fn word(symbol: &Symbol) -> Option<&str> {
    match symbol {
        Symbol::Pillar(path) | Symbol::Grain(path) => path.last().map(String::as_str),
        Symbol::Filter(name)
        | Symbol::Test(name)
        | Symbol::Keyword(name)
        | Symbol::Argument { name, .. }
        | Symbol::Parameter { name, .. } => Some(name),
        _ => None,
    }
}

//! `B307`: the same id in two files of one run.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use brine_authoring_model::index::Found;
use brine_authoring_model::{File, FileKind, Place, State, Tree};
use brine_jinja::view::is_dynamic;

use crate::Finding;

/// Whether a position is in every text of its file.
fn is_certain(file: &File, at: usize) -> bool {
    file.view.as_ref().is_none_or(|view| view.branches(at).is_empty())
}

/// Returns the findings of a tree.
pub(crate) fn of(tree: &Tree) -> Vec<Finding> {
    let index = tree.index();
    let mut includes: HashMap<&str, Vec<String>> = HashMap::new();
    let mut ids: BTreeMap<&str, Vec<(&File, &State)>> = BTreeMap::new();
    for file in tree.files().filter(|file| file.kind == FileKind::State) {
        for include in file.includes.iter().filter(|include| is_certain(file, include.span.start)) {
            if let Found::Paths(paths) = index.include(tree, file, &include.name)
                && let [only] = &paths[..]
            {
                includes.entry(&file.path).or_default().push(only.clone());
            }
        }
        for state in file.states.iter().filter(|state| !state.is_extension && !is_dynamic(&state.id)) {
            let states = ids.entry(&state.id).or_default();
            if is_certain(file, state.id_span.start) && !states.iter().any(|(have, _)| have.path == file.path) {
                states.push((file, state));
            }
        }
    }
    ids.retain(|_, states| states.len() > 1);
    if ids.is_empty() {
        return Vec::new();
    }
    let closure = |path: &str| {
        let (mut open, mut seen) = (vec![path.to_owned()], BTreeSet::from([path.to_owned()]));
        while let Some(path) = open.pop() {
            for next in includes.get(path.as_str()).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        seen
    };
    let closures: Vec<BTreeSet<String>> = includes.keys().map(|path| closure(path)).collect();
    let mut findings = Vec::new();
    for (id, states) in ids {
        for (number, (file, state)) in states.iter().enumerate().skip(1) {
            let before = states[..number].iter().find(|(other, _)| {
                closures.iter().any(|closure| closure.contains(&file.path) && closure.contains(&other.path))
            });
            if let Some((other, first)) = before {
                let message = format!("the id '{id}' stands also in {}, which is in the same run", other.path);
                findings.push(
                    Finding::new("B307", &file.path, state.id_span.clone(), message)
                        .related(Place::new(&other.path, &first.id_span), "the other one"),
                );
            }
        }
    }
    findings
}

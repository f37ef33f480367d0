//! Whether a changed file leaves the index as it is.

use brine_jinja::view::Kind;

use crate::file::File;
use crate::layout::FileKind;

/// Whether another text of a file defines the same, so that the index stays as it is. Places of pillar keys are in the
/// index, those of states are not.
pub(super) fn is_same(old: &File, new: &File) -> bool {
    let has_no_places = matches!(new.kind, FileKind::State | FileKind::Reactor | FileKind::Template);
    if !has_no_places || old.kind != new.kind {
        return false;
    }
    let templates = |file: &File| -> Vec<String> {
        let facts = file.view.iter().flat_map(|view| &view.facts);
        let paths = facts.filter_map(|fact| match &fact.kind {
            Kind::Template { path, .. } => path.clone(),
            _ => None,
        });
        paths.collect()
    };
    let states = |file: &File| file.states.len();
    states(old) == states(new)
        && old.includes.iter().map(|include| &include.name).eq(new.includes.iter().map(|include| &include.name))
        && old.states.iter().zip(&new.states).all(|(old, new)| {
            old.module == new.module && old.is_extension == new.is_extension && old.names() == new.names()
        })
        && templates(old) == templates(new)
}

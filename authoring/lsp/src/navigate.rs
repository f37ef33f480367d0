//! Definitions and references.

use brine_authoring_model::symbols::references::{references as uses, uses_of_file};
use brine_authoring_model::symbols::resolve;
use brine_authoring_model::{Occurrence, Place};
use lsp_types::{DocumentHighlight, DocumentHighlightKind, Location};

use crate::workspace::Here;

/// The largest number of places in an answer.
const MAX_PLACES: usize = 5000;

/// Returns where the symbol at a position is defined.
pub(crate) fn definitions(here: &Here<'_>, at: usize) -> Vec<Location> {
    let Some(symbol) = here.file.symbol_at(at) else { return Vec::new() };
    let places = resolve::definitions(here.tree, here.file, &symbol);
    places.iter().take(MAX_PLACES).filter_map(|place| here.location(place)).collect()
}

/// Returns where the symbol at a position is used; without one at the start of a file, where the file is used.
pub(crate) fn references(here: &Here<'_>, at: usize, with_definition: bool) -> Vec<Location> {
    let places: Vec<Place> = match here.file.symbol_at(at) {
        Some(symbol) => {
            let uses = uses(here.tree, &here.configurations(), here.file, &symbol);
            let places = uses.into_iter().filter(|(_, is_definition)| with_definition || !is_definition);
            places.map(|(place, _)| place).collect()
        }
        None if here.file.position(at).line == 1 => uses_of_file(here.tree, &here.configurations(), &here.file.path),
        None => Vec::new(),
    };
    places.iter().take(MAX_PLACES).filter_map(|place| here.location(place)).collect()
}

/// Returns the uses of the symbol at a position in its file.
pub(crate) fn highlights(here: &Here<'_>, at: usize) -> Vec<DocumentHighlight> {
    let Some(symbol) = here.file.symbol_at(at) else { return Vec::new() };
    let is_same = |other: &Occurrence| {
        other.symbol == symbol.symbol || is_same_id(other, &symbol) && other.span.len() == symbol.span.len()
    };
    let same = here.file.symbols().into_iter().filter(is_same);
    let kind = |one: &Occurrence| {
        if one.is_definition { DocumentHighlightKind::WRITE } else { DocumentHighlightKind::READ }
    };
    same.map(|one| DocumentHighlight { range: here.range(&one.span), kind: Some(kind(&one)) }).collect()
}

/// Whether two symbols are states of one name.
fn is_same_id(one: &Occurrence, other: &Occurrence) -> bool {
    use brine_authoring_model::Symbol::Id;
    match (&one.symbol, &other.symbol) {
        (Id { name, .. }, Id { name: other, .. }) => name == other,
        _ => false,
    }
}

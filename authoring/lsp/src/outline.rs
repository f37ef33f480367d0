//! The symbols of a file as a tree, and those of all files by name.

use brine_authoring_model::{File, FileKind, Place};
use brine_jinja::view::{Kind, is_dynamic};
use brine_yaml::SourceNode;
use lsp_types::{DocumentSymbol, SymbolInformation, SymbolKind};

use crate::workspace::{Here, Workspace};

/// The largest number of symbols in an answer about all files.
const MAX_SYMBOLS: usize = 500;
/// The largest depth of the keys of a pillar file.
const MAX_DEPTH: usize = 6;

/// Returns the outline of a file.
pub(crate) fn of(here: &Here<'_>) -> Vec<DocumentSymbol> {
    let mut symbols = Vec::new();
    let file = here.file;
    let facts = file.view.iter().flat_map(|view| &view.facts);
    for fact in facts {
        if let Kind::Macro { name, parameters } = &fact.kind {
            let detail = Some(format!("({})", parameters.join(", ")));
            symbols.push(symbol(here, name, detail, SymbolKind::FUNCTION, &fact.span, &fact.span));
        }
    }
    match file.kind {
        FileKind::State | FileKind::Reactor => states(here, &mut symbols),
        FileKind::Pillar | FileKind::Top | FileKind::PillarTop | FileKind::Other => {
            for document in &file.documents {
                keys(here, document, 0, &mut symbols);
            }
        }
        FileKind::Template | FileKind::Python => {}
    }
    symbols.sort_by_key(|one| (one.range.start.line, one.range.start.character));
    symbols
}

#[allow(deprecated)]
fn symbol(
    here: &Here<'_>,
    name: &str,
    detail: Option<String>,
    kind: SymbolKind,
    whole: &std::ops::Range<usize>,
    own: &std::ops::Range<usize>,
) -> DocumentSymbol {
    let name = here.file.shown(name);
    // The protocol refuses empty names.
    let name = if name.trim().is_empty() { "''".to_owned() } else { name };
    let whole = whole.start.min(own.start)..whole.end.max(own.end);
    DocumentSymbol {
        name,
        detail,
        kind,
        tags: None,
        deprecated: None,
        range: here.range(&whole),
        selection_range: here.range(own),
        children: None,
    }
}

/// Adds the ids with their states.
fn states(here: &Here<'_>, symbols: &mut Vec<DocumentSymbol>) {
    let mut last = None;
    for state in &here.file.states {
        let end = state.arguments.iter().map(|argument| argument.value.span.end).max().unwrap_or(state.span.end);
        let whole = state.id_span.start..end.max(state.span.end);
        if last != Some(state.id_span.start) {
            symbols.push(symbol(here, &state.id, None, SymbolKind::CLASS, &whole, &state.id_span));
            last = Some(state.id_span.start);
        }
        let child =
            symbol(here, &state.full_name(), None, SymbolKind::FUNCTION, &(state.span.start..whole.end), &state.span);
        if let Some(parent) = symbols.last_mut() {
            parent.range.end = parent.range.end.max(child.range.end);
            // A state in the short form stands beside its id.
            let is_inside = child.range.start >= parent.range.start;
            parent.children.get_or_insert_default().extend(Some(child).filter(|_| is_inside));
        }
    }
}

/// Adds the keys of a mapping, with those below them.
fn keys(here: &Here<'_>, node: &SourceNode, depth: usize, symbols: &mut Vec<DocumentSymbol>) {
    for (key, value) in node.map().unwrap_or_default() {
        let Some(name) = key.text().filter(|_| !key.is_repeated) else { continue };
        let end = if value.is_repeated { key.span.end } else { value.span.end.max(key.span.end) };
        let kind = if value.map().is_some() { SymbolKind::NAMESPACE } else { SymbolKind::PROPERTY };
        let mut own = symbol(here, name, None, kind, &(key.span.start..end), &key.span);
        let is_known = symbols.iter().any(|have| have.selection_range == own.selection_range);
        if depth < MAX_DEPTH && !value.is_repeated {
            let mut below = Vec::new();
            keys(here, value, depth + 1, &mut below);
            own.children = Some(below).filter(|below| !below.is_empty());
        }
        // Another choice of branches has the same key.
        if !is_known {
            symbols.push(own);
        }
    }
}

/// Returns the symbols of all folders whose names contain the letters of a query in their order.
#[allow(deprecated)]
pub(crate) fn of_all(workspace: &Workspace, query: &str) -> Vec<SymbolInformation> {
    let query = query.to_lowercase();
    let mut symbols = Vec::new();
    for root in &workspace.roots {
        for file in root.tree.files() {
            let here = Here { workspace, tree: &root.tree, file, root: Some(root) };
            for (name, span, kind) in named(file) {
                if symbols.len() >= MAX_SYMBOLS {
                    return symbols;
                }
                if has_letters(&name.to_lowercase(), &query)
                    && let Some(location) = here.location(&Place::new(&file.path, &span))
                {
                    symbols.push(SymbolInformation {
                        name,
                        kind,
                        tags: None,
                        deprecated: None,
                        location,
                        container_name: Some(file.path.clone()),
                    });
                }
            }
        }
    }
    symbols
}

/// Returns the ids, outermost pillar keys and macros of a file.
fn named(file: &File) -> Vec<(String, std::ops::Range<usize>, SymbolKind)> {
    let mut names = Vec::new();
    let mut last = None;
    for state in file.states.iter().filter(|state| !is_dynamic(&state.id)) {
        if last.replace(state.id_span.start) != Some(state.id_span.start) {
            names.push((state.id.clone(), state.id_span.clone(), SymbolKind::CLASS));
        }
    }
    if file.kind == FileKind::Pillar {
        for (key, _) in file.documents.iter().flat_map(|document| document.map().unwrap_or_default()) {
            if let Some(name) = key.text().filter(|name| !is_dynamic(name) && !name.is_empty()) {
                names.push((name.to_owned(), key.span.clone(), SymbolKind::PROPERTY));
            }
        }
    }
    for fact in file.view.iter().flat_map(|view| &view.facts) {
        if let Kind::Macro { name, .. } = &fact.kind {
            names.push((name.clone(), fact.span.clone(), SymbolKind::FUNCTION));
        }
    }
    names
}

/// Whether a text has these letters in their order.
fn has_letters(text: &str, letters: &str) -> bool {
    let mut left = text.chars();
    letters.chars().all(|letter| left.any(|c| c == letter))
}

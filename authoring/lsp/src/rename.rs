//! New names for ids and keys of the pillar, over the whole tree.
//!
//! A state without `name` takes its id as one. So that a new id does not change what the state does, it gets the old id as
//! its `name`.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use brine_authoring_model::symbols::references::references;
use brine_authoring_model::{File, FileKind, Occurrence, Place, State, Symbol};
use lsp_types::{PrepareRenameResponse, TextEdit, Uri, WorkspaceEdit};

use crate::completion::written;
use crate::convert;
use crate::documentation::{Of, function};
use crate::workspace::Here;

/// The largest length of a name.
const MAX_NAME: usize = 500;

/// Changes of each file: ranges and their new text.
type Changes = BTreeMap<String, Vec<(Range<usize>, String)>>;

/// Returns the range of the name at a position, if it can be changed.
pub(crate) fn prepare(here: &Here<'_>, at: usize) -> Option<PrepareRenameResponse> {
    let occurrence = here.file.symbol_at(at)?;
    let placeholder = match &occurrence.symbol {
        Symbol::Id { .. } => here.file.text.get(occurrence.span.clone())?.to_owned(),
        Symbol::Pillar(path) => path.last()?.clone(),
        _ => return None,
    };
    Some(PrepareRenameResponse::RangeWithPlaceholder { range: here.range(&occurrence.span), placeholder })
}

/// Returns the changes that give the id or key at a position a new name.
pub(crate) fn rename(here: &Here<'_>, at: usize, new: &str) -> Result<WorkspaceEdit, String> {
    let nothing = || "renaming failed: only ids of states and keys of the pillar can be renamed".to_owned();
    let occurrence = here.file.symbol_at(at).ok_or_else(nothing)?;
    if new.trim().is_empty() || new.len() > MAX_NAME || new.chars().any(char::is_control) {
        return Err("the new name is invalid: expected a text of one line".to_owned());
    }
    let changes = match &occurrence.symbol {
        Symbol::Id { .. } => ids(here, &occurrence, new)?,
        Symbol::Pillar(path) => keys(here, &occurrence, path, new)?,
        _ => return Err(nothing()),
    };
    // The key of the map is a URI, which is only ever compared as a text.
    #[allow(clippy::mutable_key_type)]
    let mut edits: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    for (path, changes) in changes {
        let (Some(uri), Some(file)) = (here.uri(&path), here.other(&path)) else { continue };
        let edit = |(span, new_text): (Range<usize>, String)| TextEdit {
            range: convert::range(&file.text, &file.lines, &span, here.workspace.units),
            new_text,
        };
        edits.insert(uri, changes.into_iter().map(edit).collect());
    }
    Ok(WorkspaceEdit { changes: Some(edits), ..WorkspaceEdit::default() })
}

fn ids(here: &Here<'_>, occurrence: &Occurrence, new: &str) -> Result<Changes, String> {
    let places = references(here.tree, &[], here.file, occurrence);
    let definition = places.iter().find(|(_, is_definition)| *is_definition).map(|(place, _)| place);
    let definition = definition.ok_or("renaming failed: no state of the tree has this id")?;
    let text = |place: &Place| here.tree.file(&place.path).and_then(|file| file.text.get(place.start..place.end));
    let old = text(definition).ok_or("renaming failed: the file of the id is not known")?.to_owned();
    let run = here.tree.index().run_with(&definition.path);
    if let Some((path, _)) = here.tree.index().states_named(new).iter().find(|(path, _)| run.contains(path)) {
        return Err(format!("renaming failed: {path} has a state '{new}' already"));
    }
    let mut changes = Changes::new();
    for (place, is_definition) in &places {
        let Some(file) = here.tree.file(&place.path) else { continue };
        // A requisite may use the `name` of the state.
        if text(place) != Some(old.as_str()) {
            continue;
        }
        let span = place.start..place.end;
        let own = changes.entry(place.path.clone()).or_default();
        own.push((span.clone(), scalar(&file.text, &span, new)));
        if *is_definition && file.kind == FileKind::State {
            let of_id = |state: &&State| {
                !state.is_extension && state.id_span.start <= span.start && span.end <= state.id_span.end
            };
            for state in file.states.iter().filter(of_id) {
                own.extend(kept_name(here, file, state)?);
            }
        }
    }
    for own in changes.values_mut() {
        own.sort_by_key(|(span, _)| span.start);
        own.dedup();
    }
    Ok(changes)
}

/// Returns a name as it is written in the place of a scalar, whose quotes stay.
fn scalar(text: &str, span: &Range<usize>, new: &str) -> String {
    match text[..span.start].chars().next_back() {
        Some('\'') if text[span.end..].starts_with('\'') => new.replace('\'', "''"),
        Some('"') if text[span.end..].starts_with('"') => new.replace('\\', "\\\\").replace('"', "\\\""),
        _ => written(new),
    }
}

/// Returns the change that gives a state its old id as `name`; `None` if it has a name or takes none.
fn kept_name(here: &Here<'_>, file: &File, state: &State) -> Result<Option<(Range<usize>, String)>, String> {
    let signature = function(&here.workspace.catalogue, here.tree, Of::States, &state.full_name());
    let takes_none = signature.is_some_and(|signature| !signature.is_custom && signature.param("name").is_none());
    if takes_none || state.argument("name").is_some() || state.argument("names").is_some() {
        return Ok(None);
    }
    let text = &file.text;
    let name = format!("- name: {}", written(&state.id));
    let line_start = text[..state.span.start].rfind('\n').map_or(0, |end| end + 1);
    let line_end = text[state.span.end..].find('\n').map_or(text.len(), |end| state.span.end + end);
    let (before, after) = (&text[line_start..state.span.start], &text[state.span.end..line_end]);
    let indent = before.len() - before.trim_start().len();
    let blank = |count: usize| " ".repeat(count);
    // `id: pkg.installed`
    if text
        .get(state.id_span.end..state.span.start)
        .is_some_and(|between| between.trim() == ":" && !between.contains('\n'))
    {
        let function = &text[state.span.clone()];
        let start = state.span.start - (text[..state.span.start].len() - text[..state.span.start].trim_end().len());
        let id_indent = file.position(state.id_span.start).column - 1;
        let (inner, item) = (blank(id_indent + 2), blank(id_indent + 4));
        return Ok(Some((start..state.span.end, format!("\n{inner}{function}:\n{item}{name}"))));
    }
    // `- installed` below `pkg:`
    if before.trim() == "-" && after.trim().is_empty() {
        let item = format!("{}{name}", blank(indent));
        return Ok(Some((line_end..line_end, format!("\n{item}"))));
    }
    let rest = after.strip_prefix(':').map_or("?", str::trim);
    let is_comment = rest.is_empty() || rest.starts_with('#');
    if is_comment && before.trim().is_empty() {
        let first = state.arguments.iter().map(|argument| argument.span.start).find(|at| *at > line_end);
        let item_indent = first.and_then(|at| {
            let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
            text[start..at].find('-')
        });
        let item = blank(item_indent.unwrap_or(indent + 2));
        return Ok(Some((line_end..line_end, format!("\n{item}{name}"))));
    }
    if rest == "[]" && before.trim().is_empty() {
        let start = state.span.end + 1;
        return Ok(Some((start..line_end, format!("\n{}{name}", blank(indent + 2)))));
    }
    let line = file.position(state.span.start).line;
    Err(format!(
        "renaming failed: {} in line {line} of {} takes the id as its name: write '{name}' below it first",
        state.full_name(),
        file.path
    ))
}

fn keys(here: &Here<'_>, occurrence: &Occurrence, path: &[String], new: &str) -> Result<Changes, String> {
    if new.contains([':', '\'', '"', '\\', '{', '}', '[', ']']) {
        return Err("the new name is invalid: expected no colon, quote, backslash or bracket".to_owned());
    }
    let index = here.tree.index();
    if !index.pillar_keys.contains_key(&path.join(":")) {
        return Err(format!("renaming failed: no pillar file has the key '{}'", path.join(":")));
    }
    let mut renamed = path.to_vec();
    if let Some(last) = renamed.last_mut() {
        new.clone_into(last);
    }
    if let Some(place) = index.pillar_keys.get(&renamed.join(":")).and_then(|places| places.first()) {
        return Err(format!("renaming failed: {} has the key '{}' already", place.path, renamed.join(":")));
    }
    let is_word = new.chars().all(|c| c == '_' || c.is_alphanumeric()) && !new.starts_with(|c: char| c.is_numeric());
    let mut changes = Changes::new();
    for (place, is_definition) in references(here.tree, &[], here.file, occurrence) {
        let Some(file) = here.tree.file(&place.path) else { continue };
        let span = place.start..place.end;
        let own = changes.entry(place.path.clone()).or_default();
        let change = if is_definition {
            (span.clone(), scalar(&file.text, &span, new))
        } else if file.text[..span.start].ends_with('.') && !is_word {
            (span.start - 1..span.end, format!("['{new}']"))
        } else {
            (span, new.to_owned())
        };
        own.push(change);
    }
    Ok(changes)
}

//! What the symbol at a position is.

use std::fmt::Write;

use brine_authoring_model::symbols::resolve;
use brine_authoring_model::{File, Place, Symbol};
use brine_jinja::reference;
use brine_jinja::view::Kind;
use brine_yaml::SourceNode;
use brine_yaml::nodes::Content;
use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind};

use crate::documentation::{Of, function, of_argument, of_entry, of_function, of_grain, of_variable};
use crate::workspace::Here;

/// The largest number of lines of a value.
const MAX_LINES: usize = 12;
/// The largest number of values of a key.
const MAX_VALUES: usize = 8;

/// Returns what the symbol at a position is.
pub(crate) fn hover(here: &Here<'_>, at: usize) -> Option<Hover> {
    let occurrence = here.file.symbol_at(at)?;
    let places = || resolve::definitions(here.tree, here.file, &occurrence);
    let of = |of: Of, name: &str| function(&here.workspace.catalogue, here.tree, of, name);
    let text = match &occurrence.symbol {
        Symbol::State(name) => of_function(of(Of::States, name)?),
        Symbol::Function(name) => of_function(of(Of::Execution, name)?),
        Symbol::Reaction { kind, function } => match kind.as_str() {
            "runner" => of_function(of(Of::Runners, function)?),
            "wheel" => of_function(of(Of::Wheel, function)?),
            _ => of_function(of(Of::Execution, function)?),
        },
        Symbol::Argument { function, name } => of_argument(of(Of::States, function), name)?,
        Symbol::Parameter { function, name } => of_argument(of(Of::Execution, function), name)?,
        Symbol::Keyword(name) => of_argument(None, name)?,
        Symbol::Filter(name) => of_entry(reference::FILTERS, name)?,
        Symbol::Test(name) => of_entry(reference::TESTS, name)?,
        Symbol::Grain(path) => of_grain(path)?,
        Symbol::Pillar(path) => pillar(here, path)?,
        Symbol::Variable(name) | Symbol::Member { name, .. } => variable(here, name, &places())?,
        Symbol::Id { name, .. } => ids(here, name, &places())?,
        Symbol::Sls(name) | Symbol::PillarSls(name) => files(name, &places())?,
        Symbol::Served(path) => files(&format!("salt://{path}"), &places())?,
        Symbol::Path(path) => files(path, &places())?,
    };
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value: text });
    Some(Hover { contents, range: Some(here.range(&occurrence.span)) })
}

/// Returns the places of a key of the pillar, with the values that are known without a render.
pub(crate) fn pillar(here: &Here<'_>, path: &[String]) -> Option<String> {
    let key = path.join(":");
    let places = here.tree.index().pillar_keys.get(&key)?;
    let mut text = format!("Pillar key `{key}`\n");
    for place in places.iter().take(MAX_VALUES) {
        let Some(file) = here.other(&place.path) else { continue };
        let line = file.position(place.start).line;
        _ = write!(text, "\n`{}:{line}`\n", place.path);
        if let Some(value) = value_of(file, place) {
            _ = write!(text, "```yaml\n{value}\n```\n");
        }
    }
    Some(text)
}

/// Returns the value of a key at a place as it is written, without its indentation.
fn value_of(file: &File, place: &Place) -> Option<String> {
    let key = |node: &SourceNode| node.span.start <= place.start && place.end <= node.span.end;
    let value = file.documents.iter().find_map(|document| below(document, &key))?;
    let written = file.text.get(value.span.clone()).filter(|written| !written.is_empty())?;
    let start = file.text[..value.span.start].rfind('\n').map_or(0, |end| end + 1);
    let indent = value.span.start - start;
    let lines = written.lines().enumerate().map(|(number, line)| match number {
        0 => line,
        _ => line.get(indent..).filter(|_| line[..indent].trim().is_empty()).unwrap_or(line),
    });
    let mut lines: Vec<&str> = lines.collect();
    if lines.len() > MAX_LINES {
        lines.truncate(MAX_LINES);
        lines.push("...");
    }
    Some(lines.join("\n"))
}

/// Returns the value of the key that fits, at any depth.
fn below<'n>(node: &'n SourceNode, is_key: &dyn Fn(&SourceNode) -> bool) -> Option<&'n SourceNode> {
    match &node.content {
        Content::Scalar { .. } => None,
        Content::List(items) => items.iter().find_map(|item| below(item, is_key)),
        Content::Map(entries) => {
            entries.iter().find_map(|(key, value)| if is_key(key) { Some(value) } else { below(value, is_key) })
        }
    }
}

/// Returns where a variable is assigned, or what Salt provides.
fn variable(here: &Here<'_>, name: &str, places: &[Place]) -> Option<String> {
    let Some(place) = places.first() else { return of_variable(name) };
    let file = here.other(&place.path)?;
    let is_it = |span: &std::ops::Range<usize>| span.start == place.start;
    let parameters = file.view.iter().flat_map(|view| &view.facts).find_map(|fact| match &fact.kind {
        Kind::Macro { parameters, .. } if is_it(&fact.span) => Some(parameters.join(", ")),
        _ => None,
    });
    let line = file.position(place.start).line;
    let definition = match parameters {
        Some(parameters) => format!("macro {name}({parameters})"),
        None => file.lines.start(line).and_then(|start| file.text.get(start..)?.lines().next())?.trim().to_owned(),
    };
    Some(format!("```jinja\n{definition}\n```\n`{}:{line}`", place.path))
}

/// Returns the states of an id.
fn ids(here: &Here<'_>, name: &str, places: &[Place]) -> Option<String> {
    let mut text = format!("State `{name}`\n");
    for place in places.iter().take(MAX_VALUES) {
        let Some(file) = here.tree.file(&place.path) else { continue };
        let line = file.position(place.start).line;
        let of_id =
            file.states.iter().filter(|state| state.id_span.start <= place.start && place.end <= state.id_span.end);
        let functions: Vec<String> = of_id.map(|state| format!("`{}`", state.full_name())).collect();
        _ = write!(text, "\n- {} in `{}:{line}`", functions.join(", "), place.path);
    }
    (!places.is_empty()).then_some(text)
}

/// Returns the files that a reference means.
fn files(name: &str, places: &[Place]) -> Option<String> {
    let mut text = format!("`{name}`\n");
    for place in places.iter().take(MAX_VALUES) {
        _ = write!(text, "\n- `{}`", place.path);
    }
    (!places.is_empty()).then_some(text)
}

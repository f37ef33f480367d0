//! What may be typed in a tag.

use std::collections::BTreeSet;

use brine_authoring_model::cursor::InTag;
use brine_authoring_model::index::Found;
use brine_authoring_model::{FileKind, grains, layout};
use brine_jinja::reference::{self, Entry};
use brine_jinja::view::{Inclusion, Kind as Fact, Root, View};
use lsp_types::CompletionItemKind as Kind;

use super::Items;
use crate::documentation::{self, Of, first_word};
use crate::hover;

/// The attributes of `loop`.
const LOOP: [&str; 10] =
    ["index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem", "nextitem", "cycle"];

/// Adds what may be typed.
pub(super) fn complete(items: &mut Items<'_, '_>, what: &InTag) {
    match what {
        InTag::Nothing => {}
        InTag::Statement => {
            for (syntax, text) in reference::TAGS {
                for word in syntax.split('`').filter(|part| !part.trim().is_empty()) {
                    items.add_with(first_word(word), first_word(word), Kind::KEYWORD, text);
                }
            }
        }
        InTag::Filter => entries(items, reference::FILTERS, Kind::FUNCTION),
        InTag::Test => entries(items, reference::TESTS, Kind::FUNCTION),
        InTag::Function { module: None } => {
            let before = items.here.file.text.get(..items.word.start).unwrap_or_default();
            if before.ends_with('.') {
                let modules: BTreeSet<&str> =
                    items.functions(Of::Execution).iter().filter_map(|one| one.name.split('.').next()).collect();
                for module in modules {
                    items.add(module, module, Kind::MODULE, "");
                }
                return;
            }
            for signature in items.functions(Of::Execution) {
                items.add_function(Of::Execution, signature, &signature.name);
            }
        }
        InTag::Function { module: Some(module) } => {
            for signature in items.functions(Of::Execution) {
                if let Some(name) = signature.name.strip_prefix(module.as_str()).and_then(|name| name.strip_prefix('.'))
                {
                    items.add_function(Of::Execution, signature, name);
                }
            }
        }
        InTag::Key { root: Root::Grains, above, .. } => {
            if above.is_empty() {
                for name in grains::names() {
                    items.add_with(name, name, Kind::FIELD, grains::documentation(name).unwrap_or_default());
                }
                for name in &items.here.workspace.catalogue.grains {
                    items.add(name, name, Kind::FIELD, "");
                }
            }
        }
        InTag::Key { root: Root::Pillar, above, .. } => pillar(items, above),
        InTag::Template => templates(items),
        InTag::Member { variable } if variable == "loop" => {
            for name in LOOP {
                items.add(name, name, Kind::FIELD, "");
            }
        }
        InTag::Member { variable } => {
            if let Some(path) = items.here.file.view.as_ref().and_then(|view| imported_as(view, variable)) {
                exported(items, &path);
            }
        }
        InTag::Imported { template } => exported(items, template),
        InTag::Variable { call } => variables(items, call.as_deref()),
    }
}

fn entries(items: &mut Items<'_, '_>, entries: &'static [Entry], kind: Kind) {
    for (syntax, text) in entries {
        items.add_with(first_word(syntax), first_word(syntax), kind, &format!("`{syntax}`: {text}"));
    }
}

/// Adds the keys of the pillar below others, with their places and values.
fn pillar(items: &mut Items<'_, '_>, above: &[String]) {
    let start = above.iter().fold(String::new(), |start, key| start + key + ":");
    let keys = &items.here.tree.index().pillar_keys;
    let below: Vec<&String> = keys.keys().filter(|key| key.starts_with(&start)).collect();
    for full in below {
        let name = &full[start.len()..];
        if name.contains(':') || name.is_empty() {
            continue;
        }
        let mut path = above.to_vec();
        path.push(name.to_owned());
        let documentation = hover::pillar(items.here, &path).unwrap_or_default();
        items.add_with(name, name, Kind::FIELD, &documentation);
    }
}

/// Adds the templates and data files of the roots.
fn templates(items: &mut Items<'_, '_>) {
    let tree = items.here.tree;
    let is_wanted = |path: &str| {
        matches!(tree.layout().kind(path), FileKind::Template | FileKind::State)
            || [".yaml", ".yml", ".json", ".txt"].iter().any(|end| path.ends_with(end))
    };
    let mut paths = BTreeSet::new();
    for path in tree.paths().iter().filter(|path| is_wanted(path)) {
        for root in &tree.layout().state_roots {
            paths.extend(layout::below(root, path));
        }
    }
    for path in paths {
        items.add(path, path, Kind::FILE, "");
    }
}

/// Returns the path of the template that a variable is.
fn imported_as(view: &View, variable: &str) -> Option<String> {
    let mut facts = view.facts.iter();
    while let Some(fact) = facts.next() {
        if let Fact::Template { path: Some(path), by: Inclusion::Import, .. } = &fact.kind
            && let Some(Fact::Assign { name }) = facts.clone().next().map(|fact| &fact.kind)
            && name == variable
        {
            return Some(path.clone());
        }
    }
    None
}

/// Adds the macros and variables of a template.
fn exported(items: &mut Items<'_, '_>, template: &str) {
    let tree = items.here.tree;
    let path = template.trim_start_matches("salt://").trim_start_matches("./").trim_start_matches("../");
    let Found::Paths(paths) = tree.index().served(tree, path) else { return };
    for file in paths.iter().filter_map(|path| tree.file(path)) {
        assigned(items, file.view.as_ref());
    }
}

/// Adds the macros and variables that a template assigns.
fn assigned(items: &mut Items<'_, '_>, view: Option<&View>) {
    for fact in view.iter().flat_map(|view| &view.facts) {
        match &fact.kind {
            Fact::Assign { name } => _ = items.add(name, name, Kind::VARIABLE, ""),
            Fact::Macro { name, parameters } => {
                let detail = format!("{name}({})", parameters.join(", "));
                items.add(name, name, Kind::FUNCTION, &detail);
            }
            _ => {}
        }
    }
}

fn variables(items: &mut Items<'_, '_>, call: Option<&str>) {
    let here = items.here;
    let called = |name| documentation::function(&here.workspace.catalogue, here.tree, Of::Execution, name);
    if let Some(signature) = call.and_then(called) {
        items.add_arguments(signature, "=");
    }
    assigned(items, here.file.view.as_ref());
    for (syntax, text) in reference::VARIABLES {
        items.add_with(first_word(syntax), first_word(syntax), Kind::VARIABLE, text);
    }
    entries(items, reference::GLOBALS, Kind::FUNCTION);
}

//! What may be typed in the data.

use std::collections::BTreeSet;

use brine_authoring_model::cursor::Step;
use brine_authoring_model::states::is_requisite;
use brine_authoring_model::{FileKind, Signature, State, layout};
use brine_jinja::view::is_dynamic;
use lsp_types::CompletionItemKind as Kind;

use super::Items;
use crate::documentation::{self, Of, engine_arguments};

/// Arguments of reactions to minions.
const OF_REACTIONS: [(&str, &str); 6] = [
    ("tgt", "The target: minions that run the function."),
    ("tgt_type", "The kind of the target, such as `list` or `grain`; `glob` by default."),
    ("args", "The arguments of the function: a mapping, or a list of values and mappings."),
    ("arg", "The positional arguments of the function, as a list."),
    ("kwarg", "The keyword arguments of the function, as a mapping."),
    ("ret", "The returner that stores the results."),
];

/// Adds what may be typed at the end of a way. `is_followed` tells whether a colon is there.
pub(super) fn complete(items: &mut Items<'_, '_>, path: &[Step], is_followed: bool) {
    let path: Vec<Option<&str>> = path
        .iter()
        .map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Item => None,
        })
        .collect();
    let colon = if is_followed { "" } else { ":" };
    match items.here.file.kind {
        FileKind::Top | FileKind::PillarTop => {
            if let [Some(_), Some(_), None] = path[..] {
                sls_names(items, items.here.file.kind == FileKind::PillarTop);
            }
        }
        FileKind::Pillar => match path[..] {
            [] => items.add_with("include", &format!("include{colon}"), Kind::KEYWORD, "Includes other pillar files."),
            [Some("include"), None] => sls_names(items, true),
            _ => {}
        },
        _ => match &path[..] {
            [Some("extend"), rest @ ..] if !rest.is_empty() => states(items, rest, colon),
            [Some("extend")] => {
                for name in names_of(items, None) {
                    items.add(&name, &format!("{name}{colon}"), Kind::CLASS, "");
                }
            }
            [Some("include"), None] => sls_names(items, false),
            [] => {
                for (word, text) in [
                    ("include", "Includes other SLS files."),
                    ("extend", "Changes states of included files."),
                    ("exclude", "Leaves out states or SLS files."),
                ] {
                    items.add_with(word, &format!("{word}{colon}"), Kind::KEYWORD, text);
                }
            }
            path => states(items, path, colon),
        },
    }
}

/// Adds what may be typed below an id.
fn states(items: &mut Items<'_, '_>, path: &[Option<&str>], colon: &str) {
    let is_reactor = items.here.file.kind == FileKind::Reactor;
    match path {
        [Some(_)] => {
            if is_reactor {
                reactions(items, colon);
            }
            for signature in items.functions(Of::States) {
                items.add_function(Of::States, signature, &format!("{}{colon}", signature.name));
            }
        }
        [Some(id), Some(function), None] => {
            if !function.contains('.') {
                for signature in items.functions(Of::States) {
                    if let Some(name) = signature.name.strip_prefix(function).and_then(|name| name.strip_prefix('.')) {
                        items.add_function(Of::States, signature, name);
                    }
                }
            }
            arguments(items, id, function, colon);
        }
        [Some(_), Some(_), None, Some(keyword), None] if is_requisite(keyword) => requisites(items, colon),
        [Some(_), Some(_), None, Some(keyword), None, Some(module)] if is_requisite(keyword) => match *module {
            "sls" => sls_names(items, false),
            "id" => items.names(None),
            module => items.names(Some(module)),
        },
        [Some(id), Some(function), None, Some(argument)] => value(items, id, function, argument),
        [Some(_), Some(_), None, Some("source" | "sources"), None] => served(items),
        _ => {}
    }
}

fn reactions(items: &mut Items<'_, '_>, colon: &str) {
    let kinds =
        [("local.", Of::Execution), ("caller.", Of::Execution), ("runner.", Of::Runners), ("wheel.", Of::Wheel)];
    for (kind, of) in kinds {
        if !items.typed.starts_with(kind) {
            items.add(kind, kind, Kind::MODULE, "a reaction");
            continue;
        }
        for signature in items.functions(of) {
            let name = format!("{kind}{}", signature.name);
            let new = format!("{name}{colon}");
            let documentation = signature.doc.trim().lines().next().unwrap_or_default();
            items.add_with(&name, &new, Kind::FUNCTION, documentation);
        }
    }
}

/// Returns the function of the state that an id has.
fn signature<'w>(items: &Items<'_, 'w>, id: &str, written: &str) -> Option<&'w Signature> {
    let here = items.here;
    let of = |of: Of, name: &str| documentation::function(&here.workspace.catalogue, here.tree, of, name);
    if let Some((kind, name)) = written.split_once('.').filter(|_| here.file.kind == FileKind::Reactor) {
        match kind {
            "runner" => return of(Of::Runners, name),
            "wheel" => return of(Of::Wheel, name),
            "local" | "caller" => return None,
            _ => {}
        }
    }
    if written.contains('.') {
        return of(Of::States, written);
    }
    let is_it = |state: &&State| state.id == id && state.module == written;
    of(Of::States, &here.file.states.iter().find(is_it)?.full_name())
}

fn arguments(items: &mut Items<'_, '_>, id: &str, function: &str, colon: &str) {
    let end = if colon.is_empty() { "" } else { ": " };
    if items.here.file.kind == FileKind::Reactor && function.starts_with("local.") {
        for (name, text) in OF_REACTIONS {
            items.add_with(name, &format!("{name}{end}"), Kind::PROPERTY, text);
        }
        return;
    }
    if let Some(signature) = signature(items, id, function) {
        items.add_arguments(signature, end);
    }
    if items.here.file.kind == FileKind::State {
        for (name, text) in engine_arguments() {
            let new = if is_requisite(name) { format!("{name}{colon}") } else { format!("{name}{end}") };
            let kind = if is_requisite(name) { Kind::KEYWORD } else { Kind::PROPERTY };
            items.add_with(name, &new, kind, text);
            if let Some(item) = items.found.last_mut().filter(|item| item.label == name) {
                item.sort_text = Some(format!("2{name}"));
            }
        }
    }
}

/// Adds modules, and modules with their ids.
fn requisites(items: &mut Items<'_, '_>, colon: &str) {
    let tree = items.here.tree;
    let run = tree.index().run_with(&items.here.file.path);
    let mut modules = BTreeSet::new();
    // Those in a run with the file come first.
    for is_near in [true, false] {
        for file in tree.files().filter(|file| run.contains(&file.path) == is_near) {
            for state in file.states.iter().filter(|state| !state.is_extension && state.is_static()) {
                modules.insert(state.module.as_str());
                if is_dynamic(&state.id) || colon.is_empty() {
                    continue;
                }
                let text = format!("{}: {}", state.module, written(&state.id));
                if let Some(item) = items.add(&text, &text, Kind::REFERENCE, &file.path) {
                    item.sort_text = Some(format!("{}{text}", u8::from(!is_near)));
                }
            }
        }
    }
    for module in modules.into_iter().chain(["sls", "id"]) {
        let end = if colon.is_empty() { "" } else { ": " };
        items.add(module, &format!("{module}{end}"), Kind::MODULE, "");
    }
}

/// Returns a scalar as it is written in a block.
pub(crate) fn written(text: &str) -> String {
    let value = brine_value::Value::from(text);
    let is_plain = brine_yaml::load(&format!("a: {text}\n"))
        .is_ok_and(|read| read.get("a") == Some(&value) && !text.contains('\n') && text.trim() == text)
        && brine_yaml::load(&format!("{text}: 1\n")).is_ok_and(|read| read.get(text).is_some());
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}

impl Items<'_, '_> {
    /// Adds the ids and names of states of a module, or of all.
    fn names(&mut self, module: Option<&str>) {
        for name in names_of(self, module) {
            self.add(&name, &written(&name), Kind::REFERENCE, "");
        }
    }
}

fn names_of(items: &Items<'_, '_>, module: Option<&str>) -> BTreeSet<String> {
    let states = items.here.tree.files().flat_map(|file| &file.states).filter(|state| !state.is_extension);
    let of_module = states.filter(|state| module.is_none_or(|module| state.module == module));
    let names = of_module.flat_map(State::names).filter(|name| !is_dynamic(name) && !name.is_empty());
    names.map(str::to_owned).collect()
}

fn sls_names(items: &mut Items<'_, '_>, is_pillar: bool) {
    let index = items.here.tree.index();
    let names: BTreeSet<&str> = if is_pillar { index.pillar_names().collect() } else { index.sls_names().collect() };
    for name in names {
        items.add(name, name, Kind::MODULE, "");
    }
}

fn value(items: &mut Items<'_, '_>, id: &str, function: &str, argument: &str) {
    if items.typed.starts_with("salt:") || matches!(argument, "source" | "sources" | "file") {
        return served(items);
    }
    let param = signature(items, id, function).and_then(|signature| signature.param(argument));
    if param.is_some_and(|param| param.expected == "True or False") {
        for word in ["True", "False"] {
            items.add(word, word, Kind::VALUE, "");
        }
    }
    if argument == "template" {
        for word in ["jinja", "mako", "py", "wempy", "cheetah", "genshi"] {
            items.add(word, word, Kind::VALUE, "");
        }
    }
}

/// Adds the files below `salt://`.
fn served(items: &mut Items<'_, '_>) {
    let tree = items.here.tree;
    let mut paths = BTreeSet::new();
    for path in tree.paths() {
        for root in &tree.layout().state_roots {
            paths.extend(layout::below(root, path));
        }
    }
    for path in paths.into_iter().filter(|path| !path.starts_with('.')) {
        let url = format!("salt://{path}");
        items.add(&url, &url, Kind::FILE, "");
        if items.is_cut {
            return;
        }
    }
}

//! Reads the symbols of a file from its states, its data and the facts of its template.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use brine_jinja::view::{Fact, Inclusion, Kind, Root, View, is_dynamic};
use brine_yaml::SourceNode;
use brine_yaml::nodes::Content;

use super::{Occurrence, Symbol};
use crate::file::File;
use crate::layout::FileKind;
use crate::states::{State, is_reaction, is_requisite};

/// Returns all symbols of a file, sorted by place.
pub(super) fn symbols(file: &File) -> Vec<Occurrence> {
    let mut reader = Reader { file, found: Vec::new(), seen: HashSet::new() };
    match file.kind {
        FileKind::State | FileKind::Reactor => {
            file.states.iter().for_each(|state| reader.state(state));
            for include in &file.includes {
                reader.add(&include.span, Symbol::Sls(include.name.clone()), false);
            }
            file.documents.iter().for_each(|document| reader.excluded(document));
        }
        FileKind::Top | FileKind::PillarTop => file.documents.iter().for_each(|document| reader.top(document)),
        FileKind::Pillar => file.documents.iter().for_each(|document| reader.pillar(document, &[])),
        FileKind::Template | FileKind::Python => {}
        FileKind::Other => file.documents.iter().for_each(|document| reader.configuration(document)),
    }
    if let Some(view) = &file.view {
        reader.template(view);
    }
    let mut occurrences = reader.found;
    occurrences.sort_by_key(|one| (one.span.start, one.span.end));
    occurrences
}

struct Reader<'f> {
    file: &'f File,
    found: Vec<Occurrence>,
    seen: HashSet<(usize, usize)>,
}

impl Reader<'_> {
    /// Adds a symbol, unless there is one at the place. Quotes around it are left out.
    fn add(&mut self, span: &Range<usize>, symbol: Symbol, is_definition: bool) {
        let span = bare(&self.file.text, span);
        if !span.is_empty() && self.seen.insert((span.start, span.end)) {
            self.found.push(Occurrence { span, symbol, is_definition });
        }
    }

    fn state(&mut self, state: &State) {
        if !is_dynamic(&state.id) {
            let symbol = Symbol::Id { name: state.id.clone(), module: None };
            self.add(&state.id_span, symbol, !state.is_extension);
        }
        if state.is_static() {
            let symbol = if is_reaction(&state.module, &state.function) {
                Symbol::Reaction { kind: state.module.clone(), function: state.function.clone() }
            } else {
                Symbol::State(state.full_name())
            };
            self.add(&state.span, symbol, false);
        }
        for argument in &state.arguments {
            let symbol = if is_requisite(&argument.name) {
                Symbol::Keyword(argument.name.clone())
            } else {
                Symbol::Argument { function: state.full_name(), name: argument.name.clone() }
            };
            self.add(&argument.span, symbol, false);
            self.served(&argument.value);
        }
        for requisite in state.requisites.iter().filter(|requisite| !is_dynamic(&requisite.name)) {
            let symbol = if requisite.module.as_deref() == Some("sls") {
                Symbol::Sls(requisite.name.clone())
            } else {
                Symbol::Id { name: requisite.name.clone(), module: requisite.module.clone() }
            };
            self.add(&requisite.span, symbol, false);
        }
    }

    /// Adds the paths below `salt://` in a value.
    fn served(&mut self, node: &SourceNode) {
        match &node.content {
            Content::List(items) => items.iter().for_each(|item| self.served(item)),
            Content::Map(entries) => entries.iter().for_each(|(key, value)| {
                self.served(key);
                self.served(value);
            }),
            Content::Scalar { text, .. } => {
                if let Some(path) = text.strip_prefix("salt://").filter(|path| !is_dynamic(path)) {
                    self.add(&node.span, Symbol::Served(path.to_owned()), false);
                }
            }
        }
    }

    /// Adds the entries of `exclude`.
    fn excluded(&mut self, document: &SourceNode) {
        for item in document.get("exclude").and_then(SourceNode::list).unwrap_or_default() {
            for (kind, name) in item.map().unwrap_or_default() {
                let Some(text) = name.text().filter(|text| !is_dynamic(text)) else { continue };
                match kind.text() {
                    Some("sls") => self.add(&name.span, Symbol::Sls(text.to_owned()), false),
                    Some("id") => self.add(&name.span, Symbol::Id { name: text.to_owned(), module: None }, false),
                    _ => {}
                }
            }
        }
    }

    fn top(&mut self, document: &SourceNode) {
        let targets =
            document.map().unwrap_or_default().iter().flat_map(|(_, targets)| targets.map().unwrap_or_default());
        for item in targets.flat_map(|(_, items)| items.list().unwrap_or_default()) {
            self.sls(item, self.file.kind == FileKind::PillarTop);
        }
    }

    fn sls(&mut self, item: &SourceNode, is_pillar: bool) {
        let Some(name) = item.text().filter(|name| !is_dynamic(name)) else { return };
        let symbol = if is_pillar { Symbol::PillarSls(name.to_owned()) } else { Symbol::Sls(name.to_owned()) };
        self.add(&item.span, symbol, false);
    }

    fn pillar(&mut self, node: &SourceNode, above: &[String]) {
        for (key, value) in node.map().unwrap_or_default() {
            let Some(text) = key.text().filter(|text| !is_dynamic(text) && !key.is_repeated) else { continue };
            if above.is_empty() && text == "include" {
                for item in value.list().unwrap_or_default() {
                    let named = item.map().and_then(|entries| entries.first()).map_or(item, |(name, _)| name);
                    self.sls(named, true);
                }
                continue;
            }
            let mut path = above.to_vec();
            path.push(text.to_owned());
            self.add(&key.span, Symbol::Pillar(path.clone()), true);
            self.pillar(value, &path);
        }
    }

    /// Adds the files of the option `reactor`.
    fn configuration(&mut self, document: &SourceNode) {
        for item in document.get("reactor").and_then(SourceNode::list).unwrap_or_default() {
            let files = item.map().unwrap_or_default().iter().flat_map(|(_, files)| files.list().unwrap_or_default());
            for file in files {
                let Some(text) = file.text() else { continue };
                let symbol = match text.strip_prefix("salt://") {
                    Some(path) => Symbol::Served(path.to_owned()),
                    None => Symbol::Path(text.to_owned()),
                };
                self.add(&file.span, symbol, false);
            }
        }
    }

    fn template(&mut self, view: &View) {
        let imports = imports(view);
        for fact in &view.facts {
            match &fact.kind {
                Kind::Template { path: Some(path), .. } => {
                    let path = path.trim_start_matches("salt://");
                    self.add(&fact.span, Symbol::Served(path.to_owned()), false);
                }
                Kind::Assign { name } => {
                    let symbol = match imports.named.get(&fact.span.start) {
                        Some((template, name)) => Symbol::Member { template: template.clone(), name: name.clone() },
                        None => Symbol::Variable(name.clone()),
                    };
                    let is_definition = matches!(symbol, Symbol::Variable(_));
                    self.add(&fact.span, symbol, is_definition);
                }
                Kind::Macro { name, .. } => self.add(&fact.span, Symbol::Variable(name.clone()), true),
                Kind::Use { name, .. } => {
                    let symbol = match imports.by_name.get(name.as_str()) {
                        Some((template, name)) => {
                            Symbol::Member { template: (*template).clone(), name: (*name).clone() }
                        }
                        None => Symbol::Variable(name.clone()),
                    };
                    self.add(&fact.span, symbol, false);
                    if let Some(template) = imports.modules.get(name.as_str()) {
                        self.member(fact, template);
                    }
                }
                Kind::Call { function, keywords, .. } => {
                    self.add(&fact.span, Symbol::Function(function.clone()), false);
                    for (name, span) in keywords {
                        let symbol = Symbol::Parameter { function: function.clone(), name: name.clone() };
                        self.add(span, symbol, false);
                    }
                }
                Kind::Lookup { root, path, .. } => self.lookup(&fact.span, *root, path),
                Kind::Filter { name, .. } => self.add(&fact.span, Symbol::Filter(name.clone()), false),
                Kind::Test { name, .. } => self.add(&fact.span, Symbol::Test(name.clone()), false),
                Kind::Template { path: None, .. } => {}
            }
        }
    }

    /// Adds `name` of `module.name`, where a template is imported as `module`.
    fn member(&mut self, of: &Fact, template: &str) {
        let Some(rest) = self.file.text.get(of.span.end..).and_then(|rest| rest.strip_prefix('.')) else { return };
        let start = of.span.end + 1;
        let length = rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len());
        let symbol = Symbol::Member { template: template.to_owned(), name: rest[..length].to_owned() };
        self.add(&(start..start + length), symbol, false);
    }

    /// Adds each part of a path that is looked up.
    fn lookup(&mut self, span: &Range<usize>, root: Root, path: &[String]) {
        let written = self.file.text.get(span.clone()).unwrap_or_default();
        // Behind the name of the mapping, and of its method.
        let mut at = if written.starts_with(['\'', '"']) { 0 } else { written.find(['.', '[']).unwrap_or(0) };
        if path.len() == 1 {
            at += written.get(at..).filter(|rest| rest.starts_with(".get(")).map_or(0, |_| ".get".len());
        }
        for (number, part) in path.iter().enumerate() {
            let is_edge = |c: Option<char>| c.is_none_or(|c| c != '_' && c != '-' && !c.is_alphanumeric());
            let starts =
                written.get(at..).unwrap_or_default().match_indices(part.as_str()).map(|(start, _)| at + start);
            let mut whole = starts.filter(|start| {
                is_edge(written[..*start].chars().next_back()) && is_edge(written[start + part.len()..].chars().next())
            });
            let Some(start) = whole.next().filter(|_| !part.is_empty()) else { return };
            at = start + part.len();
            let keys = path[..=number].to_vec();
            let symbol = if root == Root::Pillar { Symbol::Pillar(keys) } else { Symbol::Grain(keys) };
            self.add(&(span.start + start..span.start + at), symbol, false);
        }
    }
}

/// The names that a template imports.
pub(super) struct Imports<'v> {
    /// The path and the name there, by the place of the imported name.
    named: HashMap<usize, (String, String)>,
    /// The path and the name there, by the name here.
    by_name: HashMap<&'v str, (&'v String, &'v String)>,
    /// The path by the name of a whole template.
    modules: HashMap<&'v str, &'v str>,
}

/// Returns the names that a template imports.
pub(super) fn imports(view: &View) -> Imports<'_> {
    let mut imports = Imports { named: HashMap::new(), by_name: HashMap::new(), modules: HashMap::new() };
    for (number, fact) in view.facts.iter().enumerate() {
        let Kind::Template { path: Some(path), by, names, .. } = &fact.kind else { continue };
        let mut assigned = view.facts[number + 1..].iter().filter_map(|fact| match &fact.kind {
            Kind::Assign { name } => Some((fact.span.start, name)),
            _ => None,
        });
        match by {
            Inclusion::From => {
                for (original, (at, name)) in names.iter().zip(assigned) {
                    imports.named.insert(at, (path.clone(), original.clone()));
                    imports.by_name.insert(name, (path, original));
                }
            }
            Inclusion::Import => {
                if let Some((_, name)) = assigned.next() {
                    imports.modules.insert(name, path);
                }
            }
            Inclusion::Include | Inclusion::Extends | Inclusion::Data => {}
        }
    }
    imports
}

/// Returns a range without quotes around it.
pub(super) fn bare(text: &str, span: &Range<usize>) -> Range<usize> {
    let written = text.get(span.clone()).unwrap_or_default();
    let is_quoted = |quote: char| written.len() >= 2 && written.starts_with(quote) && written.ends_with(quote);
    if is_quoted('\'') || is_quoted('"') { span.start + 1..span.end - 1 } else { span.clone() }
}

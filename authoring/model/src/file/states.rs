//! Reads the states of an SLS from its data.

use std::ops::Range;

use brine_jinja::view::is_dynamic;
use brine_yaml::SourceNode;
use brine_yaml::nodes::Content;

use super::{File, ProblemKind};
use crate::layout::FileKind;
use crate::states::{Argument, Include, Requisite, State, is_reaction, is_requisite};

impl File {
    /// Reads the states of all documents, each state once.
    pub(crate) fn read_states(&mut self) {
        let documents = std::mem::take(&mut self.documents);
        for document in &documents {
            match &document.content {
                Content::Map(entries) => entries.iter().for_each(|(key, value)| self.read_entry(key, value)),
                _ if document.is_nil() => {}
                _ => {
                    let text = document.text().unwrap_or_default();
                    if !is_dynamic(text) && !self.is_open {
                        let span = document.span.start..document.span.start + first_line(&self.text, &document.span);
                        self.problem(
                            ProblemKind::Structure,
                            span,
                            "the file is invalid: expected a mapping of ids to states".to_owned(),
                        );
                    }
                    self.is_open = true;
                }
            }
        }
        self.documents = documents;
        // Mappings of mappings without any function: pillar or other data in a directory of states.
        if self.forms.0 > 0 && self.forms.1 == 0 && self.includes.is_empty() {
            self.states.clear();
            self.without_states.clear();
            self.problems.retain(|problem| problem.kind != ProblemKind::Structure);
            self.is_open = true;
        }
        // A reactor file in a directory of another name.
        if self.states.iter().any(|state| is_reaction(&state.module, &state.function)) {
            self.kind = FileKind::Reactor;
        }
        // The states of an id may stand in other branches.
        for (id_text, span) in std::mem::take(&mut self.without_states) {
            if !self.is_open && !self.states.iter().any(|state| state.id_span == span) {
                let message =
                    format!("the id '{id_text}' has no state: write a function such as 'pkg.installed' below it");
                self.problem(ProblemKind::Structure, span, message);
            }
        }
        self.states.sort_by_key(|state| (state.id_span.start, state.span.start));
    }

    fn read_entry(&mut self, key: &SourceNode, value: &SourceNode) {
        match key.text().unwrap_or_default() {
            "include" => self.read_includes(value),
            "extend" => match value.map() {
                Some(entries) => entries.iter().for_each(|(id, body)| self.read_id(id, body, true)),
                None => self.misformed(value, "'extend' is invalid: expected a mapping of ids to states"),
            },
            "exclude" => {}
            _ => self.read_id(key, value, false),
        }
    }

    /// Adds a problem about the form, unless a render may change it.
    fn misformed(&mut self, node: &SourceNode, message: &str) {
        let span = node.span.start..node.span.start + first_line(&self.text, &node.span);
        self.misformed_at(node, span, message);
    }

    /// Adds a problem about the form of a node at another place.
    fn misformed_at(&mut self, node: &SourceNode, span: Range<usize>, message: &str) {
        let is_unknown = node.text().is_some_and(is_dynamic) || node.is_repeated || self.is_open;
        if !is_unknown {
            self.problem(ProblemKind::Structure, span, message.to_owned());
        }
    }

    fn read_includes(&mut self, value: &SourceNode) {
        let Some(items) = value.list() else {
            if value.is_nil() {
                return;
            }
            return self.misformed(value, "'include' is invalid: expected a list of SLS names");
        };
        for item in items {
            let (saltenv, named) = match &item.content {
                Content::Map(entries) => match entries.first() {
                    Some((saltenv, name)) => (saltenv.text().map(str::to_owned), name),
                    None => continue,
                },
                _ => (None, item),
            };
            let Some(name) = named.text().filter(|_| !named.is_nil()) else { continue };
            let include = Include { name: name.to_owned(), saltenv, span: named.span.clone() };
            if !self.includes.contains(&include) {
                self.includes.push(include);
            }
        }
    }

    fn read_id(&mut self, id: &SourceNode, body: &SourceNode, is_extension: bool) {
        let Some(name) = id.text() else { return };
        let id_text = self.shown(name);
        match &body.content {
            Content::Map(entries) => {
                self.modules_twice(entries, &id_text);
                for (function, arguments) in entries {
                    if function.text().is_some_and(|name| !name.starts_with("__")) {
                        self.read_state(id, function, arguments, is_extension);
                    }
                }
            }
            Content::Scalar { text, .. } if text.contains('.') && !is_dynamic(text) && !text.contains(' ') => {
                let (module, function) = text.split_once('.').unwrap_or((text, ""));
                self.add(State {
                    id: name.to_owned(),
                    id_span: id.span.clone(),
                    module: module.to_owned(),
                    function: function.to_owned(),
                    span: body.span.clone(),
                    arguments: Vec::new(),
                    requisites: Vec::new(),
                    is_extension,
                    is_open: body.is_repeated,
                });
            }
            Content::Scalar { text, .. } if is_dynamic(text) => self.is_open = true,
            _ if body.is_nil() => self.without_states.push((id_text, id.span.clone())),
            Content::List(_) => {
                let message = format!(
                    "the id '{id_text}' is invalid: expected a function such as 'file.managed:' below it, got a list"
                );
                self.misformed_at(body, id.span.clone(), &message);
            }
            Content::Scalar { .. } => {
                let message = format!(
                    "the id '{id_text}' is invalid: expected a function such as 'file.managed' with its module"
                );
                self.misformed(body, &message);
            }
        }
    }

    /// Reports a second state of one module below an id.
    fn modules_twice(&mut self, entries: &[(SourceNode, SourceNode)], id: &str) {
        let module = |node: &SourceNode| {
            let name = node.text().filter(|name| !is_dynamic(name) && !node.is_repeated)?;
            Some(name.split('.').next().unwrap_or(name).to_owned())
        };
        for (number, (key, _)) in entries.iter().enumerate() {
            let Some(own) = module(key) else { continue };
            let before = entries[..number].iter().map(|(before, _)| before);
            let mut same =
                before.filter(|before| before.scalar() != key.scalar() && module(before).as_ref() == Some(&own));
            if same.any(|before| self.are_together(before.span.start, key.span.start)) {
                let message = format!("the id '{id}' has a second state of '{own}': give it an id of its own");
                self.problem(ProblemKind::Structure, key.span.clone(), message);
            }
        }
    }

    fn read_state(&mut self, id: &SourceNode, key: &SourceNode, body: &SourceNode, is_extension: bool) {
        let (Some(id_text), Some(name)) = (id.text(), key.text()) else { return };
        let (module, function) =
            name.split_once('.').map_or((name, None), |(module, function)| (module, Some(function)));
        let mut state = State {
            id: id_text.to_owned(),
            id_span: id.span.clone(),
            module: module.to_owned(),
            function: function.unwrap_or_default().to_owned(),
            span: key.span.clone(),
            arguments: Vec::new(),
            requisites: Vec::new(),
            is_extension,
            is_open: key.is_repeated || body.is_repeated,
        };
        let is_data = function.is_none() && matches!(body.content, Content::Map(_));
        *if is_data { &mut self.forms.0 } else { &mut self.forms.1 } += 1;
        let mut functions: Vec<(String, Range<usize>)> = Vec::new();
        match &body.content {
            Content::List(items) => {
                for item in items {
                    match &item.content {
                        Content::Map(entries) => self.read_arguments(entries, &mut state),
                        Content::Scalar { text, plain, .. } if is_dynamic(text) && !(*plain && lacks_colon(text)) => {
                            state.is_open = true;
                        }
                        Content::Scalar { .. } if item.is_nil() => state.is_open = true,
                        Content::Scalar { text, .. } => functions.push((text.clone(), item.span.clone())),
                        Content::List(_) => state.is_open = true,
                    }
                }
            }
            Content::Scalar { text, .. } if is_dynamic(text) => state.is_open = true,
            _ if body.is_nil() => {
                if function.is_some() && !self.is_open && !is_extension {
                    let message = format!("'{name}:' has no arguments: the colon must be omitted");
                    let span = key.span.clone();
                    // Arguments may stand in a branch that is not taken.
                    if self
                        .text
                        .get(key.span.end..)
                        .is_some_and(|rest| !rest.trim_start_matches([':', ' ', '\n', '\r']).starts_with("{%"))
                    {
                        self.problem(ProblemKind::Structure, span, message);
                    }
                }
                state.is_open = true;
            }
            Content::Scalar { text, .. } if function.is_none() && !text.contains(' ') => {
                functions.push((text.clone(), body.span.clone()));
            }
            Content::Scalar { .. } | Content::Map(_) => {
                let message = format!("the arguments of '{}' are invalid: expected a list", self.shown(name));
                if !is_dynamic(name) {
                    self.misformed(body, &message);
                }
                if let Content::Map(entries) = &body.content {
                    self.read_arguments(entries, &mut state);
                }
                state.is_open = true;
            }
        }
        match (function, &functions[..]) {
            (None, [(only, span), ..]) => {
                state.function.clone_from(only);
                state.span = span.clone();
            }
            (Some(_), [(extra, span), ..]) => {
                let extra_text = self.shown(extra);
                let message = if extra.contains([' ', '=']) {
                    format!("'{extra_text}' is invalid: expected an argument with a colon after its name")
                } else {
                    format!("'{extra}' is a second function of '{name}': an argument has a colon after its name")
                };
                self.problem(ProblemKind::Structure, span.clone(), message);
            }
            (None, []) => {
                if !is_extension && !state.is_open && !self.is_open && !is_dynamic(name) {
                    let message = format!("'{name}' has no function: write '{name}.FUNCTION'");
                    self.problem(ProblemKind::Structure, key.span.clone(), message);
                }
                state.is_open = true;
            }
            (Some(_), []) => {}
        }
        if let (None, [_, (extra, span), ..]) = (function, &functions[..])
            && self.are_together(functions[0].1.start, span.start)
        {
            let message = format!("'{extra}' is a second function of '{name}': an argument has a colon after its name");
            self.problem(ProblemKind::Structure, span.clone(), message);
        }
        self.add(state);
    }

    fn read_arguments(&mut self, entries: &[(SourceNode, SourceNode)], state: &mut State) {
        for (key, value) in entries {
            let Some(name) = key.text() else { continue };
            if is_dynamic(name) {
                state.is_open = true;
                continue;
            }
            if key.is_repeated {
                state.is_open = true;
            }
            if is_requisite(name) {
                self.read_requisites(name, value, state);
            }
            state.arguments.push(Argument { name: name.to_owned(), span: key.span.clone(), value: value.clone() });
        }
    }

    fn read_requisites(&mut self, keyword: &str, value: &SourceNode, state: &mut State) {
        let Some(items) = value.list() else {
            let after = self.text.get(value.span.end..).unwrap_or_default();
            // Items may stand in a branch that is not taken.
            let may_follow = value.is_nil() && after.trim_start_matches(':').trim_start().starts_with('{');
            if !may_follow {
                let line_end = after.find('\n').map_or(self.text.len(), |end| value.span.end + end);
                let start = self.text[..line_end].rfind(keyword).unwrap_or(value.span.start);
                let span = if value.is_nil() { start..start + keyword.len() } else { value.span.clone() };
                self.misformed_at(value, span, &format!("'{keyword}' is invalid: expected a list"));
            }
            return;
        };
        for item in items {
            let (module, named) = match &item.content {
                Content::Map(entries) => match &entries[..] {
                    [(module, name)] => (module.text().map(str::to_owned), name),
                    [_, (second, _), ..] => {
                        self.misformed(
                            second,
                            &format!("an entry of '{keyword}' is invalid: expected one module and one id"),
                        );
                        continue;
                    }
                    [] => continue,
                },
                _ => (None, item),
            };
            if let Some((short, _)) =
                module.as_deref().filter(|module| !is_dynamic(module)).and_then(|module| module.split_once('.'))
            {
                let span = item
                    .map()
                    .and_then(|entries| entries.first())
                    .map_or(item.span.clone(), |(key, _)| key.span.clone());
                let message = format!(
                    "the module of a requisite is invalid: expected '{short}', got '{}'",
                    module.as_deref().unwrap_or_default()
                );
                self.problem(ProblemKind::Structure, span, message);
            }
            match named.text().filter(|_| !named.is_nil()) {
                Some(name) => state.requisites.push(Requisite {
                    keyword: keyword.to_owned(),
                    module,
                    name: name.to_owned(),
                    span: named.span.clone(),
                }),
                None if named.is_nil() => {}
                None => self
                    .misformed(named, &format!("an entry of '{keyword}' is invalid: expected an id, got a collection")),
            }
        }
    }

    /// Adds a state, or its arguments in another branch.
    fn add(&mut self, state: State) {
        let previous = self.states.iter_mut().rev().find(|other| {
            other.id_span == state.id_span && other.span.start == state.span.start && other.function == state.function
        });
        let Some(previous) = previous else { return self.states.push(state) };
        for argument in state.arguments {
            if !previous.arguments.iter().any(|have| have.span == argument.span && have.value == argument.value) {
                previous.arguments.push(argument);
            }
        }
        for requisite in state.requisites {
            if !previous.requisites.contains(&requisite) {
                previous.requisites.push(requisite);
            }
        }
        previous.is_open |= state.is_open;
    }
}

/// Returns the length of the first line of a range.
fn first_line(text: &str, span: &Range<usize>) -> usize {
    text.get(span.clone()).and_then(|inside| inside.lines().next()).map_or(0, |line| line.trim_end().len())
}

/// Whether an item is an argument whose colon is missing: a word, a blank and an expression.
fn lacks_colon(text: &str) -> bool {
    let word = text.split(' ').next().unwrap_or_default();
    word.len() < text.len() && !word.is_empty() && word.chars().all(|c| c == '_' || c.is_ascii_lowercase())
}

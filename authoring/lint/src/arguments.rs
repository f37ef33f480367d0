//! `B4`: arguments of states.

use brine_authoring_model::{Argument, FileKind, Signature, State};
use brine_function::Param;
use brine_jinja::view::is_dynamic;
use brine_value::Value;
use brine_yaml::SourceNode;
use brine_yaml::nodes::Content;

use crate::{Check, Finding};

impl Check<'_> {
    pub(crate) fn arguments(&mut self) {
        if self.file.kind != FileKind::State {
            return;
        }
        for state in self.file.states.iter().filter(|state| state.is_static()) {
            let full = state.full_name();
            if self.index.custom.states.get(&full).is_some() {
                continue;
            }
            let Some(signature) = self.catalogue.states.get(&full).cloned() else { continue };
            // A step reports the former name of its type of target itself.
            let is_former = |argument: &Argument| state.module == "salt" && argument.name == "expr_form";
            let beside = self.indentation(state);
            for (number, argument) in state.arguments.iter().enumerate() {
                if !is_former(argument) && !beside.contains(&number) {
                    self.argument(state, &signature, argument);
                }
            }
            self.twice(state);
            self.required(state, &signature);
        }
    }

    fn argument(&mut self, state: &State, signature: &Signature, argument: &Argument) {
        let watching = self.catalogue.states.get(&format!("{}.mod_watch", state.module));
        let watching = watching.map(|function| function.params).unwrap_or_default();
        let fills_template = state.argument("template").is_some();
        // Its further arguments are those of file.managed.
        let managed = self.catalogue.states.get("file.managed").filter(|_| signature.name == "file.recurse");
        let is_passed_on = !matches!(argument.name.as_str(), "mode" | "makedirs");
        if is_passed_on && managed.is_some_and(|managed| managed.param(&argument.name).is_some()) {
            return;
        }
        match brine_state::unknown_argument(signature.params, watching, fills_template, &argument.name) {
            Some(hint) => {
                let message = format!("unknown argument '{}' of {}: {hint}", argument.name, signature.name);
                let mut finding = Finding::new("B401", &self.file.path, argument.span.clone(), message);
                let near = hint
                    .split('\'')
                    .nth(1)
                    .filter(|_| hint.starts_with("did you mean") || hint.starts_with("the argument"));
                if let Some(near) = near {
                    finding = finding.fix(format!("write '{near}'"), argument.span.clone(), near, false);
                }
                self.add(finding);
            }
            None => {
                if let Some(param) = signature.param(&argument.name) {
                    self.kind(signature, param, argument);
                }
            }
        }
    }

    fn kind(&mut self, signature: &Signature, param: &Param, argument: &Argument) {
        let Some(got) = wrong_type(param.expected, &argument.value) else { return };
        // Some functions take one string or several.
        if got == "a list" && param.name.ends_with('s') {
            return;
        }
        let message = format!(
            "the argument '{}' of {} is invalid: expected {}, got {got}",
            argument.name, signature.name, param.expected
        );
        let span = argument.value.span.clone();
        let first = self.file.text.get(span.clone()).and_then(|text| text.lines().next()).map_or(0, str::len);
        self.report("B402", span.start..span.start + first, message);
    }

    /// Reports keys that stand beside `context:` and are meant to be below it. Returns the numbers of these arguments.
    fn indentation(&mut self, state: &State) -> Vec<usize> {
        let mut all = Vec::new();
        for (number, argument) in state.arguments.iter().enumerate() {
            if !matches!(argument.name.as_str(), "context" | "defaults") || !argument.value.is_nil() {
                continue;
            }
            let column = |argument: &Argument| self.file.position(argument.span.start).column;
            let is_beside = |next: usize| {
                let (before, next) = (&state.arguments[next - 1], &state.arguments[next]);
                let between = self.file.text.get(before.span.end..next.span.start).unwrap_or("- ");
                let starts_item = between.rsplit('\n').next().is_some_and(|indent| indent.contains('-'));
                column(next) == column(argument) && !starts_item
            };
            let beside: Vec<usize> = (number + 1..state.arguments.len()).take_while(|next| is_beside(*next)).collect();
            if let Some(next) = beside.first().map(|next| &state.arguments[*next]) {
                let message = format!(
                    "'{}' is an argument of the state, not a part of '{}': indent it by two more spaces",
                    next.name, argument.name
                );
                self.report("B405", next.span.clone(), message);
            }
            all.extend(beside);
        }
        all
    }

    fn twice(&mut self, state: &State) {
        for (number, argument) in state.arguments.iter().enumerate() {
            let before = state.arguments[..number].iter().find(|before| {
                before.name == argument.name
                    && before.span != argument.span
                    && self.file.are_together(before.span.start, argument.span.start)
            });
            // Requisites are joined.
            if let Some(before) = before
                && !brine_authoring_model::states::is_requisite(&argument.name)
            {
                let message = format!("the argument '{}' stands twice: the last one counts", argument.name);
                let finding = Finding::new("B404", &self.file.path, argument.span.clone(), message);
                let place = brine_authoring_model::Place::new(&self.file.path, &before.span);
                self.add(finding.related(place, "the first one"));
            }
        }
    }

    fn required(&mut self, state: &State, signature: &Signature) {
        if self.gets_more(state) {
            return;
        }
        for param in signature.params.iter().filter(|param| param.is_required()) {
            if param.name != "name" && state.argument(param.name).is_none() {
                let message = format!("{} requires the argument '{}', {}", signature.name, param.name, param.expected);
                self.report("B403", state.span.clone(), message);
            }
        }
    }

    /// Whether a state may have arguments that are not seen in it.
    pub(crate) fn gets_more(&self, state: &State) -> bool {
        state.is_open
            || state.is_extension
            || self.file.is_open
            || state.requisites.iter().any(|requisite| requisite.keyword == "use")
            || state.argument("names").is_some()
            || self.index.is_extended(&state.id)
    }
}

/// Returns the type of a value that a parameter surely refuses.
fn wrong_type(expected: &str, value: &SourceNode) -> Option<&'static str> {
    if value.is_repeated {
        return None;
    }
    let got = match &value.content {
        Content::List(_) => "a list",
        Content::Map(_) => "a mapping",
        Content::Scalar { text, .. } if is_dynamic(text) || text.starts_with("__slot__:") => return None,
        Content::Scalar { value, .. } => match value {
            Value::Nil => return None,
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a number",
            _ => "a string",
        },
    };
    let is_collection = matches!(got, "a list" | "a mapping");
    let is_wrong = match expected {
        "True or False" | "an integer" | "a non-negative integer" | "a number" | "a non-negative number" => {
            is_collection || got == "a string" && !converts(expected, value.text().unwrap_or_default())
        }
        // Texts may be given line by line.
        "a string" => got == "a mapping",
        "a path" => is_collection,
        "a list" => got == "a mapping" || matches!(got, "a boolean"),
        "a mapping" => matches!(got, "a boolean" | "an integer" | "a number"),
        _ => false,
    };
    is_wrong.then_some(got)
}

/// Whether a string may stand for a value of a type.
fn converts(expected: &str, text: &str) -> bool {
    match expected {
        "True or False" => text.is_empty() || text.len() < 6,
        _ => {
            text.is_empty()
                || text.trim().chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_' | 'e' | 'x'))
        }
    }
}

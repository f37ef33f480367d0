//! `B408`, `B409`: the arguments of functions that templates, states, the mine and schedules call. Only functions that
//! Brine has itself are known with their arguments.

use std::collections::BTreeMap;
use std::ops::Range;

use brine_authoring_model::layout::is_of_master;
use brine_authoring_model::{Argument, File, FileKind, Signature, State};
use brine_function::{Others, Param, ParamKind};
use brine_jinja::view::{Kind, is_dynamic};
use brine_text::nearest::{self, nearest};
use brine_value::Value;
use brine_yaml::SourceNode;
use brine_yaml::nodes::Content;

use crate::names::is_function;
use crate::{Check, Finding, Severity};

/// What a call gives to a function.
#[derive(Debug, Default)]
struct Given {
    positional: usize,
    /// Keyword arguments: names with their places.
    keywords: Vec<(String, Range<usize>)>,
    /// Whether it may give more.
    is_open: bool,
}

impl Given {
    /// Adds positional arguments: those in a list, in which a mapping has keyword arguments.
    fn items(mut self, node: &SourceNode) -> Self {
        if node.is_repeated {
            self.is_open = true;
        }
        for item in node.list().unwrap_or(std::slice::from_ref(node)) {
            match &item.content {
                Content::Map(_) => self = self.entries(item),
                Content::Scalar { text, .. } if is_dynamic(text) || text.contains('=') => self.is_open = true,
                Content::Scalar { .. } if item.is_nil() => self.is_open = true,
                Content::Scalar { .. } | Content::List(_) => self.positional += 1,
            }
        }
        self
    }

    /// Adds keyword arguments: those of a mapping.
    fn entries(mut self, node: &SourceNode) -> Self {
        self.is_open |= node.is_repeated || node.map().is_none() && !node.is_nil();
        for (key, _) in node.map().unwrap_or_default() {
            match key.text().filter(|name| !is_dynamic(name) && !key.is_repeated) {
                Some(name) => self.keywords.push((name.to_owned(), key.span.clone())),
                None => self.is_open = true,
            }
        }
        self
    }

    fn without(mut self, names: &[&str]) -> Self {
        self.keywords.retain(|(name, _)| !names.contains(&name.as_str()));
        self
    }
}

impl Check<'_> {
    pub(crate) fn calls(&mut self) {
        self.template_calls();
        match self.file.kind {
            FileKind::State => {
                for state in self.file.states.iter().filter(|state| !state.is_extension) {
                    match (state.module.as_str(), state.function.as_str()) {
                        ("module", "run" | "wait" | "watch") => self.module_run(state),
                        ("salt", "function") => self.called_step(state, "execution", true),
                        ("salt", "runner") => self.called_step(state, "runner", false),
                        ("salt", "wheel") => self.called_step(state, "wheel", false),
                        ("salt", "parallel_runners") => self.runners(state),
                        ("schedule", "present") => self.schedule_present(state),
                        _ => {}
                    }
                }
            }
            FileKind::Pillar => self.configured_calls("execution"),
            _ => {}
        }
    }

    /// Checks the calls in a configuration file.
    pub(crate) fn calls_of_configuration(&mut self) {
        let is_master = is_of_master(&self.file.path) == Some(true);
        self.configured_calls(if is_master { "runner" } else { "execution" });
    }

    /// Returns the function that a name means, if its arguments are known.
    fn callee(&self, kind: &str, name: &str) -> Option<Signature> {
        let (built_in, custom) = match kind {
            "runner" => (&self.catalogue.runners, &self.index.custom.runners),
            "wheel" => (&self.catalogue.wheel, &self.index.custom.wheel),
            _ => (&self.catalogue.execution, &self.index.custom.execution),
        };
        let module = name.split('.').next().unwrap_or(name);
        let is_own = custom.knows(name) || custom.has_module(module) || self.options.is_external(module);
        built_in.get(name).filter(|signature| !is_own && !signature.is_custom).cloned()
    }

    fn template_calls(&mut self) {
        let Some(view) = &self.file.view else { return };
        for fact in &view.facts {
            let Kind::Call { function, positional, keywords, is_open, .. } = &fact.kind else { continue };
            let callee = self.callee("execution", function);
            // Reactor files are rendered on the master.
            let is_of_master = callee.is_none() && self.file.kind == FileKind::Reactor;
            let Some(callee) = callee.or_else(|| self.callee("runner", function).filter(|_| is_of_master)) else {
                continue;
            };
            let arguments = Given { positional: *positional, keywords: keywords.clone(), is_open: *is_open };
            self.call(&callee, &arguments, &fact.span);
        }
    }

    /// Checks `module.run`.
    fn module_run(&mut self, state: &State) {
        let by_key: Vec<&Argument> =
            state.arguments.iter().filter(|argument| is_function(function_of(&argument.name))).collect();
        if by_key.is_empty() {
            return self.module_by_name(state);
        }
        // An argument stands several times if its values are in several branches.
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        for argument in &by_key {
            *places.entry(argument.span.start).or_default() += 1;
        }
        for argument in by_key {
            let Some(branches) = places.remove(&argument.span.start) else { continue };
            let Some(callee) = self.callee("execution", function_of(&argument.name)) else { continue };
            let arguments = Given { is_open: state.is_open || branches > 1, ..Given::default() };
            let arguments = if argument.value.is_nil() { arguments } else { arguments.items(&argument.value) };
            self.call(&callee, &arguments, &argument.span);
        }
    }

    /// Checks the form of `module.run` that names the function in `name`.
    fn module_by_name(&mut self, state: &State) {
        let named = state.argument("name");
        let names = state.arguments.iter().filter(|argument| argument.name == "name").count();
        let (name, span) = match named {
            Some(named) => (named.value.text().unwrap_or_default(), named.value.span.clone()),
            None => (state.id.as_str(), state.id_span.clone()),
        };
        let Some(callee) = self.callee("execution", name).filter(|_| names < 2) else { return };
        let mut arguments = Given { is_open: self.gets_more(state), ..Given::default() };
        for argument in &state.arguments {
            match argument.name.as_str() {
                "args" if argument.value.list().is_some() => arguments = arguments.items(&argument.value),
                "args" => arguments.is_open = true,
                "kwargs" => arguments = arguments.entries(&argument.value),
                _ => {}
            }
        }
        let passed: Vec<(String, Range<usize>)> = arguments.keywords.drain(..).collect();
        let is_own = |name: &str| matches!(name, "name" | "args" | "kwargs" | "arg" | "returner" | "func" | "fun");
        for argument in state.arguments.iter().filter(|argument| !is_own(&argument.name)) {
            let name = argument.name.strip_prefix("m_").unwrap_or(&argument.name);
            self.has_effect(&callee, name, argument);
            arguments.keywords.push((name.to_owned(), argument.span.clone()));
        }
        // Arguments that the form does not pass on have no effect; only a missing one is an error.
        self.missing(&callee, &Given { keywords: [&passed[..], &arguments.keywords[..]].concat(), ..arguments }, &span);
        let refused = Given { keywords: passed, is_open: true, ..Given::default() };
        self.call(&callee, &refused, &span);
    }

    /// Reports an argument that the form with a name does not pass on, and whose name is near another one.
    fn has_effect(&mut self, callee: &Signature, name: &str, argument: &Argument) {
        if callee.others().is_some() || brine_state::unknown_argument(callee.params, &[], false, name).is_none() {
            return;
        }
        let near = nearest(name, callee.params.iter().filter(|param| param.is_named()).map(|param| param.name));
        let message = format!("{} does not take the argument '{name}', which has no effect", callee.name);
        let mut finding = Finding::new("B408", &self.file.path, argument.span.clone(), message);
        finding.severity = Severity::Warning;
        if let Some(near) = near {
            finding.message.push_str(&nearest::hint(Some(&near)));
            if argument.name == name {
                finding = finding.fix(format!("write '{near}'"), argument.span.clone(), near, false);
            }
        }
        self.add(finding);
    }

    /// Checks a step of an orchestration that calls a function; a runner takes its arguments beside `arg` and `kwarg`.
    fn called_step(&mut self, state: &State, kind: &str, has_own: bool) {
        let names: Vec<&Argument> = state.arguments.iter().filter(|argument| argument.name == "name").collect();
        let (name, span) = match names[..] {
            [] => (state.id.as_str(), state.id_span.clone()),
            [only] => (only.value.text().unwrap_or_default(), only.value.span.clone()),
            _ => return,
        };
        let Some(callee) = self.callee(kind, name) else { return };
        let mut arguments = Given { is_open: self.gets_more(state), ..Given::default() };
        for argument in &state.arguments {
            let value = &argument.value;
            match argument.name.as_str() {
                "arg" => match value.scalar() {
                    // A text is split into words.
                    Some(Value::Str(text)) if !is_dynamic(text) && !text.contains('=') => {
                        arguments.positional += text.split_whitespace().count();
                    }
                    Some(Value::Nil) => arguments.is_open = true,
                    _ => arguments = arguments.items(value),
                },
                "kwarg" => arguments = arguments.entries(value),
                "name" => {}
                other if !has_own && !brine_authoring_model::states::is_requisite(other) => {
                    arguments.keywords.push((other.to_owned(), argument.span.clone()));
                }
                _ => {}
            }
        }
        let is_of_engine = |name: &str| brine_state::unknown_argument(&[], &[], false, name).is_none();
        let takes = |name: &str| callee.param(name).is_some();
        arguments.keywords.retain(|(name, _)| takes(name) || has_own || !is_of_engine(name));
        self.call(&callee, &arguments, &span);
    }

    /// Checks the functions that a step calls in parallel.
    fn runners(&mut self, state: &State) {
        let runners = state.arguments.iter().filter(|argument| argument.name == "runners");
        for (id, config) in runners.flat_map(|argument| argument.value.map().unwrap_or_default()) {
            let items = config.list().unwrap_or(std::slice::from_ref(config));
            let find = |key: &str| items.iter().find_map(|item| item.get(key));
            let named = find("name").unwrap_or(id);
            let Some(callee) = named.text().and_then(|name| self.callee("runner", name)) else { continue };
            let mut arguments = Given { is_open: state.is_open || self.file.is_open, ..Given::default() };
            if let Some(kwarg) = find("kwarg") {
                arguments = arguments.entries(kwarg);
            }
            self.call(&callee, &arguments, &named.span);
        }
    }

    /// Checks `schedule.present`.
    fn schedule_present(&mut self, state: &State) {
        let one = |names: [&str; 2]| {
            let mut candidates = state.arguments.iter().filter(|argument| names.contains(&argument.name.as_str()));
            candidates.next().filter(|_| candidates.next().is_none())
        };
        let Some(function) = one(["function", "function"]) else { return };
        let Some(callee) = function.value.text().and_then(|name| self.callee("execution", name)) else { return };
        let several = state.arguments.iter().filter(|argument| argument.name.ends_with("args")).count() > 2;
        let mut arguments = Given { is_open: several || self.gets_more(state), ..Given::default() };
        if let Some(args) = one(["job_args", "args"]) {
            arguments = arguments.items(&args.value);
        }
        if let Some(kwargs) = one(["job_kwargs", "kwargs"]) {
            arguments = arguments.entries(&kwargs.value);
        }
        self.call(&callee, &arguments, &function.value.span);
    }

    /// Checks `mine_functions` and `schedule` of a pillar or a configuration.
    fn configured_calls(&mut self, kind: &str) {
        let file: &File = self.file;
        for document in &file.documents {
            for (name, config) in document.get("mine_functions").and_then(SourceNode::map).unwrap_or_default() {
                self.mine_function(name, config);
            }
            for (_, job) in document.get("schedule").and_then(SourceNode::map).unwrap_or_default() {
                let Some(function) = job.get("function") else { continue };
                let Some(callee) = function.text().and_then(|name| self.callee(kind, name)) else { continue };
                let mut arguments = Given { is_open: job.is_repeated, ..Given::default() };
                for (key, value) in job.map().unwrap_or_default() {
                    match key.text() {
                        Some("args" | "job_args") => arguments = arguments.items(value),
                        Some("kwargs" | "job_kwargs") => arguments = arguments.entries(value),
                        Some(name) if !is_dynamic(name) => {}
                        _ => arguments.is_open = true,
                    }
                }
                self.call(&callee, &arguments, &function.span);
            }
        }
    }

    fn mine_function(&mut self, name: &SourceNode, config: &SourceNode) {
        let items = config.list().unwrap_or(std::slice::from_ref(config));
        let named = items.iter().find_map(|item| item.get("mine_function")).unwrap_or(name);
        let Some(callee) = named.text().and_then(|name| self.callee("execution", name)) else { return };
        let arguments = if config.is_nil() { Given::default() } else { Given::default().items(config) };
        let arguments = arguments.without(&["mine_function", "allow_tgt", "allow_tgt_type"]);
        self.call(&callee, &arguments, &named.span);
    }

    /// Reports the refused and the missing arguments of a call.
    fn call(&mut self, callee: &Signature, args: &Given, span: &Range<usize>) {
        let named = || callee.params.iter().filter(|param| param.is_named());
        if callee.others().is_none() {
            for (name, span) in &args.keywords {
                if name.starts_with("__") || named().any(|param| param.name == name) {
                    continue;
                }
                let message = format!("{} does not take the argument '{name}'", callee.name);
                let is_former = name == "expr_form" && named().any(|param| param.name == "tgt_type");
                let near =
                    if is_former { Some("tgt_type") } else { nearest(name.as_str(), named().map(|param| param.name)) };
                let near = near.map(str::to_owned);
                self.unknown("B408", span.clone(), message, near, name);
            }
        }
        let takes_rest = callee.params.iter().any(|param| matches!(param.kind, ParamKind::Rest));
        let most = named().count();
        if !takes_rest && !args.is_open && args.positional > most {
            let arguments = if most == 1 { "argument" } else { "arguments" };
            let message =
                format!("{} takes at most {most} positional {arguments}, got {}", callee.name, args.positional);
            self.report("B408", span.clone(), message);
        }
        self.missing(callee, args, span);
    }

    /// Reports required arguments that are missing.
    fn missing(&mut self, callee: &Signature, args: &Given, span: &Range<usize>) {
        if args.is_open || callee.others() == Some(Others::Any) && callee.params.iter().any(Param::is_further) {
            return;
        }
        let named = callee.params.iter().filter(|param| param.is_named());
        let is_given = |param: &Param| args.keywords.iter().any(|(name, _)| name == param.name);
        for param in named.skip(args.positional).filter(|param| param.is_required() && !is_given(param)) {
            let message = format!("{} requires the argument '{}', {}", callee.name, param.name, param.expected);
            self.report("B409", span.clone(), message);
        }
    }
}

/// Returns the function in a key of `module.run`, which may have a suffix after a colon.
fn function_of(key: &str) -> &str {
    key.split(':').next().unwrap_or(key)
}

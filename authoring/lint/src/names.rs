//! `B2`: names of functions, filters, tests and grains.

use brine_authoring_model::catalogue::Functions;
use brine_authoring_model::{FileKind, Place, State, grains};
use brine_jinja::view::{Kind, Root, is_dynamic};
use brine_text::nearest::{self, nearest, nearest_within};

use crate::{Check, Finding, known};

impl Check<'_> {
    pub(crate) fn names(&mut self) {
        match self.file.kind {
            FileKind::State => self.file.states.iter().for_each(|state| {
                self.state_function(state);
                self.called_functions(state);
            }),
            FileKind::Reactor => self.file.states.iter().for_each(|state| self.reaction(state)),
            _ => {}
        }
        self.template_names();
    }

    fn state_function(&mut self, state: &State) {
        if !state.is_static() {
            return;
        }
        let full = state.full_name();
        let (built_in, custom) = (&self.catalogue.states, &self.index.custom.states);
        if built_in.knows(&full) || custom.knows(&full) {
            return;
        }
        let message = if built_in.has_module(&state.module) || custom.has_module(&state.module) {
            format!("there is no state function '{full}'")
        } else {
            format!("there is no state module '{}'", state.module)
        };
        let near = self.nearest_function(&full, built_in, custom);
        let has_module = built_in.has_module(&state.module) || custom.has_module(&state.module);
        let uses = self.index.state_modules.get(&state.module);
        if !has_module && near.is_none() && self.is_module_elsewhere("B201", "state", &state.module, &state.span, uses)
        {
            return;
        }
        self.unknown("B201", state.span.clone(), message, near, &full);
    }

    /// Reports functions that a state calls and that do not exist.
    fn called_functions(&mut self, state: &State) {
        let (built_in, kind) = match (state.module.as_str(), state.function.as_str()) {
            ("salt", "function") | ("module", "run") => (&self.catalogue.execution, "execution"),
            ("salt", "runner" | "parallel_runners") => (&self.catalogue.runners, "runner"),
            ("salt", "wheel") => (&self.catalogue.wheel, "wheel"),
            _ => return,
        };
        // The catalogue of a program may lack a kind.
        if built_in.iter().next().is_none() || state.is_open || state.is_extension {
            return;
        }
        if state.function == "parallel_runners" {
            return self.parallel_runners(state);
        }
        let is_new_form = state.module == "module" && state.argument("name").is_none();
        let mut called: Vec<(&str, std::ops::Range<usize>)> = Vec::new();
        if is_new_form {
            called.extend(state.arguments.iter().map(|argument| (argument.name.as_str(), argument.span.clone())));
        }
        match state.argument("name") {
            Some(name) => called.extend(name.value.text().map(|text| (text, name.value.span.clone()))),
            None if !called.iter().any(|(name, _)| is_function(name)) => {
                called.push((&state.id, state.id_span.clone()));
            }
            None => {}
        }
        for (name, span) in called.into_iter().filter(|(name, _)| is_function(name)) {
            self.called_function(name, span, kind);
        }
    }

    /// Reports a function of a kind that a state calls and that does not exist.
    fn called_function(&mut self, name: &str, span: std::ops::Range<usize>, kind: &str) {
        let (built_in, custom) = match kind {
            "runner" => (&self.catalogue.runners, &self.index.custom.runners),
            "wheel" => (&self.catalogue.wheel, &self.index.custom.wheel),
            _ => (&self.catalogue.execution, &self.index.custom.execution),
        };
        let module = name.split('.').next().unwrap_or(name);
        if built_in.knows(name) || custom.knows(name) || self.options.is_external(module) {
            return;
        }
        // A module that is misspelt, or one of a package.
        let near = self.nearest_function(name, built_in, custom);
        if near.is_some() || built_in.has_module(module) || custom.has_module(module) {
            self.unknown("B207", span, format!("there is no {kind} function '{name}'"), near, name);
        }
    }

    /// Reports runner functions that a step calls in parallel and that do not exist.
    fn parallel_runners(&mut self, state: &State) {
        let runners = state.arguments.iter().filter(|argument| argument.name == "runners");
        for (_, config) in runners.flat_map(|argument| argument.value.map().unwrap_or_default()) {
            let one = std::slice::from_ref(config);
            let name = config.list().unwrap_or(one).iter().find_map(|item| item.get("name"));
            if let Some((node, name)) = name.and_then(|node| Some((node, node.text()?)))
                && is_function(name)
            {
                self.called_function(name, node.span.clone(), "runner");
            }
        }
    }

    /// Whether a module that neither Brine nor the tree has is probably a part of a package: nothing is near its
    /// name. Its first use is reported, as a warning.
    fn is_module_elsewhere(
        &mut self,
        code: &'static str,
        kind: &str,
        module: &str,
        span: &std::ops::Range<usize>,
        uses: Option<&(usize, Place)>,
    ) -> bool {
        if self.options.is_external(module) {
            return true;
        }
        let Some((count, first)) = uses else { return false };
        if first.path == self.file.path && first.start == span.start {
            let uses = if *count > 1 { format!(", which is used {count} times") } else { String::new() };
            let message = format!(
                "neither Brine nor the tree has the {kind} module '{module}'{uses}: name it under 'external' of brine.toml \
                 if a package provides it"
            );
            let mut finding = Finding::new(code, &self.file.path, span.clone(), message);
            finding.severity = crate::Severity::Warning;
            self.add(finding);
        }
        true
    }

    fn reaction(&mut self, state: &State) {
        if !state.is_static() {
            return;
        }
        let function = &state.function;
        let (built_in, custom, kind) = match state.module.as_str() {
            "local" | "cmd" | "caller" => (&self.catalogue.execution, &self.index.custom.execution, "execution"),
            "runner" => (&self.catalogue.runners, &self.index.custom.runners, "runner"),
            "wheel" => (&self.catalogue.wheel, &self.index.custom.wheel, "wheel"),
            _ => return,
        };
        if built_in.knows(function) || custom.knows(function) || !function.contains('.') {
            return;
        }
        let message = format!("there is no {kind} function '{function}'");
        let near = self.nearest_function(function, built_in, custom);
        self.unknown("B206", state.span.clone(), message, near, function);
    }

    fn nearest_function(&self, full: &str, built_in: &Functions, custom: &Functions) -> Option<String> {
        let (module, function) = full.split_once('.')?;
        let has = |name: &str| built_in.get(name).is_some() || custom.get(name).is_some();
        if built_in.has_module(module) || custom.has_module(module) {
            let of_module = built_in.of_module(module).chain(custom.of_module(module));
            let functions = of_module.filter_map(|one| one.name.split_once('.')).map(|(_, function)| function);
            return nearest(function, functions).map(|near| format!("{module}.{near}"));
        }
        let modules = built_in.modules().chain(custom.modules());
        let near = nearest(module, modules).map(|near| format!("{near}.{function}"));
        near.filter(|near| has(near))
    }

    /// Returns the grain that a name means that no minion has.
    pub(crate) fn misspelt_grain(&self, name: &str) -> Option<String> {
        let is_known = || grains::names().any(|other| other == name) || self.catalogue.grains.contains(name);
        if name.len() <= 4 || self.index.has_custom_grains || is_known() {
            return None;
        }
        nearest_within(name, grains::names(), 1).map(str::to_owned)
    }

    /// Reports an unknown name with the nearest one, as a fix if it stands in the source as it is.
    pub(crate) fn unknown(
        &mut self,
        code: &'static str,
        span: std::ops::Range<usize>,
        message: String,
        near: Option<String>,
        written: &str,
    ) {
        let mut finding = Finding::new(code, &self.file.path, span.clone(), message);
        if let Some(near) = near {
            finding.message.push_str(&nearest::hint(Some(&near)));
            if let Some(at) = self.file.text.get(span.clone()).and_then(|text| text.find(written)) {
                let start = span.start + at;
                finding = finding.fix(format!("write '{near}'"), start..start + written.len(), near, false);
            }
        }
        self.add(finding);
    }

    fn template_names(&mut self) {
        let Some(view) = &self.file.view else { return };
        for fact in &view.facts {
            match &fact.kind {
                Kind::Call { function, is_guarded: false, .. } if !is_dynamic(function) && function.contains('.') => {
                    let (built_in, custom) = (&self.catalogue.execution, &self.index.custom.execution);
                    // Reactor files are rendered on the master.
                    let is_runner = self.file.kind == FileKind::Reactor && self.catalogue.runners.knows(function);
                    if !built_in.knows(function) && !custom.knows(function) && !is_runner {
                        let near = self.nearest_function(function, built_in, custom);
                        let module = function.split('.').next().unwrap_or(function);
                        let has_module = built_in.has_module(module) || custom.has_module(module);
                        let uses = self.index.called_modules.get(module);
                        let is_new = !has_module && near.is_none();
                        if is_new && self.is_module_elsewhere("B202", "execution", module, &fact.span, uses) {
                            continue;
                        }
                        let message = format!("there is no execution function '{function}'");
                        self.unknown("B202", fact.span.clone(), message, near, function);
                    }
                }
                Kind::Filter { name, is_known: false } => {
                    let near = nearest(name.as_str(), known::filters()).map(str::to_owned);
                    self.unknown("B203", fact.span.clone(), format!("there is no filter '{name}'"), near, name);
                }
                Kind::Test { name, is_known: false } => {
                    let near = nearest(name.as_str(), known::tests()).map(str::to_owned);
                    self.unknown("B204", fact.span.clone(), format!("there is no test '{name}'"), near, name);
                }
                Kind::Lookup { root: Root::Grains, path, .. } => {
                    let Some(name) = path.first() else { continue };
                    if let near @ Some(_) = self.misspelt_grain(name) {
                        let message = format!("no minion has the grain '{name}'");
                        self.unknown("B205", fact.span.clone(), message, near, name);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether a text has the form of the name of a function.
pub(crate) fn is_function(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    name.split_once('.').is_some_and(|(module, function)| is_part(module) && is_part(function))
}

//! `B3`: references that match nothing.

use std::collections::BTreeSet;

use brine_authoring_model::index::{Found, may_equal};
use brine_authoring_model::{File, FileKind, Include, Requisite, State, Wanted};
use brine_jinja::view::{Inclusion, Kind, Root, View, is_dynamic};
use brine_text::glob::is_pattern;
use brine_text::nearest::{self, nearest};
use brine_yaml::SourceNode;

use crate::{Check, Finding, known};

impl Check<'_> {
    pub(crate) fn references(&mut self) {
        match self.file.kind {
            FileKind::State => {
                self.file.includes.iter().for_each(|include| self.include(include));
                for state in &self.file.states {
                    state.requisites.iter().for_each(|requisite| self.requisite(requisite));
                    self.extension(state);
                    self.sources(state);
                    self.step(state);
                }
                self.unused_includes();
            }
            FileKind::Top | FileKind::PillarTop => self.top(),
            _ => {}
        }
        self.templates();
        self.variables();
        self.pillar();
        self.paths();
        self.file_name();
        self.elsewhere();
    }

    /// Whether a name that the tree lacks is probably that of another tree.
    fn is_elsewhere(&self, kind: Wanted, name: &str) -> bool {
        self.options.is_external(name) || self.index.missing(self.tree).is_elsewhere(kind, name)
    }

    /// Reports once that the tree refers to others.
    fn elsewhere(&mut self) {
        for (kind, what) in [(Wanted::Sls, "SLS"), (Wanted::Pillar, "pillar SLS"), (Wanted::Template, "templates")] {
            let missing = self.index.missing(self.tree);
            let names = missing.elsewhere(kind, |name| self.options.is_external(name));
            if let Some((count, name, place)) = names.filter(|(_, _, place)| place.path == self.file.path) {
                let message = format!(
                    "{what} of other trees: {count} missing here, such as '{name}': name them under 'external' of \
                     brine.toml"
                );
                let span = place.start..place.end;
                self.report("B314", span, message);
            }
        }
    }

    /// Reports paths that are given to the method `get` of a mapping.
    fn paths(&mut self) {
        let Some(view) = &self.file.view else { return };
        for fact in &view.facts {
            let Kind::Lookup { root, path, has_default: true } = &fact.kind else { continue };
            let written = self.file.text.get(fact.span.clone()).unwrap_or_default();
            let name = match root {
                Root::Pillar => "pillar",
                Root::Grains => "grains",
            };
            let is_method = written.starts_with(&format!("{name}.get("));
            let Some(key) = path.last().filter(|key| is_method && path.len() == 1 && key.contains(':')) else {
                continue;
            };
            let message = format!("'{name}.get' takes '{key}' as one key: write salt['{name}.get']('{key}')");
            let start = fact.span.start;
            let end = start + name.len() + ".get".len();
            let finding = Finding::new("B312", &self.file.path, fact.span.clone(), message);
            self.add(finding.fix("follow the path", start..end, format!("salt['{name}.get']"), false));
        }
    }

    /// Reports an SLS file that nothing can refer to.
    fn file_name(&mut self) {
        let name = self.file.path.rsplit('/').next().unwrap_or_default();
        let stem = name.strip_suffix(".sls").filter(|_| matches!(self.file.kind, FileKind::State | FileKind::Pillar));
        if stem.is_some_and(|stem| stem.contains('.')) && !name.starts_with("pillar.example") {
            self.report("B313", 0..0, format!("nothing can refer to '{name}': a dot stands for a directory"));
        }
        let shadow = self.file.path.strip_suffix("/init.sls").map(|directory| format!("{directory}.sls"));
        let shadow = shadow.and_then(|path| self.tree.file(&path)).filter(|other| other.kind == self.file.kind);
        let shadow = shadow.filter(|_| self.index.included_by(&self.file.path).is_empty());
        if let (Some(shadow), Some(_)) = (shadow, stem) {
            let message = format!(
                "'{}' has the same name and is found first, so this file is never read: merge the two, or rename one",
                shadow.path
            );
            self.report("B320", 0..0, message);
        }
    }

    fn include(&mut self, include: &Include) {
        // Other environments are other trees.
        if include.saltenv.is_some() {
            return;
        }
        if self.index.include(self.tree, self.file, &include.name) != Found::Nothing {
            return;
        }
        let name = include.name.trim_start_matches('.');
        if nearest(name, self.index.sls_names()).is_none() && self.is_elsewhere(Wanted::Sls, &include.name) {
            return;
        }
        let mut finding =
            Finding::new("B302", &self.file.path, include.span.clone(), format!("there is no SLS '{}'", include.name));
        if let Some(bare) = name.strip_suffix(".sls") {
            finding.message = format!("the name of an SLS has no '.sls' at its end: write '{bare}'");
            finding = finding.fix(format!("write '{bare}'"), include.span.clone(), bare, true);
        } else if let Some(near) = nearest(name, self.index.sls_names()) {
            finding.message.push_str(&nearest::hint(Some(&near)));
        }
        self.add(finding);
    }

    fn requisite(&mut self, requisite: &Requisite) {
        let module = requisite.module.as_deref();
        if is_dynamic(&requisite.name) || module.is_some_and(is_dynamic) {
            return;
        }
        if module == Some("sls") {
            if self.index.include(self.tree, self.file, &requisite.name) == Found::Nothing
                && !is_pattern(&requisite.name)
                && !self.is_elsewhere(Wanted::Sls, &requisite.name)
            {
                let message =
                    format!("'{}: sls' matches nothing: there is no SLS '{}'", requisite.keyword, requisite.name);
                self.report("B301", requisite.span.clone(), message);
            }
            return;
        }
        let module = module.map(|module| module.split('.').next().unwrap_or(module));
        let plain = Requisite { module: module.map(str::to_owned), ..requisite.clone() };
        let (states, may_be) = self.index.required(self.tree, &plain);
        if !states.is_empty() || may_be || self.is_unknown_run() {
            return;
        }
        let name = &requisite.name;
        let message = match module {
            Some(module) => format!("'{}' matches nothing: no state '{module}' is called '{name}'", requisite.keyword),
            None => format!("'{}' matches nothing: no state is called '{name}'", requisite.keyword),
        };
        let mut finding = Finding::new("B301", &self.file.path, requisite.span.clone(), message);
        let other = self.index.states_named(name).first();
        let other = other.and_then(|(path, number)| Some((path, self.tree.file(path)?.states.get(*number)?)));
        if let Some((path, state)) = other {
            finding.message.push_str(&format!("; it is a state '{}'", state.module));
            finding =
                finding.related(brine_authoring_model::Place::new(path, &state.id_span), "this state has the name");
        } else {
            let of_module: Vec<&str> = match module {
                Some(module) => self.names_of(module),
                None => self.index.state_names().collect(),
            };
            if let Some(near) = nearest(name.as_str(), of_module) {
                finding.message.push_str(&nearest::hint(Some(&near)));
                let written = self.file.text.get(requisite.span.clone()) == Some(name);
                if written {
                    let near = near.to_owned();
                    finding = finding.fix(format!("write '{near}'"), requisite.span.clone(), near, false);
                }
            }
        }
        self.add(finding);
    }

    fn names_of(&self, module: &str) -> Vec<&str> {
        let is_of = |name: &str| {
            self.index.states_named(name).iter().any(|(path, number)| {
                self.tree
                    .file(path)
                    .and_then(|file| file.states.get(*number))
                    .is_some_and(|state| state.module == module)
            })
        };
        self.index.state_names().filter(|name| is_of(name)).collect()
    }

    /// Whether states that only a render knows may be in a run with this file.
    fn is_unknown_run(&self) -> bool {
        let run = self.index.run_with(&self.file.path);
        let has_roots = self.index.has_top;
        let is_missing = |file: &File, include: &Include| {
            // Where the roots are known, a name that only ends as that of a file may be one of another tree.
            let is_guessed = has_roots && !include.name.starts_with('.') && !self.index.has_sls(&include.name);
            include.saltenv.is_some()
                || is_guessed
                || self.index.include(self.tree, file, &include.name) == Found::Nothing
        };
        let is_unknown = |file: &File| file.is_open || file.includes.iter().any(|include| is_missing(file, include));
        run.iter()
            .any(|path| self.index.has_open_include(path) || self.tree.file(path).is_some_and(|file| is_unknown(file)))
    }

    fn extension(&mut self, state: &State) {
        if !state.is_extension || is_dynamic(&state.id) {
            return;
        }
        // The run of a formula has states of other ones.
        if self.index.missing(self.tree).is_formula() && self.index.states_named(&state.id).is_empty() {
            return;
        }
        let closure = self.index.closure(&self.file.path);
        let is_unknown =
            |path: &String| self.index.has_open_include(path) || self.tree.file(path).is_none_or(|file| file.is_open);
        let includes_missing = self
            .file
            .includes
            .iter()
            .any(|include| !matches!(self.index.include(self.tree, self.file, &include.name), Found::Paths(_)));
        if includes_missing || closure.iter().any(is_unknown) {
            return;
        }
        let has = |path: &String| {
            let states = self.tree.file(path).map(|file| file.states.as_slice()).unwrap_or_default();
            states.iter().filter(|other| !other.is_extension).any(|other| {
                other.names().iter().any(|name| *name == state.id || is_dynamic(name) && may_equal(name, &state.id))
            })
        };
        if closure.iter().any(has) {
            return;
        }
        let mut message =
            format!("'extend' matches nothing: '{}' is not an id of this file or one that it includes", state.id);
        if let Some((path, _)) = self.index.states_named(&state.id).first() {
            message.push_str(&format!(": include the SLS of {path}"));
        }
        self.report("B303", state.id_span.clone(), message);
    }

    /// Reports SLS that a step of an orchestration applies and that do not exist.
    fn step(&mut self, state: &State) {
        if state.full_name() != "salt.state" {
            return;
        }
        let Some(argument) = state.argument("sls") else { return };
        let value = &argument.value;
        for node in value.list().unwrap_or(std::slice::from_ref(value)) {
            let names = node.text().unwrap_or_default().split(',').map(str::trim);
            for name in names.filter(|name| !name.is_empty() && !is_dynamic(name)) {
                if self.index.sls_files(name) == Found::Nothing && !self.is_elsewhere(Wanted::Sls, name) {
                    self.report("B316", node.span.clone(), format!("there is no SLS '{name}' in the tree"));
                }
            }
        }
    }

    fn sources(&mut self, state: &State) {
        for argument in state.arguments.iter().filter(|argument| matches!(argument.name.as_str(), "source" | "sources"))
        {
            let value = &argument.value;
            let one = std::slice::from_ref(value);
            let all: Vec<&SourceNode> = value.list().unwrap_or(one).iter().collect();
            let missing = |node: &&SourceNode| {
                node.text().and_then(|text| text.strip_prefix("salt://")).is_some_and(|path| {
                    !path.is_empty()
                        && self.index.served(self.tree, path) == Found::Nothing
                        && !self.index.serves_directory(self.tree, path)
                        && !self.is_made_later(path)
                        && !self.is_elsewhere(Wanted::Source, path)
                })
            };
            // The first file of a list that exists is taken.
            if !all.is_empty() && all.iter().all(missing) {
                let node = all[0];
                let text = node.text().unwrap_or_default();
                let message = format!("there is no file '{text}' in the tree");
                self.report("B305", node.span.clone(), message);
            }
        }
    }

    /// Whether the directory of a file is missing in one that is there: orchestrations make such files.
    fn is_made_later(&self, path: &str) -> bool {
        let Some((directory, _)) = path.rsplit_once('/') else { return false };
        let has = |path: &str| self.index.serves_directory(self.tree, path);
        directory.split_once('/').is_some_and(|(first, _)| has(first) && !has(directory))
    }

    fn unused_includes(&mut self) {
        let file = self.file;
        if file.is_open || file.states.is_empty() {
            return;
        }
        let mut used = BTreeSet::new();
        for state in &file.states {
            for requisite in &state.requisites {
                let (states, may_be) = self.index.required(self.tree, requisite);
                if may_be || requisite.module.as_deref() == Some("sls") {
                    return;
                }
                used.extend(states.into_iter().map(|(file, _)| file.path.clone()));
            }
            if state.is_extension {
                used.extend(self.index.states_named(&state.id).iter().map(|(path, _)| path.clone()));
            }
        }
        for include in &file.includes {
            if let Found::Paths(paths) = self.index.include(self.tree, file, &include.name)
                && !paths.iter().any(|path| self.index.closure(path).iter().any(|path| used.contains(path)))
            {
                let message = format!("nothing in this file refers to what '{}' includes", include.name);
                self.report("B310", include.span.clone(), message);
            }
        }
    }

    fn top(&mut self) {
        let is_pillar = self.file.kind == FileKind::PillarTop;
        for document in &self.file.documents {
            for (saltenv, targets) in document.map().unwrap_or_default() {
                // Other environments are other trees.
                if saltenv.text() != Some("base") {
                    continue;
                }
                for (_, items) in targets.map().unwrap_or_default() {
                    let options = items.list().unwrap_or_default();
                    if options.iter().any(|item| item.get("ignore_missing").is_some()) {
                        continue;
                    }
                    for item in items.list().unwrap_or_default() {
                        let Some(name) = item.text().filter(|name| !is_dynamic(name) && !item.is_nil()) else {
                            continue;
                        };
                        let files = if is_pillar { self.index.pillar_files(name) } else { self.index.sls_files(name) };
                        if files == Found::Nothing && !is_pattern(name) {
                            let names: Vec<&str> = if is_pillar {
                                self.index.pillar_names().collect()
                            } else {
                                self.index.sls_names().collect()
                            };
                            let near = nearest(name, names);
                            let kind = if is_pillar { Wanted::Pillar } else { Wanted::Sls };
                            if !near.is_some_and(|near| is_misspelt(name, near)) && self.is_elsewhere(kind, name) {
                                continue;
                            }
                            let message = format!("there is no SLS '{name}'{}", nearest::hint(near));
                            self.report("B306", item.span.clone(), message);
                        }
                    }
                }
            }
        }
    }

    fn templates(&mut self) {
        let Some(view) = &self.file.view else { return };
        for fact in &view.facts {
            let Kind::Template { path: Some(path), by, names, may_be_missing } = &fact.kind else { continue };
            match self.index.served_for(self.tree, self.file, path) {
                Found::Nothing if !may_be_missing && !self.is_elsewhere(Wanted::Template, path) => {
                    let path = path.trim_start_matches("salt://").trim_start_matches("./").trim_start_matches("../");
                    self.report("B304", fact.span.clone(), format!("there is no template '{path}' in the tree"));
                }
                Found::Paths(paths) if *by == Inclusion::From => {
                    if let [only] = &paths[..] {
                        self.exports(only, names, fact.span.clone());
                    }
                }
                _ => {}
            }
        }
    }

    fn exports(&mut self, path: &str, names: &[String], span: std::ops::Range<usize>) {
        let Some(view) = self.tree.file(path).and_then(|file| file.view.as_ref()) else { return };
        if view.error().is_some() || view.is_open {
            return;
        }
        let exported = assigned(view);
        for name in names.iter().filter(|name| !exported.contains(name.as_str())) {
            let near = nearest(name.as_str(), exported.iter().copied());
            let message = format!("the template '{path}' does not export '{name}'{}", nearest::hint(near));
            self.report("B311", span.clone(), message);
        }
    }

    fn variables(&mut self) {
        let Some(view) = &self.file.view else { return };
        // An included file has the variables of what includes it.
        let directory = self.file.path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let is_included =
            self.index.templates.contains(&self.file.path) || self.index.open_directories.contains(directory);
        if !self.file.kind.is_sls() || view.error().is_some() || is_included {
            return;
        }
        let assigned = assigned(view);
        for fact in &view.facts {
            let Kind::Use { name, is_guarded: false } = &fact.kind else { continue };
            let is_of_rule = self.file.kind == FileKind::Reactor && known::OF_RULES.contains(&name.as_str());
            if assigned.contains(name.as_str()) || known::is_provided(name) || is_of_rule {
                continue;
            }
            let near = nearest(name.as_str(), assigned.iter().copied());
            let message = format!("the variable '{name}' is not defined{}", nearest::hint(near));
            self.report("B308", fact.span.clone(), message);
        }
    }

    fn pillar(&mut self) {
        let Some(view) = &self.file.view else { return };
        let is_used = matches!(self.file.kind, FileKind::State | FileKind::Template);
        // Without a top file of the pillar, the tree is a part that others use.
        let is_test = |path: &str| path.split('/').any(|part| matches!(part, "t" | "test" | "tests" | "examples"));
        let has_pillar = self.index.pillar_tops.iter().any(|path| !is_test(path));
        let is_part = self.index.missing(self.tree).has_pillar_elsewhere();
        if !is_used || !has_pillar || is_part || self.index.open_pillar.contains("") {
            return;
        }
        for fact in &view.facts {
            let Kind::Lookup { root: Root::Pillar, path, has_default: false } = &fact.kind else { continue };
            let exists = (1..=path.len()).all(|length| {
                let key = path[..length].join(":");
                self.index.pillar_keys.contains_key(&key)
            });
            let is_open = (1..=path.len()).any(|length| self.index.open_pillar.contains(&path[..length].join(":")));
            if exists || is_open {
                continue;
            }
            let key = path.join(":");
            let near = nearest(key.as_str(), self.index.pillar_keys.keys().map(String::as_str));
            let near = nearest::hint(near);
            self.report("B309", fact.span.clone(), format!("no pillar file provides '{key}'{near}"));
        }
    }
}

/// Whether each part of a name in which it differs from another one may be a misspelt one. Short parts are other names.
fn is_misspelt(name: &str, near: &str) -> bool {
    name.split('.').zip(near.split('.')).all(|(one, other)| one == other || one.len().min(other.len()) > 2)
}

/// Returns the variables and macros of a template.
fn assigned(view: &View) -> BTreeSet<&str> {
    let names = view.facts.iter().filter_map(|fact| match &fact.kind {
        Kind::Assign { name } | Kind::Macro { name, .. } => Some(name.as_str()),
        _ => None,
    });
    names.collect()
}

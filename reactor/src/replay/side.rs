//! One configuration of a replay: its entries, its rules over time with their state, and its files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_jinja::Host;
use brine_rules::{Engine, Firing, Occurrence, Rules};
use brine_value::{Map, Value};

use super::inputs::{Inputs, Renderings};
use super::read_only::{ReadOnly, Refused, TreeFiles};
use super::{Configured, ReplayError, is_below};
use crate::deadline::Deadline;
use crate::entries::Entries;
use crate::plan::{Binding, PlannedReaction, Planner, Subject};
use crate::{Dispatch, Reactor};

/// The number of events after which the list of changed states is dropped.
const FORGET: u64 = 4096;

/// The reactions to an event, and the errors of files and reactions.
#[derive(Debug, Default)]
pub(super) struct Reactions {
    pub steps: Vec<PlannedReaction>,
    /// Each with its entry.
    pub problems: Vec<(Arc<str>, String)>,
}

pub(super) struct Side {
    entries: Arc<Entries>,
    rule_files: Vec<String>,
    engine: Engine,
    /// Whether the engine has seen an event, from whose time on its intervals run.
    has_begun: bool,
    fired: u64,
    rules: Vec<(PathBuf, brine_yaml::Located)>,
    planner: Planner,
    tree: Option<PathBuf>,
    errors: Vec<String>,
    /// Whether renderings are used again: not if the configuration gives templates another syntax.
    keeps: bool,
    renderings: Renderings,
    inputs: HashMap<String, Option<Inputs>>,
}

impl Side {
    pub fn new(reactor: &Reactor, configured: &Configured, refused: &Arc<Refused>) -> Result<Self, ReplayError> {
        let entries = match &configured.entries {
            None => reactor.entries(),
            Some(option) => Arc::new(Entries::from_config(option)?),
        };
        let tree = configured.tree.clone();
        let functions = ReadOnly { host: reactor.options.host.clone(), refused: Arc::clone(refused) };
        let files = TreeFiles { tree: tree.clone(), host: reactor.options.host.clone() };
        let planner = Planner::with_host(&reactor.options, Host::new().with_functions(functions).with_files(files));
        let mut side = Side {
            entries,
            rule_files: configured.rules.clone().unwrap_or_else(|| reactor.rule_files()),
            engine: Engine::new(Rules::parse(&[]).0, &[], 0, 0),
            has_begun: false,
            fired: 0,
            rules: Vec::new(),
            planner,
            tree,
            errors: Vec::new(),
            keeps: !["jinja_env", "jinja_sls_env"]
                .iter()
                .any(|name| reactor.options.opts.get(*name).is_some_and(Value::is_truthy))
                && reactor.options.renderer == "jinja|yaml",
            renderings: Renderings::default(),
            inputs: HashMap::new(),
        };
        side.read_rules();
        Ok(side)
    }

    fn read_rules(&mut self) {
        for file in &self.rule_files {
            match self.planner.rules(&self.path(file)) {
                Ok(rendered) => {
                    self.rules.extend(rendered.into_iter().map(|(path, rules)| (PathBuf::from(path), rules)));
                }
                Err(error) => self.errors.push(error),
            }
        }
        let (rules, invalid) = Rules::parse(&self.rules);
        self.errors.extend(invalid.iter().map(ToString::to_string));
        self.engine = Engine::new(rules, &[], 0, 0);
    }

    /// Starts the intervals of the rules, once.
    pub fn begin(&mut self, time: u64) {
        if !self.has_begun {
            self.has_begun = true;
            self.engine = Engine::new(Rules::parse(&self.rules).0, &[], time, 0);
        }
    }

    pub fn entries(&self) -> &Entries {
        &self.entries
    }

    pub fn rule_files(&self) -> impl Iterator<Item = &str> {
        self.rule_files.iter().map(String::as_str)
    }

    pub fn errors(&self) -> Vec<String> {
        self.errors.clone()
    }

    pub fn groups(&self) -> Vec<String> {
        self.engine.groups()
    }

    pub fn wants(&self, tag: &str) -> bool {
        self.engine.wants(tag)
    }

    pub fn matching(&self, tag: &str) -> Vec<Binding> {
        self.entries.reacting(tag).into_iter().map(Binding::Entry).collect()
    }

    pub fn fire(&mut self, occurrence: Occurrence<'_>, sizes: &HashMap<String, Option<usize>>) -> Vec<Firing> {
        self.fired += 1;
        if self.fired.is_multiple_of(FORGET) {
            // Nothing is persisted here, and the list of changes would grow.
            drop(self.engine.changes());
        }
        self.engine.event(occurrence, &|name| sizes.get(name).copied().flatten())
    }

    pub fn advance(&mut self, time: u64) -> Vec<Firing> {
        self.engine.advance(time)
    }

    /// Returns the path at which a file of the configuration is read: that of the tree, if the tree has it.
    fn path(&self, file: &str) -> String {
        let Some(tree) = self.tree.as_deref() else { return file.to_owned() };
        // `salt://` paths are found through the host.
        if file.starts_with("salt://") || !is_below(Path::new(file)) {
            return file.to_owned();
        }
        let below = tree.join(file.trim_start_matches('/'));
        if !Path::new(file).is_absolute()
            || !brine_text::glob::paths(Path::new(""), &below.display().to_string()).is_empty()
        {
            below.display().to_string()
        } else {
            file.to_owned()
        }
    }

    /// Returns whether a file certainly renders to the same text on both sides.
    pub fn has_equal(&self, other: &Side, file: &str) -> bool {
        if self.tree == other.tree {
            return true;
        }
        // With other trees, what a file imports may differ, too.
        let alone = |side: &Side| -> Option<Vec<String>> {
            let mut texts = Vec::new();
            for path in &*side.planner.named(&side.path(file)).ok()? {
                let text = side.planner.text(path)?;
                if ["import", "include", "extends", "salt"].iter().any(|word| text.contains(word)) {
                    return None;
                }
                texts.push(text);
            }
            Some(texts)
        };
        alone(self).is_some_and(|texts| alone(other).is_some_and(|others| texts == others))
    }

    /// Returns the reactions of these bindings to an event.
    pub fn reactions(
        &mut self,
        tag: &str,
        data: &Arc<Map>,
        bindings: &[Binding],
        rule_context: Option<&Map>,
        deadline: &Deadline,
        dispatch: &dyn Dispatch,
    ) -> Arc<Reactions> {
        if bindings.is_empty() {
            return Arc::default();
        }
        let bindings: Vec<Binding> = bindings.iter().map(|one| self.in_tree(one)).collect();
        let key = if self.keeps && rule_context.is_none() { self.key(tag, data, &bindings) } else { None };
        if let Some(reactions) = key.as_ref().and_then(|key| self.renderings.get(key)) {
            return reactions;
        }
        let subject = Subject { tag, data: Arc::clone(data), rule_context, deadline: Some(deadline) };
        let plan = self.planner.plan(&subject, &bindings, false);
        let mut problems: Vec<_> = plan.problems.into_iter().map(|one| (one.entry, one.message)).collect();
        let mut steps = Vec::with_capacity(plan.steps.len());
        for step in plan.steps {
            match dispatch.check(&step.reaction) {
                Ok(()) => steps.push(step),
                Err(error) => {
                    problems.push((step.entry, format!("{}:{}: {error}", step.file, step.line)));
                }
            }
        }
        let reactions = Arc::new(Reactions { steps, problems });
        if let Some(key) = key
            && !deadline.is_over()
        {
            self.renderings.insert(key, Arc::clone(&reactions));
        }
        reactions
    }

    /// Returns a binding with the paths at which its files are read.
    fn in_tree(&self, binding: &Binding) -> Binding {
        if self.tree.is_none() {
            return binding.clone();
        }
        let files = binding.files().iter().map(|file| self.path(file)).collect();
        Binding::Rule { name: Arc::clone(binding.name()), files }
    }

    /// Returns what the reactions of these bindings depend on, if it is known.
    fn key(&mut self, tag: &str, data: &Map, bindings: &[Binding]) -> Option<Vec<u8>> {
        let mut key = Vec::with_capacity(256);
        for binding in bindings {
            write(binding.name().as_bytes(), &mut key);
            for file in binding.files() {
                if !self.inputs.contains_key(file) {
                    let inputs = self.inputs_of(file);
                    self.inputs.insert(file.clone(), inputs);
                }
                let inputs = self.inputs.get(file)?.as_ref()?;
                write(file.as_bytes(), &mut key);
                for name in &inputs.data {
                    match data.get(name.as_str()) {
                        None => key.push(0),
                        Some(value) => {
                            key.push(1);
                            write(&brine_value::msgpack::pack(value), &mut key);
                        }
                    }
                }
                if inputs.tag {
                    write(tag.as_bytes(), &mut key);
                }
            }
        }
        Some(key)
    }

    fn inputs_of(&self, file: &str) -> Option<Inputs> {
        let mut all = Inputs::default();
        for path in &*self.planner.named(file).ok()? {
            all.extend(Inputs::of(&self.planner.text(path)?)?);
        }
        Some(all)
    }
}

fn write(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend(bytes.len().to_le_bytes());
    out.extend(bytes);
}

/// Returns a reaction for a report.
pub(super) fn shown(step: &PlannedReaction) -> Value {
    let mut map =
        brine_value::map! {"reaction" => step.label.as_str(), "file" => format!("{}:{}", step.file, step.line)};
    map.extend(step.reaction.to_value().as_map().cloned().unwrap_or_default());
    map.into()
}

//! `B209`, `B317`, `B407`: the targets of the steps of orchestrations and of reactions.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::str::FromStr;

use brine_authoring_model::{Argument, FileKind, State};
use brine_jinja::view::is_dynamic;
use brine_target::{DEFAULT_DELIMITER, Match, Target, TargetError, TargetFacts, TargetKind};
use brine_text::nearest::nearest;
use brine_value::{Map, Value};
use brine_yaml::SourceNode;
use brine_yaml::nodes::Content;

use crate::{Check, Finding};

/// The arguments with the type of a target; the second is the former name.
const KINDS: [&str; 2] = ["tgt_type", "expr_form"];

/// The longest message about a target, in characters.
const MESSAGE: usize = 400;

impl Check<'_> {
    pub(crate) fn targets(&mut self) {
        for state in &self.file.states {
            match (self.file.kind, state.module.as_str(), state.function.as_str()) {
                (FileKind::State, "salt", "state" | "function") => {
                    self.former_name(state);
                    self.target(state);
                    self.step_types(state);
                }
                (FileKind::Reactor, "local", _) => self.target(state),
                _ => {}
            }
        }
    }

    /// Reports the former name of `tgt_type`, which has no effect in a step.
    fn former_name(&mut self, state: &State) {
        for argument in state.arguments.iter().filter(|argument| argument.name == "expr_form") {
            let message = format!("'expr_form' of {} has no effect: write 'tgt_type'", state.full_name());
            let finding = Finding::new("B401", &self.file.path, argument.span.clone(), message);
            self.add(finding.fix("write 'tgt_type'", argument.span.clone(), "tgt_type", false));
        }
    }

    fn target(&mut self, state: &State) {
        let targets = state.arguments.iter().filter(|argument| argument.name == "tgt");
        let kinds: Vec<&Argument> =
            state.arguments.iter().filter(|argument| KINDS.contains(&argument.name.as_str())).collect();
        let mut kind = Some(TargetKind::Glob);
        for argument in &kinds {
            kind = self.target_kind(argument);
        }
        // The type may be one of another branch, or known to a render alone.
        let may_differ = kinds.len() > 1 || kinds.is_empty() && (state.is_open || state.is_extension);
        let Some(kind) = kind.filter(|_| !may_differ) else { return };
        for target in targets {
            let is_of_it = |kind: &&Argument| self.file.are_together(target.span.start, kind.span.start);
            if kinds.iter().all(is_of_it)
                && let Some(value) = value_of(&target.value)
            {
                self.expression(kind, &value, &target.value);
            }
        }
    }

    /// Returns the type of a target; `None` if it is not known.
    fn target_kind(&mut self, argument: &Argument) -> Option<TargetKind> {
        let text = argument.value.text().filter(|text| !is_dynamic(text) && !argument.value.is_nil())?;
        if let Ok(kind) = TargetKind::from_str(text) {
            return Some(kind);
        }
        // A matcher of the tree.
        if self.tree.paths().iter().any(|path| path.split('/').any(|part| part == "_matchers" || part == "matchers")) {
            return None;
        }
        let names = || TargetKind::ALL.iter().map(|kind| kind.name());
        let near = nearest(text, names()).or_else(|| names().find(|name| *name == in_place_of(text)));
        let mut message = format!("'{text}' is no type of targets");
        if near.is_none() {
            let all: Vec<&str> = names().filter(|name| *name != "range").collect();
            message.push_str(&format!(": expected {}", all.join(", ")));
        }
        self.unknown("B209", argument.value.span.clone(), message, near.map(str::to_owned), text);
        None
    }

    /// Reports the mistakes in a target.
    fn expression(&mut self, kind: TargetKind, value: &Value, node: &SourceNode) {
        let text = self.file.text.get(node.span.clone()).unwrap_or_default();
        let first = text.lines().next().map_or(0, |line| line.trim_end().len());
        let span = node.span.start..node.span.start + first;
        let mut groups = self.nodegroups(kind, value, &span);
        let wrong = loop {
            let parsed = Target::parse(kind, value.clone(), DEFAULT_DELIMITER, &groups);
            match parsed.and_then(|target| target.sensible(DEFAULT_DELIMITER)) {
                // The definitions of the others are somewhere else.
                Err(TargetError::UnknownNodegroup(name)) if !groups.contains_key(name.as_str()) => {
                    groups.insert(name.into(), "L@x".into());
                }
                Err(error) => break error,
                Ok(target) => return self.grains_of(kind, value, &target, &span),
            }
        };
        let hint = match (&wrong, value) {
            (TargetError::NotText { .. }, Value::List(_)) => ": write 'tgt_type: list'",
            _ => "",
        };
        // The error may have the whole target.
        let mut message = wrong.to_string();
        if let Some((end, _)) = message.char_indices().nth(MESSAGE) {
            message.truncate(end);
            message.push_str(" ...");
        }
        self.report("B407", span, message + hint);
    }

    /// Returns the nodegroups that the configuration of the tree defines, and reports others if it defines any.
    fn nodegroups(&mut self, kind: TargetKind, value: &Value, span: &std::ops::Range<usize>) -> Map {
        let words = match (kind, value) {
            (TargetKind::Nodegroup, Value::Str(name)) => vec![name.clone()],
            (TargetKind::Compound, Value::Str(text)) => of_compound(text.split_whitespace()),
            (TargetKind::Compound, Value::List(items)) => of_compound(items.iter().filter_map(Value::as_str)),
            _ => return Map::new(),
        };
        let defined = self.index.master(self.tree).nodegroups.as_ref();
        for name in defined.iter().flat_map(|defined| words.iter().filter(|name| !defined.contains(*name))) {
            let near = nearest(name.as_str(), defined.iter().copied().flatten().map(String::as_str)).map(str::to_owned);
            let message = format!("no configuration of a master in the tree defines the nodegroup '{name}'");
            self.unknown("B317", span.clone(), message, near, name);
        }
        // Their content is examined where they are used by the master.
        words.into_iter().map(|name| (Value::from(name), Value::from("L@x"))).collect()
    }

    /// Reports grains in a target that no minion has.
    fn grains_of(&mut self, kind: TargetKind, value: &Value, target: &Target, span: &std::ops::Range<usize>) {
        let terms = Terms::default();
        if let (Value::Str(text), TargetKind::Grain | TargetKind::GrainPcre) = (value, kind) {
            terms.add(kind.name(), text, DEFAULT_DELIMITER);
        }
        target.check(&terms);
        for name in terms.grains.into_inner() {
            if let Some(near) = self.misspelt_grain(&name) {
                self.unknown("B205", span.clone(), format!("no minion has the grain '{name}'"), Some(near), &name);
            }
        }
    }

    /// Reports values of a step that have another type than it takes, beside those with a declared type.
    fn step_types(&mut self, state: &State) {
        for argument in &state.arguments {
            let value = &argument.value;
            let scalar = value.scalar();
            if value.is_nil() || value.is_repeated || value.text().is_some_and(is_dynamic) {
                continue;
            }
            let number = |text: &str| text.parse::<u32>().is_ok();
            let (is_right, expected) = match argument.name.as_str() {
                "batch" => {
                    let share = |text: &str| text.trim().strip_suffix('%').is_some_and(|n| n.parse::<f64>().is_ok());
                    let text = value.text().filter(|_| !matches!(scalar, Some(Value::Bool(_))));
                    (text.is_some_and(|text| number(text.trim()) || share(text)), "a number, or a share such as 25%")
                }
                "allow_fail" => (
                    value.text().is_some_and(|text| number(text.trim())) || matches!(scalar, Some(Value::Bool(_))),
                    "a non-negative integer",
                ),
                "concurrent" => (matches!(scalar, Some(Value::Bool(_))), "True or False"),
                "fail_minions" => {
                    let is_name = |node: &SourceNode| matches!(node.scalar(), Some(Value::Str(_) | Value::Int(_)));
                    (value.list().is_some_and(|all| all.iter().all(is_name)) || is_name(value), "a list of minion ids")
                }
                "sls" => (
                    value.list().is_some() || value.text().is_some() && !matches!(scalar, Some(Value::Bool(_))),
                    "a list of SLS names",
                ),
                _ => continue,
            };
            if !is_right {
                let message = format!(
                    "the argument '{}' of {} is invalid: expected {expected}",
                    argument.name,
                    state.full_name()
                );
                let first = self.file.text.get(value.span.clone()).and_then(|text| text.lines().next());
                let span = value.span.start..value.span.start + first.map_or(0, str::len);
                self.report("B402", span, message);
            }
        }
    }
}

/// Returns the type that a word of other tools or of the command line means.
fn in_place_of(word: &str) -> &'static str {
    match word.to_ascii_lowercase().as_str() {
        "regex" | "regexp" | "re" | "e" => "pcre",
        "grains" => "grain",
        "subnet" | "cidr" | "ip" | "network" => "ipcidr",
        "group" | "nodegroups" => "nodegroup",
        "pillars" => "pillar",
        _ => "",
    }
}

/// Returns the names of the nodegroups in the words of a compound target.
fn of_compound<'w>(words: impl Iterator<Item = &'w str>) -> Vec<String> {
    let names: BTreeSet<&str> =
        words.filter_map(|word| word.strip_prefix("N@")).filter(|name| !name.is_empty()).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// Returns the value of a target; `None` if only a render knows it.
fn value_of(node: &SourceNode) -> Option<Value> {
    match &node.content {
        Content::Scalar { text, .. } if is_dynamic(text) || node.is_nil() || node.is_repeated => None,
        Content::Scalar { value, .. } => Some(value.clone()),
        Content::List(items) => items.iter().map(value_of).collect::<Option<Vec<Value>>>().map(Value::List),
        Content::Map(entries) if entries.iter().any(|(key, _)| key.text().is_some_and(is_dynamic)) => None,
        Content::Map(_) => Some(Value::map()),
    }
}

/// Collects the grains that the terms of a target look up.
#[derive(Default)]
struct Terms {
    grains: RefCell<BTreeSet<String>>,
}

impl Terms {
    fn add(&self, kind: &str, text: &str, delimiter: &str) {
        if matches!(kind, "grain" | "grain_pcre") && !delimiter.is_empty() {
            let name = text.split(delimiter).next().unwrap_or(text);
            self.grains.borrow_mut().insert(name.to_owned());
        }
    }
}

impl TargetFacts for Terms {
    fn id(&self) -> &'static str {
        ""
    }

    fn grains(&self) -> Option<&Map> {
        None
    }

    fn pillar(&self) -> Option<&Map> {
        None
    }

    // Nothing is decided, so that all terms are seen.
    fn custom_match(&self, kind: &str, target: &Value, delimiter: &str) -> Option<Match> {
        self.add(kind, target.as_str().unwrap_or_default(), delimiter);
        Some(Match::Unknown)
    }
}

//! A work item of the reactor: an event, the SLS files bound to it, and its outstanding reactions.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use brine_event::Event;
use brine_value::Map;
use parking_lot::Mutex;

use crate::plan::{Binding, PlannedReaction};

/// An event whose reactions are to be dispatched.
pub(crate) struct Work {
    pub event: Event,
    pub bindings: Vec<Binding>,
    /// Variables of the rule that fired, for the templates.
    pub rule_context: Option<Map>,
    /// The number of reactions that led to the event.
    pub depth: u64,
    pub taken: Instant,
    /// The number of the firing, if a rule over time caused the work.
    pub firing: Option<u64>,
    /// The outstanding reactions; `None` until the files are rendered.
    steps: Mutex<Option<VecDeque<Outstanding>>>,
    /// All reactions that the files rendered to.
    planned: Mutex<Planned>,
}

/// The reactions to an event, also those that have ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Planned(Vec<(Arc<str>, Arc<str>, String)>);

impl Planned {
    pub fn new(steps: &[PlannedReaction]) -> Self {
        let one = |step: &PlannedReaction| (Arc::clone(&step.entry), Arc::clone(&step.file), step.label.clone());
        Planned(steps.iter().map(one).collect())
    }

    /// Adds reactions of a file that have run before.
    pub fn with(mut self, entry: &str, file: &str, labels: &[String]) -> Self {
        let (entry, file): (Arc<str>, Arc<str>) = (entry.into(), file.into());
        self.0.extend(labels.iter().map(|label| (Arc::clone(&entry), Arc::clone(&file), label.clone())));
        self
    }

    /// Returns the labels of the reactions of a file.
    pub fn labels(&self, entry: &str, file: &str) -> Vec<String> {
        let of_file = self.0.iter().filter(|(of, path, _)| **of == *entry && **path == *file);
        let labels: BTreeSet<&String> = of_file.map(|(.., label)| label).collect();
        labels.into_iter().cloned().collect()
    }
}

/// An outstanding reaction, or a file that is not yet rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outstanding {
    pub entry: Arc<str>,
    pub file: Arc<str>,
    /// The reaction's label within the file; `None` for the whole file.
    pub label: Option<String>,
}

impl Work {
    pub fn new(event: Event, bindings: Vec<Binding>, depth: u64) -> Self {
        Work {
            event,
            bindings,
            rule_context: None,
            depth,
            taken: Instant::now(),
            firing: None,
            steps: Mutex::default(),
            planned: Mutex::default(),
        }
    }

    /// Sets the reactions that the files rendered to.
    pub fn plan(&self, steps: &[PlannedReaction]) {
        let one = |step: &PlannedReaction| Outstanding {
            entry: Arc::clone(&step.entry),
            file: Arc::clone(&step.file),
            label: Some(step.label.clone()),
        };
        *self.planned.lock() = Planned::new(steps);
        *self.steps.lock() = Some(steps.iter().map(one).collect());
    }

    /// Returns all reactions that the files rendered to.
    pub fn planned(&self) -> Planned {
        self.planned.lock().clone()
    }

    /// Records that the first outstanding reaction has ended.
    pub fn step_ended(&self) {
        if let Some(steps) = &mut *self.steps.lock() {
            steps.pop_front();
        }
    }

    /// Returns the outstanding reactions, or the files that are not yet rendered.
    pub fn outstanding(&self) -> Vec<Outstanding> {
        if let Some(steps) = &*self.steps.lock() {
            return steps.iter().cloned().collect();
        }
        let of = |binding: &Binding| {
            let one = |file: &String| Outstanding {
                entry: Arc::clone(binding.name()),
                file: file.as_str().into(),
                label: None,
            };
            binding.files().iter().map(one).collect::<Vec<_>>()
        };
        self.bindings.iter().flat_map(of).collect()
    }
}

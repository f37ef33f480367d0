//! One work of the reactor: an event, the files that are bound to it, and which of its reactions are outstanding.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use brine_event::Event;
use brine_value::Map;
use parking_lot::Mutex;

use crate::plan::{Bound, Step};

/// An event that is to be reacted to.
pub(crate) struct Work {
    pub event: Event,
    pub bound: Vec<Bound>,
    /// More variables for the templates: what a rule says of itself.
    pub more: Option<Map>,
    /// How many reactions lie behind the event.
    pub depth: u64,
    pub taken: Instant,
    /// The number of the firing, if a rule over time has fired.
    pub firing: Option<u64>,
    /// The reactions that have not ended; none are known before the files are rendered.
    steps: Mutex<Option<VecDeque<Outstanding>>>,
}

/// A reaction that has not ended, or a file that has not been rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outstanding {
    pub entry: Arc<str>,
    pub file: Arc<str>,
    /// Which reaction of the file; none for the whole file.
    pub label: Option<String>,
}

impl Work {
    pub fn new(event: Event, bound: Vec<Bound>, depth: u64) -> Self {
        Work { event, bound, more: None, depth, taken: Instant::now(), firing: None, steps: Mutex::default() }
    }

    /// Records the reactions that the files ask for.
    pub fn plan(&self, steps: &[Step]) {
        let one = |step: &Step| Outstanding {
            entry: Arc::clone(&step.entry),
            file: Arc::clone(&step.file),
            label: Some(step.label.clone()),
        };
        *self.steps.lock() = Some(steps.iter().map(one).collect());
    }

    /// Records that the first outstanding reaction has ended.
    pub fn step_ended(&self) {
        if let Some(steps) = &mut *self.steps.lock() {
            steps.pop_front();
        }
    }

    /// Returns what has not ended.
    pub fn outstanding(&self) -> Vec<Outstanding> {
        if let Some(steps) = &*self.steps.lock() {
            return steps.iter().cloned().collect();
        }
        let of = |bound: &Bound| {
            let one = |file: &String| Outstanding {
                entry: Arc::clone(bound.name()),
                file: file.as_str().into(),
                label: None,
            };
            bound.files().iter().map(one).collect::<Vec<_>>()
        };
        self.bound.iter().flat_map(of).collect()
    }
}

//! `reactor.test`: what would happen, without doing it.

use std::sync::Arc;

use brine_event::Event;
use brine_value::{Map, Value, map};

use crate::plan::{Bound, Subject};
use crate::{Dispatch, Reactor};

impl<D: Dispatch> Reactor<D> {
    /// What an event would lead to: the entries that match, each file as rendered, and the reactions in order,
    /// or what is wrong. Functions that the templates call are called.
    pub fn trial(&self, tag: &str, data: Map) -> Value {
        let matching = self.entries().reacting(tag);
        let shown = |entry: &Arc<crate::Entry>| {
            Value::Map([(Value::from(&*entry.pattern), Value::from(entry.files.clone()))].into_iter().collect())
        };
        let mut trial = map! {"tag" => tag, "entries" => matching.iter().map(shown).collect::<Value>()};
        if matching.is_empty() {
            trial.insert("note".into(), self.unmatched(tag).into());
        }
        if let Some(limited) = limits(&matching) {
            trial.insert("limits".into(), limited);
        }
        let bound: Vec<_> = matching.into_iter().map(Bound::Entry).collect();
        let plan = self.planner.plan(&Subject { tag, data: Arc::new(data), more: None, deadline: None }, &bound, true);
        let rendered = plan.rendered.into_iter().map(|(file, text)| (Value::from(&*file), Value::from(text)));
        trial.insert("rendered".into(), Value::Map(rendered.collect()));
        let mut errors: Vec<Value> = plan.problems.into_iter().map(|problem| problem.message.into()).collect();
        let mut reactions = Vec::new();
        for step in plan.steps {
            if let Err(error) = self.dispatch.check(&step.reaction) {
                errors.push(format!("{}:{}: {}: {error}", step.file, step.line, step.reaction.name()).into());
                continue;
            }
            let mut shown = map! {"entry" => &*step.entry, "file" => format!("{}:{}", step.file, step.line)};
            shown.insert("reaction".into(), step.label.into());
            shown.extend(step.reaction.to_value().as_map().cloned().unwrap_or_default());
            reactions.push(Value::Map(shown));
        }
        trial.insert("reactions".into(), reactions.into());
        if !errors.is_empty() {
            trial.insert("errors".into(), errors.into());
        }
        trial.into()
    }

    /// The same for an event that has happened.
    pub fn trial_of(&self, event: &Event) -> Value {
        self.trial(event.tag(), event.data())
    }
}

/// What is said of entries that do not react each time.
fn limits(entries: &[Arc<crate::Entry>]) -> Option<Value> {
    let limited: Vec<_> = entries.iter().filter(|entry| entry.limits.is_some()).collect();
    let text = |entry: &&Arc<crate::Entry>| {
        Value::from(format!("'{}' has limits: the reactor leaves out or puts off what goes beyond them", entry.pattern))
    };
    (!limited.is_empty()).then(|| limited.iter().map(text).collect())
}

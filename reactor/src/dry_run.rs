//! Dry runs for `reactor.test`: the reactions to an event, without dispatching them.

use std::sync::Arc;

use brine_event::Event;
use brine_value::{Map, Value, map};

use crate::plan::{Binding, Subject};
use crate::{Dispatch, Reactor};

impl<D: Dispatch> Reactor<D> {
    /// Returns the matching entries, each file as rendered, the reactions in order, and the errors. Functions that the
    /// templates call are called.
    pub fn dry_run(&self, tag: &str, data: Map) -> Value {
        let matching = self.entries().reacting(tag);
        let shown = |entry: &Arc<crate::Entry>| {
            Value::Map([(Value::from(&*entry.pattern), Value::from(entry.files.clone()))].into_iter().collect())
        };
        let mut report = map! {"tag" => tag, "entries" => matching.iter().map(shown).collect::<Value>()};
        if matching.is_empty() {
            report.insert("note".into(), self.unmatched(tag).into());
        }
        if let Some(limited) = limits(&matching) {
            report.insert("limits".into(), limited);
        }
        let bindings: Vec<_> = matching.into_iter().map(Binding::Entry).collect();
        let plan = self.planner.plan(
            &Subject { tag, data: Arc::new(data), rule_context: None, deadline: None },
            &bindings,
            true,
        );
        let rendered = plan.rendered.into_iter().map(|(file, text)| (Value::from(&*file), Value::from(text)));
        report.insert("rendered".into(), Value::Map(rendered.collect()));
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
        report.insert("reactions".into(), reactions.into());
        if !errors.is_empty() {
            report.insert("errors".into(), errors.into());
        }
        report.into()
    }

    /// Returns the dry run of an event of the journal.
    pub fn dry_run_event(&self, event: &Event) -> Value {
        self.dry_run(event.tag(), event.data())
    }
}

/// Returns notes about the entries that have limits.
fn limits(entries: &[Arc<crate::Entry>]) -> Option<Value> {
    let limited: Vec<_> = entries.iter().filter(|entry| entry.limits.is_some()).collect();
    let text = |entry: &&Arc<crate::Entry>| {
        Value::from(format!("'{}' has limits: the reactor skips or delays reactions beyond them", entry.pattern))
    };
    (!limited.is_empty()).then(|| limited.iter().map(text).collect())
}

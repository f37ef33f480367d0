//! Dry runs for `reactor.test` and `reactor.dry_run`: the reactions to an event, without dispatching them.

use std::sync::Arc;

use brine_jinja::Host;
use brine_value::{Map, Value, map};

use crate::plan::{Binding, Planner, Subject};
use crate::{Entries, Reaction, Reactor};

/// The error of a dry run of one file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DryRunError {
    /// A caller of runner functions must not read any file of the master.
    #[error(
        "sls is invalid: expected a salt:// path, or a file of an entry as reactor.list shows it, got '{0}': \
         bind it with reactor.add first"
    )]
    File(String),
}

/// The reactions to an event, for tests of reactor files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preview {
    /// The number of entries that match the tag.
    pub entries: usize,
    /// The reactions in order.
    pub reactions: Vec<Reaction>,
    /// The errors, with file and line.
    pub errors: Vec<String>,
}

/// Plans the reactions to an event without a reactor: nothing is dispatched or stored. Templates see these grains, and
/// the functions and files of `host`.
pub fn preview(entries: &Entries, opts: &Arc<Map>, grains: &Arc<Map>, host: Host, (tag, data): (&str, Map)) -> Preview {
    let matching = entries.reacting(tag);
    let bindings: Vec<Binding> = matching.iter().cloned().map(Binding::Entry).collect();
    let subject = Subject { tag, data: Arc::new(data), rule_context: None, deadline: None };
    let plan = Planner::for_preview(host, opts, grains).plan(&subject, &bindings, false);
    Preview {
        entries: matching.len(),
        reactions: plan.steps.into_iter().map(|step| step.reaction).collect(),
        errors: plan.problems.into_iter().map(|problem| problem.message).collect(),
    }
}

impl Reactor {
    /// Returns the matching entries, each file as rendered, the reactions in order, and the errors. Functions that the
    /// templates call are executed.
    pub fn dry_run(&self, tag: &str, data: Map) -> Value {
        let matching = self.entries().reacting(tag);
        let to_map = |entry: &Arc<crate::Entry>| {
            Value::Map([(Value::from(&*entry.pattern), Value::from(entry.files.clone()))].into_iter().collect())
        };
        let mut report = map! {"tag" => tag, "entries" => matching.iter().map(to_map).collect::<Value>()};
        if matching.is_empty() {
            report.insert("note".into(), self.unmatched(tag).into());
        }
        if let Some(limited) = limits(&matching) {
            report.insert("limits".into(), limited);
        }
        let bindings: Vec<_> = matching.into_iter().map(Binding::Entry).collect();
        self.plan_into(&mut report, tag, data, &bindings);
        report.into()
    }

    /// Returns the dry run of one file with an event, regardless of the entries that match the event.
    ///
    /// # Errors
    /// The file is neither a `salt://` path nor a file of an entry.
    pub fn dry_run_file(&self, file: &str, tag: &str, data: Map) -> Result<Value, DryRunError> {
        let is_bound = self.entries().all().iter().any(|entry| entry.files.iter().any(|named| named == file));
        if !file.starts_with("salt://") && !is_bound {
            return Err(DryRunError::File(file.to_owned()));
        }
        let mut report = map! {"tag" => tag, "sls" => file};
        let binding = Binding::Rule { name: "dry run".into(), files: vec![file.to_owned()] };
        self.plan_into(&mut report, tag, data, &[binding]);
        Ok(report.into())
    }

    /// Adds the rendered files, the reactions and the errors to a report.
    fn plan_into(&self, report: &mut Map, tag: &str, data: Map, bindings: &[Binding]) {
        let plan = self.planner.plan(
            &Subject { tag, data: Arc::new(data), rule_context: None, deadline: None },
            bindings,
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
            let mut map = map! {"entry" => &*step.entry, "file" => format!("{}:{}", step.file, step.line)};
            map.insert("reaction".into(), step.label.into());
            map.extend(step.reaction.to_value().as_map().cloned().unwrap_or_default());
            reactions.push(Value::Map(map));
        }
        report.insert("reactions".into(), reactions.into());
        if !errors.is_empty() {
            report.insert("errors".into(), errors.into());
        }
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

//! Retries of dead letters. A file that was corrected since may name its reactions differently: the failed one is then
//! found by its id, its function or its place, and if that is ambiguous the letter stays, with an error.

use std::sync::Arc;
use std::time::Duration;

use brine_bus::Bus;
use tokio_util::sync::CancellationToken;

use crate::Reactor;
use crate::dead_letters::{DeadLetter, LetterId};
use crate::deadline::Deadline;
use crate::plan::{Binding, Plan, PlannedReaction};
use crate::processing::{Cancelled, EventContext};
use crate::routing_fields::RoutingFields;
use crate::work::Planned;

/// The timeout of the removal of a retried dead letter.
const REMOVAL: Duration = Duration::from_secs(10);

/// A retried dead letter.
#[derive(Debug, Clone, PartialEq)]
pub struct Retried {
    /// The reaction that failed.
    pub id: LetterId,
    /// The tag of its event.
    pub tag: String,
    /// The error of the retry.
    pub result: Result<(), String>,
}

impl Reactor {
    /// Retries dead letters: all, or those of one event. Returns each with its result; one that fails again is
    /// replaced.
    pub async fn retry(self: &Arc<Self>, bus: &Bus, seq: Option<u64>) -> Vec<Retried> {
        let mut results = Vec::new();
        for number in self.dead_letters.numbers(seq) {
            let Some(letter) = self.read_letter(number).await else { continue };
            let retried = self.retry_one(bus, &letter).await.unwrap_or_else(|Cancelled| {
                let seconds = self.options.deadline.as_secs_f64();
                (Err(format!("the retry failed: it exceeded its deadline of {seconds} s (reactor_deadline)")), false)
            });
            let (result, is_obsolete) = retried;
            // The dead letter is removed last: if the process dies before, it is still stored.
            if is_obsolete {
                self.remove_letter(number).await;
            }
            results.push(Retried { id: letter.id(), tag: letter.event.tag().to_owned(), result });
        }
        results
    }

    /// Drops dead letters: all, or those of one event. Returns what they were of.
    pub async fn drop_dead_letters(&self, seq: Option<u64>) -> Vec<LetterId> {
        let mut dropped = Vec::new();
        for number in self.dead_letters.numbers(seq) {
            dropped.extend(self.remove_letter(number).await);
        }
        dropped
    }

    async fn read_letter(self: &Arc<Self>, number: u64) -> Option<DeadLetter> {
        let reactor = Arc::clone(self);
        match self.options.disk.run(move |_| reactor.dead_letters.read(number)).await {
            Ok(Ok(letter)) => return letter,
            Ok(Err(error)) => tracing::error!(%error, "reading a dead letter failed"),
            Err(error) => tracing::error!(%error, "reading a dead letter failed"),
        }
        None
    }

    async fn remove_letter(&self, number: u64) -> Option<LetterId> {
        let stop = CancellationToken::new();
        // A failure is logged; the dead letter is then restored at the next start.
        tokio::time::timeout(REMOVAL, self.dead_letters.remove(number, &stop)).await.unwrap_or(None)
    }

    /// Returns the result of a retry, and whether the dead letter is obsolete: its reactions ran, or new dead letters
    /// replace it.
    async fn retry_one(&self, bus: &Bus, letter: &DeadLetter) -> Result<(Result<(), String>, bool), Cancelled> {
        let deadline = Deadline::after(self.options.deadline);
        let binding = Binding::Rule { name: letter.entry.as_str().into(), files: vec![letter.file.clone()] };
        let plan = self.plan(&letter.event, letter.rule_context.as_ref(), &[binding], &deadline);
        if deadline.is_over() {
            return Err(Cancelled);
        }
        let context = EventContext {
            bus: bus.clone(),
            event: letter.event.clone(),
            depth: RoutingFields::of(&letter.event).depth,
            rule_context: letter.rule_context.clone(),
            deadline,
            stop: CancellationToken::new(),
            planned: Planned::new(&plan.steps).with(&letter.entry, &letter.file, &letter.labels),
        };
        let steps = match corrected(letter, &plan) {
            Ok(steps) => steps,
            // The same letter, with the present error.
            Err(message) => {
                let again = DeadLetter::new(&letter.event, &letter.entry, &letter.file, letter.label.clone(), &message);
                let (rule_context, labels) = (letter.rule_context.clone(), letter.labels.clone());
                self.keep_letter(&context, DeadLetter { rule_context, labels, ..again }).await?;
                return Ok((Err(message), false));
            }
        };
        let (mut result, mut is_replaced_by_itself) = (Ok(()), false);
        for step in steps.into_iter().cloned() {
            let is_same = letter.label.as_ref() == Some(&step.label);
            if let Err(message) = self.process_step(&context, step).await? {
                result = Err(message);
                is_replaced_by_itself |= is_same;
            }
        }
        if letter.label.is_none()
            && let Some(problem) = plan.problems.first()
        {
            // The rest of the file is still invalid. Reported last: the new letter counts the reactions as run.
            self.report_problems(&context, &plan.problems).await?;
            result = Err(problem.message.clone());
            is_replaced_by_itself = plan.problems.iter().any(|problem| *problem.file == *letter.file);
        }
        Ok((result, !is_replaced_by_itself))
    }
}

/// Returns the reactions that a retry has to run.
///
/// # Errors
/// A message: there is none, or it cannot be told which one it is.
fn corrected<'a>(letter: &DeadLetter, plan: &'a Plan) -> Result<Vec<&'a PlannedReaction>, String> {
    let is_new = |step: &&PlannedReaction| !letter.labels.contains(&step.label);
    let new: Vec<&PlannedReaction> = plan.steps.iter().filter(is_new).collect();
    let nothing = |what: &str| {
        format!(
            "{}: {what} for this event: nothing was run; correct the file, or drop the dead letter with `salt-run \
             reactor.drop {}`",
            letter.file,
            letter.event.seq()
        )
    };
    let Some(label) = &letter.label else {
        // Reactions beside the invalid one have run.
        return match plan.problems.first() {
            Some(problem) if new.is_empty() => Err(problem.message.clone()),
            None if new.is_empty() => Err(nothing("the file renders to no further reaction")),
            _ => Ok(new),
        };
    };
    if let Some(same) = plan.steps.iter().find(|step| step.label == *label) {
        return Ok(vec![same]);
    }
    if let (Some(problem), true) = (plan.problems.first(), new.is_empty()) {
        return Err(problem.message.clone());
    }
    let (id, function) = parts(label);
    let is_gone = |label: &String| plan.steps.iter().all(|step| step.label != *label);
    let others_are_gone = letter.labels.iter().filter(|other| *other != label).any(is_gone);
    let with = |is_same: &dyn Fn(&PlannedReaction) -> bool| match new
        .iter()
        .filter(|step| is_same(step))
        .collect::<Vec<_>>()[..]
    {
        [one] => Some(vec![*one]),
        _ => None,
    };
    let step = with(&|step| parts(&step.label).0 == id)
        .or_else(|| with(&|step| parts(&step.label).1 == function))
        .or_else(|| if others_are_gone { None } else { with(&|_| true) });
    step.ok_or_else(|| {
        if new.is_empty() {
            return nothing(&format!("it has no reaction '{label}' any more, and no new one"));
        }
        let new: Vec<_> = new.iter().map(|step| format!("'{}'", step.label)).collect();
        nothing(&format!(
            "it has no reaction '{label}' any more, and it cannot be told which of {} takes its place",
            new.join(", ")
        ))
    })
}

/// Splits a label into the id and the function, with the item of `names` and the key of the rule.
fn parts(label: &str) -> (&str, &str) {
    // Functions contain no colon; ids may.
    label.rsplit_once(": ").unwrap_or((label, ""))
}

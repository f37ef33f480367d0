//! Reacting to one event: its reactions handed over one after the other, tried again, put aside.

use std::sync::Arc;
use std::time::Duration;

use brine_core::bus::Bus;
use brine_core::event::Event;
use brine_core::{Map, metrics};

use crate::aside::Failed;
use crate::plan::{Bound, Plan, Problem, Step, Subject};
use crate::recover::{self, Key};
use crate::run::{Work, report};
use crate::{Cause, Dispatch, Reactor};

/// The first pause before a reaction is tried again; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What reactions to one event share.
struct Reacting {
    bus: Bus,
    event: Event,
    depth: u64,
    more: Option<Map>,
}

impl<D: Dispatch> Reactor<D> {
    /// Learns from the journal what had been handed over before a restart.
    pub(crate) async fn recover(&self, bus: &Bus, from: u64) {
        let last = bus.last_seq();
        if from > last {
            return;
        }
        let journal = bus.clone();
        match tokio::task::spawn_blocking(move || recover::read(&journal, from)).await {
            Ok(Ok(found)) => {
                tracing::info!(from, to = last, handed_over = found.len(), "the reactor goes on where it was");
                *self.before.lock() = (last, found);
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "the journal cannot be read: reactions may come a second time");
            }
            // Only when the runtime ends.
            Err(_) => {}
        }
    }

    /// Reacts to an event.
    pub(crate) async fn react(&self, bus: &Bus, work: Work) {
        let Work { event, bound, more, depth, taken, firing } = work;
        let plan = self.plan(&event, more.as_ref(), &bound);
        let reacting = Reacting { bus: bus.clone(), event, depth, more };
        self.tell_problems(&reacting, &plan.problems).await;
        for step in plan.steps {
            self.carry_out(&reacting, step).await;
        }
        if let Some(number) = firing {
            self.overtime.done(number);
        }
        metrics::REACTION_SECONDS.observe(taken.elapsed().as_secs_f64());
    }

    fn plan(&self, event: &Event, more: Option<&Map>, bound: &[Bound]) -> Plan {
        let subject = Subject { tag: event.tag(), data: Arc::new(event.data()), more };
        self.planner.plan(&subject, bound, false)
    }

    async fn tell_problems(&self, reacting: &Reacting, problems: &[Problem]) {
        for Problem { entry, file, message } in problems {
            metrics::REACTOR_ERRORS.add(1);
            metrics::REACTIONS_BY_ENTRY.with(&[entry, "unreadable"]).add(1);
            self.put_aside(reacting, entry, file, None, message);
            report(&reacting.bus, &reacting.event, entry, file, reacting.depth, message).await;
        }
    }

    fn put_aside(&self, reacting: &Reacting, entry: &str, file: &str, label: Option<String>, message: &str) {
        let failed = Failed::new(&reacting.event, entry, file, label, message);
        self.aside.put(Failed { more: reacting.more.clone(), ..failed });
    }

    /// Does one reaction: again after a pause while that may help, and else puts it aside.
    async fn carry_out(&self, reacting: &Reacting, step: Step) {
        if let Err(message) = self.try_out(reacting, &step).await {
            metrics::REACTIONS_FAILED.add(1);
            metrics::REACTIONS_BY_ENTRY.with(&[&step.entry, "failed"]).add(1);
            let message = format!("{}:{}: {}: {message}", step.file, step.line, step.reaction.name());
            self.put_aside(reacting, &step.entry, &step.file, Some(step.label), &message);
            report(&reacting.bus, &reacting.event, &step.entry, &step.file, reacting.depth, &message).await;
        } else {
            metrics::REACTIONS.add(1);
            metrics::REACTIONS_BY_ENTRY.with(&[&step.entry, "done"]).add(1);
        }
    }

    async fn try_out(&self, reacting: &Reacting, step: &Step) -> Result<(), String> {
        let cause = self.cause(reacting, step);
        self.dispatch.check(&step.reaction).map_err(|error| error.to_string())?;
        let mut pause = FIRST_PAUSE;
        for left in (0..=self.options.retries).rev() {
            match self.dispatch.dispatch(step.reaction.clone(), cause.clone()).await {
                Ok(()) => return Ok(()),
                Err(error) if error.passing && left > 0 => {
                    metrics::REACTIONS_RETRIED.add(1);
                    tracing::warn!(tag = &*cause.tag, seq = cause.seq, %error, "a reaction failed and is tried again in {pause:?}");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    fn cause(&self, reacting: &Reacting, step: &Step) -> Cause {
        let seq = reacting.event.seq();
        let before = {
            let (until, handed_over) = &mut *self.before.lock();
            let key =
                || Key { seq, entry: step.entry.to_string(), file: step.file.to_string(), label: step.label.clone() };
            if seq <= *until && !handed_over.is_empty() { handed_over.remove(&key()) } else { None }
        };
        Cause {
            seq,
            tag: reacting.event.tag().into(),
            depth: reacting.depth + 1,
            entry: Arc::clone(&step.entry),
            file: Arc::clone(&step.file),
            reaction: step.label.as_str().into(),
            before,
        }
    }

    /// Runs again what was put aside: all, or what belongs to the event of this number. Says of each what
    /// came of it; what fails again is put aside again.
    pub async fn retry(self: &Arc<Self>, bus: &Bus, seq: Option<u64>) -> Vec<(Failed, Result<(), String>)> {
        let mut told = Vec::new();
        for (number, failed) in self.aside.all() {
            if seq.is_some_and(|seq| seq != failed.event.seq()) {
                continue;
            }
            self.aside.remove(number);
            let bound = Bound::Rule { name: failed.entry.as_str().into(), files: vec![failed.file.clone()] };
            let plan = self.plan(&failed.event, failed.more.as_ref(), &[bound]);
            let depth = crate::peek::Peek::at(&failed.event).depth;
            let (event, more) = (failed.event.clone(), failed.more.clone());
            let reacting = Reacting { bus: bus.clone(), event, depth, more };
            self.tell_problems(&reacting, &plan.problems).await;
            let mut result = match plan.problems.first() {
                Some(problem) => Err(problem.message.clone()),
                None => Ok(()),
            };
            let wanted = |step: &Step| failed.label.as_ref().is_none_or(|label| *label == step.label);
            for step in plan.steps.into_iter().filter(wanted) {
                let (entry, file, label) = (step.entry.to_string(), step.file.to_string(), step.label.clone());
                self.carry_out(&reacting, step).await;
                let again = self.aside.find(failed.event.seq(), &entry, &file, &label);
                if let Some(again) = again {
                    result = Err(again.message);
                }
            }
            told.push((failed, result));
        }
        told
    }
}

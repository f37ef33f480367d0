//! Reacting to one event: its reactions dispatched one after the other, retried, and kept as dead letters.

use std::sync::Arc;
use std::time::Duration;

use brine_bus::Bus;
use brine_event::Event;
use brine_runtime::backoff::Backoff;
use brine_value::Map;
use tokio_util::sync::CancellationToken;

use crate::aside::Failed;
use crate::deadline::Deadline;
use crate::metrics;
use crate::plan::{Bound, Plan, Problem, Step, Subject};
use crate::reaction::Reaction;
use crate::recover::{self, Key};
use crate::run::report;
use crate::schedule::{GaveUp, Outcome};
use crate::skipped::{Reason, Skip, cut};
use crate::work::{Outstanding, Work};
use crate::{Cause, Dispatch, Dispatched, Reactor};

/// How long the removal of a retried dead letter may take.
const REMOVAL: Duration = Duration::from_secs(10);

/// What reactions to one event share.
struct Reacting {
    bus: Bus,
    event: Event,
    depth: u64,
    more: Option<Map>,
    deadline: Deadline,
    /// Cancelled when the reactor stops.
    stop: CancellationToken,
}

/// The work was cancelled, by its deadline or by the stop, before its outcome was known or persisted.
struct Cancelled;

/// What a reaction came to: done, or failed and kept as a dead letter; unless it was cancelled.
type Carried = Result<Result<(), String>, Cancelled>;

/// The same of the tries of one reaction.
type Tried = Result<Result<Dispatched, String>, Cancelled>;

impl<D: Dispatch> Reactor<D> {
    /// Learns from the journal what had been handed over before a restart.
    pub(crate) async fn recover(&self, bus: &Bus, from: u64) {
        let last = bus.last_seq();
        if from > last {
            return;
        }
        let journal = bus.clone();
        match self.options.disk.run(move |thread| recover::read(thread, &journal, from)).await {
            Ok(Ok(found)) => {
                tracing::info!(from, to = last, handed_over = found.len(), "the reactor goes on where it was");
                *self.before.lock() = (last, found);
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "the journal cannot be read: reactions may come a second time");
            }
            Err(error) => tracing::error!(%error, "reading the journal failed: reactions may come a second time"),
        }
    }

    /// Reacts to an event.
    pub(crate) async fn react(&self, bus: &Bus, work: &Work, deadline: &Deadline, stop: &CancellationToken) -> Outcome {
        let plan = self.plan(&work.event, work.more.as_ref(), &work.bound, deadline);
        if deadline.is_over() {
            return Outcome::Cancelled;
        }
        let (event, more) = (work.event.clone(), work.more.clone());
        let (deadline, stop) = (deadline.clone(), stop.clone());
        let reacting = Reacting { bus: bus.clone(), event, depth: work.depth, more, deadline, stop };
        if self.tell_problems(&reacting, &plan.problems).await.is_err() {
            return Outcome::Cancelled;
        }
        for (entry, file) in plan.empty {
            self.skipped.add(work.event.seq(), Skip { entry, file: Some(file), reason: Reason::Empty });
        }
        work.plan(&plan.steps);
        for step in plan.steps {
            if self.carry_out(&reacting, step).await.is_err() {
                return Outcome::Cancelled;
            }
            work.step_ended();
        }
        if let Some(number) = work.firing {
            self.overtime.done(number).await;
        }
        metrics::REACTION_SECONDS.observe(work.taken.elapsed().as_secs_f64());
        Outcome::Ended
    }

    /// Keeps what has not ended of a work as dead letters. Returns whether they are persisted.
    pub(crate) async fn give_up(&self, bus: &Bus, work: &Work, why: GaveUp, stop: &CancellationToken) -> bool {
        // What the stop cancelled is done again after the next start.
        if stop.is_cancelled() {
            return false;
        }
        let cause = match why {
            GaveUp::Overdue => {
                metrics::REACTIONS_OVERDUE.add(1);
                format!(
                    "it exceeded its deadline of {} s (reactor_deadline) and was cancelled; a function that it called \
                     may still be running",
                    self.options.deadline.as_secs_f64()
                )
            }
            GaveUp::Panicked => "it panicked, which is a defect; the log shows where".to_owned(),
        };
        for Outstanding { entry, file, label } in work.outstanding() {
            metrics::REACTIONS_FAILED.add(1);
            metrics::REACTIONS_BY_ENTRY.with(&[&entry, "failed"]).add(1);
            let what = label.as_ref().map_or_else(|| "rendering".to_owned(), |label| format!("reaction '{label}'"));
            let message = format!("{file}: {what} failed: {cause}");
            let failed = Failed::new(&work.event, &entry, &file, label, &message);
            if !self.aside.put(Failed { more: work.more.clone(), ..failed }, stop).await {
                return false;
            }
            report(bus, &work.event, &entry, &file, work.depth, &message).await;
        }
        if let Some(number) = work.firing {
            self.overtime.done(number).await;
        }
        true
    }

    fn plan(&self, event: &Event, more: Option<&Map>, bound: &[Bound], deadline: &Deadline) -> Plan {
        let subject = Subject { tag: event.tag(), data: Arc::new(event.data()), more, deadline: Some(deadline) };
        self.planner.plan(&subject, bound, false)
    }

    async fn tell_problems(&self, reacting: &Reacting, problems: &[Problem]) -> Result<(), Cancelled> {
        for Problem { entry, file, message } in problems {
            metrics::REACTOR_ERRORS.add(1);
            metrics::REACTIONS_BY_ENTRY.with(&[entry, "unreadable"]).add(1);
            self.put_aside(reacting, entry, file, None, message).await?;
            report(&reacting.bus, &reacting.event, entry, file, reacting.depth, message).await;
        }
        Ok(())
    }

    /// Keeps a dead letter. Waits until it is persisted: only then the cursor may pass the event.
    async fn put_aside(
        &self,
        reacting: &Reacting,
        entry: &str,
        file: &str,
        label: Option<String>,
        message: &str,
    ) -> Result<(), Cancelled> {
        let failed = Failed::new(&reacting.event, entry, file, label, message);
        let failed = Failed { more: reacting.more.clone(), ..failed };
        tokio::select! {
            is_persisted = self.aside.put(failed, &reacting.stop) => if is_persisted { Ok(()) } else { Err(Cancelled) },
            () = reacting.deadline.over() => Err(Cancelled),
        }
    }

    /// Does one reaction: again after a pause while that may help, and else keeps it as a dead letter.
    async fn carry_out(&self, reacting: &Reacting, step: Step) -> Carried {
        let message = match self.try_out(reacting, &step).await? {
            Ok(dispatched) => {
                let target = || match &step.reaction {
                    Reaction::Local(local) => Some(local.tgt.to_string()),
                    _ => None,
                };
                tracing::info!(
                    tag = reacting.event.tag(),
                    _seq = reacting.event.seq(),
                    sls = format!("{}:{}", step.file, step.line),
                    id = step.label,
                    fun = step.reaction.name(),
                    target = target(),
                    "reaction ran"
                );
                metrics::REACTIONS.add(1);
                let outcome = match dispatched {
                    Dispatched::Done => "done",
                    Dispatched::NoMinion { target } => {
                        let reason = Reason::NoMinion { reaction: cut(&step.label), target: cut(&target) };
                        let (entry, file) = (Arc::clone(&step.entry), Some(step.file));
                        self.skipped.add(reacting.event.seq(), Skip { entry, file, reason });
                        "no_minion"
                    }
                };
                metrics::REACTIONS_BY_ENTRY.with(&[&step.entry, outcome]).add(1);
                return Ok(Ok(()));
            }
            Err(message) => message,
        };
        metrics::REACTIONS_FAILED.add(1);
        metrics::REACTIONS_BY_ENTRY.with(&[&step.entry, "failed"]).add(1);
        let message = format!("{}:{}: {}: {message}", step.file, step.line, step.reaction.name());
        self.put_aside(reacting, &step.entry, &step.file, Some(step.label), &message).await?;
        report(&reacting.bus, &reacting.event, &step.entry, &step.file, reacting.depth, &message).await;
        Ok(Err(message))
    }

    async fn try_out(&self, reacting: &Reacting, step: &Step) -> Tried {
        if reacting.deadline.is_over() {
            return Err(Cancelled);
        }
        let cause = self.cause(reacting, step);
        if let Err(error) = self.dispatch.check(&step.reaction) {
            return Ok(Err(error.to_string()));
        }
        let mut backoff = Backoff::default();
        for left in (0..=self.options.retries).rev() {
            let dispatched = tokio::select! {
                // A call that blocks is not interrupted: its return is published even if it is late.
                biased;
                dispatched = self.dispatch.dispatch(step.reaction.clone(), cause.clone()) => dispatched,
                () = reacting.deadline.over() => return Err(Cancelled),
            };
            match dispatched {
                Ok(dispatched) => return Ok(Ok(dispatched)),
                Err(error) if error.passing && left > 0 => {
                    metrics::REACTIONS_RETRIED.add(1);
                    let pause = backoff.next_wait();
                    tracing::warn!(tag = &*cause.tag, seq = cause.seq, %error, "a reaction failed and is tried again in {pause:?}");
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = reacting.deadline.over() => return Err(Cancelled),
                    }
                }
                Err(error) => return Ok(Err(error.to_string())),
            }
        }
        Ok(Ok(Dispatched::Done))
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

    /// Retries dead letters: all, or those of the event of this number. Returns what each came to; one that fails again
    /// is replaced.
    pub async fn retry(self: &Arc<Self>, bus: &Bus, seq: Option<u64>) -> Vec<(Failed, Result<(), String>)> {
        let mut told = Vec::new();
        for (number, failed) in self.aside.all() {
            if seq.is_some_and(|seq| seq != failed.event.seq()) {
                continue;
            }
            let retried = self.retry_one(bus, &failed).await.unwrap_or_else(|Cancelled| {
                let seconds = self.options.deadline.as_secs_f64();
                (Err(format!("the retry failed: it exceeded its deadline of {seconds} s (reactor_deadline)")), false)
            });
            let (result, is_gone) = retried;
            // Only now: if the process dies on the way, the dead letter is still there.
            if is_gone {
                let stop = CancellationToken::new();
                // Its failure is logged; the dead letter is then there again after the next start.
                _ = tokio::time::timeout(REMOVAL, self.aside.remove(number, &stop)).await;
            }
            told.push((failed, result));
        }
        told
    }

    /// Returns what a dead letter came to, and whether it is to be removed: it is done, or others stand for it.
    async fn retry_one(&self, bus: &Bus, failed: &Failed) -> Result<(Result<(), String>, bool), Cancelled> {
        let deadline = Deadline::after(self.options.deadline);
        let bound = Bound::Rule { name: failed.entry.as_str().into(), files: vec![failed.file.clone()] };
        let plan = self.plan(&failed.event, failed.more.as_ref(), &[bound], &deadline);
        let depth = crate::peek::Peek::at(&failed.event).depth;
        let (event, more) = (failed.event.clone(), failed.more.clone());
        let stop = CancellationToken::new();
        let reacting = Reacting { bus: bus.clone(), event, depth, more, deadline, stop };
        self.tell_problems(&reacting, &plan.problems).await?;
        let mut result = match plan.problems.first() {
            Some(problem) => Err(problem.message.clone()),
            None => Ok(()),
        };
        let wanted = |step: &Step| failed.label.as_ref().is_none_or(|label| *label == step.label);
        for step in plan.steps.iter().filter(|step| wanted(step)).cloned() {
            if let Err(message) = self.carry_out(&reacting, step).await? {
                result = Err(message);
            }
        }
        // A file that still cannot be used has replaced its dead letter; reactions of it that failed have their own.
        let is_replaced = failed.label.is_some() || plan.problems.iter().any(|problem| *problem.file == *failed.file);
        let is_gone = result.is_ok() || !is_replaced;
        Ok((result, is_gone))
    }
}

//! Processes one event: dispatches its reactions in order, retries them, and turns failed ones into dead letters.

use std::sync::Arc;

use brine_bus::Bus;
use brine_event::Event;
use brine_runtime::backoff::Backoff;
use brine_value::Map;
use tokio_util::sync::CancellationToken;

use crate::dead_letters::DeadLetter;
use crate::deadline::Deadline;
use crate::event_loop::report;
use crate::metrics;
use crate::plan::{Binding, Plan, PlannedReaction, Problem, Subject};
use crate::reaction::Reaction;
use crate::recovery::{self, Key};
use crate::skipped::{Reason, Skip};
use crate::work::{Outstanding, Planned, Work};
use crate::worker_queue::{GiveUpCause, Outcome};
use crate::{Cause, Dispatched, Reactor};
use brine_rules::excerpt;

/// The event whose reactions are dispatched, with their shared data.
pub(crate) struct EventContext {
    pub bus: Bus,
    pub event: Event,
    pub depth: u64,
    /// Variables of the rule that fired.
    pub rule_context: Option<Map>,
    pub deadline: Deadline,
    /// Cancelled when the reactor stops.
    pub stop: CancellationToken,
    /// The reactions that run now or have run.
    pub planned: Planned,
}

/// The work was cancelled, by its deadline or by the stop of the reactor, before its outcome was known or persisted.
pub(crate) struct Cancelled;

/// The result of one reaction. An error is its message: the reaction is a dead letter.
pub(crate) type StepResult = Result<Result<(), String>, Cancelled>;

impl Reactor {
    /// Reads the reactions dispatched before the restart from the journal.
    pub(crate) async fn recover(&self, bus: &Bus, from: u64) {
        let last = bus.last_seq();
        if from > last {
            return;
        }
        // Without their records, jobs are published under ids that minions recognise.
        self.prior.lock().0 = last;
        let journal = bus.clone();
        match self.options.disk.run(move |thread| recovery::read(thread, &journal, from)).await {
            Ok(Ok(prior)) => {
                tracing::info!(from, to = last, dispatched = prior.len(), "reactor resumes at its cursor");
                *self.prior.lock() = (last, prior);
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "reading the journal failed: reactions may be dispatched a second time");
            }
            Err(error) => {
                tracing::error!(%error, "reading the journal failed: reactions may be dispatched a second time");
            }
        }
    }

    /// Dispatches the reactions to an event.
    pub(crate) async fn process(
        &self,
        bus: &Bus,
        work: &Work,
        deadline: &Deadline,
        stop: &CancellationToken,
    ) -> Outcome {
        let plan = self.plan(&work.event, work.rule_context.as_ref(), &work.bindings, deadline);
        if deadline.is_over() {
            return Outcome::Cancelled;
        }
        let context = EventContext {
            bus: bus.clone(),
            event: work.event.clone(),
            depth: work.depth,
            rule_context: work.rule_context.clone(),
            deadline: deadline.clone(),
            stop: stop.clone(),
            planned: Planned::new(&plan.steps),
        };
        if self.report_problems(&context, &plan.problems).await.is_err() {
            return Outcome::Cancelled;
        }
        for (entry, file) in plan.empty {
            self.skipped.add(work.event.seq(), Skip { entry, file: Some(file), reason: Reason::Empty });
        }
        work.plan(&plan.steps);
        for step in plan.steps {
            if self.process_step(&context, step).await.is_err() {
                return Outcome::Cancelled;
            }
            work.step_ended();
        }
        if let Some(number) = work.firing {
            self.rules.dispatched(number).await;
        }
        metrics::REACTION_SECONDS.observe(work.taken.elapsed().as_secs_f64());
        Outcome::Ended
    }

    /// Turns the outstanding reactions of a work into dead letters. Returns whether they are persisted.
    pub(crate) async fn give_up(&self, bus: &Bus, work: &Work, cause: GiveUpCause, stop: &CancellationToken) -> bool {
        // Work cancelled by the stop of the reactor is processed again after the next start.
        if stop.is_cancelled() {
            return false;
        }
        let cause = match cause {
            GiveUpCause::Overdue => {
                metrics::REACTIONS_OVERDUE.add(1);
                format!(
                    "it exceeded its deadline of {} s (reactor_deadline) and was cancelled; a function that it called \
                     may still be running",
                    self.options.deadline.as_secs_f64()
                )
            }
            GiveUpCause::Panicked => "it panicked, which is a defect; the log shows where".to_owned(),
        };
        let planned = work.planned();
        for Outstanding { entry, file, label } in work.outstanding() {
            metrics::REACTIONS_FAILED.add(1);
            metrics::REACTIONS_BY_ENTRY.with(&[&entry, "failed"]).add(1);
            let what = label.as_ref().map_or_else(|| "rendering".to_owned(), |label| format!("reaction '{label}'"));
            let message = format!("{file}: {what} failed: {cause}");
            let letter = DeadLetter::new(&work.event, &entry, &file, label, &message);
            let (rule_context, labels) = (work.rule_context.clone(), planned.labels(&entry, &file));
            let letter = DeadLetter { rule_context, labels, ..letter };
            if !self.dead_letters.add(letter, stop).await {
                return false;
            }
            report(bus, &work.event, &entry, &file, work.depth, &message).await;
        }
        if let Some(number) = work.firing {
            self.rules.dispatched(number).await;
        }
        true
    }

    pub(crate) fn plan(
        &self,
        event: &Event,
        rule_context: Option<&Map>,
        bindings: &[Binding],
        deadline: &Deadline,
    ) -> Plan {
        let data = Arc::new(event.data());
        let subject = Subject { tag: event.tag(), data, rule_context, deadline: Some(deadline) };
        self.planner.plan(&subject, bindings, false)
    }

    pub(crate) async fn report_problems(&self, context: &EventContext, problems: &[Problem]) -> Result<(), Cancelled> {
        for Problem { entry, file, message } in problems {
            metrics::REACTOR_ERRORS.add(1);
            metrics::REACTIONS_BY_ENTRY.with(&[entry, "unreadable"]).add(1);
            self.add_dead_letter(context, entry, file, None, message).await?;
            report(&context.bus, &context.event, entry, file, context.depth, message).await;
        }
        Ok(())
    }

    /// Adds a dead letter and waits until it is persisted: only then the cursor may pass the event.
    async fn add_dead_letter(
        &self,
        context: &EventContext,
        entry: &str,
        file: &str,
        label: Option<String>,
        message: &str,
    ) -> Result<(), Cancelled> {
        let letter = DeadLetter::new(&context.event, entry, file, label, message);
        let (rule_context, labels) = (context.rule_context.clone(), context.planned.labels(entry, file));
        self.keep_letter(context, DeadLetter { rule_context, labels, ..letter }).await
    }

    /// Adds a dead letter and waits until it is persisted.
    pub(crate) async fn keep_letter(&self, context: &EventContext, letter: DeadLetter) -> Result<(), Cancelled> {
        tokio::select! {
            is_persisted = self.dead_letters.add(letter, &context.stop) => {
                if is_persisted { Ok(()) } else { Err(Cancelled) }
            }
            () = context.deadline.over() => Err(Cancelled),
        }
    }

    /// Dispatches one reaction. If it fails for good, it becomes a dead letter.
    pub(crate) async fn process_step(&self, context: &EventContext, step: PlannedReaction) -> StepResult {
        let message = match self.dispatch_with_retries(context, &step).await? {
            Ok(dispatched) => {
                self.record_dispatched(context, step, dispatched);
                return Ok(Ok(()));
            }
            Err(message) => message,
        };
        metrics::REACTIONS_FAILED.add(1);
        metrics::REACTIONS_BY_ENTRY.with(&[&step.entry, "failed"]).add(1);
        let message = format!("{}:{}: {}: {message}", step.file, step.line, step.reaction.name());
        self.add_dead_letter(context, &step.entry, &step.file, Some(step.label), &message).await?;
        report(&context.bus, &context.event, &step.entry, &step.file, context.depth, &message).await;
        Ok(Err(message))
    }

    fn record_dispatched(&self, context: &EventContext, step: PlannedReaction, dispatched: Dispatched) {
        let target = match &step.reaction {
            Reaction::Local(local) => Some(&local.tgt),
            _ => None,
        };
        tracing::info!(
            tag = context.event.tag(),
            _seq = context.event.seq(),
            sls = format!("{}:{}", step.file, step.line),
            id = step.label,
            fun = step.reaction.name(),
            target = target.map(ToString::to_string),
            "reaction ran"
        );
        metrics::REACTIONS.add(1);
        let outcome = match dispatched {
            Dispatched::Done => "done",
            Dispatched::NoMinion { target } => {
                let reason = Reason::NoMinion { reaction: excerpt(&step.label), target: excerpt(&target) };
                let (entry, file) = (Arc::clone(&step.entry), Some(step.file));
                self.skipped.add(context.event.seq(), Skip { entry, file, reason });
                "no_minion"
            }
        };
        metrics::REACTIONS_BY_ENTRY.with(&[&step.entry, outcome]).add(1);
    }

    /// Dispatches one reaction, and retries it with backoff after transient errors.
    async fn dispatch_with_retries(
        &self,
        context: &EventContext,
        step: &PlannedReaction,
    ) -> Result<Result<Dispatched, String>, Cancelled> {
        if context.deadline.is_over() {
            return Err(Cancelled);
        }
        let cause = self.cause(context, step);
        if let Err(error) = self.dispatch.check(&step.reaction) {
            return Ok(Err(error.to_string()));
        }
        let mut backoff = Backoff::default();
        for left in (0..=self.options.retries).rev() {
            let dispatched = tokio::select! {
                // A blocking call is not interrupted: its return is published even if it is late.
                biased;
                dispatched = self.dispatch.dispatch(step.reaction.clone(), cause.clone()) => dispatched,
                () = context.deadline.over() => return Err(Cancelled),
            };
            match dispatched {
                Ok(dispatched) => return Ok(Ok(dispatched)),
                Err(error) if error.is_transient && left > 0 => {
                    metrics::REACTIONS_RETRIED.add(1);
                    let pause = backoff.next_wait();
                    tracing::warn!(tag = &*cause.tag, seq = cause.seq, %error, "reaction failed; it is retried in {pause:?}");
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = context.deadline.over() => return Err(Cancelled),
                    }
                }
                Err(error) => return Ok(Err(error.to_string())),
            }
        }
        Ok(Ok(Dispatched::Done))
    }

    fn cause(&self, context: &EventContext, step: &PlannedReaction) -> Cause {
        let seq = context.event.seq();
        let key = || Key { seq, entry: step.entry.to_string(), file: step.file.to_string(), label: step.label.clone() };
        let (prior, is_repeated) = {
            let (until, prior) = &mut *self.prior.lock();
            let is_repeated = seq <= *until;
            (if is_repeated && !prior.is_empty() { prior.remove(&key()) } else { None }, is_repeated)
        };
        // On a full disk the journal has no record of the dispatch: after a restart it is repeated.
        let is_unrecorded = is_repeated || context.bus.is_failing();
        let time = (is_unrecorded && prior.is_none()).then(|| context.event.time()).flatten();
        let jid = time.map(|time| key().jid(time));
        Cause {
            seq,
            tag: context.event.tag().into(),
            depth: context.depth + 1,
            entry: Arc::clone(&step.entry),
            file: Arc::clone(&step.file),
            reaction: step.label.as_str().into(),
            prior,
            jid,
        }
    }
}

//! Drives a job to its end: publishes it in batches, collects the returns, and asks silent minions whether they still
//! run it.
//!
//! The driver has no sockets, clock or tasks. Its owner passes events and times to it, and executes each [`Action`]: the
//! `salt` command over its connections, the master on its own bus.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::time::Duration;

use brine_event::Event;
use brine_ids::Jid;
use brine_value::Map;
use brine_wire::PublishRequest;
use tokio::time::Instant;

use super::reports::{ReportingSyndics, Reports};
use super::{Due, Times, Watch, retcode, return_tag};

/// The division of a job into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// The maximum number of minions that run the job at the same time.
    pub size: usize,
    /// The pause between the end of the job on one minion and its start on the next.
    pub wait: Duration,
    /// Whether a return with a retcode other than 0 ends the job. As in Salt, a missing return does not.
    pub failhard: bool,
}

/// The next action of a driver's owner.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Publish the job to these minions, then call [`Driver::published`].
    Publish(Vec<String>),
    /// Publish this request, then call [`Driver::asked`].
    Ask(Box<PublishRequest>),
    /// Record that these minions neither return nor run the job.
    Missing(BTreeSet<String>),
    /// Wait for events, until this time at the latest.
    Wait(Instant),
    /// The job has ended, or was halted.
    End,
}

/// The reason why a job publishes no further batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Halt {
    /// A minion returned a retcode other than 0, with [`Batch::failhard`].
    Failhard,
    /// The owner halted the job for this reason.
    Request(String),
}

impl Halt {
    /// Returns the reason, as in the events of batches.
    pub fn reason(&self) -> &str {
        match self {
            Halt::Failhard => "failhard",
            Halt::Request(reason) => reason,
        }
    }
}

/// A job in progress.
#[derive(Debug)]
pub struct Driver {
    watch: Watch,
    /// The user in whose name silent minions are asked.
    user: String,
    batch: Batch,
    pending: VecDeque<String>,
    /// The minions of the last [`Action::Publish`].
    publishing: Vec<String>,
    /// The ends of the pauses after finished minions, soonest first.
    pauses: VecDeque<Instant>,
    halted: Option<Halt>,
    /// The minions of the masters below that are expected to return, if there are masters below.
    reports: Option<Reports>,
}

impl Driver {
    /// Creates the driver of a job in batches. Silent minions are asked in the name of `user`.
    pub fn in_batches(jid: Jid, user: &str, minions: Vec<String>, batch: Batch, times: Times, now: Instant) -> Self {
        Driver {
            watch: Watch::new(jid, [], times, now),
            user: user.to_owned(),
            batch: Batch { size: batch.size.max(1), ..batch },
            pending: minions.into(),
            publishing: Vec::new(),
            pauses: VecDeque::new(),
            halted: None,
            reports: None,
        }
    }

    /// Creates the driver of a job that has already been published to all of its minions.
    pub fn of_published(jid: Jid, user: &str, minions: Vec<String>, times: Times, now: Instant) -> Self {
        let batch = Batch { size: minions.len(), wait: Duration::ZERO, failhard: false };
        let mut driver = Self::in_batches(jid, user, Vec::new(), batch, times, now);
        driver.add_active(minions, now);
        driver
    }

    /// Also waits for the minions of the masters below whose syndics received the job.
    #[must_use]
    pub fn with_syndics(mut self, syndics: Option<ReportingSyndics>, now: Instant) -> Self {
        self.reports = syndics.map(|syndics| Reports::new(syndics, self.watch.waiting().cloned(), now));
        self
    }

    /// Whether a minion of the masters below is expected to return or has returned.
    pub fn is_of_syndic(&self, id: &str) -> bool {
        self.reports.as_ref().is_some_and(|reports| reports.knows(id))
    }

    /// Adds minions that already run the job, such as those of a batch before a restart.
    pub fn add_active(&mut self, minions: Vec<String>, now: Instant) {
        self.watch.add(minions, now);
    }

    /// Returns the job id.
    pub fn jid(&self) -> &Jid {
        self.watch.jid()
    }

    /// Returns the minions to which the job has not been published yet, in order.
    pub fn pending(&self) -> &VecDeque<String> {
        &self.pending
    }

    /// Returns the minions that run the job.
    pub fn active(&self) -> impl ExactSizeIterator<Item = &String> {
        self.watch.waiting()
    }

    /// Returns the reason for which the job was halted, if it was.
    pub fn halted(&self) -> Option<&Halt> {
        self.halted.as_ref()
    }

    /// Halts the job: it is not published to further minions, and outstanding returns are not awaited.
    pub fn halt(&mut self, reason: String) {
        self.halted.get_or_insert(Halt::Request(reason));
    }

    /// Returns the next step.
    pub fn next(&mut self, now: Instant) -> Action {
        loop {
            if self.halted.is_some() {
                return Action::End;
            }
            while self.pauses.front().is_some_and(|end| *end <= now) {
                self.pauses.pop_front();
            }
            let taken = self.watch.waiting().len() + self.pauses.len();
            let room = self.batch.size.saturating_sub(taken).min(self.pending.len());
            if room > 0 {
                self.publishing = self.pending.drain(..room).collect();
                return Action::Publish(self.publishing.clone());
            }
            let deadline = self.watch.deadline();
            if deadline.is_none_or(|deadline| deadline > now) {
                let pause = self.pauses.front().copied().filter(|_| !self.pending.is_empty());
                let reports = self.reports.as_ref().and_then(|reports| reports.deadline(now));
                if reports.is_none() {
                    self.log_silent_syndics();
                }
                return deadline.into_iter().chain(pause).chain(reports).min().map_or(Action::End, Action::Wait);
            }
            match self.watch.on_deadline(&self.user, now) {
                Due::Ask(request) => return Action::Ask(request),
                // All minions have answered.
                Due::Missing(ids) if ids.is_empty() => {}
                Due::Missing(ids) => {
                    for _ in 0..ids.len() {
                        self.pause(now);
                    }
                    return Action::Missing(ids);
                }
            }
        }
    }

    /// Records that the last [`Action::Publish`] reached these minions. Returns its other minions, which do not receive
    /// the job.
    pub fn published(&mut self, minions: &[String], now: Instant) -> Vec<String> {
        let minions: HashSet<&String> = minions.iter().collect();
        let publishing = std::mem::take(&mut self.publishing).into_iter();
        let (reached, others): (Vec<String>, _) = publishing.partition(|id| minions.contains(id));
        self.watch.add(reached, now);
        others
    }

    /// Records that the last [`Action::Ask`] was published under a job id; `None` if it was not.
    pub fn asked(&mut self, jid: Option<Jid>, now: Instant) {
        self.watch.asked(jid, now);
    }

    /// Processes an event. Returns the minion and its return, if the event is the return of a minion that runs the job.
    pub fn process(&mut self, event: &Event, now: Instant) -> Option<(String, Map)> {
        if let Some(reports) = &mut self.reports
            && let Some(more) = reports.process(event, self.watch.jid())
        {
            self.watch.add(more, now);
            return None;
        }
        let (id, data) = self.watch.process(event, now).or_else(|| self.early_return(event))?;
        self.ended(&data, now);
        Some((id, data))
    }

    /// Returns the minion and its return, if the event is a return that arrives before the report of its syndic.
    fn early_return(&mut self, event: &Event) -> Option<(String, Map)> {
        let (jid, id) = return_tag(event.tag())?;
        let reports = self.reports.as_mut().filter(|_| jid == self.watch.jid().as_str())?;
        reports.returned(id).then(|| (id.to_owned(), event.data()))
    }

    /// Logs, once, the syndics that have not reported which minions to expect.
    fn log_silent_syndics(&mut self) {
        for path in self.reports.iter_mut().flat_map(Reports::take_silent) {
            tracing::warn!(jid = %self.watch.jid(), syndic = path, "a syndic has not reported which minions run the job");
        }
    }

    /// Records a return that was not received as an event. Returns whether the minion was running the job.
    pub fn returned(&mut self, id: &str, data: &Map, now: Instant) -> bool {
        let was_active = self.watch.remove(id);
        if was_active {
            self.ended(data, now);
        }
        was_active
    }

    fn ended(&mut self, data: &Map, now: Instant) {
        if self.batch.failhard && retcode(data) != 0 {
            self.halted.get_or_insert(Halt::Failhard);
        }
        self.pause(now);
    }

    fn pause(&mut self, now: Instant) {
        if !self.batch.wait.is_zero() && !self.pending.is_empty() {
            self.pauses.push_back(now + self.batch.wait);
        }
    }
}

#[cfg(test)]
mod tests;

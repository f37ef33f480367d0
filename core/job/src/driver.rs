//! Drives a job to its end: publishes it in batches, collects the returns, and asks silent minions whether they still
//! run it.
//!
//! The driver has no sockets, clock or tasks. Its owner passes events and times to it, and executes each [`Step`]: the
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
pub enum Step {
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
    /// The minions of the last [`Step::Publish`].
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
    pub fn next(&mut self, now: Instant) -> Step {
        loop {
            if self.halted.is_some() {
                return Step::End;
            }
            while self.pauses.front().is_some_and(|end| *end <= now) {
                self.pauses.pop_front();
            }
            let taken = self.watch.waiting().len() + self.pauses.len();
            let room = self.batch.size.saturating_sub(taken).min(self.pending.len());
            if room > 0 {
                self.publishing = self.pending.drain(..room).collect();
                return Step::Publish(self.publishing.clone());
            }
            let deadline = self.watch.deadline();
            if deadline.is_none_or(|deadline| deadline > now) {
                let pause = self.pauses.front().copied().filter(|_| !self.pending.is_empty());
                let reports = self.reports.as_ref().and_then(|reports| reports.deadline(now));
                if reports.is_none() {
                    self.log_silent_syndics();
                }
                return deadline.into_iter().chain(pause).chain(reports).min().map_or(Step::End, Step::Wait);
            }
            match self.watch.on_deadline(&self.user, now) {
                Due::Ask(request) => return Step::Ask(request),
                // All minions have answered.
                Due::Missing(ids) if ids.is_empty() => {}
                Due::Missing(ids) => {
                    for _ in 0..ids.len() {
                        self.pause(now);
                    }
                    return Step::Missing(ids);
                }
            }
        }
    }

    /// Records that the last [`Step::Publish`] reached these minions. Returns its other minions, which do not receive
    /// the job.
    pub fn published(&mut self, minions: &[String], now: Instant) -> Vec<String> {
        let minions: HashSet<&String> = minions.iter().collect();
        let publishing = std::mem::take(&mut self.publishing).into_iter();
        let (reached, others): (Vec<String>, _) = publishing.partition(|id| minions.contains(id));
        self.watch.add(reached, now);
        others
    }

    /// Records that the last [`Step::Ask`] was published under a job id; `None` if it was not.
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
mod tests {
    use super::*;
    use brine_value::{Value, map};

    const SECOND: Duration = Duration::from_secs(1);

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn driver(minions: &[&str], batch: Batch) -> (Driver, Instant) {
        let now = Instant::now();
        let times = Times { timeout: 5 * SECOND, gather: 10 * SECOND, find_job: "saltutil.find_job" };
        (Driver::in_batches(Jid::new(), "root", names(minions), batch, times, now), now)
    }

    /// Publishes the next batch to all of its minions.
    fn publish(driver: &mut Driver, now: Instant) -> Vec<String> {
        let Step::Publish(minions) = driver.next(now) else { panic!("no batch is due") };
        assert_eq!(driver.published(&minions, now), names(&[]));
        minions
    }

    fn publish_return(driver: &mut Driver, id: &str, retcode: impl Into<Value>, now: Instant) {
        let body = map! {"return" => true, "retcode" => retcode.into()};
        let event = Event::from_map(&format!("salt/job/{}/ret/{id}", driver.jid()), &body).unwrap();
        assert_eq!(driver.process(&event, now).map(|(id, _)| id).as_deref(), Some(id));
    }

    const PLAIN: Batch = Batch { size: 2, wait: Duration::ZERO, failhard: false };

    #[test]
    fn the_next_minion_starts_when_one_ends() {
        let (mut driver, now) = driver(&["a", "b", "c", "d"], PLAIN);
        assert_eq!(publish(&mut driver, now), names(&["a", "b"]));
        assert_eq!(driver.next(now), Step::Wait(now + 5 * SECOND));
        publish_return(&mut driver, "b", 1, now);
        assert_eq!(publish(&mut driver, now), names(&["c"]));
        publish_return(&mut driver, "a", 0, now);
        publish_return(&mut driver, "c", 0, now);
        assert_eq!(publish(&mut driver, now), names(&["d"]));
        publish_return(&mut driver, "d", 0, now);
        assert_eq!((driver.next(now), driver.halted()), (Step::End, None));
    }

    #[test]
    fn failhard_halts_at_a_retcode_and_not_at_a_missing_return() {
        let codes: [(Value, bool); 5] = [
            (0.into(), false),
            (2.into(), true),
            (Value::Nil, false),
            (map! {"test.ping" => 0, "cmd.run" => 0}.into(), false),
            (map! {"test.ping" => 0, "cmd.run" => 3}.into(), true),
        ];
        for (code, halts) in codes {
            let (mut driver, now) = driver(&["a", "b"], Batch { size: 1, failhard: true, ..PLAIN });
            publish(&mut driver, now);
            publish_return(&mut driver, "a", code.clone(), now);
            assert_eq!(driver.halted(), halts.then_some(&Halt::Failhard), "{code}");
            let next = driver.next(now);
            assert_eq!(next, if halts { Step::End } else { Step::Publish(names(&["b"])) }, "{code}");
        }
        let (mut driver, now) = driver(&["a", "b"], Batch { size: 1, failhard: true, ..PLAIN });
        publish(&mut driver, now);
        assert!(matches!(driver.next(now + 5 * SECOND), Step::Ask(_)));
        driver.asked(None, now + 5 * SECOND);
        assert_eq!(driver.next(now + 15 * SECOND), Step::Missing(["a".to_owned()].into()));
        assert_eq!(driver.next(now + 15 * SECOND), Step::Publish(names(&["b"])));
    }

    #[test]
    fn pauses_of_several_minions_run_at_the_same_time() {
        let (mut driver, now) = driver(&["a", "b", "c", "d"], Batch { wait: 3 * SECOND, ..PLAIN });
        publish(&mut driver, now);
        publish_return(&mut driver, "a", 0, now);
        publish_return(&mut driver, "b", 0, now + SECOND);
        assert_eq!(driver.next(now + SECOND), Step::Wait(now + 3 * SECOND));
        assert_eq!(publish(&mut driver, now + 3 * SECOND), names(&["c"]));
        assert_eq!(publish(&mut driver, now + 4 * SECOND), names(&["d"]));
        publish_return(&mut driver, "c", 0, now + 4 * SECOND);
        publish_return(&mut driver, "d", 0, now + 4 * SECOND);
        assert_eq!(driver.next(now + 4 * SECOND), Step::End, "nobody is left to wait for a pause");
    }

    #[test]
    fn minions_that_the_publish_does_not_reach_are_skipped() {
        let (mut driver, now) = driver(&["a", "b", "c"], PLAIN);
        assert_eq!(driver.next(now), Step::Publish(names(&["a", "b"])));
        assert_eq!(driver.published(&names(&["b"]), now), names(&["a"]));
        assert_eq!(driver.next(now), Step::Publish(names(&["c"])));
        assert_eq!(driver.published(&[], now), names(&["c"]));
        assert_eq!(driver.active().collect::<Vec<_>>(), ["b"]);
        publish_return(&mut driver, "b", 0, now);
        assert_eq!(driver.next(now), Step::End);
    }

    #[test]
    fn a_halted_job_publishes_no_more() {
        let (mut driver, now) = driver(&["a", "b", "c"], PLAIN);
        publish(&mut driver, now);
        driver.halt("stop".to_owned());
        assert_eq!((driver.next(now), driver.halted().map(Halt::reason)), (Step::End, Some("stop")));
        assert_eq!((driver.active().len(), driver.pending().len()), (2, 1));
    }

    #[test]
    fn minions_active_before_a_restart_count_toward_the_batch_size() {
        let (mut driver, now) = driver(&["c"], PLAIN);
        driver.add_active(names(&["a", "b"]), now);
        assert!(matches!(driver.next(now), Step::Wait(_)));
        assert!(driver.returned("a", &map! {"retcode" => 0}, now));
        assert!(!driver.returned("a", &map! {"retcode" => 0}, now));
        assert_eq!(publish(&mut driver, now), names(&["c"]));
    }

    #[test]
    fn a_published_job_asks_silent_minions() {
        let now = Instant::now();
        let times = Times { timeout: 5 * SECOND, gather: 10 * SECOND, find_job: "saltutil.find_job" };
        let mut driver = Driver::of_published(Jid::new(), "root", names(&["a", "b"]), times, now);
        assert_eq!(driver.next(now), Step::Wait(now + 5 * SECOND));
        publish_return(&mut driver, "a", 0, now);
        let Step::Ask(request) = driver.next(now + 5 * SECOND) else { panic!("no minion is asked") };
        assert_eq!((request.fun, request.user.as_str()), ("saltutil.find_job".into(), "root"));
        let question: Jid = "20990101000000000000".parse().unwrap();
        driver.asked(Some(question.clone()), now + 5 * SECOND);
        let running = map! {"return" => map! {"pid" => 7}};
        let answer = Event::from_map(&format!("salt/job/{question}/ret/b"), &running).unwrap();
        assert_eq!(driver.process(&answer, now + 6 * SECOND), None);
        assert_eq!(driver.next(now + 6 * SECOND), Step::Wait(now + 11 * SECOND));
        publish_return(&mut driver, "b", 0, now + 7 * SECOND);
        assert_eq!(driver.next(now + 7 * SECOND), Step::End);
    }

    #[test]
    fn minions_of_syndics_are_awaited() {
        let now = Instant::now();
        let times = Times { timeout: 5 * SECOND, gather: 10 * SECOND, find_job: "saltutil.find_job" };
        let syndics = ReportingSyndics { ids: names(&["s1", "s2"]), wait: 5 * SECOND };
        let driver = Driver::of_published(Jid::new(), "root", names(&["own"]), times, now);
        let mut driver = driver.with_syndics(Some(syndics), now);
        publish_return(&mut driver, "own", 0, now);
        assert_eq!(driver.next(now), Step::Wait(now + 5 * SECOND), "two reports are outstanding");
        // The return may arrive before the report of its syndic.
        publish_return(&mut driver, "early", 0, now);
        let report = |driver: &mut Driver, syndic: &str, minions: &[&str]| {
            let body = map! {"minions" => names(minions), "syndics" => names(&[])};
            let tag = format!("syndic/{syndic}/salt/job/{}/new", driver.jid());
            assert_eq!(driver.process(&Event::from_map(&tag, &body).unwrap(), now), None);
        };
        report(&mut driver, "s1", &["early", "late"]);
        report(&mut driver, "s2", &[]);
        assert!(driver.is_of_syndic("late") && !driver.is_of_syndic("nobody"));
        assert_eq!(driver.active().collect::<Vec<_>>(), ["late"]);
        publish_return(&mut driver, "late", 0, now);
        assert_eq!(driver.next(now), Step::End);
    }

    #[test]
    fn a_silent_syndic_is_given_up_after_its_timeout() {
        let now = Instant::now();
        let times = Times { timeout: 5 * SECOND, gather: 10 * SECOND, find_job: "saltutil.find_job" };
        let syndics = ReportingSyndics { ids: names(&["s1"]), wait: 3 * SECOND };
        let driver = Driver::of_published(Jid::new(), "root", Vec::new(), times, now);
        let mut driver = driver.with_syndics(Some(syndics), now);
        assert_eq!(driver.next(now), Step::Wait(now + 3 * SECOND));
        assert_eq!(driver.next(now + 3 * SECOND), Step::End);
    }
}

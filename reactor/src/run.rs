//! Following the bus: which events lead to reactions, and when.
//!
//! The cursor is committed up to the first event that has open work: queued, running, held for quiet, or with changes
//! of rules that are not on disk. When too much lies behind it, or waits, the reactor takes no more events; the journal
//! keeps them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_bus::store::StoreError;
use brine_bus::{Bus, Filter, Start, Subscription};
use brine_event::Event;
use brine_runtime::supervisor;
use brine_value::map;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::deadline::Deadline;
use crate::entries::Entry;
use crate::limits::Verdict;
use crate::metrics;
use crate::peek::Peek;
use crate::plan::Bound;
use crate::progress::{NO_EVENT, Progress};
use crate::schedule::{Bounds, GaveUp, Handler, Outcome, Scheduler};
use crate::skipped::{Reason, Skip, cut};
use crate::work::Work;
use crate::{Dispatch, Reactor};

/// The tag under which the reactor says that something is wrong.
pub(crate) const ERROR_TAG: &str = "salt/reactor/error";
/// The name under which it remembers how far it got.
pub(crate) const SUBSCRIBER: &str = "reactor";
/// How often the cursor is committed.
const COMMIT: Duration = Duration::from_millis(50);
/// How many threads of slow reactions may be detached.
const DETACHED: usize = 64;
/// How many works may begin while one is open, for each that may wait in memory: after a crash they are begun again.
const BEHIND: u64 = 10;
/// How long the last writes may take when the reactor stops.
const LAST_WRITES: Duration = Duration::from_millis(300);

/// Does the works of the reactor's queue.
struct Reactions<D> {
    reactor: Arc<Reactor<D>>,
    bus: Bus,
    stop: CancellationToken,
}

impl<D: Dispatch> Handler for Reactions<D> {
    type Work = Work;

    fn seq(work: &Work) -> u64 {
        // What a rule fires is persisted by itself: the event behind it may be long ago.
        if work.firing.is_some() { NO_EVENT } else { work.event.seq() }
    }

    async fn run(&self, work: &Work, deadline: &Deadline) -> Outcome {
        self.reactor.react(&self.bus, work, deadline, &self.stop).await
    }

    async fn give_up(&self, work: &Work, why: GaveUp) -> bool {
        self.reactor.give_up(&self.bus, work, why, &self.stop).await
    }
}

/// Events that wait for quiet, the last one of each burst: by the entry's pattern and what keeps its events
/// apart.
#[derive(Default)]
struct Held(HashMap<HeldKey, HeldEvent>);

type HeldKey = (Arc<str>, String);
/// When its time comes, in bus time.
type HeldEvent = (u64, Arc<Entry>, Work);

impl Held {
    fn next(&self) -> Option<u64> {
        self.0.values().map(|(due, ..)| *due).min()
    }

    fn due(&mut self, now: u64) -> Vec<(Arc<Entry>, String, Work)> {
        let due: Vec<_> = self.0.iter().filter(|(_, (due, ..))| *due <= now).map(|(key, _)| key.clone()).collect();
        due.into_iter().filter_map(|key| self.0.remove(&key).map(|(_, entry, work)| (entry, key.1, work))).collect()
    }
}

impl<D: Dispatch> Reactor<D> {
    /// The reactor's place on the bus. Taken before anything else is served: what is fired from then on
    /// has its reactions, also after a crash.
    pub fn subscribe(bus: &Bus) -> Result<Subscription, StoreError> {
        bus.subscribe(Filter::All, Start::Durable(SUBSCRIBER.into()))
    }

    /// Reacts until `shutdown`, or until the bus ends. Ends within two seconds of `shutdown`; what has not ended then is
    /// worked on again after the next start.
    pub async fn run(self: Arc<Self>, bus: Bus, mut events: Subscription, shutdown: CancellationToken) {
        let from = events.position();
        tokio::select! {
            () = self.recover(&bus, from) => {}
            () = shutdown.cancelled() => return,
        }
        let progress = Arc::new(Mutex::new(Progress::new(from - 1)));
        let (reactor, stop) = (Arc::clone(&self), shutdown.clone());
        let handler = Reactions { reactor, bus: bus.clone(), stop };
        let bounds = Bounds {
            workers: self.options.workers,
            waiting: self.options.waiting,
            detached: DETACHED,
            detach: self.options.detach,
            deadline: self.options.deadline,
        };
        let stop_writing = CancellationToken::new();
        let writing = Arc::clone(&self.overtime).write(Arc::clone(&progress), stop_writing.clone());
        let writer = supervisor::spawn("state of the rules", writing);
        let mut follower = Follower {
            scheduler: Scheduler::new(handler, bounds, Arc::clone(&progress)),
            progress,
            held: Held::default(),
            reactor: self,
            bus,
            is_paused: false,
            committed: from - 1,
            committed_at: Instant::now(),
        };
        let ended = tokio::select! {
            () = follower.follow(&mut events) => true,
            () = shutdown.cancelled() => false,
        };
        if ended {
            tokio::select! {
                () = follower.scheduler.finish() => {}
                () = shutdown.cancelled() => {}
            }
        }
        follower.scheduler.stop().await;
        follower.reactor.overtime.flush(&follower.progress).await;
        stop_writing.cancel();
        if tokio::time::timeout(LAST_WRITES, writer).await.is_err() {
            tracing::warn!("writing what rules over time remember failed: the store did not take it in time");
        }
        events.commit(follower.progress.lock().reached());
    }
}

async fn sleep(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

struct Follower<D: Dispatch> {
    reactor: Arc<Reactor<D>>,
    bus: Bus,
    progress: Arc<Mutex<Progress>>,
    scheduler: Scheduler<Reactions<D>>,
    held: Held,
    /// Whether no events are taken because too much is open.
    is_paused: bool,
    committed: u64,
    committed_at: Instant,
}

impl<D: Dispatch> Follower<D> {
    /// Takes events and what time brings, until the bus ends. May be dropped at any await: what was begun stays open.
    async fn follow(&mut self, events: &mut Subscription) {
        self.begin_left_over().await;
        let reactor = Arc::clone(&self.reactor);
        loop {
            self.reactor.overtime.flush(&self.progress).await;
            self.check_room();
            let wake = self.wake();
            tokio::select! {
                batch = events.recv_many(), if !self.is_paused => {
                    let Some(batch) = batch else { return };
                    for event in batch {
                        self.take(event).await;
                        if self.committed_at.elapsed() >= COMMIT {
                            self.commit(events);
                        }
                    }
                }
                () = sleep(wake) => self.take_due().await,
                () = reactor.overtime.changed() => {}
            }
            self.commit(events);
        }
    }

    /// Remembers how far the reactor has got.
    fn commit(&mut self, events: &Subscription) {
        self.committed_at = Instant::now();
        let reached = self.progress.lock().reached();
        if reached > self.committed {
            self.committed = reached;
            events.commit(reached);
            self.reactor.forget_before(reached);
        }
    }

    /// Pauses the reactor while too much lies behind the oldest open work, or too many events wait for quiet.
    fn check_room(&mut self) {
        let most = self.reactor.options.waiting.max(1) as u64;
        let (behind, held) = (self.progress.lock().behind(), self.held.0.len());
        let is_paused = behind >= most * BEHIND || held as u64 >= most;
        if is_paused != self.is_paused {
            self.is_paused = is_paused;
            metrics::REACTOR_PAUSED.set(u64::from(is_paused));
            let cursor = self.committed;
            if is_paused {
                tracing::warn!(
                    behind,
                    held,
                    cursor,
                    "the reactor takes no more events until the oldest open reaction ends, or exceeds reactor_deadline"
                );
            } else {
                tracing::info!(behind, held, cursor, "the reactor takes events again");
            }
        }
    }

    /// How long until something is to be done without an event.
    fn wake(&self) -> Option<Duration> {
        let now = self.reactor.clock.now();
        let due = self.held.next().map(|due| Duration::from_micros(due.saturating_sub(now)));
        // Timers wait until what has happened so far has been looked at: what they wait for may be there.
        let rules = self.is_caught_up().then(|| self.reactor.overtime.next_due()).flatten();
        let progress = self.progress.lock();
        let commit = (!progress.is_idle() || progress.reached() > self.committed).then_some(COMMIT);
        [due, rules, commit].into_iter().flatten().min()
    }

    /// Looks at one event.
    async fn take(&mut self, event: Event) {
        let seq = event.seq();
        self.progress.lock().see(seq);
        let matching = self.reactor.entries().reacting(event.tag());
        let is_ruled = self.reactor.overtime.wants(event.tag());
        if matching.is_empty() && !is_ruled {
            return;
        }
        if !self.reactor.is_leader() {
            let (entry, file, reason) = ("".into(), None, Reason::Off);
            return self.reactor.skipped.add(seq, Skip { entry, file, reason });
        }
        // Open until all that it leads to is: this may be dropped in the middle.
        self.progress.lock().begin(seq);
        self.look(event, matching, is_ruled).await;
        self.progress.lock().end(seq);
    }

    /// Looks at an event that entries or rules match.
    async fn look(&mut self, event: Event, matching: Vec<Arc<Entry>>, is_ruled: bool) {
        let peek = Peek::at(&event);
        if self.reactor.is_own(&event, &peek) {
            return;
        }
        if is_ruled {
            let group_size = &self.reactor.options.group_size;
            for work in self.reactor.overtime.event(&event, group_size, &self.progress).await {
                self.begin(work, None).await;
            }
        }
        if matching.is_empty() {
            return;
        }
        if peek.depth >= self.reactor.options.max_depth {
            return self.stop_loop(&event, peek.depth).await;
        }
        let now = self.reactor.clock.now();
        let mut bound = Vec::with_capacity(matching.len());
        for entry in matching {
            let Some(limits) = &entry.limits else {
                bound.push(Bound::Entry(entry));
                continue;
            };
            let key = limits.key(event.tag(), &event.data());
            let verdict = self.reactor.limiter.lock().judge(&entry, limits, &key, now);
            match verdict {
                Verdict::Now => bound.push(Bound::Entry(entry)),
                Verdict::Never { option, until } => {
                    tracing::info!(tag = event.tag(), seq = event.seq(), key, option, "a reaction is left out");
                    self.skip(event.seq(), &entry, Reason::Limited { option, key: cut(&key), until });
                }
                Verdict::At(due) => self.hold(due, entry, key, &event, &peek),
            }
        }
        if !bound.is_empty() {
            self.begin(Work::new(event, bound, peek.depth), peek.id.as_deref()).await;
        }
    }

    fn is_caught_up(&self) -> bool {
        self.progress.lock().seen() >= self.bus.last_seq()
    }

    /// What rules had come to before a restart, and was not handed over to the end.
    async fn begin_left_over(&self) {
        let overtime = Arc::clone(&self.reactor.overtime);
        match self.reactor.options.disk.run(move |_| overtime.left_over()).await.unwrap_or(Err(StoreError::Closed)) {
            Ok(left) => {
                for work in left {
                    self.begin(work, None).await;
                }
            }
            Err(error) => tracing::error!(%error, "what rules had come to before the restart cannot be read"),
        }
    }

    fn skip(&self, seq: u64, entry: &Entry, reason: Reason) {
        self.reactor.skipped.add(seq, Skip { entry: Arc::clone(&entry.pattern), file: None, reason });
    }

    fn hold(&mut self, due: u64, entry: Arc<Entry>, key: String, event: &Event, peek: &Peek) {
        let work = Work::new(event.clone(), vec![Bound::Entry(Arc::clone(&entry))], peek.depth);
        self.progress.lock().begin(event.seq());
        self.skip(event.seq(), &entry, Reason::Held { key: cut(&key), until: due });
        if let Some((_, entry, earlier)) = self.held.0.insert((Arc::clone(&entry.pattern), key), (due, entry, work)) {
            metrics::REACTIONS_LIMITED.add(1);
            let earlier = earlier.event.seq();
            self.reactor.skipped.release(earlier, &entry.pattern);
            self.skip(earlier, &entry, Reason::Superseded { by: event.seq() });
            self.progress.lock().end(earlier);
        }
    }

    /// What has waited for its time.
    async fn take_due(&mut self) {
        let now = self.reactor.clock.now();
        for (entry, key, work) in self.held.due(now) {
            let seq = work.event.seq();
            let verdict = match &entry.limits {
                Some(limits) => self.reactor.limiter.lock().judge_now(&entry, limits, &key, now),
                None => Verdict::Now,
            };
            self.reactor.skipped.release(seq, &entry.pattern);
            match verdict {
                Verdict::Never { option, until } => {
                    self.skip(seq, &entry, Reason::Limited { option, key: cut(&key), until });
                }
                Verdict::Now | Verdict::At(_) => {
                    let id = Peek::at(&work.event).id;
                    self.begin(work, id.as_deref()).await;
                }
            }
            self.progress.lock().end(seq);
        }
        if self.is_caught_up() && self.reactor.is_leader() {
            for work in self.reactor.overtime.tick(&self.progress).await {
                self.begin(work, None).await;
            }
        }
    }

    /// Puts work behind all other of the same tag and id.
    async fn begin(&self, work: Work, id: Option<&str>) {
        let mut hasher = DefaultHasher::new();
        (work.event.tag(), id).hash(&mut hasher);
        self.scheduler.put(hasher.finish(), work).await;
    }

    /// A reaction led to an event that led to a reaction and so on, too often.
    async fn stop_loop(&self, event: &Event, depth: u64) {
        metrics::REACTION_LOOPS.add(1);
        let message = format!(
            "{depth} reactions lead from one to the next up to this event: it is not reacted to (reactor_max_depth); \
             `salt-run reactor.explain {}` shows them",
            event.seq()
        );
        report(&self.bus, event, "", "", depth, &message).await;
    }
}

/// Says that a reaction did not happen: in the log and on the bus.
pub(crate) async fn report(bus: &Bus, event: &Event, entry: &str, file: &str, depth: u64, message: &str) {
    tracing::error!(tag = event.tag(), seq = event.seq(), "{message}");
    let body = map! {
        "tag" => event.tag(),
        "file" => file,
        "message" => message,
        "_cause" => event.seq(),
        "_entry" => entry,
        crate::peek::DEPTH => depth + 1,
    };
    if let Err(error) = bus.fire(ERROR_TAG, &body).await {
        tracing::error!(%error, "the event that tells of a reactor error could not be fired");
    }
}

//! The event loop: reads events from the bus and queues those that have reactions.
//!
//! The cursor is committed up to the first event with open work: queued, running, debounced, or with changes of rules
//! that are not on disk. When too much work lies behind it, the reactor pauses and leaves events in the journal.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_bus::store::StoreError;
use brine_bus::{Bus, Filter, Start, Subscription};
use brine_event::Event;
use brine_runtime::supervisor;
use brine_value::map;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::Reactor;
use crate::deadline::Deadline;
use crate::entries::{ERROR_TAG, Entry};
use crate::gate::{Admission, Gate};
use crate::limits::Verdict;
use crate::metrics;
use crate::plan::Binding;
use crate::progress::{NO_EVENT, Progress};
use crate::routing_fields::RoutingFields;
use crate::skipped::{Reason, Skip};
use crate::work::Work;
use crate::worker_queue::{Bounds, GiveUpCause, Handler, Outcome, WorkerQueue};
use brine_rules::excerpt;

/// The name of the reactor's cursor.
pub(crate) const SUBSCRIBER: &str = "reactor";
/// The interval at which the cursor is committed.
const COMMIT_INTERVAL: Duration = Duration::from_millis(50);
/// The maximum delay of timers, debounced events and offers of the rule state while events arrive without a pause.
const DUE_INTERVAL: Duration = Duration::from_millis(50);
/// The interval at which a master of a cluster polls whether it is the leader.
const TERM_INTERVAL: Duration = Duration::from_millis(500);
/// The maximum number of detached threads.
const MAX_DETACHED: usize = 64;
/// The number of work items that may begin behind an open one, as a multiple of [`crate::Options::waiting`]. They are
/// repeated after a crash.
const MAX_BEHIND: u64 = 10;
/// The timeout of the last writes when the reactor stops.
const LAST_WRITES_TIMEOUT: Duration = Duration::from_millis(300);

/// Processes the work items of the reactor's queue.
struct Processor {
    reactor: Arc<Reactor>,
    bus: Bus,
    stop: CancellationToken,
}

impl Handler for Processor {
    type Work = Work;

    fn seq(work: &Work) -> u64 {
        // Firings are persisted separately: the event of a firing may be far behind the cursor.
        if work.firing.is_some() { NO_EVENT } else { work.event.seq() }
    }

    async fn run(&self, work: &Work, deadline: &Deadline) -> Outcome {
        self.reactor.process(&self.bus, work, deadline, &self.stop).await
    }

    async fn give_up(&self, work: &Work, cause: GiveUpCause) -> bool {
        self.reactor.give_up(&self.bus, work, cause, &self.stop).await
    }
}

/// Debounced events, the last one of each burst.
#[derive(Default)]
struct Debounced(HashMap<DebounceKey, DebouncedEvent>);

/// The entry's pattern, and the key of its limits.
type DebounceKey = (Arc<str>, String);
/// The bus time at which the event is due, in microseconds.
type DebouncedEvent = (u64, Arc<Entry>, Work);

impl Debounced {
    fn next(&self) -> Option<u64> {
        self.0.values().map(|(due, ..)| *due).min()
    }

    fn due(&mut self, now: u64) -> Vec<(Arc<Entry>, String, Work)> {
        let due: Vec<_> = self.0.iter().filter(|(_, (due, ..))| *due <= now).map(|(key, _)| key.clone()).collect();
        due.into_iter().filter_map(|key| self.0.remove(&key).map(|(_, entry, work)| (entry, key.1, work))).collect()
    }
}

impl Reactor {
    /// Subscribes the reactor to the bus. Events published from then on are processed, even after a crash.
    pub fn subscribe(bus: &Bus) -> Result<Subscription, StoreError> {
        bus.subscribe(Filter::All, Start::Durable(SUBSCRIBER.into()))
    }

    /// Processes events until `shutdown`, or until the bus closes. Returns within two seconds of `shutdown`; open work
    /// is repeated after the next start.
    pub fn run(self: Arc<Self>, bus: Bus, events: Subscription, shutdown: CancellationToken) -> BoxFuture<'static, ()> {
        // Boxed, because the code of a future is compiled by the crate that polls it.
        Box::pin(self.run_until(bus, events, shutdown))
    }

    async fn run_until(self: Arc<Self>, bus: Bus, mut events: Subscription, shutdown: CancellationToken) {
        let from = events.position();
        tokio::select! {
            () = self.recover(&bus, from) => {}
            () = shutdown.cancelled() => return,
        }
        let progress = Arc::new(Mutex::new(Progress::new(from - 1)));
        let (reactor, stop) = (Arc::clone(&self), shutdown.clone());
        let handler = Processor { reactor, bus: bus.clone(), stop };
        let bounds = Bounds {
            workers: self.options.workers,
            waiting: self.options.waiting,
            detached: MAX_DETACHED,
            detach: self.options.detach,
            deadline: self.options.deadline,
        };
        let stop_writing = CancellationToken::new();
        let writing = Arc::clone(&self.rules).write(Arc::clone(&progress), stop_writing.clone());
        let writer = supervisor::spawn("state of the rules", writing);
        let mut event_loop = EventLoop {
            queue: WorkerQueue::new(handler, bounds, Arc::clone(&progress)),
            progress,
            debounced: Debounced::default(),
            reactor: self,
            bus,
            is_paused: false,
            committed: from - 1,
            committed_at: Instant::now(),
            due_handled_at: Instant::now(),
            term: 0,
            rules_term: 0,
        };
        let ended = tokio::select! {
            () = event_loop.read(&mut events) => true,
            () = shutdown.cancelled() => false,
        };
        if ended {
            tokio::select! {
                () = event_loop.queue.finish() => {}
                () = shutdown.cancelled() => {}
            }
        }
        event_loop.queue.stop().await;
        event_loop.reactor.rules.flush(&event_loop.progress).await;
        stop_writing.cancel();
        if tokio::time::timeout(LAST_WRITES_TIMEOUT, writer).await.is_err() {
            tracing::warn!(
                "writing the rule state timed out: after the next start the rules continue from an older state"
            );
        }
        events.commit(event_loop.progress.lock().reached());
    }
}

async fn sleep(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

struct EventLoop {
    reactor: Arc<Reactor>,
    bus: Bus,
    progress: Arc<Mutex<Progress>>,
    queue: WorkerQueue<Processor>,
    debounced: Debounced,
    /// Whether no events are read because too much work is open.
    is_paused: bool,
    committed: u64,
    committed_at: Instant,
    /// The time at which due work was handled last.
    due_handled_at: Instant,
    /// The term of the gate in which the last event was admitted.
    term: u64,
    /// The term for which the state of rules was adopted.
    rules_term: u64,
}

impl EventLoop {
    /// Reads events and fires timers until the bus closes. Cancel-safe: open work stays open.
    async fn read(&mut self, events: &mut Subscription) {
        self.queue_pending_firings().await;
        let reactor = Arc::clone(&self.reactor);
        loop {
            self.reactor.rules.flush(&self.progress).await;
            self.check_room();
            let wake = self.wake();
            tokio::select! {
                batch = events.recv_many(), if !self.is_paused => {
                    let Some(batch) = batch else { return };
                    for event in batch {
                        self.handle_event(event).await;
                        let now = Instant::now();
                        if now.duration_since(self.due_handled_at) >= DUE_INTERVAL {
                            self.handle_due().await;
                        }
                        if now.duration_since(self.committed_at) >= COMMIT_INTERVAL {
                            self.commit(events);
                        }
                    }
                }
                () = sleep(wake) => self.handle_due().await,
                () = reactor.rules.changed() => {}
            }
            self.commit(events);
        }
    }

    /// Commits the cursor.
    fn commit(&mut self, events: &Subscription) {
        self.committed_at = Instant::now();
        let reached = self.progress.lock().reached();
        if reached > self.committed {
            self.committed = reached;
            events.commit(reached);
            self.reactor.drop_prior(reached);
        }
    }

    /// Pauses the reactor while too much work lies behind the oldest open one, or too many events are debounced.
    fn check_room(&mut self) {
        let most = self.reactor.options.waiting.max(1) as u64;
        let (behind, debounced) = (self.progress.lock().behind(), self.debounced.0.len());
        let is_paused = behind >= most * MAX_BEHIND || debounced as u64 >= most;
        if is_paused != self.is_paused {
            self.is_paused = is_paused;
            metrics::REACTOR_PAUSED.set(u64::from(is_paused));
            let cursor = self.committed;
            if is_paused {
                tracing::warn!(
                    behind,
                    debounced,
                    cursor,
                    "reactor paused: it reads no events until the oldest open reaction ends or exceeds reactor_deadline"
                );
            } else {
                tracing::info!(behind, debounced, cursor, "reactor resumed");
            }
        }
    }

    /// Returns the time until the next timer, debounced event or commit.
    fn wake(&self) -> Option<Duration> {
        let now = self.reactor.clock.now();
        let due = self.debounced.next().map(|due| Duration::from_micros(due.saturating_sub(now)));
        // Timers fire when the backlog is processed: it may hold the events that they wait for.
        let rules = self.is_caught_up().then(|| self.reactor.rules.next_due()).flatten();
        let progress = self.progress.lock();
        let commit = (!progress.is_idle() || progress.reached() > self.committed).then_some(COMMIT_INTERVAL);
        // This master may become the leader without an event.
        let term = self.reactor.options.gate.as_ref().map(|_| TERM_INTERVAL);
        [due, rules, commit, term].into_iter().flatten().min()
    }

    /// Handles one event.
    async fn handle_event(&mut self, event: Event) {
        let seq = event.seq();
        self.progress.lock().record_read(seq);
        let matching = self.reactor.entries().reacting(event.tag());
        let has_rule = self.reactor.rules.wants(event.tag());
        if matching.is_empty() && !has_rule {
            return;
        }
        if !self.reactor.is_leader() {
            let (entry, file, reason) = ("".into(), None, Reason::Off);
            return self.reactor.skipped.add(seq, Skip { entry, file, reason });
        }
        // The event is held open while it waits at the gate and until its work items are queued: this future may be
        // dropped in between.
        self.progress.lock().begin(seq);
        self.admit(event, matching, has_rule).await;
        self.progress.lock().end(seq);
    }

    /// Waits at the gate of a cluster, and queues the reactions if they run here.
    async fn admit(&mut self, event: Event, matching: Vec<Arc<Entry>>, has_rule: bool) {
        let seq = event.seq();
        if let Some(gate) = self.reactor.options.gate.clone() {
            match gate.admit(&event).await {
                Admission::OtherMaster => {
                    let (entry, file, reason) = ("".into(), None, Reason::OtherMaster);
                    return self.reactor.skipped.add(seq, Skip { entry, file, reason });
                }
                Admission::ThisMaster { term } if term != self.term => {
                    self.term = term;
                    self.begin_term(&*gate, term).await;
                    self.reactor.recover(&self.bus, seq).await;
                }
                Admission::ThisMaster { .. } => {}
            }
        }
        self.queue_reactions(event, matching, has_rule).await;
    }

    /// Queues the reactions to an event that entries or rules match.
    async fn queue_reactions(&mut self, event: Event, matching: Vec<Arc<Entry>>, has_rule: bool) {
        let fields = RoutingFields::of(&event);
        if self.reactor.is_own(&event, &fields) {
            return;
        }
        let is_included = |gate: &Arc<dyn Gate>| self.reactor.rules.is_included(&**gate, &event);
        if has_rule && !self.reactor.options.gate.as_ref().is_some_and(is_included) {
            let group_size = &self.reactor.options.group_size;
            for work in self.reactor.rules.event(&event, group_size, &self.progress).await {
                self.enqueue(work, None).await;
            }
        }
        if matching.is_empty() {
            return;
        }
        if fields.depth >= self.reactor.options.max_depth {
            return self.stop_loop(&event, fields.depth).await;
        }
        let now = self.reactor.clock.now();
        let mut bindings = Vec::with_capacity(matching.len());
        for entry in matching {
            let Some(limits) = &entry.limits else {
                bindings.push(Binding::Entry(entry));
                continue;
            };
            let key = limits.key(event.tag(), &event.data());
            let verdict = self.reactor.limiter.lock().judge(&entry.pattern, limits, &key, now);
            match verdict {
                Verdict::Now => bindings.push(Binding::Entry(entry)),
                Verdict::Never { option, until } => {
                    tracing::info!(tag = event.tag(), seq = event.seq(), key, option, "reaction skipped by a limit");
                    self.skip(event.seq(), &entry, Reason::Limited { option, key: excerpt(&key), until });
                }
                Verdict::At(due) => self.debounce(due, entry, key, &event, &fields),
            }
        }
        if !bindings.is_empty() {
            self.enqueue(Work::new(event, bindings, fields.depth), fields.id.as_deref()).await;
        }
    }

    /// Begins a term in which this master carries out reactions: its rules continue from the state that another master
    /// offered.
    async fn begin_term(&mut self, gate: &dyn Gate, term: u64) {
        if term != self.rules_term {
            self.rules_term = term;
            self.reactor.rules.adopt_offer(gate).await;
        }
    }

    fn is_caught_up(&self) -> bool {
        self.progress.lock().last_read() >= self.bus.last_seq()
    }

    /// Queues the firings of rules whose reactions were not all dispatched before the restart.
    async fn queue_pending_firings(&self) {
        let rules = Arc::clone(&self.reactor.rules);
        match self.reactor.options.disk.run(move |_| rules.pending_firings()).await.unwrap_or(Err(StoreError::Closed)) {
            Ok(pending) => {
                for work in pending {
                    self.enqueue(work, None).await;
                }
            }
            Err(error) => tracing::error!(%error, "reading the pending firings of rules failed"),
        }
    }

    fn skip(&self, seq: u64, entry: &Entry, reason: Reason) {
        self.reactor.skipped.add(seq, Skip { entry: Arc::clone(&entry.pattern), file: None, reason });
    }

    fn debounce(&mut self, due: u64, entry: Arc<Entry>, key: String, event: &Event, fields: &RoutingFields) {
        let work = Work::new(event.clone(), vec![Binding::Entry(Arc::clone(&entry))], fields.depth);
        self.progress.lock().begin(event.seq());
        self.skip(event.seq(), &entry, Reason::Debounced { key: excerpt(&key), until: due });
        if let Some((_, entry, earlier)) =
            self.debounced.0.insert((Arc::clone(&entry.pattern), key), (due, entry, work))
        {
            metrics::REACTIONS_LIMITED.add(1);
            let earlier = earlier.event.seq();
            self.reactor.skipped.release(earlier, &entry.pattern);
            self.skip(earlier, &entry, Reason::Superseded { by: event.seq() });
            self.progress.lock().end(earlier);
        }
    }

    /// Handles debounced events and timers that are due, and offers the state of rules.
    async fn handle_due(&mut self) {
        self.due_handled_at = Instant::now();
        let now = self.reactor.clock.now();
        for (entry, key, work) in self.debounced.due(now) {
            let seq = work.event.seq();
            let verdict = match &entry.limits {
                Some(limits) => self.reactor.limiter.lock().judge_now(&entry.pattern, limits, &key, now),
                None => Verdict::Now,
            };
            self.reactor.skipped.release(seq, &entry.pattern);
            match verdict {
                Verdict::Never { option, until } => {
                    self.skip(seq, &entry, Reason::Limited { option, key: excerpt(&key), until });
                }
                Verdict::Now | Verdict::At(_) => {
                    let id = RoutingFields::of(&work.event).id;
                    self.enqueue(work, id.as_deref()).await;
                }
            }
            self.progress.lock().end(seq);
        }
        let is_leader =
            self.reactor.is_leader() && self.reactor.options.gate.as_ref().is_none_or(|gate| gate.is_leader());
        if let Some(gate) = self.reactor.options.gate.clone()
            && let Some(term) = gate.term()
            && is_leader
        {
            if self.is_caught_up() {
                self.begin_term(&*gate, term).await;
            }
            // Until the state of an earlier leader is adopted, an offer would overwrite it.
            if term == self.rules_term {
                self.reactor.rules.offer(&*gate);
            }
        }
        if self.is_caught_up() && is_leader {
            for work in self.reactor.rules.advance(&self.progress).await {
                self.enqueue(work, None).await;
            }
        }
    }

    /// Queues work behind all work with the same tag and id.
    async fn enqueue(&self, work: Work, id: Option<&str>) {
        let mut hasher = DefaultHasher::new();
        (work.event.tag(), id).hash(&mut hasher);
        self.queue.push(hasher.finish(), work).await;
    }

    /// Reports an event that starts no reaction because the chain of reactions before it is too long.
    async fn stop_loop(&self, event: &Event, depth: u64) {
        metrics::REACTION_LOOPS.add(1);
        let message = format!(
            "{depth} reactions lead from one to the next up to this event: it starts no reaction (reactor_max_depth); \
             `salt-run reactor.explain {}` shows them",
            event.seq()
        );
        report(&self.bus, event, "", "", depth, &message).await;
    }
}

/// Logs the failure of a reaction and publishes it as an event.
pub(crate) async fn report(bus: &Bus, event: &Event, entry: &str, file: &str, depth: u64, message: &str) {
    tracing::error!(tag = event.tag(), seq = event.seq(), "{message}");
    let body = map! {
        "tag" => event.tag(),
        "file" => file,
        "message" => message,
        "_cause" => event.seq(),
        "_entry" => entry,
        crate::routing_fields::DEPTH => depth + 1,
    };
    if let Err(error) = bus.fire(ERROR_TAG, &body).await {
        tracing::error!(%error, "publishing a reactor error failed");
    }
}

//! Following the bus: which events lead to reactions, and when.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_core::bus::{Bus, Filter, Start, Subscription};
use brine_core::event::Event;
use brine_core::store::StoreError;
use brine_core::{Map, map, metrics};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::entries::{Entries, Entry};
use crate::limits::Verdict;
use crate::peek::Peek;
use crate::plan::Bound;
use crate::schedule::{self, Progress, Run, Scheduler};
use crate::{Dispatch, Reactor};

/// The tag under which the reactor says that something is wrong.
pub(crate) const ERROR_TAG: &str = "salt/reactor/error";
/// The name under which it remembers how far it got.
const SUBSCRIBER: &str = "reactor";
/// How often what is under way is looked at, to remember how far it got.
const COMMIT: Duration = Duration::from_millis(50);
/// How long a reaction keeps those behind it waiting. What takes longer goes on beside them.
const PATIENCE: Duration = Duration::from_secs(10);

/// An event that is to be reacted to.
pub(crate) struct Work {
    pub event: Event,
    pub bound: Vec<Bound>,
    /// More variables for the templates: what a rule says of itself.
    pub more: Option<Map>,
    /// How many reactions lie behind the event.
    pub depth: u64,
    pub taken: Instant,
    /// The number of the firing, if a rule over time has fired.
    pub firing: Option<u64>,
}

impl schedule::Work for Work {
    fn seq(&self) -> u64 {
        // What a rule fires is kept by itself: the event behind it may be long ago.
        if self.firing.is_some() { u64::MAX } else { self.event.seq() }
    }
}

/// Events that wait for quiet, the last one of each burst: by the entry's pattern and what keeps its events
/// apart.
#[derive(Default)]
struct Held(HashMap<HeldKey, HeldEvent>);

type HeldKey = (Arc<str>, String);
/// When its time comes, in microseconds since 1970.
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

/// The time now, in microseconds since 1970.
pub(crate) fn now_micros() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

impl<D: Dispatch> Reactor<D> {
    /// The reactor's place on the bus. Taken before anything else is served: what is fired from then on
    /// has its reactions, also after a crash.
    pub fn subscribe(bus: &Bus) -> Result<Subscription, StoreError> {
        bus.subscribe(Filter::All, Start::Durable(SUBSCRIBER.into()))
    }

    /// Reacts until `shutdown`, or until the bus ends.
    pub async fn run(self: Arc<Self>, bus: Bus, mut events: Subscription, shutdown: CancellationToken) {
        let from = events.position();
        self.recover(&bus, from).await;
        let progress = Arc::new(Mutex::new(Progress::new(from - 1)));
        let (reactor, of_run) = (Arc::clone(&self), bus.clone());
        let mut follower = Follower {
            scheduler: Scheduler::new(self.options.workers, self.options.waiting, Arc::clone(&progress)),
            progress,
            held: Held::default(),
            reactor: self,
            bus,
            run: Arc::new(move |work| {
                let (reactor, bus) = (Arc::clone(&reactor), of_run.clone());
                Box::pin(async move { reactor.react(&bus, work).await })
            }),
        };
        follower.begin_left_over().await;
        let mut committed = from - 1;
        loop {
            let wake = follower.wake(committed);
            tokio::select! {
                batch = events.recv_many() => {
                    let Some(batch) = batch else { break };
                    for event in batch {
                        tokio::select! {
                            () = follower.take(event) => {}
                            () = shutdown.cancelled() => break,
                        }
                    }
                }
                () = sleep(wake) => {
                    follower.scheduler.let_go(PATIENCE, &follower.run);
                    follower.take_due().await;
                }
                () = shutdown.cancelled() => break,
            }
            let reached = follower.progress.lock().reached();
            if reached > committed && !shutdown.is_cancelled() {
                committed = reached;
                events.commit(reached);
            }
        }
        // What is under way is finished, unless the process is in a hurry; the rest comes again.
        follower.scheduler.finish().await;
        if !shutdown.is_cancelled() {
            events.commit(follower.progress.lock().reached());
        }
    }
}

async fn sleep(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

struct Follower<D> {
    reactor: Arc<Reactor<D>>,
    bus: Bus,
    progress: Arc<Mutex<Progress>>,
    scheduler: Scheduler<Work>,
    held: Held,
    run: Run<Work>,
}

impl<D: Dispatch> Follower<D> {
    /// How long until something is to be done without an event.
    fn wake(&self, committed: u64) -> Option<Duration> {
        let due = self.held.next().map(|due| Duration::from_micros(due.saturating_sub(now_micros())));
        // Timers wait until what has happened so far has been looked at: what they wait for may be there.
        let rules = self.is_caught_up().then(|| self.reactor.overtime.next_due()).flatten();
        let rules = rules.map(|due| Duration::from_micros(due.saturating_sub(now_micros())));
        let progress = self.progress.lock();
        let commit = (!progress.is_idle() || progress.reached() > committed).then_some(COMMIT);
        [due, rules, commit].into_iter().flatten().min()
    }

    /// Looks at one event.
    async fn take(&mut self, event: Event) {
        self.progress.lock().see(event.seq());
        if !self.reactor.is_leader() {
            return;
        }
        let entries = self.reactor.entries();
        let matching = if wants(&entries, event.tag()) { entries.matching(event.tag()) } else { Vec::new() };
        let is_ruled = self.reactor.overtime.wants(event.tag());
        if matching.is_empty() && !is_ruled {
            return;
        }
        let peek = Peek::at(&event);
        if self.is_own(&event, &peek) {
            return;
        }
        if is_ruled {
            for work in self.reactor.overtime.event(&event, &self.reactor.options.group_size) {
                self.begin(work, None).await;
            }
        }
        if matching.is_empty() {
            return;
        }
        if peek.depth >= self.reactor.options.max_depth {
            return self.stop_loop(&event, peek.depth).await;
        }
        let now = now_micros();
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
                Verdict::Never(option) => {
                    tracing::info!(tag = event.tag(), seq = event.seq(), key, option, "a reaction is left out");
                }
                Verdict::At(due) => self.hold(due, entry, key, &event, &peek),
            }
        }
        if !bound.is_empty() {
            let work = Work { event, bound, more: None, depth: peek.depth, taken: Instant::now(), firing: None };
            self.begin(work, peek.id.as_deref()).await;
        }
    }

    fn is_caught_up(&self) -> bool {
        self.progress.lock().seen() >= self.bus.last_seq()
    }

    /// What rules had come to before a restart, and was not handed over to the end.
    async fn begin_left_over(&self) {
        match self.reactor.overtime.left_over() {
            Ok(left) => {
                for work in left {
                    self.begin(work, None).await;
                }
            }
            Err(error) => tracing::error!(%error, "what rules had come to before the restart cannot be read"),
        }
    }

    /// The events of the reactor's own runner and wheel calls lead to no reactions, as in Salt.
    fn is_own(&self, event: &Event, peek: &Peek) -> bool {
        let is_call = event.tag().starts_with("salt/run/") || event.tag().starts_with("salt/wheel/");
        is_call && peek.user.as_deref() == Some(self.reactor.options.user)
    }

    fn hold(&mut self, due: u64, entry: Arc<Entry>, key: String, event: &Event, peek: &Peek) {
        let work = Work {
            event: event.clone(),
            bound: vec![Bound::Entry(Arc::clone(&entry))],
            more: None,
            depth: peek.depth,
            taken: Instant::now(),
            firing: None,
        };
        self.progress.lock().begin(event.seq());
        if let Some((_, _, earlier)) = self.held.0.insert((Arc::clone(&entry.pattern), key), (due, entry, work)) {
            metrics::REACTIONS_LIMITED.add(1);
            self.progress.lock().end(earlier.event.seq());
        }
    }

    /// What has waited for its time.
    async fn take_due(&mut self) {
        let now = now_micros();
        for (entry, key, work) in self.held.due(now) {
            let seq = work.event.seq();
            let verdict = match &entry.limits {
                Some(limits) => self.reactor.limiter.lock().judge_now(&entry, limits, &key, now),
                None => Verdict::Now,
            };
            if verdict == Verdict::Now {
                let id = Peek::at(&work.event).id;
                self.begin(work, id.as_deref()).await;
            }
            self.progress.lock().end(seq);
        }
        if self.is_caught_up() && self.reactor.is_leader() {
            for work in self.reactor.overtime.tick() {
                self.begin(work, None).await;
            }
        }
    }

    /// Puts work behind all other of the same tag and id.
    async fn begin(&self, work: Work, id: Option<&str>) {
        let mut hasher = DefaultHasher::new();
        (work.event.tag(), id).hash(&mut hasher);
        self.scheduler.put(hasher.finish(), work, &self.run).await;
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

/// An error must not lead to itself: only an entry that names its tag asks for that.
fn wants(entries: &Entries, tag: &str) -> bool {
    tag != ERROR_TAG || entries.names(ERROR_TAG)
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

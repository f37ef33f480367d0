//! The worker queue: works of one key run one after the other, keys run side by side, on a bounded number of threads.
//!
//! Reactions call functions that may block, so workers are threads. Work that runs longer than [`Bounds::detach`] is
//! detached: it keeps its thread and its place before the other works of its key, and another thread takes over its
//! worker's place. Work that exceeds its deadline is cancelled and given up, whether its thread comes back or not.
//! Detached threads are bounded; at the bound slow work keeps its worker, and new work waits.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_runtime::supervisor;
use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::deadline::Deadline;
use crate::metrics;
use crate::progress::Progress;

/// How long an idle worker keeps its thread: starting one for each event costs more than the rest.
const LINGER: Duration = Duration::from_secs(2);
/// How long work may take to end by itself when the queue is stopped, and how long once it is cancelled.
const STOP_GRACE: Duration = Duration::from_secs(1);
const STOP_CANCELLED: Duration = Duration::from_millis(500);

/// The bounds of a worker queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// How many works run side by side, detached ones not counted.
    pub workers: usize,
    /// How many works are in memory.
    pub waiting: usize,
    /// How many threads may be detached.
    pub detached: usize,
    /// The time after which work is detached.
    pub detach: Duration,
    /// The time after which work is cancelled and given up.
    pub deadline: Duration,
}

/// Why work is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GaveUp {
    /// It exceeded its deadline.
    Overdue,
    /// It panicked.
    Panicked,
}

/// How a run of work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The work is done, or its failure is persisted.
    Ended,
    /// The work was cancelled before its end.
    Cancelled,
}

/// Does the works of a queue.
pub(crate) trait Handler: Send + Sync + 'static {
    /// One work.
    type Work: Send + Sync + 'static;

    /// Returns the sequence number that is open in the progress until the work has ended.
    fn seq(work: &Self::Work) -> u64;

    /// Does the work.
    fn run(&self, work: &Self::Work, deadline: &Deadline) -> impl Future<Output = Outcome> + Send;

    /// Records that work is not done. Returns whether that is persisted: if not, the work stays open and is done again
    /// after the next start.
    fn give_up(&self, work: &Self::Work, why: GaveUp) -> impl Future<Output = bool> + Send;
}

/// A queue of works with its workers.
pub(crate) struct Scheduler<H: Handler> {
    shared: Arc<Shared<H>>,
}

struct Shared<H: Handler> {
    handler: H,
    bounds: Bounds,
    queues: Mutex<Queues<H::Work>>,
    /// Something is ready, or no more will come.
    ready: Condvar,
    /// Work has ended.
    ended: Notify,
    /// How many more works may be in memory.
    room: Semaphore,
    progress: Arc<Mutex<Progress>>,
    runtime: Handle,
    /// Ends the watch.
    closed: CancellationToken,
}

struct Queues<W> {
    /// A key is here while one of its works waits or runs.
    keys: HashMap<u64, VecDeque<Arc<W>>>,
    /// Keys of which work waits and none runs.
    ready: VecDeque<u64>,
    /// The works that have a thread, by number.
    running: HashMap<u64, Running<W>>,
    next: u64,
    /// Threads that count as workers.
    workers: usize,
    /// Workers that wait for work.
    idle: usize,
    detached: usize,
    /// Whether the last look found slow work that could not be detached.
    is_full: bool,
    /// No worker takes more work.
    is_stopped: bool,
}

struct Running<W> {
    work: Arc<W>,
    key: u64,
    since: Instant,
    deadline: Deadline,
    /// The thread does not count as a worker any more.
    is_detached: bool,
    /// The work has been taken away from its thread: it is recorded as not done.
    is_given_up: bool,
}

impl<H: Handler> Scheduler<H> {
    /// Creates a queue and starts its watch. Must be called within a runtime.
    pub fn new(handler: H, bounds: Bounds, progress: Arc<Mutex<Progress>>) -> Self {
        let queues = Queues {
            keys: HashMap::new(),
            ready: VecDeque::new(),
            running: HashMap::new(),
            next: 0,
            workers: 0,
            idle: 0,
            detached: 0,
            is_full: false,
            is_stopped: false,
        };
        let shared = Arc::new(Shared {
            handler,
            bounds: Bounds { workers: bounds.workers.max(1), ..bounds },
            queues: Mutex::new(queues),
            ready: Condvar::new(),
            ended: Notify::new(),
            room: Semaphore::new(bounds.waiting.clamp(1, Semaphore::MAX_PERMITS)),
            progress,
            runtime: Handle::current(),
            closed: CancellationToken::new(),
        });
        supervisor::spawn("deadlines of reactions", Arc::clone(&shared).watch());
        Scheduler { shared }
    }

    /// Puts work behind all of the same key. Waits while too many works are in memory.
    pub async fn put(&self, key: u64, work: H::Work) {
        // Nobody closes the semaphore.
        let Ok(place) = self.shared.room.acquire().await else { return };
        // Given back when the work has ended.
        place.forget();
        metrics::QUEUE_DEPTH.add(1);
        self.shared.progress.lock().begin(H::seq(&work));
        let mut queues = self.shared.queues.lock();
        match queues.keys.entry(key) {
            Entry::Occupied(mut waiting) => waiting.get_mut().push_back(Arc::new(work)),
            Entry::Vacant(vacant) => {
                vacant.insert(VecDeque::from([Arc::new(work)]));
                queues.ready.push_back(key);
                self.shared.call_workers(&mut queues);
            }
        }
    }

    /// Waits until all works have ended.
    pub async fn finish(&self) {
        self.shared.until(|queues| queues.keys.is_empty() && queues.running.is_empty()).await;
    }

    /// Stops the workers within two seconds: running work may end, is then cancelled, and then left behind with its
    /// thread. What has not ended stays open in the progress.
    pub async fn stop(&self) {
        self.shared.queues.lock().is_stopped = true;
        self.shared.ready.notify_all();
        let ended = || self.shared.until(|queues| queues.running.is_empty());
        if tokio::time::timeout(STOP_GRACE, ended()).await.is_ok() {
            return;
        }
        self.shared.queues.lock().running.values().for_each(|one| one.deadline.cancel());
        if tokio::time::timeout(STOP_CANCELLED, ended()).await.is_err() {
            let threads = self.shared.queues.lock().running.len();
            tracing::warn!(
                threads,
                "stopping the reactor failed: reactions are still running; they are left behind and worked on again after the next start"
            );
        }
    }
}

impl<H: Handler> Drop for Scheduler<H> {
    fn drop(&mut self) {
        self.shared.closed.cancel();
        let mut queues = self.shared.queues.lock();
        queues.is_stopped = true;
        let dropped = queues.keys.values().map(VecDeque::len).sum::<usize>();
        metrics::QUEUE_DEPTH.sub(dropped as u64);
        queues.keys.clear();
        queues.ready.clear();
        self.shared.ready.notify_all();
    }
}

impl<H: Handler> Shared<H> {
    /// Starts workers for works that are ready, as far as there may be more.
    fn call_workers(self: &Arc<Self>, queues: &mut Queues<H::Work>) {
        if queues.idle > 0 {
            self.ready.notify_one();
        }
        let mut starting = queues.ready.len().saturating_sub(queues.idle);
        while starting > 0 && queues.workers < self.bounds.workers && !queues.is_stopped {
            let shared = Arc::clone(self);
            match std::thread::Builder::new().name("reactor".into()).spawn(move || shared.work()) {
                Ok(_) => queues.workers += 1,
                // The watch tries again.
                Err(error) => {
                    tracing::error!(%error, "starting a reactor worker failed; it is tried again");
                    return;
                }
            }
            starting -= 1;
        }
    }

    /// Works until there has been nothing to do for a while, or until other threads do what is to be done.
    fn work(self: Arc<Self>) {
        while let Some((number, work, deadline)) = self.next() {
            let run = || self.runtime.block_on(self.handler.run(&work, &deadline));
            let why = match catch_unwind(AssertUnwindSafe(run)) {
                Ok(Outcome::Ended) => None,
                Ok(Outcome::Cancelled) => Some(GaveUp::Overdue),
                Err(_) => Some(GaveUp::Panicked),
            };
            let has_ended = match why {
                None => true,
                // The watch may have been quicker, and work that the stop cancels is done again.
                Some(why) => {
                    if let Some(key) = self.claim(number) {
                        let give_up = || self.runtime.block_on(self.handler.give_up(&work, why));
                        if catch_unwind(AssertUnwindSafe(give_up)).unwrap_or(false) {
                            self.end(&mut self.queues.lock(), key, H::seq(&work));
                        }
                    }
                    false
                }
            };
            if !self.leave(number, has_ended) {
                return;
            }
        }
    }

    /// The next work with its number and deadline; nothing when the thread is to end.
    fn next(&self) -> Option<(u64, Arc<H::Work>, Deadline)> {
        let mut queues = self.queues.lock();
        loop {
            while !queues.is_stopped
                && let Some(key) = queues.ready.pop_front()
            {
                let Some(work) = queues.keys.get_mut(&key).and_then(VecDeque::pop_front) else {
                    queues.keys.remove(&key);
                    self.ended.notify_waiters();
                    continue;
                };
                let (number, deadline) = (queues.next, Deadline::after(self.bounds.deadline));
                queues.next += 1;
                let running = Running {
                    work: Arc::clone(&work),
                    key,
                    since: Instant::now(),
                    deadline: deadline.clone(),
                    is_detached: false,
                    is_given_up: false,
                };
                queues.running.insert(number, running);
                return Some((number, work, deadline));
            }
            queues.idle += 1;
            let is_over = queues.is_stopped || self.ready.wait_for(&mut queues, LINGER).timed_out();
            queues.idle -= 1;
            if queues.is_stopped || (is_over && queues.ready.is_empty()) {
                queues.workers -= 1;
                return None;
            }
        }
    }

    /// Takes a work away from its thread, to give it up. Returns its key if that is to be done here.
    fn claim(&self, number: u64) -> Option<u64> {
        let mut queues = self.queues.lock();
        let is_stopped = queues.is_stopped;
        let one = queues.running.get_mut(&number).filter(|one| !one.is_given_up && !is_stopped)?;
        one.is_given_up = true;
        Some(one.key)
    }

    /// Ends a work: the cursor may pass it, and the next one of its key may run.
    fn end(&self, queues: &mut Queues<H::Work>, key: u64, seq: u64) {
        self.progress.lock().end(seq);
        metrics::QUEUE_DEPTH.sub(1);
        self.room.add_permits(1);
        // At the end of the line: no key keeps the others waiting.
        queues.ready.push_back(key);
    }

    /// The thread is done with a work. Returns whether it goes on as a worker.
    fn leave(self: &Arc<Self>, number: u64, has_ended: bool) -> bool {
        let mut queues = self.queues.lock();
        let Some(one) = queues.running.remove(&number) else { return false };
        if has_ended && !one.is_given_up {
            self.end(&mut queues, one.key, H::seq(&one.work));
        }
        self.ended.notify_waiters();
        if !one.is_detached {
            return true;
        }
        queues.detached -= 1;
        metrics::REACTOR_DETACHED.sub(1);
        let goes_on = queues.workers < self.bounds.workers;
        if goes_on {
            queues.workers += 1;
        } else {
            self.call_workers(&mut queues);
        }
        goes_on
    }

    /// Waits until the queues are so.
    async fn until(&self, is_so: impl Fn(&Queues<H::Work>) -> bool) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if is_so(&self.queues.lock()) {
                return;
            }
            ended.await;
        }
    }

    /// Detaches slow work and gives up overdue work until the queue is dropped.
    async fn watch(self: Arc<Self>) {
        let tick = (self.bounds.detach.min(self.bounds.deadline) / 10)
            .clamp(Duration::from_millis(5), Duration::from_millis(500));
        loop {
            tokio::select! {
                () = tokio::time::sleep(tick) => {}
                () = self.closed.cancelled() => return,
            }
            for (key, work) in self.overdue() {
                let shared = Arc::clone(&self);
                supervisor::spawn("reaction given up", async move {
                    if shared.handler.give_up(&work, GaveUp::Overdue).await {
                        let mut queues = shared.queues.lock();
                        shared.end(&mut queues, key, H::seq(&work));
                        shared.call_workers(&mut queues);
                    }
                });
            }
            self.detach();
        }
    }

    /// Cancels works that have exceeded their deadlines, and takes them away from their threads. Returns them with
    /// their keys.
    fn overdue(&self) -> Vec<(u64, Arc<H::Work>)> {
        let mut queues = self.queues.lock();
        if queues.is_stopped {
            return Vec::new();
        }
        let now = Instant::now();
        let overdue = queues.running.values_mut().filter(|one| !one.is_given_up && one.deadline.at() <= now);
        let cancel = |one: &mut Running<H::Work>| {
            one.is_given_up = true;
            one.deadline.cancel();
            (one.key, Arc::clone(&one.work))
        };
        overdue.map(cancel).collect()
    }

    /// Detaches slow work, as far as there may be more detached threads.
    fn detach(self: &Arc<Self>) {
        let mut queues = self.queues.lock();
        let (mut room, before) = (self.bounds.detached.saturating_sub(queues.detached), queues.detached);
        let (mut detached, mut is_full) = (0, false);
        for one in queues.running.values_mut() {
            if one.is_detached || !(one.is_given_up || one.since.elapsed() > self.bounds.detach) {
                continue;
            }
            is_full |= room == 0;
            if room > 0 {
                one.is_detached = true;
                room -= 1;
                detached += 1;
            }
        }
        queues.workers -= detached;
        queues.detached += detached;
        metrics::REACTOR_DETACHED.add(detached as u64);
        if is_full && !queues.is_full {
            tracing::error!(
                threads = before + detached,
                "detaching slow reactions failed: too many of them are running; new reactions wait for a free worker. \
                 `salt-run state.event` and the log show what they call"
            );
        }
        queues.is_full = is_full;
        self.call_workers(&mut queues);
    }
}

#[cfg(test)]
mod tests;

//! The worker queue: work items of one key run in order, and keys run in parallel, on a bounded number of threads.
//!
//! Reactions call functions that may block, so workers are threads. Work that runs longer than [`Bounds::detach`] is
//! detached: it keeps its thread and still blocks its key, and a new thread becomes a worker. Work that exceeds its
//! deadline is cancelled and given up, whether or not its thread returns. The number of detached threads is bounded; at
//! the bound slow work keeps its worker, and new work waits.
//!
//! Most reactions take microseconds and do not wait: more threads than processors would only take turns, each a time
//! slice behind the other. As many workers as processors are woken at once, and further ones as soon as running work
//! blocks.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_runtime::{STACK_SIZE, supervisor};
use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::deadline::Deadline;
use crate::metrics;
use crate::progress::Progress;

/// The time after which an idle worker ends: a thread for each event would cost more than the event.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);
/// The time after which running work counts as blocking: a further worker may run beside it.
const BLOCKS_AFTER: Duration = Duration::from_millis(2);
/// The grace periods of the stop: before running work is cancelled, and after that.
const STOP_GRACE: Duration = Duration::from_secs(1);
const CANCEL_GRACE: Duration = Duration::from_millis(500);

/// The bounds of a worker queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The number of work items that run in parallel, without detached ones.
    pub workers: usize,
    /// The number of work items in memory.
    pub waiting: usize,
    /// The number of detached threads.
    pub detached: usize,
    /// The time after which work is detached.
    pub detach: Duration,
    /// The time after which work is cancelled and given up.
    pub deadline: Duration,
}

/// The cause of giving up work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GiveUpCause {
    /// It exceeded its deadline.
    Overdue,
    /// It panicked.
    Panicked,
}

/// The outcome of running work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The work has ended, or its failure is persisted.
    Ended,
    /// The work was cancelled.
    Cancelled,
}

/// Runs the work items of a queue.
pub(crate) trait Handler: Send + Sync + 'static {
    /// The type of work items.
    type Work: Send + Sync + 'static;

    /// Returns the sequence number that the work holds open in the progress.
    fn seq(work: &Self::Work) -> u64;

    /// Runs the work.
    fn run(&self, work: &Self::Work, deadline: &Deadline) -> impl Future<Output = Outcome> + Send;

    /// Records that work was given up. Returns whether that is persisted; otherwise the work stays open and is repeated
    /// after the next start.
    fn give_up(&self, work: &Self::Work, cause: GiveUpCause) -> impl Future<Output = bool> + Send;
}

/// A queue of work items, with its workers.
pub(crate) struct WorkerQueue<H: Handler> {
    shared: Arc<Shared<H>>,
}

struct Shared<H: Handler> {
    handler: H,
    bounds: Bounds,
    queues: Mutex<Queues<H::Work>>,
    /// Notified when a key becomes ready and when the queue stops.
    ready: Condvar,
    /// Notified when work has ended.
    ended: Notify,
    /// Notified when work is ready while the workers for non-blocking work are busy.
    busy: Notify,
    /// The number of workers that run non-blocking work.
    processors: usize,
    /// Permits for further work items in memory.
    room: Semaphore,
    progress: Arc<Mutex<Progress>>,
    runtime: Handle,
    /// Ends [`Shared::watch`].
    closed: CancellationToken,
}

struct Queues<W> {
    /// The waiting work items of each key. A key is present while one of its work items waits or runs.
    keys: HashMap<u64, VecDeque<Arc<W>>>,
    /// Keys with waiting and without running work.
    ready: VecDeque<u64>,
    /// The running work items by number.
    running: HashMap<u64, Running<W>>,
    next: u64,
    /// The number of workers.
    workers: usize,
    /// The number of idle workers.
    idle: usize,
    /// The number of idle workers that are notified and do not run yet.
    waking: usize,
    /// The number of workers whose work blocks.
    blocking: usize,
    detached: usize,
    /// Whether slow work could not be detached at the last poll.
    is_full: bool,
    /// Whether workers take no more work.
    is_stopped: bool,
}

struct Running<W> {
    work: Arc<W>,
    key: u64,
    since: Instant,
    deadline: Deadline,
    /// Whether it counts in [`Queues::blocking`].
    is_blocking: bool,
    /// Whether the thread no longer counts as a worker.
    is_detached: bool,
    /// Whether the work is given up, whatever its thread does.
    is_given_up: bool,
}

impl<H: Handler> WorkerQueue<H> {
    /// Creates a queue and starts its watch. Must be called within a runtime.
    pub fn new(handler: H, bounds: Bounds, progress: Arc<Mutex<Progress>>) -> Self {
        let queues = Queues {
            keys: HashMap::new(),
            ready: VecDeque::new(),
            running: HashMap::new(),
            next: 0,
            workers: 0,
            idle: 0,
            waking: 0,
            blocking: 0,
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
            busy: Notify::new(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            room: Semaphore::new(bounds.waiting.clamp(1, Semaphore::MAX_PERMITS)),
            progress,
            runtime: Handle::current(),
            closed: CancellationToken::new(),
        });
        supervisor::spawn("deadlines of reactions", Arc::clone(&shared).watch());
        supervisor::spawn("blocking reactions", Arc::clone(&shared).watch_blocking());
        WorkerQueue { shared }
    }

    /// Queues work behind all work of the same key. Blocks while the queue is full.
    pub async fn push(&self, key: u64, work: H::Work) {
        // The semaphore is never closed.
        let Ok(permit) = self.shared.room.acquire().await else { return };
        // Released when the work has ended.
        permit.forget();
        metrics::QUEUE_DEPTH.add(1);
        self.shared.progress.lock().begin(H::seq(&work));
        let mut queues = self.shared.queues.lock();
        match queues.keys.entry(key) {
            Entry::Occupied(mut waiting) => waiting.get_mut().push_back(Arc::new(work)),
            Entry::Vacant(vacant) => {
                vacant.insert(VecDeque::from([Arc::new(work)]));
                queues.ready.push_back(key);
                self.shared.wake_workers(&mut queues);
            }
        }
    }

    /// Waits until all work items have ended.
    pub async fn finish(&self) {
        self.shared.until(|queues| queues.keys.is_empty() && queues.running.is_empty()).await;
    }

    /// Stops the workers within two seconds: running work may end within [`STOP_GRACE`], is then cancelled, and
    /// abandoned with its thread after [`CANCEL_GRACE`]. Unfinished work stays open in the progress.
    pub async fn stop(&self) {
        self.shared.queues.lock().is_stopped = true;
        self.shared.ready.notify_all();
        let ended = || self.shared.until(|queues| queues.running.is_empty());
        if tokio::time::timeout(STOP_GRACE, ended()).await.is_ok() {
            return;
        }
        self.shared.queues.lock().running.values().for_each(|one| one.deadline.cancel());
        if tokio::time::timeout(CANCEL_GRACE, ended()).await.is_err() {
            let threads = self.shared.queues.lock().running.len();
            tracing::warn!(
                threads,
                "stopping the reactor timed out: running reactions are abandoned and repeated after the next start"
            );
        }
    }
}

impl<H: Handler> Drop for WorkerQueue<H> {
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
    /// Wakes or starts workers for ready keys, within the bounds.
    fn wake_workers(self: &Arc<Self>, queues: &mut Queues<H::Work>) {
        let running = queues.workers - queues.idle + queues.waking;
        let free = (self.processors + queues.blocking).saturating_sub(running);
        if free < queues.ready.len() {
            self.busy.notify_one();
        }
        let mut starting = queues.ready.len().saturating_sub(queues.waking).min(free);
        while starting > 0 && !queues.is_stopped {
            starting -= 1;
            if queues.idle > queues.waking && self.ready.notify_one() {
                queues.waking += 1;
                continue;
            }
            if queues.workers >= self.bounds.workers {
                return;
            }
            let shared = Arc::clone(self);
            let builder = std::thread::Builder::new().name("reactor".into()).stack_size(STACK_SIZE);
            match builder.spawn(move || shared.work()) {
                Ok(_) => queues.workers += 1,
                // The watch retries.
                Err(error) => {
                    tracing::error!(%error, "starting a reactor worker failed; it is retried");
                    return;
                }
            }
        }
    }

    /// Runs work items until the queue has been idle for [`IDLE_TIMEOUT`], or until enough other workers run.
    fn work(self: Arc<Self>) {
        while let Some((number, work, deadline)) = self.next() {
            let run = || self.runtime.block_on(self.handler.run(&work, &deadline));
            let cause = match catch_unwind(AssertUnwindSafe(run)) {
                Ok(Outcome::Ended) => None,
                Ok(Outcome::Cancelled) => Some(GiveUpCause::Overdue),
                Err(_) => Some(GiveUpCause::Panicked),
            };
            let has_ended = match cause {
                None => true,
                // The watch may have claimed it already, and work cancelled by the stop is repeated.
                Some(cause) => {
                    if let Some(key) = self.claim(number) {
                        let give_up = || self.runtime.block_on(self.handler.give_up(&work, cause));
                        if catch_unwind(AssertUnwindSafe(give_up)).unwrap_or(false) {
                            self.end(&mut self.queues.lock(), key, H::seq(&work));
                        }
                    }
                    false
                }
            };
            if !self.finish_running(number, has_ended) {
                return;
            }
        }
    }

    /// Returns the next work item with its number and deadline; `None` if the thread should end.
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
                    is_blocking: false,
                    is_detached: false,
                    is_given_up: false,
                };
                queues.running.insert(number, running);
                return Some((number, work, deadline));
            }
            queues.idle += 1;
            let is_over = queues.is_stopped || self.ready.wait_for(&mut queues, IDLE_TIMEOUT).timed_out();
            queues.idle -= 1;
            if !is_over {
                queues.waking = queues.waking.saturating_sub(1);
            }
            if queues.is_stopped || (is_over && queues.ready.is_empty()) {
                queues.workers -= 1;
                return None;
            }
        }
    }

    /// Claims a running work item in order to give it up. Returns its key; `None` if it was claimed before.
    fn claim(&self, number: u64) -> Option<u64> {
        let mut queues = self.queues.lock();
        let is_stopped = queues.is_stopped;
        let one = queues.running.get_mut(&number).filter(|one| !one.is_given_up && !is_stopped)?;
        one.is_given_up = true;
        Some(one.key)
    }

    /// Ends a work item: the cursor may pass it, and the next item of its key may run.
    fn end(&self, queues: &mut Queues<H::Work>, key: u64, seq: u64) {
        self.progress.lock().end(seq);
        metrics::QUEUE_DEPTH.sub(1);
        self.room.add_permits(1);
        // Round robin: no key starves the others.
        queues.ready.push_back(key);
    }

    /// Removes a work item from the running ones. Returns whether its thread continues as a worker.
    fn finish_running(self: &Arc<Self>, number: u64, has_ended: bool) -> bool {
        let mut queues = self.queues.lock();
        let Some(one) = queues.running.remove(&number) else { return false };
        if has_ended && !one.is_given_up {
            self.end(&mut queues, one.key, H::seq(&one.work));
        }
        self.ended.notify_waiters();
        queues.blocking -= usize::from(one.is_blocking);
        if !one.is_detached {
            return true;
        }
        queues.detached -= 1;
        metrics::REACTOR_DETACHED.sub(1);
        let continues = queues.workers < self.bounds.workers;
        if continues {
            queues.workers += 1;
        } else {
            self.wake_workers(&mut queues);
        }
        continues
    }

    /// Waits until a condition on the queues holds.
    async fn until(&self, holds: impl Fn(&Queues<H::Work>) -> bool) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if holds(&self.queues.lock()) {
                return;
            }
            ended.await;
        }
    }

    /// Wakes further workers beside blocking work until the queue is dropped.
    async fn watch_blocking(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.busy.notified() => {}
                () = self.closed.cancelled() => return,
            }
            tokio::time::sleep(BLOCKS_AFTER).await;
            let mut queues = self.queues.lock();
            let queues = &mut *queues;
            for one in queues.running.values_mut() {
                if !one.is_blocking && !one.is_detached && one.since.elapsed() >= BLOCKS_AFTER {
                    one.is_blocking = true;
                    queues.blocking += 1;
                }
            }
            // Notifies this task again while work is ready.
            self.wake_workers(queues);
        }
    }

    /// Detaches slow work and gives up overdue work until the queue is dropped.
    async fn watch(self: Arc<Self>) {
        let interval = (self.bounds.detach.min(self.bounds.deadline) / 10)
            .clamp(Duration::from_millis(5), Duration::from_millis(500));
        loop {
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                () = self.closed.cancelled() => return,
            }
            for (key, work) in self.overdue() {
                let shared = Arc::clone(&self);
                supervisor::spawn("reaction given up", async move {
                    if shared.handler.give_up(&work, GiveUpCause::Overdue).await {
                        let mut queues = shared.queues.lock();
                        shared.end(&mut queues, key, H::seq(&work));
                        shared.wake_workers(&mut queues);
                    }
                });
            }
            self.detach();
        }
    }

    /// Cancels and claims the work items that have exceeded their deadlines. Returns them with their keys.
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

    /// Detaches slow work, within the bound.
    fn detach(self: &Arc<Self>) {
        let mut queues = self.queues.lock();
        let (mut room, before) = (self.bounds.detached.saturating_sub(queues.detached), queues.detached);
        let (mut detached, mut blocking, mut is_full) = (0, 0, false);
        for one in queues.running.values_mut() {
            if one.is_detached || !(one.is_given_up || one.since.elapsed() > self.bounds.detach) {
                continue;
            }
            is_full |= room == 0;
            if room > 0 {
                blocking += usize::from(std::mem::take(&mut one.is_blocking));
                one.is_detached = true;
                room -= 1;
                detached += 1;
            }
        }
        queues.workers -= detached;
        queues.blocking -= blocking;
        queues.detached += detached;
        metrics::REACTOR_DETACHED.add(detached as u64);
        if is_full && !queues.is_full {
            tracing::error!(
                threads = before + detached,
                "detaching slow reactions failed: too many are detached; new reactions wait for a free worker. \
                 `salt-run state.event` and the log show the functions that they call"
            );
        }
        queues.is_full = is_full;
        self.wake_workers(&mut queues);
    }
}

#[cfg(test)]
mod tests;

//! Work side by side, but in order for each key: events of the same tag and id one after the other.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_core::metrics;
use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

/// How far all workers together have got: the highest number below which nothing is under way.
#[derive(Default)]
pub(crate) struct Progress {
    /// How much work is under way for an event.
    open: BTreeMap<u64, usize>,
    seen: u64,
}

impl Progress {
    pub fn new(seen: u64) -> Self {
        Progress { open: BTreeMap::new(), seen }
    }

    pub fn see(&mut self, seq: u64) {
        self.seen = self.seen.max(seq);
    }

    pub fn begin(&mut self, seq: u64) {
        *self.open.entry(seq).or_default() += 1;
    }

    pub fn end(&mut self, seq: u64) {
        if let std::collections::btree_map::Entry::Occupied(mut open) = self.open.entry(seq) {
            *open.get_mut() -= 1;
            if *open.get() == 0 {
                open.remove();
            }
        }
    }

    pub fn seen(&self) -> u64 {
        self.seen
    }

    pub fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    pub fn reached(&self) -> u64 {
        self.open.first_key_value().map_or(self.seen, |(oldest, _)| self.seen.min(oldest - 1))
    }
}

/// How long a worker without work keeps its thread: making one for each event is what costs most.
const LINGER: Duration = Duration::from_secs(2);

/// Hands work to a bounded number of workers, each a thread of its own: reactions call functions that may block.
pub(crate) struct Scheduler<W> {
    shared: Arc<Shared<W>>,
    tasks: TaskTracker,
}

struct Shared<W> {
    queues: Mutex<Queues<W>>,
    /// Something is ready, or no more will come.
    ready: Condvar,
    /// How many works may wait in memory.
    room: Semaphore,
    /// How many workers there may be, those that were let go apart.
    most: usize,
    progress: Arc<Mutex<Progress>>,
}

struct Queues<W> {
    /// A key is here while one of its works waits or is under way.
    keys: HashMap<u64, VecDeque<W>>,
    /// Keys of which work waits and none is under way.
    ready: VecDeque<u64>,
    /// What is under way, by its number.
    under_way: HashMap<u64, UnderWay>,
    next: u64,
    workers: usize,
    /// Workers that wait for something to do.
    idle: usize,
    closed: bool,
}

#[derive(Clone, Copy)]
struct UnderWay {
    since: Instant,
    key: u64,
    seq: u64,
}

/// What a scheduler needs to know of work.
pub(crate) trait Work: Send + 'static {
    /// What counts as under way in the progress until the work is done.
    fn seq(&self) -> u64;
}

/// Does one work.
pub(crate) type Run<W> = Arc<dyn Fn(W) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

impl<W: Work> Scheduler<W> {
    /// So many works at the same time, and so many waiting in memory.
    pub fn new(workers: usize, waiting: usize, progress: Arc<Mutex<Progress>>) -> Self {
        let queues = Queues {
            keys: HashMap::new(),
            ready: VecDeque::new(),
            under_way: HashMap::new(),
            next: 0,
            workers: 0,
            idle: 0,
            closed: false,
        };
        let shared = Shared {
            queues: Mutex::new(queues),
            ready: Condvar::new(),
            room: Semaphore::new(waiting.clamp(1, Semaphore::MAX_PERMITS)),
            most: workers.max(1),
            progress,
        };
        Scheduler { shared: Arc::new(shared), tasks: TaskTracker::new() }
    }

    /// Puts work behind all of the same key. Waits while too much is waiting.
    pub async fn put(&self, key: u64, work: W, run: &Run<W>) {
        // Only a scheduler that is gone closes it.
        let Ok(place) = self.shared.room.acquire().await else { return };
        // Given back when the work is done.
        place.forget();
        metrics::QUEUE_DEPTH.add(1);
        self.shared.progress.lock().begin(work.seq());
        let mut queues = self.shared.queues.lock();
        match queues.keys.entry(key) {
            Entry::Occupied(mut waiting) => waiting.get_mut().push_back(work),
            Entry::Vacant(vacant) => {
                vacant.insert(VecDeque::from([work]));
                queues.ready.push_back(key);
                self.call_worker(&mut queues, run);
            }
        }
    }

    /// A worker for what has become ready, if all of them work and there may be one more.
    fn call_worker(&self, queues: &mut Queues<W>, run: &Run<W>) {
        if queues.ready.len() <= queues.idle {
            self.shared.ready.notify_one();
        } else if queues.workers < self.shared.most {
            queues.workers += 1;
            let (shared, run, runtime) = (Arc::clone(&self.shared), Arc::clone(run), Handle::current());
            self.tasks.spawn_blocking(move || shared.work(&run, &runtime));
        }
    }

    /// What takes longer than this keeps those behind it waiting no more: it goes on by itself.
    pub fn let_go(&self, patience: Duration, run: &Run<W>) {
        let mut queues = self.shared.queues.lock();
        let long: Vec<UnderWay> =
            queues.under_way.extract_if(|_, one| one.since.elapsed() > patience).map(|(_, one)| one).collect();
        for one in long {
            self.shared.has_ended(one.seq);
            // The worker that goes on keeps its thread; another one takes its place.
            queues.workers -= 1;
            queues.ready.push_back(one.key);
            self.call_worker(&mut queues, run);
        }
    }

    /// Waits until all that was put in has been done.
    pub async fn finish(&self) {
        self.tasks.close();
        self.shared.close();
        self.tasks.wait().await;
    }
}

impl<W> Drop for Scheduler<W> {
    /// The runtime waits for its threads.
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl<W> Shared<W> {
    /// No worker waits for more to come.
    fn close(&self) {
        self.queues.lock().closed = true;
        self.ready.notify_all();
    }
}

impl<W: Work> Shared<W> {
    /// Works until there has been nothing to do for a while, or until one work took so long that another worker took
    /// over.
    fn work(&self, run: &Run<W>, runtime: &Handle) {
        while let Some((number, work)) = self.next() {
            let seq = work.seq();
            // A panic has been told by the hook; what is behind it goes on.
            _ = catch_unwind(AssertUnwindSafe(|| runtime.block_on(run(work))));
            let mut queues = self.queues.lock();
            let Some(UnderWay { key, .. }) = queues.under_way.remove(&number) else { return };
            // At the end of the line: no key keeps the others waiting.
            queues.ready.push_back(key);
            drop(queues);
            self.has_ended(seq);
        }
    }

    /// The next work and its number; nothing when there has been none for a while.
    fn next(&self) -> Option<(u64, W)> {
        let mut queues = self.queues.lock();
        loop {
            while let Some(key) = queues.ready.pop_front() {
                let Some(work) = queues.keys.get_mut(&key).and_then(VecDeque::pop_front) else {
                    queues.keys.remove(&key);
                    continue;
                };
                let (number, seq) = (queues.next, work.seq());
                queues.next += 1;
                queues.under_way.insert(number, UnderWay { since: Instant::now(), key, seq });
                return Some((number, work));
            }
            queues.idle += 1;
            let waited = !queues.closed && !self.ready.wait_for(&mut queues, LINGER).timed_out();
            queues.idle -= 1;
            if !waited && queues.ready.is_empty() {
                queues.workers -= 1;
                return None;
            }
        }
    }

    fn has_ended(&self, seq: u64) {
        self.progress.lock().end(seq);
        metrics::QUEUE_DEPTH.sub(1);
        self.room.add_permits(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_what_lies_behind_the_oldest_that_is_open() {
        let mut progress = Progress::new(10);
        for seq in [11, 12, 13] {
            progress.see(seq);
        }
        progress.begin(12);
        progress.begin(12);
        progress.begin(13);
        assert_eq!(progress.reached(), 11);
        progress.end(12);
        progress.end(13);
        assert_eq!(progress.reached(), 11);
        progress.end(12);
        assert_eq!(progress.reached(), 13);
    }

    impl Work for (u64, u64) {
        fn seq(&self) -> u64 {
            self.1 + 1
        }
    }

    type Done = Arc<Mutex<Vec<(u64, u64)>>>;

    /// Works of key 0 wait at the gate.
    fn run(done: &Done, gate: &Arc<Semaphore>) -> Run<(u64, u64)> {
        let (done, gate) = (Arc::clone(done), Arc::clone(gate));
        Arc::new(move |(key, n)| {
            let (done, gate) = (Arc::clone(&done), Arc::clone(&gate));
            Box::pin(async move {
                if key == 0 {
                    gate.acquire().await.unwrap().forget();
                }
                done.lock().push((key, n));
            })
        })
    }

    fn of_key(done: &Done, key: u64) -> Vec<u64> {
        done.lock().iter().filter(|(of, _)| *of == key).map(|(_, n)| *n).collect()
    }

    async fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn each_key_keeps_its_order_while_others_go_on() {
        let scheduler = Scheduler::new(4, 100, Arc::default());
        let (done, gate) = (Done::default(), Arc::new(Semaphore::new(0)));
        let run = run(&done, &gate);
        for n in 0..50 {
            for key in 0..2 {
                scheduler.put(key, (key, n), &run).await;
            }
        }
        // All of the other key are done while the first still waits.
        until(|| of_key(&done, 1).len() == 50).await;
        assert!(of_key(&done, 0).is_empty());
        gate.add_permits(50);
        scheduler.finish().await;
        for key in 0..2 {
            assert_eq!(of_key(&done, key), (0..50).collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn what_takes_long_is_let_go() {
        let progress: Arc<Mutex<Progress>> = Arc::default();
        let scheduler = Scheduler::new(1, 100, Arc::clone(&progress));
        let (done, gate) = (Done::default(), Arc::new(Semaphore::new(0)));
        let run = run(&done, &gate);
        for (key, n) in [(0, 0), (0, 1), (1, 2)] {
            scheduler.put(key, (key, n), &run).await;
            progress.lock().see(n + 1);
        }
        until(|| !scheduler.shared.queues.lock().under_way.is_empty()).await;
        scheduler.let_go(Duration::from_secs(60), &run);
        assert_eq!(progress.lock().reached(), 0);
        // The one worker is taken: first by the first of key 0, then by whatever waits.
        while of_key(&done, 1).is_empty() {
            scheduler.let_go(Duration::ZERO, &run);
            tokio::task::yield_now().await;
        }
        gate.add_permits(2);
        scheduler.finish().await;
        assert_eq!((of_key(&done, 0).len(), progress.lock().reached()), (2, 3));
        assert_eq!(scheduler.shared.queues.lock().workers, 0);
    }

    #[tokio::test]
    async fn a_work_that_panics_keeps_nothing_behind_it_waiting() {
        let progress: Arc<Mutex<Progress>> = Arc::default();
        let scheduler = Scheduler::new(1, 100, Arc::clone(&progress));
        let done = Done::default();
        let of_run = Arc::clone(&done);
        let run: Run<(u64, u64)> = Arc::new(move |(key, n)| {
            let done = Arc::clone(&of_run);
            Box::pin(async move {
                assert!(n != 0, "the first one fails");
                done.lock().push((key, n));
            })
        });
        for n in 0..3 {
            scheduler.put(7, (7, n), &run).await;
            progress.lock().see(n + 1);
        }
        scheduler.finish().await;
        assert_eq!((of_key(&done, 7), progress.lock().reached()), (vec![1, 2], 3));
    }
}

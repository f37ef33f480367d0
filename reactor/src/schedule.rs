//! Work side by side, but in order for each key: events of the same tag and id one after the other.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use brine_core::metrics;
use parking_lot::Mutex;
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

/// Hands work to a bounded number of workers, each a thread of its own: reactions call functions that may
/// block, and a thread that stays is quicker than one that is changed for each.
pub(crate) struct Scheduler<W> {
    shared: Arc<Shared<W>>,
    room: Arc<Semaphore>,
    tasks: TaskTracker,
}

struct Shared<W> {
    /// A key is here while one of its works is under way.
    keys: Mutex<HashMap<u64, VecDeque<W>>>,
    /// What is under way: since when, for which event, and the worker's key.
    under_way: Mutex<HashMap<u64, UnderWay>>,
    workers: Arc<Semaphore>,
    progress: Arc<Mutex<Progress>>,
    next: AtomicU64,
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
        let bounded = |permits: usize| Arc::new(Semaphore::new(permits.clamp(1, Semaphore::MAX_PERMITS)));
        let shared = Shared {
            keys: Mutex::default(),
            under_way: Mutex::default(),
            workers: bounded(workers),
            progress,
            next: AtomicU64::new(0),
        };
        Scheduler { shared: Arc::new(shared), room: bounded(waiting), tasks: TaskTracker::new() }
    }

    /// Puts work behind all of the same key. Waits while too much is waiting.
    pub async fn put(&self, key: u64, work: W, run: &Run<W>) {
        // Only a scheduler that is gone closes it.
        let Ok(place) = self.room.acquire().await else { return };
        // Given back when the work is done.
        place.forget();
        metrics::QUEUE_DEPTH.add(1);
        self.shared.progress.lock().begin(work.seq());
        match self.shared.keys.lock().entry(key) {
            Entry::Occupied(mut waiting) => return waiting.get_mut().push_back(work),
            Entry::Vacant(vacant) => _ = vacant.insert(VecDeque::from([work])),
        }
        self.start_worker(key, run);
    }

    /// A worker for what waits under a key.
    fn start_worker(&self, key: u64, run: &Run<W>) {
        let (shared, room, run) = (Arc::clone(&self.shared), Arc::clone(&self.room), Arc::clone(run));
        self.tasks.spawn(async move {
            let Ok(worker) = Arc::clone(&shared.workers).acquire_owned().await else { return };
            let runtime = Handle::current();
            let working = tokio::task::spawn_blocking(move || {
                if runtime.block_on(shared.work(key, &run, &room)) == End::LetGo {
                    // Its place has been given to another.
                    worker.forget();
                }
            });
            // An error is a panic in a reaction, which the runtime has told.
            _ = working.await;
        });
    }

    /// What takes longer than this keeps those behind it waiting no more: it goes on by itself.
    pub fn let_go(&self, patience: Duration, run: &Run<W>) {
        let mut long = Vec::new();
        let mut under_way = self.shared.under_way.lock();
        under_way.retain(|_, one| {
            let is_long = one.since.elapsed() > patience;
            if is_long {
                long.push(*one);
            }
            !is_long
        });
        drop(under_way);
        for one in long {
            self.shared.progress.lock().end(one.seq);
            metrics::QUEUE_DEPTH.sub(1);
            self.room.add_permits(1);
            // The worker that goes on keeps its thread; another one may take its place.
            self.shared.workers.add_permits(1);
            self.start_worker(one.key, run);
        }
    }

    /// Waits until all that was put in has been done.
    pub async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// How a worker ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Done,
    LetGo,
}

impl<W: Work> Shared<W> {
    /// Works until nothing waits under the key, or until the work took so long that another took over.
    async fn work(&self, key: u64, run: &Run<W>, room: &Semaphore) -> End {
        loop {
            let next = {
                let mut keys = self.keys.lock();
                let next = keys.get_mut(&key).and_then(VecDeque::pop_front);
                if next.is_none() {
                    keys.remove(&key);
                }
                next
            };
            let Some(work) = next else { return End::Done };
            let (number, seq) = (self.next.fetch_add(1, Ordering::Relaxed), work.seq());
            self.under_way.lock().insert(number, UnderWay { since: Instant::now(), key, seq });
            run(work).await;
            if self.under_way.lock().remove(&number).is_none() {
                return End::LetGo;
            }
            self.progress.lock().end(seq);
            metrics::QUEUE_DEPTH.sub(1);
            room.add_permits(1);
        }
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
        until(|| !scheduler.shared.under_way.lock().is_empty()).await;
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
        assert_eq!(scheduler.shared.workers.available_permits(), 1);
    }
}

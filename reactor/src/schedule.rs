//! Work side by side, but in order for each key: events of the same tag and id one after the other.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::sync::Arc;

use brine_core::metrics;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
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

/// Work that waits, with its place in the bound on how much may.
type Waiting<W> = VecDeque<(W, OwnedSemaphorePermit)>;

/// Hands work to a bounded number of workers.
pub(crate) struct Scheduler<W> {
    /// A key is here while one of its works is under way.
    keys: Arc<Mutex<HashMap<u64, Waiting<W>>>>,
    workers: Arc<Semaphore>,
    room: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl<W: Send + 'static> Scheduler<W> {
    /// So many works at the same time, and so many waiting in memory.
    pub fn new(workers: usize, waiting: usize) -> Self {
        let bounded = |permits: usize| Arc::new(Semaphore::new(permits.clamp(1, Semaphore::MAX_PERMITS)));
        Scheduler { keys: Arc::default(), workers: bounded(workers), room: bounded(waiting), tasks: TaskTracker::new() }
    }

    /// Puts work behind all of the same key. Waits while too much is waiting.
    pub async fn put<F, Fut>(&self, key: u64, work: W, run: F)
    where
        F: Fn(W) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send,
    {
        // Only a scheduler that is gone closes it.
        let Ok(place) = Arc::clone(&self.room).acquire_owned().await else { return };
        metrics::QUEUE_DEPTH.add(1);
        let mut keys = self.keys.lock();
        match keys.entry(key) {
            Entry::Occupied(mut waiting) => {
                waiting.get_mut().push_back((work, place));
                return;
            }
            Entry::Vacant(vacant) => _ = vacant.insert(VecDeque::from([(work, place)])),
        }
        drop(keys);
        let (keys, workers) = (Arc::clone(&self.keys), Arc::clone(&self.workers));
        self.tasks.spawn(async move {
            let Ok(_worker) = workers.acquire_owned().await else { return };
            loop {
                let next = {
                    let mut keys = keys.lock();
                    let next = keys.get_mut(&key).and_then(VecDeque::pop_front);
                    if next.is_none() {
                        keys.remove(&key);
                    }
                    next
                };
                let Some((work, place)) = next else { return };
                run(work).await;
                metrics::QUEUE_DEPTH.sub(1);
                drop(place);
            }
        });
    }

    /// Waits until all that was put in has been done.
    pub async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
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

    #[tokio::test]
    async fn each_key_keeps_its_order_while_others_go_on() {
        let scheduler = Scheduler::new(4, 100);
        let done: Arc<Mutex<Vec<(u64, u32)>>> = Arc::default();
        let gate = Arc::new(Semaphore::new(0));
        for n in 0..50 {
            for key in 0..2 {
                let (done, gate) = (Arc::clone(&done), Arc::clone(&gate));
                let run = move |(key, n)| {
                    let (done, gate) = (Arc::clone(&done), Arc::clone(&gate));
                    async move {
                        if key == 0 {
                            gate.acquire().await.unwrap().forget();
                        }
                        done.lock().push((key, n));
                    }
                };
                scheduler.put(key, (key, n), run).await;
            }
        }
        // All of the other key are done while the first still waits.
        while done.lock().len() < 50 {
            tokio::task::yield_now().await;
        }
        assert!(done.lock().iter().all(|(key, _)| *key == 1));
        gate.add_permits(50);
        scheduler.finish().await;
        for key in 0..2 {
            let numbers: Vec<_> = done.lock().iter().filter(|(of, _)| *of == key).map(|(_, n)| *n).collect();
            assert_eq!(numbers, (0..50).collect::<Vec<_>>());
        }
    }
}

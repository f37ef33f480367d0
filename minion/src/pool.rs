//! The threads of jobs: named, bounded in number, never those that the runtime needs itself.
//!
//! Functions are synchronous and wait on the runtime, which needs its own blocking threads for that. Jobs therefore have
//! threads of their own; beyond the limit they wait.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use brine_core::metrics;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::task::TaskTracker;

/// The number of jobs that run at the same time if `process_count_max` sets no limit.
pub const DEFAULT_LIMIT: usize = 256;
/// The number of jobs that may wait for a thread.
const WAITING: usize = 1000;
/// The number of additional threads for functions that look at jobs and end them: they work when all others are taken.
const CONTROL: usize = 8;

/// Why a job has not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// Too many jobs wait already.
    #[error("the job is refused: {WAITING} jobs are waiting for one of {0} threads; see `process_count_max`")]
    Full(usize),
    /// The minion ends.
    #[error("the job is refused: the minion is stopping; publish it again")]
    Stopping,
    /// The system starts no thread.
    #[error("starting the thread of a job failed: {0}")]
    Thread(#[from] std::io::Error),
    /// The function panicked.
    #[error("{0}")]
    Panicked(String),
}

/// The threads of jobs, and the tasks that wait for them.
#[derive(Debug)]
pub struct JobPool {
    slots: Arc<Semaphore>,
    control: Arc<Semaphore>,
    limit: usize,
    waiting: AtomicUsize,
    tasks: TaskTracker,
}

/// The right to run on one thread.
#[derive(Debug)]
pub struct Slot {
    _permit: OwnedSemaphorePermit,
}

impl JobPool {
    /// Returns a pool of `process_count_max` threads, or of [`DEFAULT_LIMIT`] if that is not above 0.
    pub fn new(process_count_max: i64) -> Self {
        let limit = usize::try_from(process_count_max).ok().filter(|limit| *limit > 0).unwrap_or(DEFAULT_LIMIT);
        let limit = limit.min(Semaphore::MAX_PERMITS);
        JobPool {
            slots: Arc::new(Semaphore::new(limit)),
            control: Arc::new(Semaphore::new(CONTROL)),
            limit,
            waiting: AtomicUsize::new(0),
            tasks: TaskTracker::new(),
        }
    }

    /// Starts the task of a job. [`JobPool::finish`] waits for it.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Waits for a thread for a job of this function.
    pub async fn slot(&self, fun: &str) -> Result<Slot, PoolError> {
        let slots = if is_control(fun) { &self.control } else { &self.slots };
        if let Ok(permit) = Arc::clone(slots).try_acquire_owned() {
            return Ok(Slot { _permit: permit });
        }
        let _waiting = Waiting::begin(self)?;
        tracing::warn!(fun, limit = self.limit, "a job waits: all threads are taken; see `process_count_max`");
        match Arc::clone(slots).acquire_owned().await {
            Ok(permit) => Ok(Slot { _permit: permit }),
            Err(_) => Err(PoolError::Stopping),
        }
    }

    /// Refuses waiting jobs and waits until all others have ended, up to this time. Returns the number of those that have
    /// not.
    pub async fn finish(&self, time: Duration) -> usize {
        self.slots.close();
        self.control.close();
        self.tasks.close();
        // Those that are left are counted.
        _ = tokio::time::timeout(time, self.tasks.wait()).await;
        self.tasks.len()
    }
}

impl Default for JobPool {
    fn default() -> Self {
        JobPool::new(-1)
    }
}

impl Slot {
    /// Runs work on a thread of its own, from which it can wait on the runtime.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, PoolError> {
        let runtime = Handle::current();
        let (done, result) = oneshot::channel();
        std::thread::Builder::new().name("brine-job".into()).spawn(move || {
            let _entered = runtime.enter();
            // The receiver is gone when the minion ends.
            _ = done.send(catch_unwind(AssertUnwindSafe(work)));
        })?;
        match result.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(panic)) => Err(PoolError::Panicked(message(&*panic))),
            Err(_) => Err(PoolError::Panicked("its thread is gone".into())),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("the function panicked: {}", text.unwrap_or_else(|| "no message".into()))
}

/// Whether a function looks at jobs or ends them.
fn is_control(fun: &str) -> bool {
    matches!(
        fun.strip_prefix("saltutil."),
        Some(
            "find_job"
                | "is_running"
                | "kill_all_jobs"
                | "kill_job"
                | "running"
                | "signal_job"
                | "term_all_jobs"
                | "term_job"
        )
    )
}

/// A job that waits for a thread.
struct Waiting<'a>(&'a JobPool);

impl<'a> Waiting<'a> {
    fn begin(pool: &'a JobPool) -> Result<Self, PoolError> {
        let waiting = Waiting(pool);
        if pool.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING {
            metrics::JOBS_REFUSED.add(1);
            return Err(PoolError::Full(pool.limit));
        }
        Ok(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn jobs_beyond_the_limit_wait_and_control_functions_do_not() {
        let pool = Arc::new(JobPool::new(1));
        let (release, held) = mpsc::channel::<()>();
        let first = pool.slot("test.sleep").await.unwrap();
        let running = tokio::spawn(async move { first.run(move || held.recv().is_ok()).await.unwrap() });
        let second = pool.slot("test.ping");
        tokio::pin!(second);
        assert!(futures::poll!(&mut second).is_pending());
        assert_eq!(pool.slot("saltutil.kill_job").await.unwrap().run(|| 5).await.unwrap(), 5);
        release.send(()).unwrap();
        assert!(running.await.unwrap());
        assert_eq!(second.await.unwrap().run(|| 6).await.unwrap(), 6);
    }

    #[tokio::test]
    async fn too_many_waiting_jobs_are_refused() {
        let pool = JobPool::new(1);
        let _taken = pool.slot("a").await.unwrap();
        let mut waiting: Vec<_> = (0..WAITING).map(|_| Box::pin(pool.slot("a"))).collect();
        for one in &mut waiting {
            assert!(futures::poll!(one).is_pending());
        }
        assert!(matches!(pool.slot("a").await, Err(PoolError::Full(1))));
        waiting.pop();
        assert!(futures::poll!(Box::pin(pool.slot("a"))).is_pending());
    }

    #[tokio::test]
    async fn waiting_jobs_are_refused_at_the_end() {
        let pool = Arc::new(JobPool::new(1));
        let taken = pool.slot("a").await.unwrap();
        let waiting = pool.slot("a");
        tokio::pin!(waiting);
        assert!(futures::poll!(&mut waiting).is_pending());
        assert_eq!(pool.finish(Duration::ZERO).await, 0);
        assert!(matches!(waiting.await, Err(PoolError::Stopping)));
        assert!(matches!(pool.slot("a").await, Err(PoolError::Stopping)));
        assert_eq!(taken.run(|| 1).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_panic_ends_its_job_alone() {
        let pool = JobPool::default();
        let slot = pool.slot("a").await.unwrap();
        let error = slot.run(|| -> u8 { panic!("no {}", 1) }).await.unwrap_err();
        assert_eq!(error.to_string(), "the function panicked: no 1");
        assert_eq!(slot.run(|| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn more_waiting_calls_than_blocking_threads_do_not_deadlock() {
        const JOBS: usize = 600;
        let pool = Arc::new(JobPool::default());
        let (done, mut all) = tokio::sync::mpsc::channel(JOBS);
        for n in 0..JOBS {
            let (running, done) = (Arc::clone(&pool), done.clone());
            pool.spawn(async move {
                let slot = running.slot("a").await.unwrap();
                let waits = || Handle::current().block_on(tokio::task::spawn_blocking(|| 1)).unwrap();
                done.send(slot.run(waits).await.unwrap() + n).await.unwrap();
            });
        }
        drop(done);
        let mut count = 0;
        while all.recv().await.is_some() {
            count += 1;
        }
        assert_eq!(count, JOBS);
        assert_eq!(pool.finish(Duration::from_secs(10)).await, 0);
    }
}

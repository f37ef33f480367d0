//! Running jobs: each on a thread of the `jobs` executor, bounded in number.
//!
//! Functions that list or end jobs have separate threads, so that they work while all others are in use.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use brine_config::MinionConfig;
use brine_host::environment::Environment;
use brine_runtime::executors::{Executor, ExecutorError, Executors, Pending};
use tokio_util::task::TaskTracker;

use crate::metrics;

/// The maximum number of concurrent jobs if `process_count_max` sets none.
const DEFAULT_LIMIT: usize = 256;
/// The number of additional threads for functions that list or end jobs, and of their waiting calls.
const CONTROL_THREADS: usize = 8;
const CONTROL_QUEUE: usize = 1000;

/// The reason why a job has no result.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// Too many jobs are waiting already.
    #[error("job refused: too many jobs wait for one of {0} threads; see `process_count_max`")]
    Full(usize),
    /// The minion is stopping.
    #[error("job refused: the minion is stopping; publish it again")]
    Stopping,
    /// The function panicked.
    #[error("{0}")]
    Panicked(String),
}

/// The threads and tasks of jobs.
#[derive(Debug)]
pub struct JobPool {
    executors: Executors,
    control: Executor,
    limit: usize,
    tasks: TaskTracker,
}

/// A job that has a thread, or waits for one.
#[derive(Debug)]
pub struct Running<T> {
    pending: Pending<Result<T, String>>,
    limit: usize,
}

impl JobPool {
    /// Creates the executors of a minion. The maximum number of concurrent jobs is `process_count_max`, or 256. Must be
    /// called within a runtime.
    pub fn new(config: &MinionConfig) -> Self {
        let limit = usize::try_from(config.process_count_max).ok().filter(|limit| *limit > 0).unwrap_or(DEFAULT_LIMIT);
        JobPool {
            executors: Executors::new(limit),
            control: Executor::new("control", CONTROL_THREADS, CONTROL_QUEUE),
            limit,
            tasks: TaskTracker::new(),
        }
    }

    /// Returns the executors of the minion.
    pub fn executors(&self) -> &Executors {
        &self.executors
    }

    /// Starts the task of a job. [`JobPool::finish`] waits for it.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Starts a job of this function as soon as a thread is free.
    pub fn start<T: Send + 'static>(
        &self,
        fun: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Running<T>, PoolError> {
        let executor = if is_control(fun) { &self.control } else { &self.executors.jobs };
        if executor.is_busy() {
            tracing::warn!(fun, limit = self.limit, "job waits: all threads are taken; see `process_count_max`");
        }
        // In Salt a job is a process: changes to its environment end with it.
        let work = move || Environment::default().run(work);
        let started = executor.start(move |_| catch_unwind(AssertUnwindSafe(work)).map_err(|panic| message(&*panic)));
        match started {
            Ok(pending) => Ok(Running { pending, limit: self.limit }),
            Err(error) => {
                metrics::JOBS_REFUSED.add(1);
                Err(refused(error, self.limit))
            }
        }
    }

    /// Refuses waiting jobs, and waits up to `time` until all others have ended. Returns the number of jobs that are
    /// still running.
    pub async fn finish(&self, time: Duration) -> usize {
        self.executors.jobs.stop();
        self.control.stop();
        self.tasks.close();
        // Remaining tasks are counted.
        _ = tokio::time::timeout(time, self.tasks.wait()).await;
        self.tasks.len()
    }
}

impl<T> Running<T> {
    /// Waits for the result.
    pub async fn result(self) -> Result<T, PoolError> {
        match self.pending.result().await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(panic)) => Err(PoolError::Panicked(panic)),
            Err(error) => Err(refused(error, self.limit)),
        }
    }
}

fn refused(error: ExecutorError, limit: usize) -> PoolError {
    match error {
        ExecutorError::Full(_) => PoolError::Full(limit),
        ExecutorError::Stopped(_) => PoolError::Stopping,
        error @ ExecutorError::Panicked(_) => PoolError::Panicked(error.to_string()),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("the function panicked: {}", text.unwrap_or_else(|| "no message".into()))
}

/// Whether a function lists jobs or ends them.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc;

    use tokio::runtime::Handle;

    use super::*;

    fn pool(limit: i64) -> Arc<JobPool> {
        Arc::new(JobPool::new(&MinionConfig { process_count_max: limit, ..MinionConfig::default() }))
    }

    #[tokio::test]
    async fn jobs_beyond_the_limit_wait_and_control_functions_do_not() {
        let pool = pool(1);
        let (release, held) = mpsc::channel::<()>();
        let first = pool.start("test.sleep", move || held.recv().is_ok()).unwrap();
        let second = pool.start("test.ping", || 6).unwrap().result();
        tokio::pin!(second);
        assert!(futures::poll!(&mut second).is_pending());
        assert_eq!(pool.start("saltutil.kill_job", || 5).unwrap().result().await.unwrap(), 5);
        assert!(futures::poll!(&mut second).is_pending());
        release.send(()).unwrap();
        assert!(first.result().await.unwrap());
        assert_eq!(second.await.unwrap(), 6);
    }

    #[tokio::test]
    async fn too_many_waiting_jobs_are_refused() {
        let pool = pool(1);
        let (release, held) = mpsc::channel::<()>();
        let held = std::sync::Mutex::new(held);
        let taken = pool.start("a", move || held.lock().unwrap().recv().is_ok()).unwrap();
        let mut waiting = Vec::new();
        let refused = loop {
            match pool.start("a", || ()) {
                Ok(job) => waiting.push(job),
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, PoolError::Full(1)));
        assert_eq!(waiting.len(), 4096);
        release.send(()).unwrap();
        assert!(taken.result().await.unwrap());
        for job in waiting {
            job.result().await.unwrap();
        }
    }

    #[tokio::test]
    async fn waiting_jobs_are_refused_at_shutdown() {
        let pool = pool(1);
        let (release, held) = mpsc::channel::<()>();
        let (begun, begins) = tokio::sync::oneshot::channel();
        let taken = pool.start("a", move || {
            begun.send(()).unwrap();
            held.recv().is_ok()
        });
        begins.await.unwrap();
        let waiting = pool.start("a", || ()).unwrap();
        assert_eq!(pool.finish(Duration::ZERO).await, 0);
        assert!(matches!(waiting.result().await, Err(PoolError::Stopping)));
        assert!(matches!(pool.start("a", || ()).map(|_| ()), Err(PoolError::Stopping)));
        release.send(()).unwrap();
        assert!(taken.unwrap().result().await.unwrap());
    }

    #[tokio::test]
    async fn a_panic_ends_only_its_job() {
        let pool = pool(1);
        let error = pool.start("a", || -> u8 { panic!("no {}", 1) }).unwrap().result().await.unwrap_err();
        assert_eq!(error.to_string(), "the function panicked: no 1");
        assert_eq!(pool.start("a", || 7).unwrap().result().await.unwrap(), 7);
    }

    #[tokio::test]
    async fn more_waiting_calls_than_blocking_threads_do_not_deadlock() {
        const JOBS: usize = 600;
        let pool = pool(-1);
        let (done, mut all) = tokio::sync::mpsc::channel(JOBS);
        for n in 0..JOBS {
            let (running, done) = (Arc::clone(&pool), done.clone());
            pool.spawn(async move {
                let waits = || Handle::current().block_on(tokio::task::spawn_blocking(|| 1)).unwrap();
                done.send(running.start("a", waits).unwrap().result().await.unwrap() + n).await.unwrap();
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

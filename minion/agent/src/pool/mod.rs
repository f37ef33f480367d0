//! Running jobs: each on a thread of the `jobs` executor, bounded in number.
//!
//! Functions that list or end jobs have separate threads, so that they work while all others are in use.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
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
    is_refusing: AtomicBool,
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
            is_refusing: AtomicBool::new(false),
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

    /// Refuses waiting and further jobs; those that have begun go on.
    pub fn refuse(&self) {
        self.is_refusing.store(true, Ordering::Relaxed);
        self.executors.jobs.stop();
    }

    /// Whether jobs are refused because the minion is stopping.
    pub fn is_refusing(&self) -> bool {
        self.is_refusing.load(Ordering::Relaxed)
    }

    /// Refuses waiting jobs, and waits up to `time` until all others have ended. Returns the number of jobs that are
    /// still running.
    pub async fn finish(&self, time: Duration) -> usize {
        self.refuse();
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
mod tests;

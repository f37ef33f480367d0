//! Supervises the tasks of a daemon: observes how each ends, restarts it if possible, and stops tasks in the reverse
//! order of their start.
//!
//! A task that ends by itself or panics is a defect. It is logged and counted (`brine_tasks_failed_total`). A
//! restartable task is restarted after a pause; the failure of another one is fatal: [`Supervisor::failed`] notifies
//! the daemon, which exits, so that the init system restarts it.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backoff::Backoff;
use crate::metrics;

/// The run time after which the backoff of a task is reset.
const RESET_AFTER: Duration = Duration::from_secs(60);

/// The minimum time for each task to stop, even if earlier ones have used up the total.
const MIN_STOP_TIME: Duration = Duration::from_millis(50);

/// A boxed task, because the code of supervision would otherwise be compiled for each task.
type Task = BoxFuture<'static, ()>;

struct Part {
    name: String,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

/// The tasks of a daemon, in the order of their start. Dropping it stops all of them at once.
#[derive(Default)]
pub struct Supervisor {
    parts: Vec<Part>,
    failed: CancellationToken,
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.parts.iter().for_each(|part| part.shutdown.cancel());
    }
}

impl Supervisor {
    /// Creates a supervisor without tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a token that is cancelled when a task that cannot be restarted has failed.
    pub fn failed(&self) -> CancellationToken {
        self.failed.clone()
    }

    /// Starts a task that cannot be restarted, such as one that owns a listening socket. It runs until its token is
    /// cancelled.
    pub fn start<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        name: impl Into<String>,
        make: impl FnOnce(CancellationToken) -> F,
    ) {
        let shutdown = CancellationToken::new();
        self.watch(name.into(), Box::pin(make(shutdown.clone())), shutdown);
    }

    fn watch(&mut self, name: String, run: Task, shutdown: CancellationToken) {
        let (watched, stopping, failed) = (name.clone(), shutdown.clone(), self.failed.clone());
        let task = tokio::spawn(async move {
            if !ended_in_order(&watched, run, &stopping).await {
                failed.cancel();
            }
        });
        self.parts.push(Part { name, shutdown, task });
    }

    /// Starts a task that is restarted when it fails.
    pub fn start_restarting<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        name: impl Into<String>,
        make: impl Fn(CancellationToken) -> F + Send + 'static,
    ) {
        self.watch_restarting(name.into(), Box::new(move |shutdown| Box::pin(make(shutdown))));
    }

    fn watch_restarting(&mut self, name: String, make: Box<dyn Fn(CancellationToken) -> Task + Send>) {
        let shutdown = CancellationToken::new();
        let (watched, stopping) = (name.clone(), shutdown.clone());
        let task = tokio::spawn(async move {
            let mut backoff = Backoff::default();
            loop {
                let started = Instant::now();
                if ended_in_order(&watched, make(stopping.clone()), &stopping).await {
                    return;
                }
                if started.elapsed() > RESET_AFTER {
                    backoff.reset();
                }
                let pause = backoff.next_wait();
                tracing::warn!(task = watched, pause_ms = pause.as_millis() as u64, "task restarts");
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = stopping.cancelled() => return,
                }
            }
        });
        self.parts.push(Part { name, shutdown, task });
    }

    /// Stops the tasks one by one, in reverse order of their start, within about this time in total. Each may take half
    /// of the remaining time; slower ones are aborted. Returns their names.
    pub async fn stop(mut self, within: Duration) -> Vec<String> {
        let deadline = Instant::now() + within;
        let mut late = Vec::new();
        while let Some(mut part) = self.parts.pop() {
            part.shutdown.cancel();
            let own = (deadline.saturating_duration_since(Instant::now()) / 2).max(MIN_STOP_TIME);
            if tokio::time::timeout(own, &mut part.task).await.is_err() {
                part.task.abort();
                tracing::warn!(task = part.name, "task aborted: it did not stop in time");
                late.push(std::mem::take(&mut part.name));
            }
        }
        late
    }
}

/// Spawns a task that ends when its owner is dropped, such as the reader of a connection. A panic is logged and
/// counted.
pub fn spawn(name: &'static str, run: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    let run: Task = Box::pin(run);
    tokio::spawn(async move {
        if AssertUnwindSafe(run).catch_unwind().await.is_err() {
            report_panic(name);
        }
    })
}

fn report_panic(name: &str) {
    metrics::TASKS_FAILED.add(1);
    tracing::error!(task = name, "task panicked: this is a defect, please report it");
}

/// Owns short-lived tasks, such as batches and connections.
#[derive(Debug, Clone, Default)]
pub struct Background {
    tasks: TaskTracker,
    stopped: CancellationToken,
}

impl Background {
    /// Spawns a task that ends by itself. A panic is logged and counted.
    pub fn spawn(&self, name: &'static str, run: impl Future<Output = ()> + Send + 'static) {
        let (stopped, run): (_, Task) = (self.stopped.clone(), Box::pin(run));
        self.tasks.spawn(async move {
            tokio::select! {
                ended = AssertUnwindSafe(run).catch_unwind() => {
                    if ended.is_err() {
                        report_panic(name);
                    }
                }
                () = stopped.cancelled() => {}
            }
        });
    }

    /// Spawns a task that ends by itself, and that must notice by other means when its owner stops. Takes the least
    /// memory, for very many tasks. A panic is logged and counted.
    pub fn spawn_small(&self, name: &'static str, run: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(AssertUnwindSafe(run).catch_unwind().map(move |ended| {
            if ended.is_err() {
                report_panic(name);
            }
        }));
    }

    /// Cancels all tasks, and waits until they have ended, for this long at most.
    pub async fn stop(&self, within: Duration) {
        self.stopped.cancel();
        self.tasks.close();
        if tokio::time::timeout(within, self.tasks.wait()).await.is_err() {
            tracing::warn!("background tasks did not stop in time");
        }
    }
}

/// Runs a task to its end. Returns whether the task ended because it was requested to.
async fn ended_in_order(name: &str, run: Task, shutdown: &CancellationToken) -> bool {
    let panicked = AssertUnwindSafe(run).catch_unwind().await.is_err();
    if !panicked && shutdown.is_cancelled() {
        return true;
    }
    metrics::TASKS_FAILED.add(1);
    let cause = if panicked { "it panicked" } else { "it ended by itself" };
    tracing::error!(task = name, cause, "task failed: this is a defect, please report it");
    false
}

#[cfg(test)]
mod tests;

//! Tasks that live as long as the minion: a panic is logged and the task begins again.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a task that panicked waits before it begins again.
const PAUSE: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 1000 });

/// The tasks of a minion.
#[derive(Debug)]
pub struct Tasks {
    tracker: TaskTracker,
    shutdown: CancellationToken,
}

impl Tasks {
    /// Returns an empty set of tasks that end by themselves at `shutdown`.
    pub fn new(shutdown: CancellationToken) -> Self {
        Tasks { tracker: TaskTracker::new(), shutdown }
    }

    /// Starts a task, again after each panic.
    pub fn keep<F: Future<Output = ()> + Send + 'static>(
        &self,
        name: &'static str,
        mut task: impl FnMut() -> F + Send + 'static,
    ) {
        let shutdown = self.shutdown.clone();
        self.tracker.spawn(async move {
            while let Err(error) = tokio::spawn(task()).await {
                tracing::error!(name, %error, "a task of the minion panicked; it starts again");
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    () = shutdown.cancelled() => return,
                }
            }
        });
    }

    /// Waits until all tasks have ended, up to this time. Returns the number of those that have not.
    pub async fn finish(&self, time: Duration) -> usize {
        self.tracker.close();
        // Those that are left are counted.
        _ = tokio::time::timeout(time, self.tracker.wait()).await;
        self.tracker.len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_starts_again() {
        let tasks = Tasks::new(CancellationToken::new());
        let begun = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&begun);
        tasks.keep("test", move || {
            let turn = count.fetch_add(1, Ordering::Relaxed);
            async move { assert!(turn >= 2, "turn {turn}") }
        });
        assert_eq!(tasks.finish(Duration::from_secs(60)).await, 0);
        assert_eq!(begun.load(Ordering::Relaxed), 3);
    }
}

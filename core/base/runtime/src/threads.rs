//! Threads of their own, for blocking work that would hold a place of an executor as long as its daemon runs, or that
//! precedes the executors. What starts such work bounds it, as the configuration bounds the engines.

use std::panic::AssertUnwindSafe;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::STACK_SIZE;
use crate::executors::MayBlock;

/// The reason why the work of a thread has no result.
#[derive(Debug, thiserror::Error)]
pub enum ThreadError {
    /// The system starts no more threads.
    #[error("starting the thread '{name}' failed: {source}")]
    NotStarted {
        /// The name of the thread.
        name: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The work panicked, which has been logged.
    #[error("the thread '{0}' failed: it panicked, see the log")]
    Panicked(&'static str),
}

/// A running thread.
#[derive(Debug)]
pub struct Thread<R> {
    name: &'static str,
    result: oneshot::Receiver<R>,
}

impl<R> Thread<R> {
    /// Waits for the result, which is returned once.
    ///
    /// # Errors
    /// The work panicked.
    pub async fn result(&mut self) -> Result<R, ThreadError> {
        (&mut self.result).await.map_err(|_| ThreadError::Panicked(self.name))
    }
}

/// Starts a thread. Its work continues if nothing waits for the result. Must be called within a runtime, which the
/// thread can use.
///
/// # Errors
/// The system starts no more threads.
pub fn start<R: Send + 'static>(
    name: &'static str,
    work: impl FnOnce(&MayBlock) -> R + Send + 'static,
) -> Result<Thread<R>, ThreadError> {
    let (sender, result) = oneshot::channel();
    let runtime = Handle::current();
    let work = move || {
        let _runtime = runtime.enter();
        let may_block = MayBlock::on_dedicated_thread(runtime.clone());
        if let Ok(result) = std::panic::catch_unwind(AssertUnwindSafe(|| work(&may_block))) {
            // The receiver may be gone.
            _ = sender.send(result);
        } else {
            tracing::error!(thread = name, "a thread panicked: this is a defect, please report it");
        }
    };
    // The system keeps 15 bytes of the name.
    let started = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_SIZE).spawn(work);
    started.map_err(|source| ThreadError::NotStarted { name, source })?;
    Ok(Thread { name, result })
}

/// Runs work on a thread of its own and returns its result.
///
/// # Errors
/// The system starts no more threads, or the work panicked.
pub async fn run<R: Send + 'static>(
    name: &'static str,
    work: impl FnOnce(&MayBlock) -> R + Send + 'static,
) -> Result<R, ThreadError> {
    start(name, work)?.result().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_has_a_thread_with_a_name_and_the_runtime() {
        let name = run("test", |may_block| {
            may_block.wait(tokio::time::sleep(std::time::Duration::ZERO));
            tokio::spawn(std::future::ready(()));
            std::thread::current().name().map(str::to_owned)
        });
        assert_eq!(name.await.unwrap().as_deref(), Some("test"));
    }

    #[tokio::test]
    async fn a_panic_is_an_error() {
        let failed = run::<()>("test", |_| panic!("a defect")).await;
        assert_eq!(failed.unwrap_err().to_string(), "the thread 'test' failed: it panicked, see the log");
    }
}

//! Named, bounded thread pools for blocking work: the only way for async code to use disks, RSA and templates.
//!
//! | executor | for |
//! |---|---|
//! | `disk` | files, the store, the key store: milliseconds each |
//! | `crypto` | RSA and large decoding: one thread per processor |
//! | `render` | pillar and templates; on minions grains and beacons: up to seconds each |
//! | `jobs` | runner, wheel and execution functions, which may take hours |
//! | `peers` | runner functions that minions call (`peer_run`), for which the functions of `jobs` may wait |
//! | `logins` | backends of `external_auth` and custom token stores: up to minutes each |
//!
//! Work of one executor must not wait for other work of the same executor: with all threads waiting, it would deadlock.
//! `jobs` may wait for all others, `peers` for `render`, `crypto` and `disk`, `render` for `crypto` and `disk`, `logins`
//! for `disk`; `crypto` and `disk` for nothing.
//!
//! Each thread gets a [`MayBlock`], the proof that blocking is allowed here. [`Blocking`] exposes its synchronous API
//! only with such a proof, so that async code cannot call it by accident.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_metrics::Child;
use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, oneshot};

use crate::{STACK_SIZE, metrics};

/// The time after which an idle thread ends.
const IDLE: Duration = Duration::from_secs(10);

/// The maximum number of threads of `peers`.
const PEERS: usize = 64;
/// The maximum number of threads of `logins`. Each backend has limits of its own on concurrent logins.
const LOGINS: usize = 64;

/// Proof that the current thread may block. Async code has none.
#[derive(Debug, Clone)]
pub struct MayBlock {
    runtime: Handle,
}

impl MayBlock {
    /// Creates the proof for a thread that the caller has started for blocking work, outside of any executor.
    pub fn on_dedicated_thread(runtime: Handle) -> Self {
        MayBlock { runtime }
    }

    /// Blocks on a future.
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        // tokio's code is compiled once for each type of output, not for each future.
        let future: Pin<&mut dyn Future<Output = F::Output>> = pin!(future);
        self.runtime.block_on(future)
    }
}

/// A synchronous API that blocks on a disk, with the executor for calls from async code.
#[derive(Debug)]
pub struct Blocking<T> {
    api: Arc<T>,
    executor: Executor,
}

impl<T> Clone for Blocking<T> {
    fn clone(&self) -> Self {
        Blocking { api: Arc::clone(&self.api), executor: self.executor.clone() }
    }
}

impl<T: Send + Sync + 'static> Blocking<T> {
    /// Wraps an API.
    pub fn new(api: T, executor: Executor) -> Self {
        Blocking { api: Arc::new(api), executor }
    }

    /// Runs a closure with the API on the executor, from async code.
    pub async fn run<R: Send + 'static>(
        &self,
        call: impl FnOnce(&T) -> R + Send + 'static,
    ) -> Result<R, ExecutorError> {
        let api = Arc::clone(&self.api);
        self.executor.run(move |_| call(&api)).await
    }

    /// Returns the API, for a thread that may block.
    pub fn get(&self, _: &MayBlock) -> &T {
        &self.api
    }
}

/// The reason why work has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExecutorError {
    /// The work panicked, which has been logged and counted.
    #[error("work on executor '{0}' failed: it panicked, see the log")]
    Panicked(&'static str),
    /// The executor has been stopped.
    #[error("work on executor '{0}' refused: it has been stopped")]
    Stopped(&'static str),
    /// The queue is full.
    #[error("work on executor '{0}' refused: its queue is full")]
    Full(&'static str),
}

/// All executors of a daemon, created once when it starts.
#[derive(Debug, Clone)]
pub struct Executors {
    /// Files, the store, the key store.
    pub disk: Executor,
    /// RSA and large decoding.
    pub crypto: Executor,
    /// Pillar and templates; on minions grains and beacons.
    pub render: Executor,
    /// Runner, wheel and execution functions.
    pub jobs: Executor,
    /// Runner functions that minions call.
    pub peers: Executor,
    /// Backends of `external_auth` and custom token stores.
    pub logins: Executor,
}

impl Executors {
    /// Creates the executors of a daemon that runs at most this many functions concurrently. Must be called within a
    /// runtime, which their threads can use.
    pub fn new(jobs: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Executors {
            disk: Executor::new("disk", 16.max(processors), 16_384),
            crypto: Executor::new("crypto", processors, 16_384),
            render: Executor::new("render", 16.max(2 * processors), 16_384),
            jobs: Executor::new("jobs", jobs.max(1), 4096),
            peers: Executor::new("peers", jobs.clamp(1, PEERS), 4096),
            logins: Executor::new("logins", LOGINS, 1024),
        }
    }

    /// Refuses new work. Running work continues, but is not awaited: the process may exit at once.
    pub fn stop(&self) {
        for executor in [&self.jobs, &self.peers, &self.logins, &self.render, &self.crypto, &self.disk] {
            executor.stop();
        }
    }
}

type Work = Box<dyn FnOnce(&MayBlock) + Send>;

/// A bounded pool of threads that are started on demand.
#[derive(Clone)]
pub struct Executor(Arc<Pool>);

struct Pool {
    name: &'static str,
    threads: usize,
    metrics: Metrics,
    /// One permit for each running or queued piece of work.
    room: Arc<Semaphore>,
    runtime: Handle,
    state: Mutex<State>,
    arrived: Condvar,
}

struct Metrics {
    done: Arc<Child>,
    panicked: Arc<Child>,
    refused: Arc<Child>,
    wait: Arc<Child>,
}

impl Metrics {
    fn new(name: &str) -> Self {
        let outcome = |outcome| metrics::EXECUTOR_WORK.with(&[name, outcome]);
        Metrics {
            done: outcome("done"),
            panicked: outcome("panicked"),
            refused: outcome("refused"),
            wait: metrics::EXECUTOR_WAIT.with(&[name]),
        }
    }
}

#[derive(Default)]
struct State {
    queue: VecDeque<(Instant, Work)>,
    threads: usize,
    idle: usize,
    stopped: bool,
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor").field("name", &self.0.name).field("threads", &self.0.threads).finish_non_exhaustive()
    }
}

impl Executor {
    /// Creates an executor of up to `threads` threads, with up to `queue` queued pieces of work. Must be called within
    /// a runtime.
    pub fn new(name: &'static str, threads: usize, queue: usize) -> Self {
        Executor(Arc::new(Pool {
            name,
            threads,
            metrics: Metrics::new(name),
            room: Arc::new(Semaphore::new(threads + queue)),
            runtime: Handle::current(),
            state: Mutex::default(),
            arrived: Condvar::new(),
        }))
    }

    /// Runs work and returns its result. Waits for room in the queue. The work continues if the caller is cancelled.
    pub async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&MayBlock) -> R + Send + 'static,
    ) -> Result<R, ExecutorError> {
        let result = Arc::new(Mutex::new(None));
        let place = Arc::clone(&result);
        // Wraps the work, so that the code of queueing and waiting is compiled once, not for each type of result.
        let work: Work = Box::new(move |may_block| {
            let value = work(may_block);
            *place.lock() = Some(value);
        });
        self.run_work(work).await?;
        let result = result.lock().take();
        result.ok_or_else(|| self.lost())
    }

    async fn run_work(&self, work: Work) -> Result<(), ExecutorError> {
        let room = Arc::clone(&self.0.room).acquire_owned().await;
        let room = room.map_err(|_| ExecutorError::Stopped(self.0.name))?;
        self.submit(room, work)?.await.map_err(|_| self.lost())
    }

    /// Whether all threads are busy, so that new work is queued.
    pub fn is_busy(&self) -> bool {
        let state = self.0.state.lock();
        state.threads >= self.0.threads && state.idle <= state.queue.len()
    }

    /// Queues work if there is room, and returns the receiver of its result.
    pub fn start<R: Send + 'static>(
        &self,
        work: impl FnOnce(&MayBlock) -> R + Send + 'static,
    ) -> Result<Pending<R>, ExecutorError> {
        let room = Arc::clone(&self.0.room).try_acquire_owned().map_err(|error| {
            self.0.metrics.refused.add(1);
            match error {
                TryAcquireError::Closed => ExecutorError::Stopped(self.0.name),
                TryAcquireError::NoPermits => ExecutorError::Full(self.0.name),
            }
        })?;
        Ok(Pending { result: self.submit(room, work)?, executor: self.clone() })
    }

    /// Refuses new work and drops the queue.
    pub fn stop(&self) {
        self.0.room.close();
        let dropped = {
            let mut state = self.0.state.lock();
            state.stopped = true;
            std::mem::take(&mut state.queue)
        };
        self.0.arrived.notify_all();
        if !dropped.is_empty() {
            tracing::warn!(executor = self.0.name, dropped = dropped.len(), "executor stopped with work in its queue");
        }
    }

    fn lost(&self) -> ExecutorError {
        if self.0.state.lock().stopped {
            ExecutorError::Stopped(self.0.name)
        } else {
            ExecutorError::Panicked(self.0.name)
        }
    }

    fn submit<R: Send + 'static>(
        &self,
        room: OwnedSemaphorePermit,
        work: impl FnOnce(&MayBlock) -> R + Send + 'static,
    ) -> Result<oneshot::Receiver<R>, ExecutorError> {
        let (sender, result) = oneshot::channel();
        self.queue(Box::new(move |may_block| {
            // Held until the work is done, even if it panics.
            let _room = room;
            // The caller may have been cancelled.
            _ = sender.send(work(may_block));
        }))?;
        Ok(result)
    }

    fn queue(&self, work: Work) -> Result<(), ExecutorError> {
        let mut state = self.0.state.lock();
        if state.stopped {
            return Err(ExecutorError::Stopped(self.0.name));
        }
        state.queue.push_back((Instant::now(), work));
        if state.queue.len() <= state.idle {
            drop(state);
            self.0.arrived.notify_one();
            return Ok(());
        }
        if state.threads < self.0.threads {
            let pool = Arc::clone(&self.0);
            let builder = std::thread::Builder::new().name(self.0.name.into()).stack_size(STACK_SIZE);
            let started = builder.spawn(move || pool.work());
            match started {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads == 0 => {
                    state.queue.pop_back();
                    tracing::error!(executor = self.0.name, %error, "starting a thread failed");
                    return Err(ExecutorError::Full(self.0.name));
                }
                // The existing threads will run it.
                Err(error) => tracing::error!(executor = self.0.name, %error, "starting a thread failed"),
            }
        }
        Ok(())
    }
}

impl Pool {
    /// Runs queued work until the idle timeout.
    fn work(&self) {
        let _runtime = self.runtime.enter();
        let may_block = MayBlock { runtime: self.runtime.clone() };
        let mut state = self.state.lock();
        loop {
            if let Some((queued, work)) = state.queue.pop_front() {
                drop(state);
                self.metrics.wait.add(queued.elapsed().as_micros() as u64);
                if std::panic::catch_unwind(AssertUnwindSafe(|| work(&may_block))).is_ok() {
                    self.metrics.done.add(1);
                } else {
                    self.metrics.panicked.add(1);
                    tracing::error!(executor = self.name, "work panicked: this is a defect, please report it");
                }
                state = self.state.lock();
                continue;
            }
            if state.stopped {
                break;
            }
            state.idle += 1;
            let timed_out = self.arrived.wait_for(&mut state, IDLE).timed_out();
            state.idle -= 1;
            if timed_out && state.queue.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }
}

/// The result of started work.
#[derive(Debug)]
pub struct Pending<R> {
    result: oneshot::Receiver<R>,
    executor: Executor,
}

impl<R> Pending<R> {
    /// Waits for the result.
    pub async fn result(self) -> Result<R, ExecutorError> {
        self.result.await.map_err(|_| self.executor.lost())
    }
}

#[cfg(test)]
mod tests;

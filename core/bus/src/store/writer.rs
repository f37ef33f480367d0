//! The writer thread: commits the queue, and recovers the store after an I/O error.
//!
//! After an error, all writes are refused at once. The database is reopened, so that reads work again, and writing is
//! retried with growing pauses until the disk accepts writes; the process need not be restarted. After a write that met
//! a damaged page, all pages are checked; a file that cannot be repaired is moved aside, as at the start. Between
//! commits, the thread returns free space to the disk (`reclaim`).

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::engine::{self, Engine, Failure};
use super::observers::Observers;
use super::queue::{Next, Queue, QueuedBatch};
use super::reclaim::Reclaim;
use super::{Batch, Health, META, StoreError};
use crate::metrics;

/// The first pause before a failed store is retried; it doubles up to the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The time without failures after which the pause is reset.
const STABLE_AFTER: Duration = Duration::from_secs(60);

pub(super) struct Writer<'a> {
    pub engine: &'a Engine,
    pub queue: &'a Queue,
    pub health: &'a watch::Sender<Health>,
    pub observers: &'a Observers,
    /// The number of batches refused since the store failed.
    pub refused: AtomicU64,
}

/// The state of a failed store.
struct Fault {
    error: StoreError,
    since: Instant,
    next_try: Instant,
    /// Whether the database must be reopened.
    broken: bool,
    /// Whether a write met a damaged page.
    damaged: bool,
    /// Whether the file must be moved aside, regardless of a check of its pages.
    hopeless: bool,
    /// The new path of the damaged file, once it has been moved.
    aside: Option<PathBuf>,
    /// Whether the empty store has still to be created.
    creating: bool,
}

/// The pause before the next attempt.
struct Pauses {
    next: Duration,
    recovered: Option<Instant>,
    /// The time of the last recovery from damage that the check of the pages did not find.
    unexplained: Option<Instant>,
}

impl Pauses {
    fn take(&mut self) -> Duration {
        if self.recovered.is_some_and(|at| at.elapsed() > STABLE_AFTER) {
            self.next = FIRST_PAUSE;
        }
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

impl Writer<'_> {
    /// Commits batches until the queue is closed.
    pub fn run(&self, mut reclaim: Reclaim) {
        let mut fault: Option<Fault> = None;
        let mut pauses = Pauses { next: FIRST_PAUSE, recovered: None, unexplained: None };
        loop {
            let wake = fault.as_ref().map_or_else(|| reclaim.next(), |fault| fault.next_try);
            match self.queue.next(Some(wake)) {
                Next::Closed => return,
                Next::Batches(waiting) => match &fault {
                    Some(fault) => self.refuse(waiting, &fault.error),
                    None => fault = self.commit(waiting, &mut reclaim).map(|failure| self.fail(&failure, &mut pauses)),
                },
                Next::Check => {}
            }
            if let Some((reason, generation)) = self.queue.take_suspect()
                && generation == self.engine.generation()
            {
                match &mut fault {
                    Some(fault) => fault.broken = true,
                    None => fault = Some(self.fail(&Failure::Broken(reason), &mut pauses)),
                }
            }
            if let Some(failed) = fault.take_if(|fault| Instant::now() >= fault.next_try) {
                fault = self.recover(failed, &mut pauses);
            }
            reclaim.request(self.queue.take_space_requests());
            match &fault {
                Some(fault) => reclaim.abandon(&fault.error),
                None => reclaim.step(self.engine),
            }
        }
    }

    /// Commits batches together. Returns the failure that makes the store unusable.
    fn commit(&self, waiting: Vec<QueuedBatch>, reclaim: &mut Reclaim) -> Option<Failure> {
        let (batches, done): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        let failure = match self.engine.commit(&batches) {
            Ok(()) => {
                reclaim.committed(&batches);
                self.observers.committed(&batches);
                for sender in done {
                    // The caller may ignore the result.
                    _ = sender.send(Ok(()));
                }
                return None;
            }
            Err(failure) => failure,
        };
        let error = self.error(&failure);
        self.refuse(batches.into_iter().zip(done).collect(), &error);
        if let Failure::Refused(reason) = &failure {
            tracing::error!(reason, "writes refused: one of them is invalid");
            return None;
        }
        Some(failure)
    }

    fn error(&self, failure: &Failure) -> StoreError {
        let path = self.engine.disk.path().to_owned();
        match failure {
            Failure::Broken(reason) | Failure::Refused(reason) => StoreError::Write { path, reason: reason.clone() },
            Failure::Damaged(reason) => StoreError::Damaged { path, reason: reason.clone() },
        }
    }

    fn refuse(&self, waiting: Vec<QueuedBatch>, error: &StoreError) {
        metrics::STORE_REFUSED.add(waiting.len() as u64);
        self.refused.fetch_add(waiting.len() as u64, Ordering::Relaxed);
        for (_, sender) in waiting {
            // If the caller ignores the result, the counter and the log line of the failure cover it.
            _ = sender.send(Err(error.clone()));
        }
    }

    /// Records that the store has failed.
    fn fail(&self, failure: &Failure, pauses: &mut Pauses) -> Fault {
        let error = match failure {
            Failure::Damaged(reason) => self.engine.damaged(None, reason.clone()),
            failure => self.error(failure),
        };
        metrics::STORE_FAILURES.add(1);
        metrics::STORE_FAILED.set(1);
        tracing::error!(%error, "the store has failed: writes are refused until the disk recovers");
        self.health.send_replace(Health::Failed(error.clone()));
        let since = Instant::now();
        let damaged = matches!(failure, Failure::Damaged(_));
        let hopeless = damaged && pauses.unexplained.is_some_and(|at| at.elapsed() < STABLE_AFTER);
        Fault {
            error,
            since,
            next_try: since + pauses.take(),
            broken: true,
            damaged,
            hopeless,
            aside: None,
            creating: false,
        }
    }

    /// Tries to recover the store. Returns the fault if that failed.
    fn recover(&self, mut fault: Fault, pauses: &mut Pauses) -> Option<Fault> {
        match self.attempt(&mut fault) {
            Ok(()) => {
                let refused = self.refused.swap(0, Ordering::Relaxed);
                let seconds = fault.since.elapsed().as_secs();
                let path = self.engine.disk.path().display();
                metrics::STORE_FAILED.set(0);
                tracing::warn!(%path, seconds, refused, "the store works again");
                pauses.recovered = Some(Instant::now());
                if fault.damaged && fault.aside.is_none() {
                    pauses.unexplained = pauses.recovered;
                }
                self.health.send_replace(fault.aside.map_or(Health::Healthy, Health::Replaced));
                None
            }
            Err(reason) => {
                tracing::debug!(reason, "the store is not usable yet");
                fault.next_try = Instant::now() + pauses.take();
                Some(fault)
            }
        }
    }

    /// Reopens the database if necessary, and writes to it.
    fn attempt(&self, fault: &mut Fault) -> Result<(), String> {
        if fault.broken {
            self.reopen(fault)?;
            fault.broken = false;
        }
        // Reads work from here on. Each failed write requires that the database be reopened again, which takes seconds
        // for a large one. So the disk is probed first.
        self.engine.disk.probe().map_err(|error| error.to_string())?;
        let mut batch = Batch::new();
        batch.put(META, *b"recovered", jiff::Timestamp::now().to_string().into_bytes());
        match self.engine.commit(&[batch]) {
            Ok(()) => Ok(()),
            Err(Failure::Damaged(reason)) => {
                (fault.hopeless, fault.damaged, fault.broken) = (fault.damaged, true, true);
                Err(reason)
            }
            Err(Failure::Broken(reason) | Failure::Refused(reason)) => {
                fault.broken = true;
                Err(reason)
            }
        }
    }

    /// Reopens the database; replaces one that is damaged beyond repair.
    fn reopen(&self, fault: &mut Fault) -> Result<(), String> {
        if fault.creating {
            return self.create(fault);
        }
        let reason = if fault.hopeless {
            fault.error.to_string()
        } else {
            let opened = if fault.damaged { self.engine.reopen_checked() } else { self.engine.reopen() };
            match opened {
                Ok(()) => return Ok(()),
                Err(error) if engine::is_damage(&error) => error.to_string(),
                Err(error) => return Err(error.to_string()),
            }
        };
        // A full or read-only disk cannot hold an empty store, and the file stays in place.
        self.engine.disk.probe().map_err(|error| error.to_string())?;
        let aside = self.engine.move_aside().map_err(|error| error.to_string())?;
        metrics::STORE_REPLACED.add(1);
        let path = self.engine.disk.path().display();
        tracing::error!(%path, moved_to = %aside.display(), reason, "the store is damaged beyond repair: it is moved aside and an empty one takes its place");
        (fault.aside, fault.creating) = (Some(aside), true);
        self.create(fault)
    }

    fn create(&self, fault: &mut Fault) -> Result<(), String> {
        self.engine.create()?;
        (fault.creating, fault.damaged, fault.hopeless) = (false, false, false);
        Ok(())
    }
}

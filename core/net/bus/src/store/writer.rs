//! The writer thread: commits the queue, and recovers the store after an I/O error.
//!
//! After an error, all writes are refused at once. The database is reopened, so that reads work again, and writing is
//! retried with growing pauses until the disk accepts writes; the process need not be restarted. After a write that met a
//! damaged page, all pages are checked; a file that cannot be repaired is moved aside, as at the start. Between commits,
//! the thread returns free space to the disk (`reclaim`). A panic of the thread is such an error, too: its state is
//! built anew, and the database is reopened.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::engine::{self, Engine, Failure};
use super::observers::Observers;
use super::queue::{Next, Queue, QueuedBatch, Reply};
use super::reclaim::Reclaim;
use super::{ABANDONED, Batch, Health, META, StoreError};
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
    /// The descriptions of refused writes without a caller that waits, each logged once until the store works again.
    pub unchecked: Mutex<BTreeSet<&'static str>>,
}

/// The table whose changes panic in tests.
#[cfg(test)]
pub(super) const PANICS: super::Table = super::Table("test panics");

/// The table whose changes are invalid in tests.
#[cfg(test)]
pub(super) const REFUSED: super::Table = super::Table("test refused");

/// The state between two commits.
struct Work {
    reclaim: Reclaim,
    fault: Option<Fault>,
    pauses: Pauses,
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
    /// Whether the store has recently recovered from damage that the check of the pages did not find.
    fn is_unexplained(&self) -> bool {
        self.unexplained.is_some_and(|at| at.elapsed() < STABLE_AFTER)
    }

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
    /// Commits batches until the queue is closed, then closes the database.
    pub fn run(&self) {
        let pauses = Pauses { next: FIRST_PAUSE, recovered: None, unexplained: None };
        let mut work = Work { reclaim: Reclaim::new(), fault: None, pauses };
        while let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.serve(&mut work))) {
            let reason = format!("the thread of the store panicked: {}", engine::text_of(&*panic));
            metrics::STORE_PANICS.add(1);
            tracing::error!(reason, "the thread of the store continues; this is a defect, please report it");
            let Work { reclaim, fault, pauses } = &mut work;
            let abandoned = std::mem::replace(reclaim, Reclaim::new());
            // A copy of the store may be in the state that panicked.
            _ = catch_unwind(AssertUnwindSafe(move || drop(abandoned)));
            match fault {
                Some(fault) => (fault.broken, fault.next_try) = (true, Instant::now() + pauses.take()),
                None => *fault = Some(self.fail(&Failure::Broken(reason), pauses)),
            }
        }
        // A copy in progress reads from the database.
        drop(work);
        self.engine.close();
        self.queue.end();
        self.engine.outage.close();
    }

    fn serve(&self, work: &mut Work) {
        let Work { reclaim, fault, pauses } = work;
        loop {
            let wake = fault.as_ref().map_or_else(|| reclaim.next(), |fault| fault.next_try);
            match self.queue.next(Some(wake)) {
                Next::Closed => return,
                Next::Batches(waiting) => match &fault {
                    Some(fault) => self.refuse(waiting, &fault.error),
                    None => *fault = self.commit(waiting, reclaim).map(|failure| self.fail(&failure, pauses)),
                },
                Next::Check => {}
            }
            if let Some((reason, generation)) = self.queue.take_suspect()
                && generation == self.engine.generation()
            {
                match fault {
                    Some(fault) => fault.broken = true,
                    None => *fault = Some(self.fail(&Failure::Broken(reason), pauses)),
                }
            }
            if let Some(failed) = fault.take_if(|fault| Instant::now() >= fault.next_try) {
                *fault = self.recover(failed, pauses);
            }
            reclaim.request(self.queue.take_space_requests());
            if let Some(fault) = &fault {
                reclaim.abandon(&fault.error);
            } else {
                reclaim.step(self.engine);
                // A step may have replaced the file.
                if let Err(failure) = self.engine.flush_directory() {
                    *fault = Some(self.fail(&failure, pauses));
                }
            }
        }
    }

    /// Commits batches together. Returns the failure that makes the store unusable.
    fn commit(&self, waiting: Vec<QueuedBatch>, reclaim: &mut Reclaim) -> Option<Failure> {
        let (batches, replies): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        #[cfg(test)]
        assert!(batches.iter().all(|batch| batch.touched().all(|(table, _)| table != PANICS)), "requested by the test");
        let failure = match self.engine.commit(&batches) {
            Ok(()) => {
                reclaim.committed(&batches);
                self.observers.committed(&batches);
                for reply in replies {
                    if let Reply::Ticket(sender) = reply {
                        // The caller may ignore the result.
                        _ = sender.send(Ok(()));
                    }
                }
                return None;
            }
            Err(failure) => failure,
        };
        let waiting: Vec<QueuedBatch> = batches.into_iter().zip(replies).collect();
        if !matches!(failure, Failure::Refused(_)) {
            self.refuse(waiting, &self.error(&failure));
            return Some(failure);
        }
        if waiting.len() == 1 {
            tracing::error!(error = %self.error(&failure), "a write is invalid and is refused");
            self.refuse(waiting, &self.error(&failure));
            return None;
        }
        // The invalid batch must not have the others refused.
        let mut waiting = waiting.into_iter();
        while let Some(batch) = waiting.next() {
            if let Some(failure) = self.commit(vec![batch], reclaim) {
                self.refuse(waiting.collect(), &self.error(&failure));
                return Some(failure);
            }
        }
        None
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
        for (_, reply) in waiting {
            let what = match reply {
                Reply::Ticket(sender) => match sender.send(Err(error.clone())) {
                    Ok(()) => continue,
                    Err(_) => ABANDONED,
                },
                Reply::Unchecked(what) => what,
            };
            metrics::STORE_UNCHECKED.add(1);
            if self.unchecked.lock().insert(what) {
                tracing::error!(what, %error, "a write to the store was refused and is not repeated");
            }
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
        let hopeless = damaged && pauses.is_unexplained();
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
                self.unchecked.lock().clear();
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
        self.engine.create().map_err(|error| error.to_string())?;
        (fault.creating, fault.damaged, fault.hopeless) = (false, false, false);
        Ok(())
    }
}

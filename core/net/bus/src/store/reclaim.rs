//! Returns free space of the store to the disk.
//!
//! redb reuses freed pages but never shrinks its file. When the file takes much more space than its rows need, they are
//! copied to a new file, which replaces the old one. The writer thread does this in steps between commits: neither
//! reads nor writes stop. Meanwhile the disk holds both files; without room for both, nothing is copied. If the process
//! ends meanwhile, the next start removes the unfinished file.

use std::time::{Duration, Instant};

use super::copy::{Copy, Position};
use super::engine::{Engine, EngineError};
use super::queue::ResultSender;
use super::{Batch, Pages, StoreError, disk};

/// The interval between checks.
const INTERVAL: Duration = Duration::from_secs(600);
/// The interval after which the rows are measured again although the file has not grown.
const MEASURE_INTERVAL: Duration = Duration::from_secs(3600);
/// The file size in bytes up to which a store is never copied.
const MIN_COPIED: u64 = 16 << 20;
/// The free bytes that must remain on the disk.
const MIN_FREE: u64 = 64 << 20;
/// The pause after a step, as a multiple of its duration: commits have three quarters of the thread's time.
const PAUSE_FACTOR: u32 = 3;

/// The reason why no space is returned to the disk.
#[derive(Debug, thiserror::Error)]
enum ReclaimError {
    /// The rows cannot be read or copied.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Other data has filled the disk while a copy was made.
    #[error("less than {} MiB of the disk are free", MIN_FREE >> 20)]
    DiskFull,
    /// The disk has no room for a copy. All sizes are in bytes.
    #[error(
        "the store takes {} MiB and needs {} MiB, of which a copy is made first, but only {} MiB of the disk are free",
        allocated >> 20, need >> 20, free >> 20
    )]
    NoRoom { allocated: u64, need: u64, free: u64 },
}

enum Phase {
    Idle,
    /// Adding up the space that the rows need.
    Measuring(Position, Pages),
    Copying(Box<Copy>, u64),
}

/// The state between two steps of a check.
pub(super) struct Reclaim {
    phase: Phase,
    next: Instant,
    /// The time of the last measurement, and the bytes that the rows needed.
    measured: Option<(Instant, u64)>,
    /// The size of the last copy, as a percentage of the calculated need of its rows.
    density: u64,
    /// The senders of results that wait for the end of the current check.
    waiting: Vec<ResultSender>,
    /// The senders of results that wait for the end of the next check.
    requested: Vec<ResultSender>,
}

impl Reclaim {
    /// Creates the state at the start of the store.
    pub fn new() -> Self {
        let next = Instant::now() + INTERVAL;
        Reclaim { phase: Phase::Idle, next, measured: None, density: 100, waiting: Vec::new(), requested: Vec::new() }
    }

    /// Returns the time at which the next step is due.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Adds requests for a check.
    pub fn request(&mut self, mut requests: Vec<ResultSender>) {
        self.requested.append(&mut requests);
    }

    /// Applies batches that the store has committed to the copy, if there is one.
    pub fn committed(&mut self, batches: &[Batch]) {
        if let Phase::Copying(copy, _) = &self.phase
            && let Err(error) = copy.apply(batches)
        {
            self.fail(&StoreError::Read(error.to_string()));
        }
    }

    /// Ends the current check because the store has failed.
    pub fn abandon(&mut self, error: &StoreError) {
        if !matches!(self.phase, Phase::Idle) || !self.requested.is_empty() {
            self.waiting.append(&mut self.requested);
            self.end(&Err(error.clone()));
        }
    }

    /// Executes a step if one is due.
    pub fn step(&mut self, engine: &Engine) {
        let is_requested = matches!(self.phase, Phase::Idle) && !self.requested.is_empty();
        let start = Instant::now();
        if start < self.next && !is_requested {
            return;
        }
        let phase = std::mem::replace(&mut self.phase, Phase::Idle);
        match self.advance(phase, engine, is_requested) {
            Ok(Phase::Idle) => self.end(&Ok(())),
            Ok(phase) => {
                self.phase = phase;
                self.next = Instant::now() + start.elapsed() * PAUSE_FACTOR;
            }
            Err(error) => self.fail(&StoreError::Read(error.to_string())),
        }
    }

    fn advance(&mut self, phase: Phase, engine: &Engine, is_requested: bool) -> Result<Phase, ReclaimError> {
        match phase {
            Phase::Idle => {
                self.waiting.append(&mut self.requested);
                if !is_requested && !self.is_due(disk::allocated(engine.disk.path())) {
                    return Ok(Phase::Idle);
                }
                Ok(Phase::Measuring(Position::first(engine)?, Pages::after(0)))
            }
            Phase::Measuring(mut position, mut pages) => {
                position.step(engine, |_, key, value| {
                    pages.add(key.len() + value.len());
                    Ok(())
                })?;
                if position.is_end() { self.decide(pages.bytes, engine) } else { Ok(Phase::Measuring(position, pages)) }
            }
            Phase::Copying(mut copy, need) => {
                if disk::free(engine.disk.path()).map_err(EngineError::File)? < MIN_FREE {
                    return Err(ReclaimError::DiskFull);
                }
                copy.step(engine)?;
                if !copy.is_complete() {
                    return Ok(Phase::Copying(copy, need));
                }
                copy.finish(engine)?;
                let path = engine.disk.path();
                let bytes = disk::allocated(path);
                self.density = (bytes * 100 / need.max(1)).clamp(100, 400);
                tracing::info!(path = %path.display(), bytes, "free space of the store was returned to the disk");
                Ok(Phase::Idle)
            }
        }
    }

    /// Whether the rows must be measured.
    fn is_due(&self, allocated: u64) -> bool {
        allocated > MIN_COPIED
            && self
                .measured
                .is_none_or(|(at, need)| at.elapsed() >= MEASURE_INTERVAL || self.is_excessive(allocated, need))
    }

    /// Whether a file is much larger than its rows need.
    fn is_excessive(&self, allocated: u64, need: u64) -> bool {
        allocated > MIN_COPIED.max(need / 100 * self.density / 5 * 6 + MIN_COPIED / 4)
    }

    /// Begins a copy if the file is much larger than its rows need.
    fn decide(&mut self, need: u64, engine: &Engine) -> Result<Phase, ReclaimError> {
        self.measured = Some((Instant::now(), need));
        let path = engine.disk.path();
        let allocated = disk::allocated(path);
        if !self.is_excessive(allocated, need) {
            return Ok(Phase::Idle);
        }
        let free = disk::free(path).map_err(EngineError::File)?;
        if free < need / 4 * 5 + MIN_FREE {
            return Err(ReclaimError::NoRoom { allocated, need, free });
        }
        Ok(Phase::Copying(Box::new(Copy::begin(engine)?), need))
    }

    fn fail(&mut self, error: &StoreError) {
        tracing::warn!(%error, "returning free space of the store to the disk failed; retrying later");
        self.end(&Err(error.clone()));
    }

    fn end(&mut self, result: &Result<(), StoreError>) {
        self.phase = Phase::Idle;
        self.next = Instant::now() + if self.requested.is_empty() { INTERVAL } else { Duration::ZERO };
        for sender in self.waiting.drain(..) {
            // The caller may ignore the result.
            _ = sender.send(result.clone());
        }
    }
}

//! The budget of a thread's outermost render: its use, the exceeded limit, and its transfer to another thread.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use minijinja::{Error, ErrorKind};

use super::{LimitExceeded, Limits};
use crate::metrics;

/// The number of bytes of work that count as one step.
pub(super) const STEP: u64 = 64;

/// The clock is read once per this number of checks.
const CLOCK_INTERVAL: u64 = 64;

/// A function that returns the number of bytes that the calling thread has allocated and not freed.
type Measure = fn() -> i64;

static MEASURE: OnceLock<Measure> = OnceLock::new();

/// Sets the function that returns the bytes that the calling thread holds, from the allocator of the process. Without
/// it, only operations that [`reserve`] memory are limited.
pub fn measure_memory(held: fn() -> i64) {
    // A second call is ignored: the process has one allocator.
    _ = MEASURE.set(held);
}

fn held() -> i64 {
    MEASURE.get().map_or(0, |held| held())
}

/// The use of one render and all renders inside of it.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(super) limits: Limits,
    /// Steps of work, and of inner renders that have ended.
    spent: AtomicU64,
    /// The instructions of the running renders, as of the last check.
    running: AtomicU64,
    /// The part of `running` that belongs to outer renders.
    outer: AtomicU64,
    checks: AtomicU64,
    /// The memory of the thread when the render began.
    base: AtomicI64,
    peak: AtomicI64,
    /// The memory at the last iteration of a loop.
    last_iteration_memory: AtomicU64,
    /// Whether an iteration has allocated a quarter of the memory limit at once.
    doubles: AtomicBool,
    exceeded: OnceLock<LimitExceeded>,
    /// The template and line at which the limit was exceeded.
    location: OnceLock<(String, usize)>,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Budget>>> = const { RefCell::new(None) };
}

pub(super) fn current() -> Option<Arc<Budget>> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Uses the budget of the thread, or returns `none` if no render runs on it.
pub(super) fn with_budget<T>(none: T, use_budget: impl FnOnce(&Budget) -> T) -> T {
    let use_budget = |current: &RefCell<Option<Arc<Budget>>>| current.borrow().as_deref().map(use_budget);
    CURRENT.try_with(use_budget).ok().flatten().unwrap_or(none)
}

pub(super) fn within(limit: u64, used: u64) -> bool {
    limit == 0 || used <= limit
}

impl Budget {
    fn new(limits: Limits) -> Self {
        Budget {
            limits,
            spent: AtomicU64::new(0),
            running: AtomicU64::new(0),
            outer: AtomicU64::new(0),
            checks: AtomicU64::new(0),
            base: AtomicI64::new(held()),
            peak: AtomicI64::new(0),
            last_iteration_memory: AtomicU64::new(0),
            doubles: AtomicBool::new(false),
            exceeded: OnceLock::new(),
            location: OnceLock::new(),
        }
    }

    /// Adds to a count. Load and store suffice: one thread at a time works for a budget.
    fn add(count: &AtomicU64, by: u64) -> u64 {
        let sum = count.load(Relaxed).saturating_add(by);
        count.store(sum, Relaxed);
        sum
    }

    /// Returns the growth of the thread's memory since the render began, in bytes.
    fn memory(&self) -> u64 {
        let held = held();
        let above = held.wrapping_sub(self.base.load(Relaxed));
        if above < 0 {
            // The thread has freed memory from before the render, which must not count in favour of the template.
            self.base.store(held, Relaxed);
        }
        if above > self.peak.load(Relaxed) {
            self.peak.store(above, Relaxed);
        }
        u64::try_from(above).unwrap_or(0)
    }

    /// Returns the steps that are left for one more render.
    fn fuel(&self) -> Option<u64> {
        let used = self.spent.load(Relaxed).saturating_add(self.running.load(Relaxed));
        (self.limits.fuel > 0).then(|| self.limits.fuel.saturating_sub(used))
    }

    /// Whether a loop may continue. The buffer of captured text grows by doubling, which needs a temporary copy and is
    /// counted only afterwards. So after an iteration that has allocated a quarter of the memory limit at once, a
    /// quarter must be free.
    pub(super) fn check_iteration(&self) -> bool {
        let (held, quarter) = (self.memory(), self.limits.memory / 4);
        let grown = held.saturating_sub(self.last_iteration_memory.swap(held, Relaxed));
        if quarter > 0 && grown >= quarter {
            self.doubles.store(true, Relaxed);
        }
        self.spend_leaving(0, 0, if self.doubles.load(Relaxed) { quarter } else { 0 })
    }

    /// Counts bytes of work and bytes to be allocated, and returns whether all limits hold.
    pub(super) fn spend(&self, work: u64, bytes: u64) -> bool {
        self.spend_leaving(work, bytes, 0)
    }

    /// Counts like [`Budget::spend`], with this many bytes of memory left free.
    fn spend_leaving(&self, work: u64, bytes: u64, free: u64) -> bool {
        if self.exceeded.get().is_some() {
            return false;
        }
        let limits = &self.limits;
        let spent = Self::add(&self.spent, work.max(bytes) / STEP);
        let exceeded = if !within(limits.memory, self.memory().saturating_add(bytes).saturating_add(free)) {
            LimitExceeded::Memory
        } else if !within(limits.fuel, spent.saturating_add(self.running.load(Relaxed))) {
            LimitExceeded::Fuel
        } else if let Some(reason) = self.cancelled() {
            reason
        } else {
            return true;
        };
        self.exceed(exceeded);
        false
    }

    /// Records the instructions of the running render.
    pub(super) fn consumed(&self, instructions: u64) {
        self.running.store(self.outer.load(Relaxed).saturating_add(instructions), Relaxed);
    }

    fn cancelled(&self) -> Option<LimitExceeded> {
        let cancel = self.limits.cancel.as_ref()?;
        if cancel.cancelled.load(Relaxed) {
            return Some(LimitExceeded::Cancelled);
        }
        let reads_clock = Self::add(&self.checks, 1) % CLOCK_INTERVAL == 1;
        (reads_clock && cancel.is_late()).then_some(LimitExceeded::Deadline)
    }

    pub(super) fn exceed(&self, exceeded: LimitExceeded) {
        if self.exceeded.set(exceeded).is_ok() {
            metrics::TEMPLATE_LIMITS_EXCEEDED.add(1);
        }
    }

    /// Returns the limit that was exceeded.
    pub(crate) fn exceeded(&self) -> Option<LimitExceeded> {
        self.exceeded.get().copied()
    }

    /// Returns the message for the limit that was exceeded.
    pub(crate) fn message(&self) -> Option<String> {
        self.exceeded().map(|exceeded| self.limits.message(exceeded))
    }

    /// Returns the template and line at which a limit was exceeded. The first report is kept: it is that of the
    /// innermost render.
    pub(crate) fn location(&self, name: &str, line: usize) -> (&str, usize) {
        let (name, line) = self.location.get_or_init(|| (name.to_owned(), line));
        (name, *line)
    }

    /// Returns the peak of memory at checks.
    #[cfg(test)]
    pub(crate) fn peak(&self) -> i64 {
        self.peak.load(Relaxed)
    }

    pub(super) fn error(&self) -> Error {
        Error::new(ErrorKind::InvalidOperation, self.message().unwrap_or_default())
    }
}

/// A running render: its budget belongs to the thread until it ends.
pub(crate) struct Render {
    budget: Arc<Budget>,
    /// `running` and `outer` of the budget before this render; `None` for the outermost render.
    outer: Option<(u64, u64)>,
}

impl Render {
    /// Begins a render. A render inside of another one shares its budget.
    pub(crate) fn begin(limits: &Limits) -> Self {
        if let Some(budget) = current() {
            let (running, outer) = (budget.running.load(Relaxed), budget.outer.load(Relaxed));
            budget.outer.store(running, Relaxed);
            return Render { budget, outer: Some((running, outer)) };
        }
        let budget = Arc::new(Budget::new(limits.clone()));
        CURRENT.with(|current| current.replace(Some(Arc::clone(&budget))));
        Render { budget, outer: None }
    }

    /// Returns the fuel for the engine.
    pub(crate) fn fuel(&self) -> Option<u64> {
        // The engine counts with signed numbers.
        self.budget.fuel().map(|fuel| fuel.min(isize::MAX as u64))
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Records the end of a render, and a limit that the engine has found exceeded.
    pub(crate) fn ended(&self, error: Option<&Error>, consumed: Option<u64>) {
        if let Some(consumed) = consumed {
            self.budget.consumed(consumed);
        }
        let mut cause = error;
        while let Some(error) = cause {
            if error.kind() == ErrorKind::OutOfFuel {
                self.budget.exceed(LimitExceeded::Fuel);
            }
            cause = std::error::Error::source(error).and_then(|source| source.downcast_ref());
        }
        self.budget.spend(0, 0);
    }
}

impl Drop for Render {
    fn drop(&mut self) {
        let budget = &self.budget;
        let own = budget.running.load(Relaxed).saturating_sub(budget.outer.load(Relaxed));
        Budget::add(&budget.spent, own);
        match self.outer {
            Some((running, outer)) => {
                budget.running.store(running, Relaxed);
                budget.outer.store(outer, Relaxed);
            }
            None => _ = CURRENT.try_with(|current| current.replace(None)),
        }
    }
}

/// The budget of a render, passed to a thread that works for the render while it waits.
#[derive(Debug)]
pub struct Handoff {
    budget: Option<Arc<Budget>>,
    memory: i64,
}

/// Returns the budget of the render on this thread, to be passed to a thread that it waits for: renders there share its
/// limits.
pub fn hand_off() -> Handoff {
    let budget = current();
    let memory = budget.as_ref().map_or(0, |budget| i64::try_from(budget.memory()).unwrap_or(i64::MAX));
    Handoff { budget, memory }
}

impl Handoff {
    /// Runs work for the render on the calling thread.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        let Some(budget) = self.budget else { return work() };
        let base = budget.base.swap(held().wrapping_sub(self.memory), Relaxed);
        let _working =
            Working { before: CURRENT.with(|current| current.replace(Some(Arc::clone(&budget)))), budget, base };
        work()
    }
}

struct Working {
    before: Option<Arc<Budget>>,
    budget: Arc<Budget>,
    base: i64,
}

impl Drop for Working {
    fn drop(&mut self) {
        self.budget.base.store(self.base, Relaxed);
        let before = self.before.take();
        _ = CURRENT.try_with(|current| current.replace(before));
    }
}

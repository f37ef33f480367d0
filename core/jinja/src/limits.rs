//! The limits of a render: steps, memory, output and time.
//!
//! A render counts against a [`Budget`], which all renders inside of it share: imports and macros, and the renders that
//! functions of the host start, such as `slsutil.renderer`. The budget belongs to the outermost render and is found
//! through the thread: the engine enumerates, compares and prints containers without handing over its state.
//!
//! Steps are the engine's instructions (`fuel`), and what the filters and operators of this crate do, one step for 64
//! bytes of work. Memory is what the thread holds more than when the render began, as told by the allocator
//! ([`measure_memory`]): so nothing that a template builds escapes it. Operations that turn little into much ask for
//! their memory before they allocate it ([`reserve`]).

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use std::{fmt, io};

use brine_value::{FromValue, Map};
use minijinja::value::{Enumerator, Object, ObjectRepr, Value as JinjaValue};
use minijinja::{Error, ErrorKind, State};

use crate::metrics;

/// The default of the option `template_fuel`: some twenty times what the largest formulas take.
pub const DEFAULT_FUEL: u64 = 200_000_000;

/// The default of the option `template_memory`, in bytes.
pub const DEFAULT_MEMORY: u64 = 64 << 20;

/// The default of the option `template_output`, in bytes.
pub const DEFAULT_OUTPUT: u64 = 64 << 20;

/// How many bytes of work count as one step.
const STEP: u64 = 64;

/// The clock is read once in so many checks.
const CLOCK_INTERVAL: u64 = 64;

/// What a render may use. 0 stands for no limit.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Steps: instructions of the template and bytes of work.
    pub fuel: u64,
    /// Bytes of memory held at any one time.
    pub memory: u64,
    /// Bytes of output.
    pub output: u64,
    /// Ends the render early.
    pub cancel: Option<Cancel>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { fuel: DEFAULT_FUEL, memory: DEFAULT_MEMORY, output: DEFAULT_OUTPUT, cancel: None }
    }
}

impl Limits {
    /// Reads the limits from the options `template_fuel`, `template_memory` and `template_output`.
    pub fn of(opts: &Map) -> Self {
        let given = |name: &str, default| opts.get(name).and_then(u64::from_value).unwrap_or(default);
        Limits {
            fuel: given("template_fuel", DEFAULT_FUEL),
            memory: given("template_memory", DEFAULT_MEMORY),
            output: given("template_output", DEFAULT_OUTPUT),
            cancel: None,
        }
    }

    /// Returns the message for a limit that was exceeded.
    pub(super) fn message(&self, exceeded: LimitExceeded) -> String {
        match exceeded {
            LimitExceeded::Fuel => format!("template needs more than {} steps (template_fuel)", self.fuel),
            LimitExceeded::Memory => format!("template needs more than {} bytes (template_memory)", self.memory),
            LimitExceeded::Output => format!("template writes more than {} bytes (template_output)", self.output),
            LimitExceeded::Deadline => "template is not done at its deadline".to_owned(),
            LimitExceeded::Cancelled => "template was cancelled".to_owned(),
        }
    }

    /// The same limits with a handle that ends the render early.
    #[must_use]
    pub fn with_cancel(self, cancel: Cancel) -> Self {
        Limits { cancel: Some(cancel), ..self }
    }
}

/// Ends renders early: at a deadline, or when somebody asks for it. Clones share the request.
///
/// It is looked at between the steps of a template, also after each function that the template calls; a function that
/// runs is not interrupted.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    cancelled: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Cancel {
    /// A handle without a deadline.
    pub fn new() -> Self {
        Self::default()
    }

    /// A handle that also cancels at a deadline.
    pub fn at(deadline: Instant) -> Self {
        Cancel { cancelled: Arc::default(), deadline: Some(deadline) }
    }

    /// A handle that shares its request with others, which set this flag.
    pub fn shared(cancelled: Arc<AtomicBool>, deadline: Instant) -> Self {
        Cancel { cancelled, deadline: Some(deadline) }
    }

    /// Cancels all renders that have this handle.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// Returns whether it is cancelled or past its deadline.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed) || self.is_late()
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// The limit that a render has exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitExceeded {
    /// `template_fuel`.
    Fuel,
    /// `template_memory`.
    Memory,
    /// `template_output`.
    Output,
    /// The deadline of [`Cancel`].
    Deadline,
    /// A request through [`Cancel`].
    Cancelled,
}

/// Returns how many bytes the calling thread has allocated and not freed.
type Measure = fn() -> i64;

static MEASURE: OnceLock<Measure> = OnceLock::new();

/// Sets where the memory of a thread is read: the allocator of the process. Without it only the operations that
/// [`reserve`] memory are limited.
pub fn measure_memory(held: fn() -> i64) {
    // A second caller has the same allocator.
    _ = MEASURE.set(held);
}

fn held() -> i64 {
    MEASURE.get().map_or(0, |held| held())
}

/// What one render, with all renders inside of it, has used.
#[derive(Debug)]
pub(super) struct Budget {
    limits: Limits,
    /// Steps of work, and of the inner renders that have ended.
    spent: AtomicU64,
    /// Instructions of the renders that run, as of the last look, and among them those of the outer ones.
    running: AtomicU64,
    outer: AtomicU64,
    checks: AtomicU64,
    /// What the thread held when the render began.
    base: AtomicI64,
    peak: AtomicI64,
    /// What was held at the last turn of a loop, and whether one has taken much at once.
    turn: AtomicU64,
    doubles: AtomicBool,
    exceeded: OnceLock<LimitExceeded>,
    /// The template and line at which the limit was found to be exceeded.
    place: OnceLock<(String, usize)>,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Budget>>> = const { RefCell::new(None) };
}

fn current() -> Option<Arc<Budget>> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Looks at the budget of the thread, if a render runs on it.
fn with_budget<T>(none: T, look: impl FnOnce(&Budget) -> T) -> T {
    let look = |current: &RefCell<Option<Arc<Budget>>>| current.borrow().as_deref().map(look);
    CURRENT.try_with(look).ok().flatten().unwrap_or(none)
}

fn within(limit: u64, used: u64) -> bool {
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
            turn: AtomicU64::new(0),
            doubles: AtomicBool::new(false),
            exceeded: OnceLock::new(),
            place: OnceLock::new(),
        }
    }

    /// Adds to a count. One thread at a time works for a budget.
    fn add(count: &AtomicU64, by: u64) -> u64 {
        let sum = count.load(Relaxed).saturating_add(by);
        count.store(sum, Relaxed);
        sum
    }

    /// Bytes that the thread holds more than when the render began.
    fn memory(&self) -> u64 {
        let held = held();
        let above = held.wrapping_sub(self.base.load(Relaxed));
        if above < 0 {
            // It has freed what it did not allocate: that is no credit for the template.
            self.base.store(held, Relaxed);
        }
        if above > self.peak.load(Relaxed) {
            self.peak.store(above, Relaxed);
        }
        u64::try_from(above).unwrap_or(0)
    }

    /// The steps that are left for one more render.
    fn fuel(&self) -> Option<u64> {
        let used = self.spent.load(Relaxed).saturating_add(self.running.load(Relaxed));
        (self.limits.fuel > 0).then(|| self.limits.fuel.saturating_sub(used))
    }

    /// Returns whether a loop may go on. A text that is captured grows by doubling, unseen until then, and for a moment
    /// there are two of it: once a turn has taken a quarter of the memory at once, a quarter must be free.
    fn spend_turn(&self) -> bool {
        let (held, quarter) = (self.memory(), self.limits.memory / 4);
        let grown = held.saturating_sub(self.turn.swap(held, Relaxed));
        if quarter > 0 && grown >= quarter {
            self.doubles.store(true, Relaxed);
        }
        self.spend_leaving(0, 0, if self.doubles.load(Relaxed) { quarter } else { 0 })
    }

    /// Counts so many bytes of work, of which so many are to be allocated, and returns whether all limits are kept.
    fn spend(&self, work: u64, bytes: u64) -> bool {
        self.spend_leaving(work, bytes, 0)
    }

    /// As [`Budget::spend`], with this many bytes of memory left free.
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

    fn cancelled(&self) -> Option<LimitExceeded> {
        let cancel = self.limits.cancel.as_ref()?;
        if cancel.cancelled.load(Relaxed) {
            return Some(LimitExceeded::Cancelled);
        }
        let reads_clock = Self::add(&self.checks, 1) % CLOCK_INTERVAL == 1;
        (reads_clock && cancel.is_late()).then_some(LimitExceeded::Deadline)
    }

    fn exceed(&self, exceeded: LimitExceeded) {
        if self.exceeded.set(exceeded).is_ok() {
            metrics::TEMPLATE_LIMITS_EXCEEDED.add(1);
        }
    }

    /// The limit that was exceeded.
    pub(super) fn exceeded(&self) -> Option<LimitExceeded> {
        self.exceeded.get().copied()
    }

    /// The message for the limit that was exceeded.
    pub(super) fn message(&self) -> Option<String> {
        self.exceeded().map(|exceeded| self.limits.message(exceeded))
    }

    /// Where a limit was found to be exceeded: the innermost render knows best.
    pub(super) fn place(&self, name: &str, line: usize) -> (&str, usize) {
        let (name, line) = self.place.get_or_init(|| (name.to_owned(), line));
        (name, *line)
    }

    /// The most memory that was held at a check.
    #[cfg(test)]
    pub(super) fn peak(&self) -> i64 {
        self.peak.load(Relaxed)
    }

    fn error(&self) -> Error {
        Error::new(ErrorKind::InvalidOperation, self.message().unwrap_or_default())
    }
}

/// A render that runs: its budget is the thread's, and goes back to what it was in the end.
pub(super) struct Render {
    budget: Arc<Budget>,
    /// The instructions of outer renders, and of those outside of these.
    outer: Option<(u64, u64)>,
}

impl Render {
    /// Begins a render. One inside of another shares the budget of that one.
    pub(super) fn begin(limits: &Limits) -> Self {
        if let Some(budget) = current() {
            let (running, outer) = (budget.running.load(Relaxed), budget.outer.load(Relaxed));
            budget.outer.store(running, Relaxed);
            return Render { budget, outer: Some((running, outer)) };
        }
        let budget = Arc::new(Budget::new(limits.clone()));
        CURRENT.with(|current| current.replace(Some(Arc::clone(&budget))));
        Render { budget, outer: None }
    }

    /// The fuel for the engine.
    pub(super) fn fuel(&self) -> Option<u64> {
        // The engine counts with signed numbers.
        self.budget.fuel().map(|fuel| fuel.min(isize::MAX as u64))
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Takes note of how an attempt has ended, and of a limit that the engine has found exceeded.
    pub(super) fn ended(&self, error: Option<&Error>, consumed: Option<u64>) {
        if let Some(consumed) = consumed {
            self.budget.running.store(self.budget.outer.load(Relaxed).saturating_add(consumed), Relaxed);
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

/// The budget of a render, for another thread that works for it while the render waits.
#[derive(Debug)]
pub struct Handoff {
    budget: Option<Arc<Budget>>,
    memory: i64,
}

/// Takes along the budget of the render that runs on this thread, for a thread that is waited for: renders there share
/// its limits.
pub fn hand_off() -> Handoff {
    let budget = current();
    let memory = budget.as_ref().map_or(0, |budget| i64::try_from(budget.memory()).unwrap_or(i64::MAX));
    Handoff { budget, memory }
}

impl Handoff {
    /// Works for the render on the calling thread.
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

/// Fails if the render on this thread has exceeded a limit.
pub(super) fn check() -> Result<(), Error> {
    reserve(0)
}

/// As [`check`], where a loop goes on.
fn check_loop() -> Result<(), Error> {
    with_budget(Ok(()), |budget| if budget.spend_turn() { Ok(()) } else { Err(budget.error()) })
}

/// Asks for memory that is about to be allocated.
pub(super) fn reserve(bytes: usize) -> Result<(), Error> {
    with_budget(Ok(()), |budget| if budget.spend(0, bytes as u64) { Ok(()) } else { Err(budget.error()) })
}

/// Asks for the memory of so many values, of a list.
pub(super) fn reserve_values(count: usize) -> Result<(), Error> {
    reserve(count.saturating_mul(size_of::<JinjaValue>()))
}

/// Asks for the memory of a list of what a text consists of.
pub(super) fn reserve_parts(text: &str) -> Result<(), Error> {
    reserve(text.len().saturating_mul(size_of::<JinjaValue>()))
}

/// Counts work on so many bytes that allocates little.
pub(super) fn work(bytes: usize) -> Result<(), Error> {
    with_budget(Ok(()), |budget| if budget.spend(bytes as u64, 0) { Ok(()) } else { Err(budget.error()) })
}

/// Counts one value of a walk along data, and returns whether to go on: what asks cannot fail. A check later on does.
pub(super) fn walk() -> bool {
    with_budget(true, |budget| budget.spend(STEP, 0))
}

/// As [`walk`], with so many values of a container; or in their place an invalid value, at which the engine fails.
pub(super) fn walk_items(items: Vec<JinjaValue>) -> Vec<JinjaValue> {
    let bytes = (items.len() * size_of::<JinjaValue>()) as u64;
    let failed = with_budget(None, |budget| (!budget.spend(STEP + bytes, 0)).then(|| budget.error()));
    failed.map_or(items, |error| vec![JinjaValue::from(error)])
}

/// Takes note of the instructions that the engine has carried out, and fails if a limit is exceeded.
pub(super) fn note(state: &State<'_, '_>) -> Result<(), Error> {
    if let Some((consumed, _)) = state.fuel_levels() {
        with_budget((), |budget| {
            budget.running.store(budget.outer.load(Relaxed).saturating_add(consumed), Relaxed);
        });
    }
    check()
}

/// What a loop goes through, with a check for each item.
#[derive(Debug)]
pub(super) struct Checked(JinjaValue);

impl Checked {
    /// Wraps a value that can be enumerated.
    pub(super) fn value(items: JinjaValue) -> JinjaValue {
        if current().is_some() { JinjaValue::from_object(Checked(items)) } else { items }
    }
}

impl Object for Checked {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let Ok(items) = self.0.try_iter() else { return Enumerator::NonEnumerable };
        Enumerator::Iter(Box::new(items.map(|item| match check_loop() {
            Ok(()) => item,
            Err(error) => JinjaValue::from(error),
        })))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        self.0.len()
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The output of a render. What is beyond the limit is dropped: the next check fails.
#[derive(Default)]
pub(super) struct Output {
    pub text: Vec<u8>,
    /// Where literal text came from.
    pub lines: super::lines::Recorder,
}

impl io::Write for &mut Output {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let size = self.text.len().saturating_add(text.len());
        let fits = with_budget(true, |budget| {
            let fits = within(budget.limits.output, size as u64);
            if !fits {
                budget.exceed(LimitExceeded::Output);
            }
            fits && budget.exceeded().is_none()
        });
        if fits {
            self.lines.wrote(self.text.len(), text);
            self.text.extend_from_slice(text);
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

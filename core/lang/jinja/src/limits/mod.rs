//! The limits of a render: steps, memory, output and time.
//!
//! A render counts against a [`Budget`] (`budget`), which is shared by all renders inside of it: imports, macros, and
//! renders that functions of the host start, such as `slsutil.renderer`. The budget belongs to the outermost render and
//! is found through the thread: the engine enumerates, compares and prints containers without passing its state.
//!
//! Steps are the engine's instructions (`fuel`) and the work of this crate's filters and operators, one step for 64
//! bytes. Memory is the growth of the thread's memory since the render began, by the allocator's count
//! ([`measure_memory`]), so nothing that a template builds escapes it. Operations that amplify small input reserve
//! their memory before they allocate it ([`reserve`]); `checks` has these, and the wrappers that check loops and
//! output.

mod budget;
mod checks;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use brine_value::{FromValue, Map};

pub(super) use budget::{Budget, Render};
pub use budget::{Handoff, hand_off, measure_memory};
pub(super) use checks::{
    Checked, Output, check, check_fuel, reserve, reserve_parts, reserve_replaced, reserve_values, walk, walk_items,
    work,
};

/// The default of the option `template_fuel`: about twenty times the use of the largest formulas.
pub const DEFAULT_FUEL: u64 = 200_000_000;

/// The default of the option `template_memory`, in bytes.
pub const DEFAULT_MEMORY: u64 = 64 << 20;

/// The default of the option `template_output`, in bytes.
pub const DEFAULT_OUTPUT: u64 = 64 << 20;

/// The limits of a render; 0 means no limit.
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
        let option = |name: &str, default| opts.get(name).and_then(u64::from_value).unwrap_or(default);
        Limits {
            fuel: option("template_fuel", DEFAULT_FUEL),
            memory: option("template_memory", DEFAULT_MEMORY),
            output: option("template_output", DEFAULT_OUTPUT),
            cancel: None,
        }
    }

    /// Returns the message for a limit that was exceeded.
    pub(super) fn message(&self, exceeded: LimitExceeded) -> String {
        match exceeded {
            LimitExceeded::Fuel => format!("template needs more than {} steps (template_fuel)", self.fuel),
            LimitExceeded::Memory => format!("template needs more than {} bytes (template_memory)", self.memory),
            LimitExceeded::Output => format!("template writes more than {} bytes (template_output)", self.output),
            LimitExceeded::Deadline => "template exceeded its deadline".to_owned(),
            LimitExceeded::Cancelled => "template was cancelled".to_owned(),
        }
    }

    /// Returns the same limits with a handle that ends the render early.
    #[must_use]
    pub fn with_cancel(self, cancel: Cancel) -> Self {
        Limits { cancel: Some(cancel), ..self }
    }
}

/// Ends renders early: at a deadline, or on request. Clones share the request.
///
/// It is checked between the steps of a template and after each function that the template calls; a running function is
/// not interrupted.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    cancelled: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Cancel {
    /// Creates a handle without a deadline.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a handle that also cancels at a deadline.
    pub fn at(deadline: Instant) -> Self {
        Cancel { cancelled: Arc::default(), deadline: Some(deadline) }
    }

    /// Creates a handle that shares its request, a flag, with others.
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

//! Checks of the limits by filters, operators and containers, and around loops and output.

use std::sync::Arc;
use std::{fmt, io};

use minijinja::value::{Enumerator, Object, ObjectRepr, Value as JinjaValue};
use minijinja::{Error, State};

use super::LimitExceeded;
use super::budget::{STEP, current, with_budget, within};

/// Fails if the render on this thread has exceeded a limit.
pub(crate) fn check() -> Result<(), Error> {
    reserve(0)
}

/// Checks like [`check`] before the next iteration of a loop.
fn check_loop() -> Result<(), Error> {
    with_budget(Ok(()), |budget| if budget.check_iteration() { Ok(()) } else { Err(budget.error()) })
}

/// Reserves memory that is about to be allocated.
pub(crate) fn reserve(bytes: usize) -> Result<(), Error> {
    with_budget(Ok(()), |budget| if budget.spend(0, bytes as u64) { Ok(()) } else { Err(budget.error()) })
}

/// Reserves the memory of a list of values.
pub(crate) fn reserve_values(count: usize) -> Result<(), Error> {
    reserve(count.saturating_mul(size_of::<JinjaValue>()))
}

/// Reserves the memory of a list of a string's characters or parts.
pub(crate) fn reserve_parts(text: &str) -> Result<(), Error> {
    reserve(text.len().saturating_mul(size_of::<JinjaValue>()))
}

/// Reserves the memory of a string after replacing all occurrences of a part.
pub(crate) fn reserve_replaced(text: &str, old: &str, new: &str) -> Result<(), Error> {
    let grown = if new.len() > old.len() { text.matches(old).count().saturating_mul(new.len()) } else { 0 };
    reserve(text.len().saturating_add(grown))
}

/// Counts work on this number of bytes that allocates little memory.
pub(crate) fn work(bytes: usize) -> Result<(), Error> {
    with_budget(Ok(()), |budget| if budget.spend(bytes as u64, 0) { Ok(()) } else { Err(budget.error()) })
}

/// Counts one value of a traversal, and returns whether to continue. For callers that cannot fail: the next check does.
pub(crate) fn walk() -> bool {
    with_budget(true, |budget| budget.spend(STEP, 0))
}

/// Counts like [`walk`] the values of a container; returns an invalid value, at which the engine fails, instead of
/// excess items.
pub(crate) fn walk_items(items: Vec<JinjaValue>) -> Vec<JinjaValue> {
    let bytes = (items.len() * size_of::<JinjaValue>()) as u64;
    let failed = with_budget(None, |budget| (!budget.spend(STEP + bytes, 0)).then(|| budget.error()));
    failed.map_or(items, |error| vec![JinjaValue::from(error)])
}

/// Records the instructions that the engine has executed, and fails if a limit is exceeded.
pub(crate) fn check_fuel(state: &State<'_, '_>) -> Result<(), Error> {
    if let Some((consumed, _)) = state.fuel_levels() {
        with_budget((), |budget| budget.consumed(consumed));
    }
    check()
}

/// The items of a loop, with a check for each.
#[derive(Debug)]
pub(crate) struct Checked(JinjaValue);

impl Checked {
    /// Wraps a value that can be enumerated.
    pub(crate) fn value(items: JinjaValue) -> JinjaValue {
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

/// The output of a render. Output beyond the limit is dropped, and the next check fails.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) text: Vec<u8>,
    /// Records the source locations of literal text.
    pub(crate) lines: crate::lines::Recorder,
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

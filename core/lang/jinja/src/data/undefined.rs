//! Undefined values: an error where Python would use them, or empty in a lenient render.

use std::cell::Cell;

use minijinja::Error;
use minijinja::value::{Value as JinjaValue, ValueKind};

use super::Dict;
use super::convert::{MAX_DEPTH, pairs};
use crate::limits;

thread_local! {
    /// Whether undefined values are empty in the current render.
    static LENIENT: Cell<bool> = const { Cell::new(false) };
}

/// The treatment of undefined values by the renders of this thread, until it is dropped.
pub(crate) struct UndefinedMode {
    outer: bool,
}

impl UndefinedMode {
    /// Begins a render in which undefined values are empty, or errors.
    pub fn enter(lenient: bool) -> Self {
        UndefinedMode { outer: LENIENT.replace(lenient) }
    }
}

impl Drop for UndefinedMode {
    fn drop(&mut self) {
        LENIENT.set(self.outer);
    }
}

/// Returns whether undefined values are empty in the current render, as by Jinja's default.
pub(crate) fn is_lenient() -> bool {
    LENIENT.get()
}

/// Returns an error for an undefined value where Python would use its value.
pub(crate) fn refuse_undefined(value: &JinjaValue) -> Result<(), Error> {
    if value.is_undefined() && !is_lenient() {
        // minijinja's own error names the expression.
        value.get_attr("")?;
    }
    Ok(())
}

/// Returns an error for a value that contains an undefined one at any depth, for filters that read all of it.
pub(crate) fn refuse_undefined_within(value: &JinjaValue) -> Result<(), Error> {
    refuse_in(value, Within::All, 0)
}

/// Returns an error for a mapping that contains an undefined value, directly or in an inner mapping, for
/// printing. Undefined items of lists are no error there, as in Salt.
pub(crate) fn refuse_undefined_entries(value: &JinjaValue) -> Result<(), Error> {
    refuse_in(value, Within::Mappings, 0)
}

/// Which containers are searched.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    All,
    Mappings,
}

fn refuse_in(value: &JinjaValue, within: Within, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH || is_lenient() {
        return Ok(());
    }
    limits::check()?;
    match value.kind() {
        ValueKind::Map if value.downcast_object_ref::<Dict>().is_some() => {
            for (key, inner) in pairs(value) {
                refuse_undefined(&key)?;
                refuse_undefined(&inner)?;
                refuse_in(&inner, within, depth + 1)?;
            }
        }
        ValueKind::Seq if within == Within::All => {
            for inner in value.try_iter()? {
                refuse_undefined(&inner)?;
                refuse_in(&inner, within, depth + 1)?;
            }
        }
        _ => {}
    }
    Ok(())
}

//! Python's ranges, which print as such and are not lists.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error};

use super::raise;
use super::types::type_name;

/// The maximum number of items of a range.
const MAX: u64 = 100_000;

/// Integers from a start to a stop.
#[derive(Debug)]
pub(crate) struct Range {
    start: i64,
    stop: i64,
    step: i64,
    length: u64,
}

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_function("range", |args: minijinja::value::Rest<JinjaValue>| Range::of(&args));
}

impl Range {
    fn of(args: &[JinjaValue]) -> Result<JinjaValue, Error> {
        let numbers = args.iter().map(whole).collect::<Result<Vec<i64>, Error>>()?;
        let (start, stop, step) = match numbers[..] {
            [] => return Err(raise("range expected at least 1 argument, got 0")),
            [stop] => (0, stop, 1),
            [start, stop] => (start, stop, 1),
            [start, stop, step] => (start, stop, step),
            _ => return Err(raise(format_args!("range expected at most 3 arguments, got {}", numbers.len()))),
        };
        if step == 0 {
            return Err(raise("range() arg 3 must not be zero"));
        }
        let (from, to) = if step > 0 { (start, stop) } else { (stop, start) };
        let length = if to > from { to.abs_diff(from).div_ceil(step.unsigned_abs()) } else { 0 };
        if length > MAX {
            let message = "Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).";
            return Err(raise(message));
        }
        Ok(JinjaValue::from_object(Range { start, stop, step, length }))
    }

    fn at(&self, place: u64) -> Option<i64> {
        let place = i64::try_from(place).ok().filter(|_| place < self.length)?;
        self.start.checked_add(place.checked_mul(self.step)?)
    }
}

fn whole(value: &JinjaValue) -> Result<i64, Error> {
    let refused = || raise(format_args!("'{}' object cannot be interpreted as an integer", type_name(value)));
    match value.kind() {
        ValueKind::Bool => Ok(i64::from(value.is_true())),
        ValueKind::Number if value.is_integer() => value.as_i64().ok_or_else(refused),
        // Only minijinja's own error names the expression.
        ValueKind::Undefined => value.get_attr("").and_then(|_| Err(refused())),
        _ => Err(refused()),
    }
}

impl Object for Range {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &JinjaValue) -> Option<JinjaValue> {
        self.at(u64::try_from(key.as_i64()?).ok()?).map(JinjaValue::from)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let (start, step) = (self.start, self.step);
        // The last item was checked when the range was created: nothing overflows.
        let at = move |place: i64| JinjaValue::from(start.wrapping_add(place.wrapping_mul(step)));
        Enumerator::Iter(Box::new((0..i64::try_from(self.length).unwrap_or(i64::MAX)).map(at)))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        usize::try_from(self.length).ok()
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            1 => write!(f, "range({}, {})", self.start, self.stop),
            step => write!(f, "range({}, {}, {step})", self.start, self.stop),
        }
    }
}

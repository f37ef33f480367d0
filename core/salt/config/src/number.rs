//! Options that are numbers with an optional fraction, such as intervals in seconds.

use std::time::Duration;

use brine_value::{FromValue, Value};

/// The smallest pause of a loop, so that a tiny interval does not occupy a core.
const MIN_PAUSE: Duration = Duration::from_millis(50);
/// Some 30 years: longer than any daemon runs, and short enough to be added to any time.
const MAX: f64 = 1e9;

/// A non-negative number, with or without fraction.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd)]
pub struct Number(f64);

impl Number {
    /// Creates a whole number.
    pub const fn of(number: u32) -> Self {
        Number(number as f64)
    }

    /// Whether the number is 0.
    pub fn is_zero(self) -> bool {
        self.0 == 0.0
    }

    /// Returns this number of seconds.
    pub fn seconds(self) -> Duration {
        Duration::from_secs_f64(self.0.min(MAX))
    }

    /// Returns a multiple, such as the seconds of a number of hours.
    #[must_use]
    pub fn times(self, factor: u32) -> Self {
        Number(self.0 * f64::from(factor))
    }

    /// Returns this number of seconds, rounded up to whole ones.
    pub fn whole_seconds(self) -> u64 {
        let seconds = self.seconds();
        seconds.as_secs() + u64::from(seconds.subsec_nanos() > 0)
    }

    /// Returns this number of milliseconds.
    pub fn milliseconds(self) -> Duration {
        Duration::from_secs_f64((self.0 / 1000.0).min(MAX))
    }

    /// Returns this number of seconds as the pause of a loop or the time limit of a request: one second instead of 0,
    /// and at least 50 milliseconds.
    pub fn pause(self) -> Duration {
        if self.is_zero() { Duration::from_secs(1) } else { self.seconds().max(MIN_PAUSE) }
    }
}

impl FromValue for Number {
    const EXPECTED: &'static str = "a non-negative number";
    fn from_value(value: &Value) -> Option<Self> {
        let number = f64::from_value(value)?;
        (number.is_finite() && number >= 0.0).then_some(Number(number))
    }
}

/// A whole number is an integer.
impl From<Number> for Value {
    fn from(number: Number) -> Self {
        if number.0.fract() == 0.0 && number.0 < MAX { Value::Int(number.0 as i64) } else { Value::Float(number.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_accepted_and_kept() {
        for (value, seconds, pause, expected) in [
            (Value::from(2), 2.0, 2.0, Value::from(2)),
            (Value::from(0.5), 0.5, 0.5, Value::from(0.5)),
            (Value::from("2.5"), 2.5, 2.5, Value::from(2.5)),
            (Value::from(0), 0.0, 1.0, Value::from(0)),
            (Value::from(0.001), 0.001, 0.05, Value::from(0.001)),
            (Value::from(1e300), 1e9, 1e9, Value::from(1e300)),
        ] {
            let number = Number::from_value(&value).unwrap();
            assert_eq!(number.seconds(), Duration::from_secs_f64(seconds), "{value}");
            assert_eq!(number.pause(), Duration::from_secs_f64(pause), "{value}");
            assert_eq!(Value::from(number), expected, "{value}");
        }
        for refused in
            [Value::from(-1), Value::from("x"), Value::Nil, Value::from(f64::NAN), Value::from(f64::INFINITY)]
        {
            assert_eq!(Number::from_value(&refused), None, "{refused}");
        }
    }
}

//! The argument `retry` of a state: how often and until when it is called again.

use std::time::Duration;

use brine_value::{Map, Value};

use crate::result_fields::text;

/// The settings of retries.
pub(super) struct Retry {
    pub until: bool,
    pub attempts: i64,
    interval: i64,
    splay: i64,
}

impl Retry {
    /// Parses a `retry` argument. Values of a wrong type are ignored.
    pub fn read(value: &Value) -> Self {
        // As in Python, a Boolean is an integer: `attempts: no` is a single attempt.
        let integer = |value: &Value| value.as_bool().map(i64::from).or_else(|| value.as_i64());
        let number = |name: &str, default: i64| value.get(name).and_then(integer).unwrap_or(default);
        Retry {
            until: value.get("until").and_then(Value::as_bool).unwrap_or(true),
            attempts: if value == &Value::Bool(false) { 0 } else { number("attempts", 2) },
            interval: number("interval", 30),
            splay: number("splay", 0),
        }
    }

    pub fn pause(&self) -> Duration {
        let more = if self.splay > 0 { rand::random_range(0..=self.splay) } else { 0 };
        Duration::from_secs(u64::try_from(self.interval.saturating_add(more)).unwrap_or(0))
    }

    /// Adds the planned retries to a result in test mode.
    pub fn announce(&self, result: &mut Map) {
        let comment = text(result, "comment");
        result.insert("comment".into(), format!("{comment}  {self}").into());
    }
}

/// The message of test mode.
impl std::fmt::Display for Retry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Retry { until, attempts, interval, splay } = self;
        let until = Value::from(*until);
        write!(
            f,
            "The state would be retried every {interval} seconds (with a splay of up to {splay} seconds) a maximum of {attempts} times or until a result of {until} is returned"
        )
    }
}

/// Describes the result of an attempt on one line.
pub(super) fn attempt_text(attempt: i64, result: &Map, comment: &str) -> String {
    let result = text(result, "result");
    format!("Attempt {attempt}: Returned a result of \"{result}\", with the following comment: \"{comment}\"")
}

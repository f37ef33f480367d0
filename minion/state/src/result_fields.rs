//! The common fields of the results of states.

use std::time::Instant;

use brine_sls::compile::Chunk;
use brine_value::{Map, Value, map};

/// The start time of a call.
pub(super) struct Clock(jiff::Zoned, Instant);

impl Clock {
    pub fn start() -> Self {
        Clock(brine_clock::now(), Instant::now())
    }

    /// Writes the start time and the duration in milliseconds.
    pub fn write(&self, result: &mut Map) {
        let micros = self.0.subsec_nanosecond() / 1000;
        let start_time = format!("{}.{micros:06}", self.0.strftime("%H:%M:%S"));
        result.extend(map! {"start_time" => start_time, "duration" => self.elapsed_ms()});
    }

    /// Returns the elapsed time in milliseconds.
    pub fn elapsed_ms(&self) -> f64 {
        (self.1.elapsed().as_secs_f64() * 1e6).round() / 1e3
    }
}

/// Returns the field `__sls__`: null for a single state.
pub(super) fn sls_of(chunk: &Chunk) -> Value {
    if chunk.sls.is_empty() { Value::Nil } else { (&chunk.sls).into() }
}

/// Returns a field as text; an empty string if it is missing.
pub(super) fn text(result: &Map, key: &str) -> String {
    result.get(key).map(ToString::to_string).unwrap_or_default()
}

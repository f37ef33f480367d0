//! Converts configured or requested seconds to durations.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Returns this number of seconds, clamped to the range. NaN becomes the start of the range.
pub fn within(range: RangeInclusive<f64>, seconds: f64) -> Duration {
    let (least, most) = range.into_inner();
    // `min` and `max` return the bound if `seconds` is not a number.
    let seconds = f64::min(f64::max(seconds, least), most);
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_becomes_a_duration_within_the_range() {
        for (seconds, expected) in [
            (2.5, 2.5),
            (-1.0, 0.5),
            (0.0, 0.5),
            (1e300, 10.0),
            (f64::INFINITY, 10.0),
            (f64::NEG_INFINITY, 0.5),
            (f64::NAN, 0.5),
        ] {
            assert_eq!(within(0.5..=10.0, seconds), Duration::from_secs_f64(expected), "{seconds}");
        }
        assert_eq!(within(-1.0..=1.0, -1.0), Duration::ZERO);
    }
}

//! Durations in the form in which operators write them.

use std::time::Duration;

use brine_value::Value;

/// The error of a duration in none of the forms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("duration '{0}' is invalid: expected seconds, or 30s, 10m, 2h, 1d")]
pub struct InvalidDuration(String);

/// Parses a duration: seconds, or a string such as `90`, `30s`, `10m`, `2h`, `1d`, `1h30m`. It must be above 0.
///
/// # Errors
/// Another form, or a time of 0 or less.
pub fn read(value: &Value) -> Result<Duration, InvalidDuration> {
    let invalid = || InvalidDuration(value.to_string());
    let seconds = match value {
        Value::Int(_) | Value::Float(_) => value.as_f64(),
        Value::Str(text) => text.trim().parse().ok().or_else(|| sum(text.trim())),
        _ => None,
    };
    let seconds = seconds.filter(|seconds: &f64| *seconds > 0.0).ok_or_else(invalid)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| invalid())
}

/// Returns the duration in microseconds, capped so that it can be added to a time.
pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).min(u64::MAX / 4)
}

/// Parses a sum of numbers with units, such as `1h30m`, to seconds; `None` if it is invalid.
fn sum(text: &str) -> Option<f64> {
    let (mut seconds, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let unit_end = rest[end..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| end + at);
        let unit = match rest[end..unit_end].trim() {
            "ms" => 0.001,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            "w" | "week" | "weeks" => 604_800.0,
            _ => return None,
        };
        seconds += number * unit;
        rest = &rest[unit_end..];
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_numbers_and_units() {
        for (value, millis) in [
            (Value::from(5), Some(5000)),
            (0.5.into(), Some(500)),
            ("90".into(), Some(90_000)),
            ("10m".into(), Some(600_000)),
            ("1h30m".into(), Some(5_400_000)),
            ("1 day".into(), Some(86_400_000)),
            ("250ms".into(), Some(250)),
            (0.into(), None),
            ((-1).into(), None),
            ("".into(), None),
            ("m".into(), None),
            ("10 parsecs".into(), None),
            (Value::Nil, None),
        ] {
            assert_eq!(read(&value).ok(), millis.map(Duration::from_millis), "{value}");
        }
    }
}

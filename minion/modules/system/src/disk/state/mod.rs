//! `disk`: the state of a file system's usage.

use std::path::Path;

use brine_context::StateContext;
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::{Value, map};

/// State functions of `disk`.
pub static FUNCTIONS: Functions<StateContext> = registry!("disk", [status]);

/// Ensure that the usage of a file system is within limits. Nothing is changed.
///
/// SLS Example:
///
///     /var:
///       disk.status:
///         - maximum: 90
#[function]
pub fn status(
    context: &StateContext,
    /// Mount point, or a directory.
    name: String,
    /// Largest usage, in percent.
    #[default]
    maximum: Value,
    /// Smallest usage, in percent.
    #[default]
    minimum: Value,
    /// Whether limits are in kilobytes.
    #[default(false)]
    absolute: bool,
    /// Whether limits are those of the space that is available.
    #[default(false)]
    free: bool,
) -> CallResult {
    let mut comment = String::new();
    let mut limit = |which: &str, value: &Value| {
        if value.is_nil() {
            return None;
        }
        let number = parse_limit(value, absolute);
        match number {
            None => comment += &format!("{which} must be an integer "),
            Some(number) if !absolute && !(0..=100).contains(&number) => {
                comment += &format!("{which} must be in the range [0, 100] ");
            }
            Some(_) => {}
        }
        number
    };
    let limits = Limits { maximum: limit("maximum", &maximum), minimum: limit("minimum", &minimum), absolute, free };
    if let (Some(minimum), Some(maximum)) = (limits.minimum, limits.maximum)
        && minimum >= maximum
    {
        comment += "minimum must be less than maximum ";
    }
    let report = |result: bool, comment: String, data: Value| {
        let changes = Value::map();
        Ok(map! {"name" => name.as_str(), "result" => result, "comment" => comment, "changes" => changes, "data" => data}
            .into())
    };
    if !comment.is_empty() {
        return report(false, comment, Value::map());
    }
    let mounted = context.call.call("disk.usage", Args::default())?;
    if let Some(row) = mounted.get(&name) {
        let number = |column: &str| row.get(column).and_then(|value| parse_limit(value, false)).unwrap_or_default();
        let (used, available) = if absolute {
            (number("used"), number("available"))
        } else {
            (number("capacity"), 100 - number("capacity"))
        };
        let (result, comment) = limits.check_limits(&used.into(), &available.into());
        return report(result, comment, row.clone());
    }
    let absent = format!("Disk mount {name} not present. ");
    if !Path::new(&name).is_dir() {
        return report(false, format!("{absent}Directory {name} does not exist or is not a directory"), Value::map());
    }
    let data = context.call.call("status.diskusage", Args::positional([name.as_str().into()]))?;
    let bytes = |field: &str| data.get(&name).and_then(|usage| usage.get(field)).and_then(Value::as_i64);
    let (total, available) = (bytes("total").unwrap_or_default(), bytes("available").unwrap_or_default());
    let part = |bytes: i64| -> Value {
        if total == 0 { 0.into() } else { ((bytes as f64 / total as f64 * 1000.0).round() / 10.0).into() }
    };
    let (used, available) = if absolute {
        ((total - available).into(), available.into())
    } else {
        (part(total - available), part(available))
    };
    let (result, comment) = limits.check_limits(&used, &available);
    report(result, comment, data)
}

/// Converts a limit to an integer. A string may have a unit: `%`, or with `absolute` `KB`.
fn parse_limit(value: &Value, absolute: bool) -> Option<i64> {
    match value {
        Value::Float(number) if number.is_finite() => Some(*number as i64),
        Value::Str(text) => {
            let unit: &[char] = if absolute { &[' ', 'K', 'B'] } else { &[' ', '%'] };
            text.trim_matches(unit).trim().parse().ok()
        }
        Value::Bool(on) => Some(i64::from(*on)),
        other => other.as_i64(),
    }
}

/// The limits of a file system's usage.
struct Limits {
    maximum: Option<i64>,
    minimum: Option<i64>,
    absolute: bool,
    free: bool,
}

impl Limits {
    /// Returns whether the usage is within the limits, and the comment.
    fn check_limits(&self, used: &Value, available: &Value) -> (bool, String) {
        let unit = if self.absolute { "KB" } else { "%" };
        let (what, space) = if self.free { ("available", available) } else { ("used", used) };
        let amount = space.as_f64().unwrap_or_default();
        let outside = |side: &str, limit: i64| {
            (false, format!("Disk {what} space is {side} of {limit} {unit} at {space} {unit}"))
        };
        match (self.minimum, self.maximum) {
            (Some(minimum), _) if amount < minimum as f64 => outside("below minimum", minimum),
            (_, Some(maximum)) if amount > maximum as f64 => outside("above maximum", maximum),
            _ => (true, "Disk used space in acceptable range".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;

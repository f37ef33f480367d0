//! `system`: date and time of the system, its description, and restarts.

mod clock;
mod description;
mod power;

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

pub(super) static MODULE: Module =
    Module { functions: &[&FUNCTIONS, &clock::FUNCTIONS, &description::FUNCTIONS, &power::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `system`.
pub static FUNCTIONS: Functions<Context> =
    registry!("system", [get_system_date_time, get_system_time, get_system_date, get_computer_name]);

/// Return the date and time, local or at an offset from UTC.
///
/// CLI Example:
///
///     salt '*' system.get_system_date_time "'-0500'"
#[function]
pub fn get_system_date_time(
    _context: &Context,
    /// Offset from UTC, such as `+0100`; that of the system by default.
    utc_offset: Option<String>,
) -> CallResult {
    Ok(now(utc_offset.as_deref())?.strftime("%Y-%m-%d %H:%M:%S").to_string().into())
}

/// Return the time, local or at an offset from UTC.
///
/// CLI Example:
///
///     salt '*' system.get_system_time "'-0500'"
#[function]
pub fn get_system_time(
    _context: &Context,
    /// Offset from UTC, such as `+0100`; that of the system by default.
    utc_offset: Option<String>,
) -> CallResult {
    Ok(now(utc_offset.as_deref())?.strftime("%I:%M:%S %p").to_string().into())
}

/// Return the date, local or at an offset from UTC.
///
/// CLI Example:
///
///     salt '*' system.get_system_date "'-0500'"
#[function]
pub fn get_system_date(
    _context: &Context,
    /// Offset from UTC, such as `+0100`; that of the system by default.
    utc_offset: Option<String>,
) -> CallResult {
    Ok(now(utc_offset.as_deref())?.strftime("%a %m/%d/%Y").to_string().into())
}

/// Return the name of this host.
///
/// CLI Example:
///
///     salt '*' system.get_computer_name
#[function]
pub fn get_computer_name(context: &Context) -> CallResult {
    context.call("network.get_hostname", Args::default())
}

fn now(utc_offset: Option<&str>) -> Result<DateTime, CallError> {
    let Some(offset) = utc_offset else { return Ok(brine_clock::now().datetime()) };
    let minutes = minutes(offset).ok_or_else(|| CallError::Execution("Invalid UTC offset".into()))?;
    let utc = Timestamp::now().to_zoned(TimeZone::UTC).datetime();
    utc.checked_add(Span::new().minutes(minutes)).map_err(CallError::execution)
}

/// Parses `+hhmm` into minutes.
fn minutes(offset: &str) -> Option<i64> {
    let (sign, digits) = match offset.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, offset.strip_prefix('+').unwrap_or(offset)),
    };
    if digits.len() != 4 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) = digits.split_at(2);
    Some(sign * (hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_four_digits_with_or_without_a_sign() {
        for (offset, expected) in [
            ("+0130", Some(90)),
            ("-0500", Some(-300)),
            ("0000", Some(0)),
            ("+9900", Some(5940)),
            ("+01:00", None),
            ("UTC", None),
            ("--100", None),
            ("", None),
        ] {
            assert_eq!(minutes(offset), expected, "{offset}");
            assert_eq!(now(Some(offset)).is_ok(), expected.is_some(), "{offset}");
        }
    }
}

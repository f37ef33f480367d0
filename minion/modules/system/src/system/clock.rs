//! Setting the clock.

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::find_program;
use jiff::Span;
use jiff::civil::{Date, DateTime, Time};

use super::{minutes, now};

/// Execution functions of `system`.
pub static FUNCTIONS: Functions<Context> =
    registry!("system", [set_system_time, set_system_date, set_system_date_time, has_settable_hwclock]);

/// The formats of a time.
const TIMES: [&str; 4] = ["%I:%M:%S %p", "%I:%M %p", "%H:%M:%S", "%H:%M"];
/// The formats of a date.
const DATES: [&str; 6] = ["%Y-%m-%d", "%m-%d-%Y", "%m-%d-%y", "%m/%d/%Y", "%m/%d/%y", "%Y/%m/%d"];

/// Set the time, local or at an offset from UTC; false if it has none of the formats `11:20`, `11:20:05`, `11:20 AM` and
/// `11:20:05 AM`.
///
/// CLI Example:
///
///     salt '*' system.set_system_time "'11:20'"
#[function]
pub fn set_system_time(
    context: &Context,
    /// Time, such as `11:20`.
    newtime: String,
    /// Offset from UTC, such as `+0100`; that of the system by default.
    utc_offset: Option<String>,
) -> CallResult {
    let Some(time) = TIMES.iter().find_map(|format| Time::strptime(format, &newtime).ok()) else {
        return Ok(false.into());
    };
    let now = now(utc_offset.as_deref())?;
    set(context, now.with().time(time).build().map_err(CallError::execution)?, utc_offset.as_deref())
}

/// Set the date, local or at an offset from UTC, such as `2026-03-28` or `03/28/26`.
///
/// CLI Example:
///
///     salt '*' system.set_system_date '03-28-13'
#[function]
pub fn set_system_date(
    context: &Context,
    /// Date, such as `2026-11-30`.
    newdate: String,
    /// Offset from UTC, such as `+0100`; that of the system by default.
    utc_offset: Option<String>,
) -> CallResult {
    let date = parse_date(&newdate).ok_or_else(|| CallError::Invocation {
        function: "system.set_system_date".into(),
        message: "Invalid date format".into(),
    })?;
    let now = now(utc_offset.as_deref())?;
    set(context, now.with().date(date).build().map_err(CallError::execution)?, utc_offset.as_deref())
}

/// The arguments of `system.set_system_date_time`.
#[derive(Args)]
pub struct DateTimeArgs {
    /// The year; like the others the current one by default.
    years: Option<i32>,
    /// The month, from 1.
    months: Option<i32>,
    /// The day of the month.
    days: Option<i32>,
    /// The hour, from 0 to 23.
    hours: Option<i32>,
    /// The minute.
    minutes: Option<i32>,
    /// The second.
    seconds: Option<i32>,
    /// Offset from UTC, such as `-0500`; that of the host by default.
    utc_offset: Option<String>,
}

/// Set parts of the date and time, local or at an offset from UTC.
///
/// CLI Example:
///
///     salt '*' system.set_system_date_time 2015 5 12 11 37 53 "'-0500'"
#[function]
pub fn set_system_date_time(context: &Context, #[args] args: DateTimeArgs) -> CallResult {
    let now = now(args.utc_offset.as_deref())?;
    let time = DateTime::new(
        part(args.years, now.year())?,
        part(args.months, now.month())?,
        part(args.days, now.day())?,
        part(args.hours, now.hour())?,
        part(args.minutes, now.minute())?,
        part(args.seconds, now.second())?,
        0,
    );
    set(context, time.map_err(CallError::execution)?, args.utc_offset.as_deref())
}

/// Parses a date. A year of two digits is not one of `%Y`, which in Python takes four.
fn parse_date(text: &str) -> Option<Date> {
    DATES.iter().find_map(|format| Date::strptime(format, text).ok().filter(|date| date.year() >= 1000))
}

/// Returns a given part of a date, or the current one.
fn part<T: TryFrom<i32>>(value: Option<i32>, current: T) -> Result<T, CallError> {
    let Some(value) = value else { return Ok(current) };
    T::try_from(value).map_err(|_| CallError::Execution(format!("the date is invalid: {value} is out of range")))
}

/// Return whether the hardware clock can be set.
///
/// CLI Example:
///
///     salt '*' system.has_settable_hwclock
#[function]
pub fn has_settable_hwclock(context: &Context) -> CallResult {
    Ok(is_settable(context)?.into())
}

fn is_settable(context: &Context) -> Result<bool, CallError> {
    Ok(find_program("hwclock").is_some() && succeeds(context, &["hwclock", "--test", "--systohc"])?)
}

/// Sets the clock of the system, and that of the hardware if there is one.
fn set(context: &Context, time: DateTime, utc_offset: Option<&str>) -> CallResult {
    let words = command(time, utc_offset)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if !succeeds(context, &words)? {
        return Ok(false.into());
    }
    Ok((!is_settable(context)? || succeeds(context, &["hwclock", "--systohc"])?).into())
}

/// Returns the command that sets the clock; a time at an offset is converted to UTC.
fn command(time: DateTime, utc_offset: Option<&str>) -> Result<Vec<String>, CallError> {
    let mut words = vec!["date".to_owned()];
    let mut time = time;
    if let Some(offset) = utc_offset {
        let offset = minutes(offset).ok_or_else(|| CallError::Execution("Invalid UTC offset".into()))?;
        time = time.checked_sub(Span::new().minutes(offset)).map_err(CallError::execution)?;
        words.push("-u".to_owned());
    }
    words.push(time.strftime("%m%d%H%M%Y.%S").to_string());
    Ok(words)
}

fn succeeds(context: &Context, words: &[&str]) -> Result<bool, CallError> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    Ok(run(context, &words, &[])?.retcode == 0)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn the_clock_is_set_by_date() {
        let time = date(2015, 5, 12).at(23, 37, 53, 0);
        for (offset, words) in [
            (None, "date 051223372015.53"),
            (Some("+0000"), "date -u 051223372015.53"),
            (Some("-0500"), "date -u 051304372015.53"),
            (Some("+0130"), "date -u 051222072015.53"),
        ] {
            assert_eq!(command(time, offset).unwrap().join(" "), words, "{offset:?}");
        }
        assert!(command(time, Some("UTC")).is_err());
    }

    #[test]
    fn dates_and_times_have_salts_formats() {
        for text in ["2013-03-28", "03-28-2013", "03-28-13", "03/28/2013", "03/28/13", "2013/03/28"] {
            assert_eq!(parse_date(text), Some(date(2013, 3, 28)), "{text}");
        }
        assert_eq!(parse_date("03-08-13"), Some(date(2013, 3, 8)));
        assert_eq!(parse_date("tomorrow"), None);
        for (text, hour) in [("11:20:05 PM", 23), ("11:20 AM", 11), ("23:20:05", 23), ("11:20", 11)] {
            let time = TIMES.iter().find_map(|format| Time::strptime(format, text).ok());
            assert_eq!(time.map(|time| (time.hour(), time.minute())), Some((hour, 20)), "{text}");
        }
        assert!(!TIMES.iter().any(|format| Time::strptime(format, "noon").is_ok()));
    }
}

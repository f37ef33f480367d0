//! `strftime`: times in seconds since 1970 and dates as text, formatted.
//!
//! Salt reads text by timelib, the parser of PHP. Of its forms these are read: numbers, dates in the usual notations with
//! and without a time, and words such as `tomorrow`. Others are refused, such as `+1 week` or `1.5`, a time of day there.

use brine_value::Value;
use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::temporal::Pieces;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};
use minijinja::Environment;
use minijinja::value::Value as JinjaValue;

use super::{by_name, defined};
use crate::data::raise;

/// The notations of dates.
const DATES: [&str; 12] = [
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%d %B %Y",
    "%d %b %Y",
    "%B %d, %Y",
    "%b %d, %Y",
    "%B %d %Y",
    "%b %d %Y",
    "%Y%m%d",
];

/// The notations of a time after a date.
const TIMES: [&str; 4] = ["", " %H:%M:%S", " %H:%M", "T%H%M%S"];

pub(super) fn add_to(environment: &mut Environment<'static>) {
    for name in ["strftime", "date_format"] {
        by_name(environment, name, &["format"], |value: JinjaValue, format: Option<String>| {
            let value = defined(&value)?;
            let time =
                time_of(&value, &brine_clock::now()).ok_or_else(|| raise(format_args!("Unable to parse {value}")))?;
            brine_clock::strftime(format.as_deref().unwrap_or("%Y-%m-%d"), &time).map_err(raise)
        });
    }
}

/// Returns the local time that a value means.
fn time_of(value: &Value, now: &Zoned) -> Option<Zoned> {
    match value {
        Value::Nil => Some(now.clone()),
        Value::Str(text) => time_of_text(text.trim(), now),
        Value::Bool(yes) => time_at(f64::from(u8::from(*yes)), now),
        other => time_at(other.as_f64()?, now),
    }
}

/// Returns the local time at so many seconds since 1970.
fn time_at(seconds: f64, now: &Zoned) -> Option<Zoned> {
    let span = SignedDuration::try_from_secs_f64(seconds).ok()?;
    Some(Timestamp::from_duration(span).ok()?.to_zoned(now.time_zone().clone()))
}

fn time_of_text(text: &str, now: &Zoned) -> Option<Zoned> {
    let of_date = |date: Option<DateTime>| date?.to_zoned(now.time_zone().clone()).ok();
    let today = now.date();
    let digits = text.chars().all(|c| c.is_ascii_digit()).then_some(text.len());
    match (text.to_ascii_lowercase().as_str(), digits) {
        ("now", _) => return Some(now.clone()),
        ("today" | "midnight", _) => return of_date(Some(today.at(0, 0, 0, 0))),
        ("noon", _) => return of_date(Some(today.at(12, 0, 0, 0))),
        ("tomorrow", _) => return of_date(today.checked_add(1.day()).ok().map(|date| date.at(0, 0, 0, 0))),
        ("yesterday", _) => return of_date(today.checked_sub(1.day()).ok().map(|date| date.at(0, 0, 0, 0))),
        // As timelib: the time of today, or a date, which only look like seconds.
        (_, Some(4)) => return of_date(Time::strptime("%H%M", text).ok().map(|time| today.to_datetime(time))),
        (_, Some(6)) => return of_date(Time::strptime("%H%M%S", text).ok().map(|time| today.to_datetime(time))),
        (_, Some(8)) => return of_date(date(text)),
        (_, Some(14)) => return of_date(DateTime::strptime("%Y%m%d%H%M%S", text).ok()),
        _ => {}
    }
    // Signs begin offsets of zones.
    if text.starts_with(['-', '+']) {
        return None;
    }
    let seconds = text.strip_prefix('@').unwrap_or(text);
    let is_time_of_day = seconds.split_once('.').is_some_and(|(hours, _)| hours.len() < 3);
    match seconds.parse() {
        Ok(_) if is_time_of_day => None,
        Ok(seconds) => time_at(seconds, now),
        Err(_) => of_date(date(text)),
    }
}

/// Returns the date and the time in a text. As in Salt, an offset from UTC is ignored.
fn date(text: &str) -> Option<DateTime> {
    if let Ok(pieces) = Pieces::parse(text) {
        return Some(pieces.date().to_datetime(pieces.time().unwrap_or_default()));
    }
    let read = |form: &str| DateTime::strptime(form, text).or_else(|_| Date::strptime(form, text).map(Into::into)).ok();
    DATES.iter().find_map(|date| TIMES.iter().find_map(|time| read(&format!("{date}{time}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_in_salt() {
        let now: Zoned = "2026-11-29T03:02:44[UTC]".parse().unwrap();
        // Results of Salt with timelib.
        for (text, expected) in [
            ("2002/12/25", "2002-12-25T00:00:00"),
            ("20021225", "2002-12-25T00:00:00"),
            ("2024", "2026-11-29T20:24:00"),
            ("123456", "2026-11-29T12:34:56"),
            ("20021225101112", "2002-12-25T10:11:12"),
            ("20021225T101112", "2002-12-25T10:11:12"),
            ("1040814000", "2002-12-25T11:00:00"),
            ("1040814000.5", "2002-12-25T11:00:00.5"),
            ("@86400", "1970-01-02T00:00:00"),
            ("0", "1970-01-01T00:00:00"),
            ("12345", "1970-01-01T03:25:45"),
            ("12/25/2002", "2002-12-25T00:00:00"),
            ("25.12.2002", "2002-12-25T00:00:00"),
            ("25-12-2002", "2002-12-25T00:00:00"),
            ("2002-1-2", "2002-01-02T00:00:00"),
            ("2002-12-25 10:11:12", "2002-12-25T10:11:12"),
            ("2002-12-25 10:11", "2002-12-25T10:11:00"),
            ("2002-12-25T10:11:12Z", "2002-12-25T10:11:12"),
            ("2002-12-25T10:11:12+02:00", "2002-12-25T10:11:12"),
            ("2002/12/25 1:02:03", "2002-12-25T01:02:03"),
            ("Dec 25 2002", "2002-12-25T00:00:00"),
            ("25 Dec 2002", "2002-12-25T00:00:00"),
            ("25 December 2002 10:00", "2002-12-25T10:00:00"),
            ("December 25, 2002", "2002-12-25T00:00:00"),
            ("now", "2026-11-29T03:02:44"),
            ("Today", "2026-11-29T00:00:00"),
            ("midnight", "2026-11-29T00:00:00"),
            ("noon", "2026-11-29T12:00:00"),
            ("tomorrow", "2026-11-30T00:00:00"),
            ("yesterday", "2026-11-28T00:00:00"),
        ] {
            let time = time_of(&text.into(), &now).map(|time| time.datetime().to_string());
            assert_eq!(time.as_deref(), Some(expected), "{text}");
        }
        for refused in ["", "no date", "x", "1.5", "10.30", "-5", "9999", "99999999", "2002-13-01", "+1 day", "1e"] {
            assert_eq!(time_of(&refused.into(), &now), None, "{refused}");
        }
    }
}

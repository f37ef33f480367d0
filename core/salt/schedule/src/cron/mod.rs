//! Crontab entries with five fields, or six with seconds.

use jiff::civil::{Date, DateTime, Time};

use super::dates::{DAYS, MONTHS, named};

/// The maximum number of years that are searched for the next time: enough for a 29th of February on a certain day of
/// the week.
const YEARS: i16 = 40;

/// The error of a crontab entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// The entry has another number of fields.
    #[error("'{entry}' has {count} fields: a crontab entry has 5")]
    Fields {
        /// The entry.
        entry: String,
        /// The number of its fields.
        count: usize,
    },
    /// A field has something else than a number or a name in its range.
    #[error("'{word}' is no number from {min} to {max}")]
    Number {
        /// The part of the field.
        word: String,
        /// The first number of the range.
        min: i8,
        /// The last number of the range.
        max: i8,
    },
    /// The step of a field is not a positive number.
    #[error("'{part}': the step behind '/' is a number from 1 on")]
    Step {
        /// The part of the field.
        part: String,
    },
}

/// A crontab entry: minute, hour, day of the month, month, day of the week and, as an optional sixth field, the second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    seconds: Vec<i8>,
    minutes: Vec<i8>,
    hours: Vec<i8>,
    days: Vec<i8>,
    months: Vec<i8>,
    weekdays: Vec<i8>,
    /// Whether the last day of the month matches (`L`).
    last_day: bool,
    /// Whether one of the two day fields is enough, as both are restricted.
    either_day: bool,
}

impl Cron {
    /// Parses an entry, or an alias such as `@hourly` or `@daily`. The error names the invalid field.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let text = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let (five, seconds) = match fields[..] {
            [minute, hour, day, month, weekday] => ([minute, hour, day, month, weekday], "0"),
            [minute, hour, day, month, weekday, second] => ([minute, hour, day, month, weekday], second),
            _ => return Err(CronError::Fields { entry: text.to_owned(), count: fields.len() }),
        };
        let [minute, hour, day, month, weekday] = five;
        let last_day = day.split(',').any(|part| part.eq_ignore_ascii_case("l"));
        let days = day.split(',').filter(|part| !part.eq_ignore_ascii_case("l")).collect::<Vec<_>>().join(",");
        let mut weekdays = field(weekday, 0, 7, DAYS, 0)?;
        if weekdays.contains(&7) {
            weekdays.push(0);
        }
        let is_free = |text: &str| text.starts_with(['*', '?']);
        Ok(Cron {
            seconds: field(seconds, 0, 59, &[], 0)?,
            minutes: field(minute, 0, 59, &[], 0)?,
            hours: field(hour, 0, 23, &[], 0)?,
            days: if days.is_empty() { Vec::new() } else { field(&days, 1, 31, &[], 0)? },
            months: field(month, 1, 12, MONTHS, 1)?,
            weekdays,
            last_day,
            either_day: !is_free(day) && !is_free(weekday),
        })
    }

    /// Returns the first matching time after `now`; `None` if there is none within forty years.
    pub fn after(&self, now: DateTime) -> Option<DateTime> {
        let mut date = now.date();
        let last = date.year().saturating_add(YEARS);
        while date.year() <= last {
            if self.has_day(date) {
                let times = self.hours.iter().flat_map(|hour| {
                    let minutes = self.minutes.iter();
                    minutes.flat_map(move |minute| self.seconds.iter().map(move |second| (*hour, *minute, *second)))
                });
                let at = |(hour, minute, second)| Some(date.to_datetime(Time::new(hour, minute, second, 0).ok()?));
                if let Some(time) = times.filter_map(at).find(|time| *time > now) {
                    return Some(time);
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn has_day(&self, date: Date) -> bool {
        let day = self.days.contains(&date.day()) || (self.last_day && date.day() == date.days_in_month());
        let weekday = self.weekdays.contains(&date.weekday().to_sunday_zero_offset());
        self.months.contains(&date.month()) && if self.either_day { day || weekday } else { day && weekday }
    }
}

/// Parses a field into its matching numbers, sorted. `names` are the names of the numbers from `first` on.
fn field(text: &str, min: i8, max: i8, names: &[&str], first: i8) -> Result<Vec<i8>, CronError> {
    let number = |word: &str| -> Result<i8, CronError> {
        let named = || named(&word.to_lowercase(), names).map(|index| index + first);
        let number = word.parse().ok().or_else(named);
        let within = number.filter(|number| (min..=max).contains(number));
        within.ok_or_else(|| CronError::Number { word: word.to_owned(), min, max })
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let (start, end) = match range.split_once('-') {
            _ if matches!(range, "*" | "?") => (min, max),
            Some((start, end)) => (number(start)?, number(end)?),
            None if step.is_some() => (number(range)?, max),
            None => (number(range)?, number(range)?),
        };
        let step = step.map_or(Ok(1), str::parse::<usize>).ok().filter(|step| *step > 0);
        let step = step.ok_or_else(|| CronError::Step { part: part.to_owned() })?;
        if start <= end {
            all.extend((start..=end).step_by(step));
        } else {
            // `fri-mon` wraps around the end of the week.
            all.extend((start..=max).chain(min..=end).step_by(step));
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

#[cfg(test)]
mod tests;

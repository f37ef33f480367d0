//! Informal dates and times, such as `5:00pm`, `Monday 17:30`, `2026-11-21T08:00:00` and `11/29/2026 4pm`.

use jiff::civil::{Date, DateTime, Time, Weekday};

/// Words that are ignored.
const FILLERS: &[&str] = &["at", "on", "of", "and", "the"];

/// Parses a date and time in local time; `None` if the text is invalid. A missing date is `today`, a missing time
/// midnight. A day of the week is the next one, possibly today. `3/4/2026` is the 4th of March, and `13/4/2026` the
/// 13th of April.
pub fn parse(text: &str, today: Date) -> Option<DateTime> {
    let mut parts = DateTimeParts::default();
    let lower = text.trim().to_lowercase();
    if lower.is_empty() {
        return None;
    }
    for word in lower.split([' ', ',', '\t']).filter(|word| !word.is_empty()) {
        parts.word(word)?;
    }
    parts.finish(today)
}

#[derive(Default)]
struct DateTimeParts {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    weekday: Option<Weekday>,
    time: Option<Time>,
    /// A number that is a day, unless `am` or `pm` follows: then it is an hour.
    number: Option<i8>,
}

impl DateTimeParts {
    fn word(&mut self, word: &str) -> Option<()> {
        if FILLERS.contains(&word) {
            return Some(());
        }
        if let Some(weekday) = weekday(word) {
            return set_once(&mut self.weekday, weekday);
        }
        if let Some(month) = month(word) {
            return set_once(&mut self.month, month);
        }
        if matches!(word, "am" | "pm") {
            let afternoon = word == "pm";
            self.time = Some(match (self.time, self.number.take()) {
                (Some(time), None) => to_24_hour(time, afternoon)?,
                (None, Some(hour)) => to_24_hour(Time::new(hour, 0, 0, 0).ok()?, afternoon)?,
                _ => return None,
            });
            return Some(());
        }
        if let Some((date, time)) = word.split_once('t').filter(|(date, _)| date.len() >= 8) {
            self.date(date)?;
            return self.clock(time);
        }
        if word.contains(':') || word.ends_with("am") || word.ends_with("pm") {
            return self.clock(word);
        }
        if word.contains(['-', '/', '.']) {
            return self.date(word);
        }
        let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
        match digits.len() {
            8 => self.date(digits),
            4 => set_once(&mut self.year, digits.parse().ok()?),
            1 | 2 => set_once(&mut self.number, digits.parse().ok()?),
            _ => None,
        }
    }

    fn date(&mut self, text: &str) -> Option<()> {
        if text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit()) {
            set_once(&mut self.year, text[..4].parse().ok()?)?;
            set_once(&mut self.month, text[4..6].parse().ok()?)?;
            return set_once(&mut self.day, text[6..].parse().ok()?);
        }
        let parts: Vec<&str> = text.split(['-', '/', '.']).collect();
        let (year, first, second) = match parts[..] {
            [year, month, day] if year.len() == 4 => (Some(year), month, day),
            [first, second, year] => (Some(year), first, second),
            [first, second] => (None, first, second),
            _ => return None,
        };
        let (mut first, mut second): (i8, i8) = (first.parse().ok()?, second.parse().ok()?);
        if first > 12 {
            (first, second) = (second, first);
        }
        set_once(&mut self.month, first)?;
        set_once(&mut self.day, second)?;
        match year {
            Some(short) if short.len() == 2 => set_once(&mut self.year, 2000 + short.parse::<i16>().ok()?),
            Some(year) => set_once(&mut self.year, year.parse().ok()?),
            None => Some(()),
        }
    }

    fn clock(&mut self, text: &str) -> Option<()> {
        let (digits, afternoon) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
            (Some(digits), _) => (digits, Some(false)),
            (_, Some(digits)) => (digits, Some(true)),
            _ => (text, None),
        };
        let digits = digits.split('.').next()?;
        let parts: Vec<i8> = if digits.contains(':') || digits.len() <= 2 {
            digits.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?
        } else {
            // `170000`
            digits.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).ok()?.parse().ok()).collect::<Option<_>>()?
        };
        let at = |i: usize| parts.get(i).copied().unwrap_or(0);
        if parts.len() > 3 {
            return None;
        }
        let time = Time::new(at(0), at(1), at(2), 0).ok()?;
        set_once(&mut self.time, afternoon.map_or(Some(time), |afternoon| to_24_hour(time, afternoon))?)
    }

    fn finish(mut self, today: Date) -> Option<DateTime> {
        if let Some(day) = self.number.take() {
            set_once(&mut self.day, day)?;
        }
        let mut date = Date::new(
            self.year.unwrap_or(today.year()),
            self.month.unwrap_or(today.month()),
            self.day.unwrap_or(today.day()),
        )
        .ok()?;
        if let Some(weekday) = self.weekday.filter(|_| self.day.is_none()) {
            while date.weekday() != weekday {
                date = date.tomorrow().ok()?;
            }
        }
        Some(date.to_datetime(self.time.unwrap_or(Time::midnight())))
    }
}

/// Sets a part of the date or time; `None` if it is already set.
fn set_once<T>(part: &mut Option<T>, value: T) -> Option<()> {
    part.is_none().then(|| *part = Some(value))
}

/// Converts a time of the 12-hour clock to the 24-hour clock.
fn to_24_hour(time: Time, afternoon: bool) -> Option<Time> {
    let hour = match (time.hour(), afternoon) {
        (hour @ 1..=11, true) => hour + 12,
        (12, false) => 0,
        (hour @ 1..=12, _) => hour,
        _ => return None,
    };
    Time::new(hour, time.minute(), time.second(), 0).ok()
}

/// Returns the index of the name that starts with `word`, which needs at least three letters.
pub(super) fn named(word: &str, names: &[&str]) -> Option<i8> {
    let is = |name: &&str| word.len() >= 3 && (name.starts_with(word));
    i8::try_from(names.iter().position(is)?).ok()
}

pub(super) const MONTHS: &[&str] = &[
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

pub(super) const DAYS: &[&str] = &["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

fn month(word: &str) -> Option<i8> {
    named(word, MONTHS).map(|index| index + 1)
}

fn weekday(word: &str) -> Option<Weekday> {
    Weekday::from_sunday_zero_offset(named(word, DAYS)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn informal_dates_and_times_are_parsed() {
        // A Saturday.
        let today = "2026-11-21".parse().unwrap();
        for (text, expected) in [
            ("5:00pm", "2026-11-21T17:00:00"),
            ("5:00 PM", "2026-11-21T17:00:00"),
            ("8am", "2026-11-21T08:00:00"),
            ("4 pm", "2026-11-21T16:00:00"),
            ("12am", "2026-11-21T00:00:00"),
            ("12:30pm", "2026-11-21T12:30:00"),
            ("17:30:15", "2026-11-21T17:30:15"),
            ("Monday 5:00pm", "2026-11-23T17:00:00"),
            ("sat 5pm", "2026-11-21T17:00:00"),
            ("2026-12-01T08:00:00", "2026-12-01T08:00:00"),
            ("2026-12-01 08:00", "2026-12-01T08:00:00"),
            ("2026-12-01", "2026-12-01T00:00:00"),
            ("20261201T080000", "2026-12-01T08:00:00"),
            ("11/29/2026 4:00pm", "2026-11-29T16:00:00"),
            ("29.11.2026 16:00", "2026-11-29T16:00:00"),
            ("3/4/26", "2026-03-04T00:00:00"),
            ("January 5, 2027 4pm", "2027-01-05T16:00:00"),
            ("5th of Jan 2027", "2027-01-05T00:00:00"),
        ] {
            assert_eq!(parse(text, today).map(|time| time.to_string()).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "soon", "25:00", "13pm", "5pm 6pm", "2026-13-13", "2026-02-30", "12345"] {
            assert_eq!(parse(text, today), None, "{text}");
        }
    }
}

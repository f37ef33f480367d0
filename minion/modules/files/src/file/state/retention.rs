//! `file.retention_schedule`: removes old backups from a directory, except those that a schedule retains.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::SystemTime;

use brine_context::{StateContext, StateReturn};
use brine_system::user_files;
use brine_value::{Map, Value, map};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::TimeZone;

/// A backup file and its time.
struct Backup {
    name: String,
    time: DateTime,
}

/// The key of a period; files of the same hour, day and so on have the same key.
type Period = Vec<i64>;

impl Backup {
    /// Returns the period of a time for a rule; `None` for an unknown rule.
    fn period(&self, rule: &str) -> Option<Period> {
        let time = self.time;
        let date = [time.year().into(), time.month().into(), time.day().into(), time.hour().into()];
        Some(match rule {
            "first_of_year" => date[..1].to_vec(),
            "first_of_month" => date[..2].to_vec(),
            "first_of_day" => date[..3].to_vec(),
            "first_of_hour" => date.to_vec(),
            // The calendar year, not the ISO week year, as in Salt.
            "first_of_week" => vec![date[0], time.date().iso_week_date().week().into()],
            "most_recent" => {
                let within = [i64::from(time.minute()), time.second().into(), time.subsec_nanosecond().into()];
                [&date[..], &within].concat()
            }
            _ => return None,
        })
    }
}

/// Parses the time of a file from its name.
fn parse_time(name: &str, format: &str) -> Option<DateTime> {
    let parsed = BrokenDownTime::parse(format, name).ok()?;
    let part = |part: Option<i8>, otherwise| part.unwrap_or(otherwise);
    DateTime::new(
        parsed.year().unwrap_or(1900),
        part(parsed.month(), 1),
        part(parsed.day(), 1),
        part(parsed.hour(), 0),
        part(parsed.minute(), 0),
        part(parsed.second(), 0),
        parsed.subsec_nanosecond().unwrap_or(0),
    )
    .ok()
}

fn time_of(path: &Path, zone: &TimeZone) -> Option<DateTime> {
    let changed: SystemTime = std::fs::symlink_metadata(path).ok()?.modified().ok()?;
    Some(Timestamp::try_from(changed).ok()?.to_zoned(zone.clone()).datetime())
}

/// Returns the names that a rule keeps: the first file of each of the last `count` periods.
fn retained_by<'a>(backups: &'a [Backup], rule: &str, count: &Value) -> Result<Vec<&'a str>, String> {
    let count = match count.as_str() {
        Some("all") => usize::MAX,
        _ => count.to_string().parse().map_err(|_| format!("{rule}: {count} is neither a number nor all"))?,
    };
    // Salt keeps one week more than requested.
    let count = if rule == "first_of_week" { count.saturating_add(1) } else { count };
    let unknown =
        || format!("rule is invalid: expected most_recent or first_of_ hour, day, week, month or year, got {rule}");
    let mut periods: BTreeMap<Period, Vec<&Backup>> = BTreeMap::new();
    for backup in backups {
        periods.entry(backup.period(rule).ok_or_else(unknown)?).or_default().push(backup);
    }
    let mut names = Vec::new();
    for inside in periods.into_values().rev().take(count) {
        let first = inside.iter().map(|backup| backup.time).min();
        // Files with the same time are all kept.
        names.extend(inside.iter().filter(|backup| Some(backup.time) == first).map(|backup| backup.name.as_str()));
    }
    Ok(names)
}

pub(super) fn state(
    context: &StateContext,
    name: &str,
    retain: &Map,
    format: Option<&str>,
    zone: Option<&str>,
) -> Result<StateReturn, String> {
    if name.is_empty() {
        return Err("Must provide name to file.retention_schedule".into());
    }
    let directory = Path::new(name);
    if !directory.is_dir() {
        return Err("Name provided to file.retention must be a directory".into());
    }
    let zone = match zone {
        Some(zone) => TimeZone::get(zone).map_err(|error| error.to_string())?,
        None => brine_clock::zone(),
    };
    let at = |error: std::io::Error| format!("{name}: {error}");
    let mut backups = Vec::new();
    let mut ignored = BTreeSet::from([".".to_owned(), "..".to_owned()]);
    for entry in std::fs::read_dir(directory).map_err(at)? {
        let file = entry.map_err(at)?.file_name().to_string_lossy().into_owned();
        let time = match format {
            Some(format) => parse_time(&file, format),
            None => time_of(&directory.join(&file), &zone),
        };
        match time {
            Some(time) => backups.push(Backup { name: file, time }),
            None => _ = ignored.insert(file),
        }
    }
    let mut retained = BTreeSet::new();
    for (rule, count) in retain {
        retained.extend(retained_by(&backups, &rule.to_string(), count)?);
    }
    let mut deleted: Vec<&str> = backups.iter().map(|backup| backup.name.as_str()).collect();
    deleted.retain(|file| !retained.contains(file));
    deleted.sort_unstable_by(|one, other| other.cmp(one));
    let report = |names: Vec<&str>| names.into_iter().map(Value::from).collect::<Value>();
    let changes = map! {
        "retained" => report(retained.iter().rev().copied().collect()),
        "deleted" => report(deleted.clone()),
        "ignored" => report(ignored.iter().rev().map(String::as_str).collect()),
    };
    let changes = if deleted.is_empty() { Map::new() } else { changes };
    if context.test {
        let comment = format!("{} backups would have been removed from {name}.\n", deleted.len());
        let outcome =
            if deleted.is_empty() { StateReturn::ok(name, comment) } else { StateReturn::predicted(name, comment) };
        return Ok(outcome.with_changes(changes));
    }
    for file in &deleted {
        let path = directory.join(file);
        user_files::remove_dir_all(&path).map_err(|error| format!("Failed to remove {}: {error}", path.display()))?;
    }
    Ok(StateReturn::ok(name, format!("{} backups were removed from {name}.\n", deleted.len())).with_changes(changes))
}

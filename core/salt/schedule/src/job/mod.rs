//! One scheduled job: its configuration.

use brine_value::{FromValue, Map, Value};
use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, Zoned};

use super::cron::{Cron, CronError};
use super::dates;

/// The reason why a job cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The configuration is not a mapping, but a value of this type.
    #[error("expected a mapping of options, got {0}")]
    NotAMapping(&'static str),
    /// The configuration names no function.
    #[error("option 'function' is missing")]
    NoFunction,
    /// The configuration has several options that exclude each other.
    #[error("of {} only one can be used", .0.join(", "))]
    Exclusive(Vec<&'static str>),
    /// The option `cron` is invalid.
    #[error("option 'cron': {0}")]
    Cron(#[from] CronError),
    /// The value of an option is invalid.
    #[error("option '{option}': {reason}")]
    Option {
        /// The name of the option.
        option: String,
        /// The expected value, and the given one.
        reason: String,
    },
    /// As many runs as the job may have are in progress: it can run later.
    #[error("the maximum number of concurrent runs is reached (maxrunning)")]
    Full,
}

impl JobError {
    fn option(option: &str, reason: impl ToString) -> Self {
        JobError::Option { option: option.to_owned(), reason: reason.to_string() }
    }
}

/// The default format of times in the configuration.
pub(super) const TIME_FORMAT: &str = "%Y-%m-%dT%H:%M:%S";
/// All options of a job: Salt's, and Brine's own.
const OPTIONS: &[&str] = &[
    "after",
    "args",
    "cron",
    "days",
    "dry_run",
    "enabled",
    "fun",
    "func",
    "function",
    "hours",
    "jid_include",
    "job_args",
    "job_kwargs",
    "kwargs",
    "maxrunning",
    "metadata",
    "minutes",
    "name",
    "once",
    "once_fmt",
    "persist",
    "range",
    "return_config",
    "return_job",
    "return_kwargs",
    "returner",
    "run_after_skip_range",
    "run_explicit",
    "run_on_start",
    "seconds",
    "skip_during_range",
    "skip_explicit",
    "skip_function",
    "splay",
    "until",
    "when",
];
/// An arbitrary day, for checking whether a text is a valid time.
const SOME_DAY: Date = Date::constant(2026, 1, 1);

/// The times at which a job runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Timing {
    /// At an interval: the sum of `seconds`, `minutes`, `hours` and `days`.
    Every(SignedDuration),
    /// Once, at the time of `once`.
    Once(DateTime),
    /// At the times of `when`: informal times (see [`dates`]), or names of such in pillar or grains.
    When(Vec<String>),
    /// At the times of a crontab entry, `cron`.
    Cron(Cron),
    /// Only on request.
    Never,
}

/// Whether the master receives the return of a job (`return_job`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnJob {
    /// The master receives and stores it.
    Yes,
    /// The master does not receive it.
    No,
    /// The master receives it, but does not store it.
    NoCache,
}

/// A time range between two informal times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    start: String,
    end: String,
    /// Whether the range is everything outside of these times.
    pub invert: bool,
}

/// A scheduled job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The name of the job.
    pub name: String,
    /// The function: an execution function on a minion, a runner function on a master.
    pub function: String,
    /// The positional arguments.
    pub args: Vec<Value>,
    /// The keyword arguments.
    pub kwargs: Map,
    /// The times at which it runs.
    pub timing: Timing,
    /// Whether the job is enabled.
    pub enabled: bool,
    /// The minimum and maximum of the random delay, in seconds.
    pub splay: Option<(i64, i64)>,
    /// The range in which it may run.
    pub range: Option<Range>,
    /// The range in which it must not run.
    pub skip_during_range: Option<Range>,
    /// Whether a run that was skipped in `skip_during_range` is made up for after the end of the range.
    pub run_after_skip_range: bool,
    /// The time from which on it no longer runs.
    pub until: Option<String>,
    /// The time before which it does not run.
    pub after: Option<String>,
    /// The maximum number of concurrent runs; `None` for no limit (`jid_include: False`).
    pub max_running: Option<u64>,
    /// Whether the master receives its return.
    pub return_job: ReturnJob,
    /// Additional fields of the return.
    pub metadata: Option<Map>,
    /// The returners that also store the return.
    pub returners: Vec<String>,
    /// The configuration of the returners: `ret_config`.
    pub return_config: Option<String>,
    /// Options of the returners: `ret_kwargs`.
    pub return_kwargs: Map,
    /// Whether it also runs at once, when the schedule starts or the job is added.
    pub run_on_start: bool,
    /// Whether the job is only logged when it is due, and not run.
    pub dry_run: bool,
    /// Additional times at which it runs.
    pub run_explicit: Vec<DateTime>,
    /// Times at which it does not run.
    pub skip_explicit: Vec<DateTime>,
}

impl Job {
    /// Returns the return as it is sent to the master; `None` if the master does not receive it. The master assigns a
    /// job id, unless the return was stored by a returner (`is_returned`): then it keeps the id of the run.
    pub fn outgoing_return(&self, mut load: Map, is_returned: bool) -> Option<Map> {
        let word = match self.return_job {
            ReturnJob::No => return None,
            ReturnJob::NoCache => "nocache",
            ReturnJob::Yes => "req",
        };
        if !is_returned {
            load.insert("jid".into(), word.into());
        }
        Some(load)
    }

    /// Returns the names in a job's configuration that are not options.
    pub fn unknown_options(config: &Value) -> Vec<String> {
        let names = config.as_map().into_iter().flat_map(Map::keys).map(ToString::to_string);
        // Salt's minion saves schedules with `run`.
        names.filter(|name| !name.starts_with('_') && name != "run" && !OPTIONS.contains(&name.as_str())).collect()
    }

    /// Parses the configuration of a job. The error names the invalid option.
    pub fn read(name: &str, config: &Value) -> Result<Self, JobError> {
        let map = config.as_map().ok_or_else(|| JobError::NotAMapping(config.type_name()))?;
        let get = |name: &str| map.get(name).filter(|value| !value.is_nil());
        let function = ["function", "func", "fun"].iter().find_map(|name| get(name)).and_then(Value::as_str);
        let timing = timing(map)?;
        let run_on_start = option(map, "run_on_start")?.unwrap_or(matches!(timing, Timing::Every(_)));
        let jid_include = option(map, "jid_include")?.unwrap_or(true);
        let max_running = option(map, "maxrunning")?.unwrap_or(1);
        let mapping = |name: &str| match get(name) {
            None => Ok(None),
            Some(Value::Map(map)) => Ok(Some(map.clone())),
            Some(other) => Err(JobError::option(name, format!("expected a mapping, got {other}"))),
        };
        let one_of = |names: [&'static str; 2]| names.into_iter().find(|name| get(name).is_some()).unwrap_or(names[0]);
        Ok(Job {
            name: get("name").map_or_else(|| name.to_owned(), ToString::to_string),
            function: function.ok_or(JobError::NoFunction)?.to_owned(),
            args: option(map, one_of(["args", "job_args"]))?.unwrap_or_default(),
            kwargs: mapping(one_of(["kwargs", "job_kwargs"]))?.unwrap_or_default(),
            timing,
            enabled: option(map, "enabled")?.unwrap_or(true),
            splay: get("splay").map(splay).transpose()?,
            range: get("range").map(|value| range("range", value)).transpose()?,
            skip_during_range: get("skip_during_range").map(|value| range("skip_during_range", value)).transpose()?,
            run_after_skip_range: option(map, "run_after_skip_range")?.unwrap_or(false),
            until: time(map, "until")?,
            after: time(map, "after")?,
            max_running: jid_include.then_some(max_running),
            return_job: match get("return_job") {
                Some(value) if value.as_str() == Some("nocache") => ReturnJob::NoCache,
                Some(value) if !value.is_truthy() => ReturnJob::No,
                _ => ReturnJob::Yes,
            },
            metadata: mapping("metadata")?,
            returners: option(map, "returner")?.unwrap_or_default(),
            return_config: option(map, "return_config")?,
            return_kwargs: mapping("return_kwargs")?.unwrap_or_default(),
            run_on_start,
            dry_run: option(map, "dry_run")?.unwrap_or(false),
            run_explicit: explicit(map, "run_explicit")?,
            skip_explicit: explicit(map, "skip_explicit")?,
        })
    }

    /// Returns the metadata of a return, with Salt's fields for the time of the run: `_TOS`, `_TS` and `_TT`.
    pub fn metadata_at(&self, now: &Zoned) -> Option<Map> {
        let mut metadata = self.metadata.clone()?;
        let utc = now.timestamp().strftime("%Y %B %d %a %H %m").to_string();
        metadata.insert("_TOS".into(), now.strftime("%z").to_string().into());
        metadata.insert("_TS".into(), now.strftime("%a %b %e %H:%M:%S %Y").to_string().into());
        metadata.insert("_TT".into(), utc.into());
        Some(metadata)
    }

    /// Returns the job's returners and those of all jobs (`schedule_returner`), without duplicates.
    pub fn returners_with(&self, of_all: &[String]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in self.returners.iter().chain(of_all) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// Returns the `fun_args` of the return: the positional arguments, and the keyword arguments as a mapping at the
    /// end.
    pub fn fun_args(&self) -> Vec<Value> {
        let mut all = self.args.clone();
        if !self.kwargs.is_empty() {
            all.push(self.kwargs.clone().into());
        }
        all
    }
}

impl Range {
    /// Returns start and end of the range on this day; `None` if the end is not after the start.
    pub(super) fn on(&self, today: Date) -> Option<(DateTime, DateTime)> {
        let (start, end) = (dates::parse(&self.start, today)?, dates::parse(&self.end, today)?);
        (start < end).then_some((start, end))
    }
}

fn option<T: FromValue>(map: &Map, name: &str) -> Result<Option<T>, JobError> {
    let value = map.get(name).filter(|value| !value.is_nil());
    value.map(|value| T::try_from_value(value).map_err(|error| JobError::option(name, error))).transpose()
}

fn timing(map: &Map) -> Result<Timing, JobError> {
    const UNITS: [(&str, i64); 4] = [("seconds", 1), ("minutes", 60), ("hours", 3600), ("days", 86_400)];
    const OTHERS: [&str; 3] = ["when", "cron", "once"];
    let units: Vec<_> = UNITS.into_iter().filter(|(name, _)| map.contains_key(*name)).collect();
    let others: Vec<_> = OTHERS.into_iter().filter(|name| map.contains_key(*name)).collect();
    if others.len() > 1 || (!others.is_empty() && !units.is_empty()) {
        let names: Vec<_> = units.iter().map(|(name, _)| *name).chain(others).collect();
        return Err(JobError::Exclusive(names));
    }
    let get = |name: &str| map.get(name).cloned().unwrap_or_default();
    match others.first().copied() {
        Some("cron") => Ok(Timing::Cron(Cron::parse(&get("cron").to_string())?)),
        Some("once") => {
            let form = option::<String>(map, "once_fmt")?.unwrap_or_else(|| TIME_FORMAT.into());
            let text = get("once").to_string();
            let wrong = |error| JobError::option("once", format!("'{text}' is no time of the form {form}: {error}"));
            DateTime::strptime(&form, &text).map(Timing::Once).map_err(wrong)
        }
        Some(_) => {
            let list = match get("when") {
                Value::List(list) => list,
                one => vec![one],
            };
            Ok(Timing::When(list.iter().map(ToString::to_string).collect()))
        }
        None if units.is_empty() => Ok(Timing::Never),
        None => {
            let mut seconds = 0;
            for (name, unit) in units {
                let count = option::<i64>(map, name)?.unwrap_or(0);
                let wrong = || JobError::option(name, format!("expected a number that is not negative, got {count}"));
                seconds +=
                    Some(count).filter(|count| *count >= 0).and_then(|n| n.checked_mul(unit)).ok_or_else(wrong)?;
            }
            Ok(Timing::Every(SignedDuration::from_secs(seconds)))
        }
    }
}

pub(super) fn splay(value: &Value) -> Result<(i64, i64), JobError> {
    let wrong = || JobError::option("splay", format!("expected seconds, or start and end, got {value}"));
    let (start, end) = match value {
        Value::Map(map) => (option::<i64>(map, "start")?, option::<i64>(map, "end")?),
        one => (Some(1), i64::from_value(one)),
    };
    let (start, end) = (start.ok_or_else(wrong)?, end.ok_or_else(wrong)?);
    if start < 0 || end < start { Err(wrong()) } else { Ok((start, end)) }
}

pub(super) fn range(name: &str, value: &Value) -> Result<Range, JobError> {
    let map = value.as_map().ok_or_else(|| JobError::option(name, format!("expected start and end, got {value}")))?;
    let (start, end) = (time(map, "start"), time(map, "end"));
    let (Some(start), Some(end)) = (start?, end?) else {
        return Err(JobError::option(name, "it must have start and end"));
    };
    Ok(Range { start, end, invert: option(map, "invert")?.unwrap_or(false) })
}

fn time(map: &Map, name: &str) -> Result<Option<String>, JobError> {
    let Some(text) = option::<String>(map, name)? else { return Ok(None) };
    if dates::parse(&text, SOME_DAY).is_none() {
        let reason = format!("'{text}' is no time: write it as 5:00pm or 2026-11-21T17:00:00");
        return Err(JobError::option(name, reason));
    }
    Ok(Some(text))
}

/// Parses a list of times, each in the format `time_fmt` of its entry or in the default format.
fn explicit(map: &Map, name: &str) -> Result<Vec<DateTime>, JobError> {
    let all: Vec<Value> = option(map, name)?.unwrap_or_default();
    let one = |entry: &Value| {
        let text = entry.get("time").unwrap_or(entry).to_string();
        let form = entry.get("time_fmt").and_then(Value::as_str).unwrap_or(TIME_FORMAT);
        DateTime::strptime(form, &text).map_err(|error| JobError::option(name, format!("'{text}' is no time: {error}")))
    };
    all.iter().map(one).collect()
}

#[cfg(test)]
mod tests;

//! One scheduled job, as the configuration says it.

use brine_value::{FromValue, Map, Value};
use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, Zoned};

use super::cron::Cron;
use super::dates;

/// How times are written where no form is given.
pub(super) const TIME_FORM: &str = "%Y-%m-%dT%H:%M:%S";
/// All options of a job: Salt's, and further ones of Brine.
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
/// Any day will do to see whether a text is a time.
const SOME_DAY: Date = Date::constant(2026, 1, 1);

/// When a job runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Timing {
    /// Again and again: `seconds`, `minutes`, `hours`, `days`, added up.
    Every(SignedDuration),
    /// Once: `once`.
    Once(DateTime),
    /// At times as people write them, or names of such in pillar or grains: `when`.
    When(Vec<String>),
    /// By a crontab entry: `cron`.
    Cron(Cron),
    /// Only when it is asked for.
    Never,
}

/// Whether the master gets what a job returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnJob {
    /// Yes.
    Yes,
    /// No.
    No,
    /// Yes, but it is not kept.
    NoCache,
}

/// A span of time, as people write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    start: String,
    end: String,
    /// What counts is outside of it.
    pub invert: bool,
}

/// A scheduled job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// The function: of a minion an execution function, of a master a runner function.
    pub function: String,
    /// Arguments by position.
    pub args: Vec<Value>,
    /// Arguments by name.
    pub kwargs: Map,
    /// When it runs.
    pub timing: Timing,
    /// Whether it runs.
    pub enabled: bool,
    /// Seconds, from and to, by which it is late at random.
    pub splay: Option<(i64, i64)>,
    /// When it may run.
    pub range: Option<Range>,
    /// When it may not run.
    pub skip_during_range: Option<Range>,
    /// Whether it runs when that time is over.
    pub run_after_skip_range: bool,
    /// When it stops to run.
    pub until: Option<String>,
    /// When it begins to run.
    pub after: Option<String>,
    /// How many of it may run side by side; nothing for any number (`jid_include: False`).
    pub max_running: Option<u64>,
    /// Whether the master gets its return.
    pub return_job: ReturnJob,
    /// What its return says beside.
    pub metadata: Option<Map>,
    /// Where its return is stored too.
    pub returners: Vec<String>,
    /// The configuration of those.
    pub return_config: Option<String>,
    /// Options of those.
    pub return_kwargs: Map,
    /// Whether it runs at once.
    pub run_on_start: bool,
    /// Whether only the time of its next run is reported.
    pub dry_run: bool,
    /// Further times at which it runs.
    pub run_explicit: Vec<DateTime>,
    /// Times at which it does not run.
    pub skip_explicit: Vec<DateTime>,
}

impl Job {
    /// A return as it is sent to the master; nothing if it shall not be. The master gives the job its id, unless a
    /// returner has it (`is_returned`) by its own.
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

    /// Returns the names in a job's configuration that are no option.
    pub fn unknown_options(config: &Value) -> Vec<String> {
        let names = config.as_map().into_iter().flat_map(Map::keys).map(ToString::to_string);
        // Salt's minion saves schedules with `run`.
        names.filter(|name| !name.starts_with('_') && name != "run" && !OPTIONS.contains(&name.as_str())).collect()
    }

    /// Reads a job.
    pub fn read(name: &str, config: &Value) -> Result<Self, String> {
        let map =
            config.as_map().ok_or_else(|| format!("expected a mapping of options, got {}", config.type_name()))?;
        let get = |name: &str| map.get(name).filter(|value| !value.is_nil());
        let function = ["function", "func", "fun"].iter().find_map(|name| get(name)).and_then(Value::as_str);
        let timing = timing(map)?;
        let run_on_start = option(map, "run_on_start")?.unwrap_or(matches!(timing, Timing::Every(_)));
        let jid_include = option(map, "jid_include")?.unwrap_or(true);
        let max_running = option(map, "maxrunning")?.unwrap_or(1);
        let mapping = |name: &str| match get(name) {
            None => Ok(None),
            Some(Value::Map(map)) => Ok(Some(map.clone())),
            Some(other) => Err(format!("option '{name}': expected a mapping, got {other}")),
        };
        let one_of = |names: [&'static str; 2]| names.into_iter().find(|name| get(name).is_some()).unwrap_or(names[0]);
        Ok(Job {
            name: get("name").map_or_else(|| name.to_owned(), ToString::to_string),
            function: function.ok_or("option 'function' is missing")?.to_owned(),
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

    /// What its return says beside, with when that was; as Salt has it.
    pub fn metadata_at(&self, now: &Zoned) -> Option<Map> {
        let mut metadata = self.metadata.clone()?;
        let utc = now.timestamp().strftime("%Y %B %d %a %H %m").to_string();
        metadata.insert("_TOS".into(), now.strftime("%z").to_string().into());
        metadata.insert("_TS".into(), now.strftime("%a %b %e %H:%M:%S %Y").to_string().into());
        metadata.insert("_TT".into(), utc.into());
        Some(metadata)
    }

    /// Its returners and those of all jobs (`schedule_returner`), each once.
    pub fn returners_with(&self, of_all: &[String]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in self.returners.iter().chain(of_all) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// What its return names as arguments: those by name are a mapping at the end.
    pub fn fun_args(&self) -> Vec<Value> {
        let mut all = self.args.clone();
        if !self.kwargs.is_empty() {
            all.push(self.kwargs.clone().into());
        }
        all
    }
}

impl Range {
    /// Start and end on this day; nothing if the end is before the start.
    pub(super) fn on(&self, today: Date) -> Option<(DateTime, DateTime)> {
        let (start, end) = (dates::parse(&self.start, today)?, dates::parse(&self.end, today)?);
        (start < end).then_some((start, end))
    }
}

fn option<T: FromValue>(map: &Map, name: &str) -> Result<Option<T>, String> {
    let value = map.get(name).filter(|value| !value.is_nil());
    value.map(|value| T::try_from_value(value).map_err(|error| format!("option '{name}': {error}"))).transpose()
}

fn timing(map: &Map) -> Result<Timing, String> {
    const UNITS: [(&str, i64); 4] = [("seconds", 1), ("minutes", 60), ("hours", 3600), ("days", 86_400)];
    const OTHERS: [&str; 3] = ["when", "cron", "once"];
    let units: Vec<_> = UNITS.into_iter().filter(|(name, _)| map.contains_key(*name)).collect();
    let others: Vec<_> = OTHERS.into_iter().filter(|name| map.contains_key(*name)).collect();
    if others.len() > 1 || (!others.is_empty() && !units.is_empty()) {
        let names: Vec<_> = units.iter().map(|(name, _)| *name).chain(others).collect();
        return Err(format!("of {} only one can be used", names.join(", ")));
    }
    let get = |name: &str| map.get(name).cloned().unwrap_or_default();
    match others.first().copied() {
        Some("cron") => {
            Cron::parse(&get("cron").to_string()).map(Timing::Cron).map_err(|e| format!("option 'cron': {e}"))
        }
        Some("once") => {
            let form = option::<String>(map, "once_fmt")?.unwrap_or_else(|| TIME_FORM.into());
            let text = get("once").to_string();
            let wrong = |error| format!("option 'once': '{text}' is no time of the form {form}: {error}");
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
                let wrong = || format!("option '{name}': expected a number that is not negative, got {count}");
                seconds +=
                    Some(count).filter(|count| *count >= 0).and_then(|n| n.checked_mul(unit)).ok_or_else(wrong)?;
            }
            Ok(Timing::Every(SignedDuration::from_secs(seconds)))
        }
    }
}

pub(super) fn splay(value: &Value) -> Result<(i64, i64), String> {
    let wrong = || format!("option 'splay': expected seconds, or start and end, got {value}");
    let (start, end) = match value {
        Value::Map(map) => (option::<i64>(map, "start")?, option::<i64>(map, "end")?),
        one => (Some(1), i64::from_value(one)),
    };
    let (start, end) = (start.ok_or_else(wrong)?, end.ok_or_else(wrong)?);
    if start < 0 || end < start { Err(wrong()) } else { Ok((start, end)) }
}

pub(super) fn range(name: &str, value: &Value) -> Result<Range, String> {
    let map = value.as_map().ok_or_else(|| format!("option '{name}': expected start and end, got {value}"))?;
    let (start, end) = (time(map, "start"), time(map, "end"));
    let (Some(start), Some(end)) = (start?, end?) else {
        return Err(format!("option '{name}': it must have start and end"));
    };
    Ok(Range { start, end, invert: option(map, "invert")?.unwrap_or(false) })
}

fn time(map: &Map, name: &str) -> Result<Option<String>, String> {
    let Some(text) = option::<String>(map, name)? else { return Ok(None) };
    let wrong = format!("option '{name}': '{text}' is no time: write it as 5:00pm or 2026-11-21T17:00:00");
    dates::parse(&text, SOME_DAY).map(|_| Some(text)).ok_or(wrong)
}

/// Times of the form that each of them names.
fn explicit(map: &Map, name: &str) -> Result<Vec<DateTime>, String> {
    let all: Vec<Value> = option(map, name)?.unwrap_or_default();
    let one = |entry: &Value| {
        let text = entry.get("time").unwrap_or(entry).to_string();
        let form = entry.get("time_fmt").and_then(Value::as_str).unwrap_or(TIME_FORM);
        DateTime::strptime(form, &text).map_err(|error| format!("option '{name}': '{text}' is no time: {error}"))
    };
    all.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::{list, map};

    fn with(mut options: Map) -> Result<Job, String> {
        options.entry("function".into()).or_insert_with(|| "test.ping".into());
        Job::read("mine", &options.into())
    }

    #[test]
    fn a_job_is_read() {
        let job = with(map! {
            "minutes" => 1, "seconds" => "5", "args" => list![1], "kwargs" => map! {"a" => 2}, "maxrunning" => 3,
            "return_job" => "nocache", "returner" => "redis", "splay" => 10,
        })
        .unwrap();
        assert_eq!(job.timing, Timing::Every(SignedDuration::from_secs(65)));
        assert_eq!((job.run_on_start, job.max_running, job.enabled), (true, Some(3), true));
        assert_eq!((job.return_job, job.splay), (ReturnJob::NoCache, Some((1, 10))));
        assert_eq!(
            (job.returners.clone(), job.fun_args()),
            (vec!["redis".to_owned()], vec![1.into(), map! {"a" => 2}.into()])
        );
        let job = with(map! {"cron" => "@daily", "jid_include" => false, "return_job" => false}).unwrap();
        assert_eq!((job.run_on_start, job.max_running, job.return_job), (false, None, ReturnJob::No));
        let once = with(map! {"once" => "21.11.2026 17:00", "once_fmt" => "%d.%m.%Y %H:%M"}).unwrap();
        assert_eq!(once.timing, Timing::Once("2026-11-21T17:00:00".parse().unwrap()));
        let job = with(map! {"splay" => map! {"start" => 3, "end" => 5}, "name" => "other"}).unwrap();
        assert_eq!((job.splay, job.timing, &*job.name), (Some((3, 5)), Timing::Never, "other"));
    }

    #[test]
    fn returns_go_to_every_returner_once_and_carry_their_time() {
        let job = with(map! {"returner" => list!["redis", "sqlite3"], "metadata" => map! {"who" => "me"}}).unwrap();
        assert_eq!(job.returners_with(&["sqlite3".to_owned(), "local".to_owned()]), ["redis", "sqlite3", "local"]);
        assert_eq!(job.returners_with(&["redis".to_owned()]), ["redis", "sqlite3"]);
        let metadata = job.metadata_at(&"2026-11-21T12:00:00+01:00[+01:00]".parse().unwrap()).unwrap();
        let expected = map! {"who" => "me", "_TOS" => "+0100", "_TS" => "Sat Nov 21 12:00:00 2026", "_TT" => "2026 November 21 Sat 11 11"};
        assert_eq!(metadata, expected);
    }

    #[test]
    fn invalid_jobs_are_reported() {
        assert_eq!(Job::read("x", &map! {}.into()).unwrap_err(), "option 'function' is missing");
        assert_eq!(Job::read("x", &5.into()).unwrap_err(), "expected a mapping of options, got int");
        for (options, error) in [
            (map! {"seconds" => 5, "when" => "5pm"}, "of seconds, when only one can be used"),
            (map! {"cron" => "* * * * *", "when" => "5pm"}, "of when, cron only one can be used"),
            (map! {"seconds" => "often"}, "option 'seconds': expected an integer, got str"),
            (map! {"seconds" => -5}, "option 'seconds': expected a number that is not negative, got -5"),
            (map! {"cron" => "61 * * * *"}, "option 'cron': '61' is no number from 0 to 59"),
            (map! {"range" => "8am"}, "option 'range': expected start and end, got 8am"),
            (map! {"range" => map! {"start" => "8am"}}, "option 'range': it must have start and end"),
            (
                map! {"until" => "later"},
                "option 'until': 'later' is no time: write it as 5:00pm or 2026-11-21T17:00:00",
            ),
            (
                map! {"splay" => map! {"start" => 9, "end" => 5}},
                "option 'splay': expected seconds, or start and end, got {'start': 9, 'end': 5}",
            ),
            (map! {"kwargs" => list![1]}, "option 'kwargs': expected a mapping, got [1]"),
        ] {
            assert_eq!(with(options).unwrap_err(), error);
        }
        assert!(
            with(map! {"once" => "soon"}).unwrap_err().starts_with("option 'once': 'soon' is no time of the form ")
        );
    }
}

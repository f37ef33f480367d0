//! Filters of job lists: by function, target, metadata and time.

use brine_function::CallError;
use brine_ids::Jid;
use brine_job::Load;
use brine_returners::{JobOutline, Returner};
use brine_text::glob::GlobSet;
use brine_value::{FromValue, Map, Value};
use jiff::civil::DateTime;

/// The filters of a job list.
#[derive(Default)]
pub(in crate::runner) struct Search {
    metadata: Option<Map>,
    /// `None` matches everything.
    functions: Option<GlobSet>,
    targets: Option<GlobSet>,
    start: Option<DateTime>,
    end: Option<DateTime>,
    without_find_job: bool,
}

impl Search {
    pub(in crate::runner) fn new(
        metadata: Value,
        function: &Value,
        target: &Value,
        start: &Value,
        end: &Value,
    ) -> Result<Self, CallError> {
        let metadata = match metadata {
            Value::Map(metadata) if !metadata.is_empty() => Some(metadata),
            // As in Salt, a value that is not a mapping matches no job.
            other => other.is_truthy().then(Map::new),
        };
        Ok(Search {
            metadata,
            functions: globs(function)?,
            targets: globs(target)?,
            start: time(start)?,
            end: time(end)?,
            without_find_job: false,
        })
    }

    /// Matches every job, optionally except for those of `saltutil.find_job`.
    pub(in crate::runner) fn all(without_find_job: bool) -> Self {
        Search { without_find_job, ..Search::default() }
    }

    /// Returns the newest jobs that match, oldest first.
    pub(in crate::runner) fn jobs(
        &self,
        cache: &dyn Returner,
        count: Option<usize>,
    ) -> Result<Vec<(Jid, Map)>, CallError> {
        // Outlines do not contain metadata.
        let limit = if self.metadata.is_none() { count } else { None };
        let loads = cache.find_jobs(limit, &|outline| self.accepts(outline)).map_err(CallError::execution)?;
        let matches = loads.iter().filter(|load| self.has_metadata(load)).take(count.unwrap_or(usize::MAX));
        let mut summaries: Vec<_> = matches.map(|load| (load.jid().clone(), load.summary())).collect();
        summaries.reverse();
        Ok(summaries)
    }

    pub(in crate::runner) fn accepts(&self, job: &JobOutline<'_>) -> bool {
        let any = |globs: &Option<GlobSet>, mut values: Box<dyn Iterator<Item = &str> + '_>| {
            globs.as_ref().is_none_or(|globs| values.any(|value| globs.is_match(value)))
        };
        let is_within = |start: Option<DateTime>, end: Option<DateTime>| {
            let time = job.jid().parse::<Jid>().ok().and_then(|jid| jid.time());
            start.is_none_or(|start| time.is_some_and(|time| time >= start))
                && end.is_none_or(|end| time.is_some_and(|time| time <= end))
        };
        any(&self.functions, Box::new(job.functions()))
            && any(&self.targets, Box::new(job.targets()))
            && (self.start.is_none() && self.end.is_none() || is_within(self.start, self.end))
            && !(self.without_find_job && job.functions().eq([brine_auth::FIND_JOB]))
    }

    fn has_metadata(&self, load: &Load) -> bool {
        let has = |pairs: &Map| {
            let metadata = load.metadata().and_then(Value::as_map);
            metadata.is_some_and(|metadata| pairs.iter().any(|(key, value)| metadata.get(key) == Some(value)))
        };
        self.metadata.as_ref().is_none_or(has)
    }
}

/// Compiles globs from a list, or from a comma-separated string; `None` if there are none.
fn globs(value: &Value) -> Result<Option<GlobSet>, CallError> {
    let globs: Vec<String> = match value {
        Value::Nil => Vec::new(),
        Value::List(all) => all.iter().map(ToString::to_string).collect(),
        text => text.to_string().split(',').map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect(),
    };
    let compiled = || GlobSet::new(&globs).map_err(CallError::execution);
    (!globs.is_empty()).then(compiled).transpose()
}

/// The time formats that are parsed in addition to ISO 8601: those in which jobs are listed, and common ones.
const TIMES: &[&str] = &[
    "%Y, %b %d %H:%M:%S%.f",
    "%Y, %b %d %H:%M",
    "%Y-%m-%d %H:%M",
    "%b %d %Y %H:%M:%S",
    "%b %d %Y %H:%M",
    "%d %b %Y %H:%M:%S",
    "%d %b %Y %H:%M",
];
/// Formats without a time of day, which mean midnight.
const DATES: &[&str] = &["%Y, %b %d", "%b %d %Y", "%d %b %Y", "%Y-%m-%d", "%Y%m%d"];

fn time(value: &Value) -> Result<Option<DateTime>, CallError> {
    if !value.is_truthy() {
        return Ok(None);
    }
    let text = String::from_value(value).unwrap_or_else(|| value.to_string());
    let text = text.trim();
    let parsed = text.parse::<DateTime>().ok();
    let of_time = || TIMES.iter().find_map(|form| DateTime::strptime(form, text).ok());
    let of_date = || {
        let date = DATES.iter().find_map(|form| jiff::civil::Date::strptime(form, text).ok());
        date.map(|date| date.to_datetime(jiff::civil::Time::midnight()))
    };
    parsed.or_else(of_time).or_else(of_date).map(Some).ok_or_else(|| {
        CallError::execution(format!("time '{text}' is invalid: expected a form such as 2026-11-20 23:58:52"))
    })
}

#[cfg(test)]
mod tests;

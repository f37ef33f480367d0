//! Builds a job of the schedule from the options of the module's functions.

use brine_schedule::dates;
use brine_value::{Map, Value, map};

/// Options that are copied unchanged.
pub(super) const COPIED_OPTIONS: &[&str] = &[
    "range",
    "when",
    "once",
    "once_fmt",
    "cron",
    "returner",
    "after",
    "return_config",
    "return_kwargs",
    "until",
    "run_on_start",
    "skip_during_range",
    "run_after_skip_range",
];
pub(super) const UNITS: [&str; 4] = ["seconds", "minutes", "hours", "days"];

/// Returns the message on options that exclude each other.
pub(super) fn conflict(kwargs: &Map, before: &str, after: &str) -> Option<String> {
    let has = |name: &str| kwargs.contains_key(name);
    if UNITS.iter().any(|unit| has(unit)) && (has("when") || has("cron")) {
        let units = "Unable to use \"seconds\", \"minutes\", \"hours\", or \"days\" with \"when\"";
        return Some(format!("{before}{units}{after}"));
    }
    (has("when") && has("cron")).then(|| "Unable to use \"when\" and \"cron\" options together.  Ignoring.".into())
}

/// Builds a job of the schedule. The error is a message.
pub(super) fn build(name: &str, kwargs: &Map, names_time: impl Fn(&str) -> bool) -> Result<Map, String> {
    if name.is_empty() {
        return Err("Job name is required.".into());
    }
    let get = |name: &str| kwargs.get(name).cloned();
    let mut job = map! {"function" => get("function").ok_or("Job function is required.")?};
    if let Some(comment) = conflict(kwargs, "", " or \"cron\" options.") {
        return Err(comment);
    }
    let mut take = |option: &str, value: Option<Value>| {
        if let Some(value) = value {
            job.insert(option.into(), value);
        }
    };
    for option in UNITS.into_iter().chain(["return_job", "metadata"]) {
        take(option, get(option));
    }
    match get("job_args") {
        None => {}
        Some(Value::List(args)) => take("args", Some(args.into())),
        Some(_) => return Err("job_args is not a list. please correct and try again.".into()),
    }
    match get("job_kwargs") {
        None => {}
        Some(Value::Map(kwargs)) => take("kwargs", Some(kwargs.into())),
        Some(_) => return Err("job_kwargs is not a dict. please correct and try again.".into()),
    }
    take("maxrunning", Some(get("maxrunning").unwrap_or_else(|| 1.into())));
    take("name", Some(name.into()));
    take("enabled", Some(get("enabled").unwrap_or_else(|| true.into())));
    take("jid_include", Some(get("jid_include").unwrap_or_else(|| true.into())));
    take("splay", get("splay"));
    let whens = match get("when") {
        Some(Value::List(list)) => list,
        one => one.into_iter().collect(),
    };
    for when in whens {
        let when = when.to_string();
        if !names_time(&when) && dates::parse(&when, brine_clock::now().date()).is_none() {
            return Err(format!(
                "Schedule item {when} for \"when\" in invalid.\n  hint: write a time, such as 5:00pm, Monday 5:00pm or 2026-11-20 17:00"
            ));
        }
    }
    for option in COPIED_OPTIONS {
        take(option, get(option));
    }
    // The schedule would ignore an invalid job.
    let job: Value = job.into();
    brine_schedule::Job::read(name, &job).map_err(|error| format!("Schedule item {name} is invalid: {error}"))?;
    Ok(job.as_map().cloned().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    #[test]
    fn items_are_built_or_rejected() {
        for (options, error) in [
            (map! {}, "Job function is required."),
            (map! {"function" => "f", "job_args" => "x"}, "job_args is not a list. please correct and try again."),
            (
                map! {"function" => "f", "job_kwargs" => list![]},
                "job_kwargs is not a dict. please correct and try again.",
            ),
            (
                map! {"function" => "f", "when" => list!["5pm", "soon"]},
                "Schedule item soon for \"when\" in invalid.\n  hint: write a time, such as 5:00pm, Monday 5:00pm or 2026-11-20 17:00",
            ),
            (
                map! {"function" => "f", "when" => "5pm", "cron" => "x"},
                "Unable to use \"when\" and \"cron\" options together.  Ignoring.",
            ),
        ] {
            assert_eq!(build("j", &options, |name| name == "tea time").unwrap_err(), error);
        }
        let job = build("j", &map! {"function" => "f", "hours" => 2, "splay" => 5, "unknown" => 1}, |_| false).unwrap();
        let expected = map! {
            "function" => "f", "hours" => 2, "maxrunning" => 1, "name" => "j", "enabled" => true, "jid_include" => true, "splay" => 5,
        };
        assert_eq!(job, expected);
        for (option, invalid) in [
            ("cron", "*/5 * * *".into()),
            ("cron", "99 * * * *".into()),
            ("range", map! {"start" => "25:99", "end" => "foo"}.into()),
            ("once", "not a date".into()),
            ("until", "xx".into()),
            ("after", "yy".into()),
            ("splay", "abc".into()),
            ("splay", map! {"start" => 9, "end" => 1}.into()),
            ("maxrunning", "lots".into()),
            ("skip_during_range", map! {"start" => "a"}.into()),
            ("seconds", "abc".into()),
        ] {
            let invalid: Value = invalid;
            let options = map! {"function" => "f", option => invalid.clone()};
            let Err(error) = build("j", &options, |_| false) else { panic!("{option} {invalid} is accepted") };
            assert!(error.starts_with("Schedule item j is invalid: "), "{option} {invalid}: {error}");
        }
        // A time by its name in pillar or grains.
        let named = build("j", &map! {"function" => "f", "when" => "tea time"}, |name| name == "tea time").unwrap();
        assert_eq!(named.get("when"), Some(&"tea time".into()));
    }
}

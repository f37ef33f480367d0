//! Enables, disables, skips and postpones scheduled jobs.

use brine_context::Context;
use brine_function::{CallError, CallResult, function};
use brine_value::{Map, Value, map};
use jiff::civil::DateTime;

use super::{ask, is_set, job_request, outcome, persist};

/// Default format of times.
const TIME_FORM: &str = "%Y-%m-%dT%H:%M:%S";

/// Enable a job.
///
/// CLI Example:
///
///     salt '*' schedule.enable_job job1
#[function]
pub fn enable_job(
    context: &Context,
    /// Name of the job.
    name: String,
    /// `test`: whether nothing is changed; `persist`: whether the stored schedule is changed, too; `offline`: whether
    /// it is changed without the running minion.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    switch_job(context, &name, true, &kwargs)
}

/// Disable a job.
///
/// CLI Example:
///
///     salt '*' schedule.disable_job job1
#[function]
pub fn disable_job(
    context: &Context,
    /// Name of the job.
    name: String,
    /// `test`: whether nothing is changed; `persist`: whether the stored schedule is changed, too; `offline`: whether
    /// it is changed without the running minion.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    switch_job(context, &name, false, &kwargs)
}

/// Enable the schedule.
///
/// CLI Example:
///
///     salt '*' schedule.enable
#[function]
pub fn enable(
    context: &Context,
    /// `test`: whether nothing is changed; `persist`: whether the stored schedule is changed, too; `offline`: whether
    /// it is changed without the running minion.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    switch(context, true, &kwargs)
}

/// Disable the schedule.
///
/// CLI Example:
///
///     salt '*' schedule.disable
#[function]
pub fn disable(
    context: &Context,
    /// `test`: whether nothing is changed; `persist`: whether the stored schedule is changed, too; `offline`: whether
    /// it is changed without the running minion.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    switch(context, false, &kwargs)
}

/// Postpone a run of a job to another time.
///
/// CLI Example:
///
///     salt '*' schedule.postpone_job job 2026-11-21T17:00:00 2026-11-21T18:00:00
#[function]
pub fn postpone_job(
    context: &Context,
    /// Name of the job.
    name: String,
    /// Time of the run.
    current_time: String,
    /// Time of the run instead.
    new_time: String,
    /// Format of the times; `%Y-%m-%dT%H:%M:%S` by default.
    #[default(TIME_FORM.into())]
    time_fmt: String,
) -> CallResult {
    let request = map! {"time" => &current_time, "new_time" => &new_time};
    let words = ("postpone_job", "postponed", "Postponed Job", "postpone");
    except(context, &name, &[&current_time, &new_time], &time_fmt, request, words)
}

/// Skip a run of a job.
///
/// CLI Example:
///
///     salt '*' schedule.skip_job job 2026-11-21T17:00:00
#[function]
pub fn skip_job(
    context: &Context,
    /// Name of the job.
    name: String,
    /// Time of the run.
    current_time: String,
    /// Format of the times; `%Y-%m-%dT%H:%M:%S` by default.
    #[default(TIME_FORM.into())]
    time_fmt: String,
) -> CallResult {
    let words = ("skip_job", "skipped", "Added Skip Job", "skip");
    except(context, &name, &[&current_time], &time_fmt, map! {"time" => &current_time}, words)
}

fn switch_job(context: &Context, name: &str, enabled: bool, kwargs: &Map) -> Result<Value, CallError> {
    let (func, word, title) =
        if enabled { ("enable_job", "enabled", "Enabled") } else { ("disable_job", "disabled", "Disabled") };
    if is_set(kwargs, "test") {
        return Ok(outcome(true, format!("Job: {name} would be {word} in schedule."), Map::new()));
    }
    let Some(request) = job_request(context, func, name, kwargs)? else {
        return Ok(outcome(false, format!("Job {name} does not exist."), Map::new()));
    };
    let schedule = ask(context, request, &format!("{word}_job_complete"), "schedule")?;
    let is_so = schedule.is_some_and(|all| {
        let is = all.get(name).and_then(|job| job.get("enabled")).is_none_or(Value::is_truthy);
        is == enabled
    });
    Ok(if is_so {
        outcome(true, format!("{title} Job {name} in schedule."), map! {name => word})
    } else {
        let verb = if enabled { "enable" } else { "disable" };
        outcome(false, format!("Failed to {verb} job {name} in schedule."), Map::new())
    })
}

fn switch(context: &Context, enabled: bool, kwargs: &Map) -> Result<Value, CallError> {
    let (func, word, title) =
        if enabled { ("enable", "enabled", "Enabled") } else { ("disable", "disabled", "Disabled") };
    if is_set(kwargs, "test") {
        return Ok(outcome(true, format!("Schedule would be {word}."), Map::new()));
    }
    let request = map! {"func" => func, "persist" => persist(kwargs)};
    let schedule = ask(context, request, &format!("{word}_complete"), "schedule")?;
    let is_so = schedule.is_some_and(|all| all.get("enabled") == Some(&enabled.into()));
    Ok(if is_so {
        outcome(true, format!("{title} schedule on minion."), map! {"schedule" => word})
    } else {
        outcome(false, format!("Failed to {func} schedule on minion."), Map::new())
    })
}

/// Adds an exception to a job's times.
fn except(
    context: &Context,
    name: &str,
    times: &[&str],
    form: &str,
    mut fields: Map,
    (func, word, participle, verb): (&str, &str, &str, &str),
) -> Result<Value, CallError> {
    let outcome = |result: bool, comment: String| Ok(map! {"comment" => comment, "result" => result}.into());
    if times.iter().any(|time| DateTime::strptime(form, time).is_err()) {
        return outcome(false, "Date string could not be parsed.".into());
    }
    if context.config().test {
        return outcome(true, format!("Job: {name} would be {word} in schedule."));
    }
    let Some(request) = job_request(context, func, name, &Map::new())? else {
        return outcome(false, format!("Job {name} does not exist."));
    };
    fields.extend(request);
    fields.insert("time_fmt".into(), form.into());
    let schedule = ask(context, fields, &format!("{func}_complete"), "schedule")?;
    let job = schedule.and_then(|all| all.get(name).cloned());
    if job.is_some_and(|job| job.get("skip_explicit").is_some() && job.get("enabled").is_none_or(Value::is_truthy)) {
        outcome(true, format!("{participle} {name} in schedule."))
    } else {
        outcome(false, format!("Failed to {verb} job {name} in schedule."))
    }
}

//! Runs jobs, and tells when they run.

use brine_context::Context;
use brine_function::{CallError, CallResult, function};
use brine_value::{Map, Value, map};
use jiff::civil::DateTime;

use super::{ask, current};

/// The format of times that a schedule returns.
const TIME_FORMAT: &str = "%Y-%m-%dT%H:%M:%S";

/// Run a job now; with `force` also a disabled one.
///
/// CLI Example:
///
///     salt '*' schedule.run_job job1
#[function]
pub fn run_job(
    context: &Context,
    /// Name of the job.
    name: String,
    /// Whether a disabled job runs, too.
    #[default(false)]
    force: bool,
) -> CallResult {
    let schedule = current(context, None, &Map::new())?;
    let Some(job) = schedule.get(name.as_str()) else {
        return Ok(map! {"comment" => format!("Job {name} does not exist."), "result" => false}.into());
    };
    if job.get("enabled").is_some_and(|enabled| !enabled.is_truthy()) && !force {
        return Ok(map! {"comment" => format!("Job {name} is disabled."), "result" => true}.into());
    }
    let request = map! {"func" => "run_job", "name" => &name};
    context.minion.local.fire("manage_schedule", &request).map_err(CallError::execution)?;
    Ok(map! {"comment" => format!("Scheduling Job {name} on minion."), "result" => true}.into())
}

/// Return the time of a job's next run.
///
/// CLI Example:
///
///     salt '*' schedule.show_next_fire_time job_name
#[function]
pub fn show_next_fire_time(
    context: &Context,
    /// Name of the job.
    name: String,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let request = map! {"func" => "get_next_fire_time", "name" => &name};
    let next = ask(context, request, "next_fire_time_complete", "next_fire_time")?;
    Ok(match next {
        Some(next) => map! {"result" => true, "next_fire_time" => next}.into(),
        None => map! {"result" => true, "comment" => "next fire time not available."}.into(),
    })
}

/// Return the status of a job: its options, and its last and next run.
///
/// CLI Example:
///
///     salt '*' schedule.job_status job_name
#[function]
pub fn job_status(
    context: &Context,
    /// Name of the job.
    name: String,
    /// Format of times.
    #[default(TIME_FORMAT.into())]
    time_fmt: String,
) -> CallResult {
    let request = map! {"func" => "job_status", "name" => &name};
    let status = ask(context, request, "job_status_complete", "data")?.unwrap_or_else(Value::map);
    let Value::Map(mut status) = status else { return Ok(status) };
    for (_, time) in status.iter_mut().filter(|(field, _)| field.as_str().is_some_and(|field| field.starts_with('_'))) {
        if let Some(formatted) = formatted(time, &time_fmt)? {
            *time = formatted.into();
        }
    }
    Ok(status.into())
}

/// Returns a time in another format; `None` for other values.
fn formatted(time: &Value, format: &str) -> Result<Option<String>, CallError> {
    let Some(time) = time.as_str().and_then(|text| DateTime::strptime(TIME_FORMAT, text).ok()) else { return Ok(None) };
    let time = time.to_zoned(brine_clock::zone()).map_err(CallError::execution)?;
    brine_clock::strftime(format, &time).map(Some).map_err(CallError::execution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_alone_get_the_format() {
        for (value, expected) in [
            (Value::from("2026-12-01T08:05:09"), Some("08.05.09 01/12/26")),
            ("test.ping".into(), None),
            (Value::Bool(true), None),
            (7.into(), None),
        ] {
            assert_eq!(formatted(&value, "%H.%M.%S %d/%m/%y").unwrap().as_deref(), expected, "{value}");
        }
    }
}

//! Runs jobs, and tells when they run.

use brine_context::Context;
use brine_function::{CallError, CallResult, function};
use brine_value::{Map, Value, map};

use super::{ask, current};

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
    #[keywords] _kwargs: Map,
) -> CallResult {
    let request = map! {"func" => "job_status", "name" => &name};
    Ok(ask(context, request, "job_status_complete", "data")?.unwrap_or_else(Value::map))
}

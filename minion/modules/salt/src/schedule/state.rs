//! `schedule`: states of jobs of the minion's schedule.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, Others, ParamList, function, registry};
use brine_value::{Map, Value, map};

/// State functions of `schedule`.
pub static FUNCTIONS: Functions<StateContext> = registry!("schedule", [present, absent, enabled, disabled]);

/// Ensure that a job with these options is in the minion's schedule.
///
/// One of the times is given: `seconds`, `minutes`, `hours` or `days` (added up), `cron`, `when` or `once`.
///
/// SLS Example:
///
///     highstate:
///       schedule.present:
///         - function: state.apply
///         - hours: 1
///         - splay: 600
///
///     nightly_cleanup:
///       schedule.present:
///         - function: cmd.run
///         - job_args:
///           - /usr/local/bin/cleanup --all
///         - cron: '30 3 * * *'
///         - maxrunning: 1
#[function]
pub fn present(
    context: &StateContext,
    /// Name of the job.
    name: String,
    #[keywords(further_present)] kwargs: Map,
) -> CallResult {
    let mut arguments = kwargs.clone();
    arguments.insert("name".into(), name.as_str().into());
    let Some(current) = current(context, &kwargs)?.shift_remove(name.as_str()) else {
        let report = call(context, "add", arguments)?;
        return Ok(done(context, &name, &report, format!("Adding new job {name} to schedule"), Some("added")).into());
    };
    let item = call(context, "build_schedule_item", arguments.clone())?;
    if item.get("result").is_some_and(|result| !result.is_truthy()) {
        return Ok(StateReturn::failed(&name, comment(&item)).into());
    }
    if item == current {
        return Ok(StateReturn::ok(&name, format!("Job {name} in correct state")).into());
    }
    let report = call(context, "modify", arguments)?;
    Ok(done(context, &name, &report, format!("Modifying job {name} in schedule"), None).into())
}

/// Ensure that a job is not in the schedule.
///
/// SLS Example:
///
///     nightly_cleanup:
///       schedule.absent: []
#[function]
pub fn absent(
    context: &StateContext,
    /// Name of the job.
    name: String,
    #[keywords(further_absent)] kwargs: Map,
) -> CallResult {
    change(context, &name, "delete", kwargs, format!("Removed job {name} from schedule"))
}

/// Ensure that a job is enabled.
///
/// SLS Example:
///
///     nightly_cleanup:
///       schedule.enabled: []
#[function]
pub fn enabled(
    context: &StateContext,
    /// Name of the job.
    name: String,
    #[keywords(further_absent)] kwargs: Map,
) -> CallResult {
    change(context, &name, "enable_job", kwargs, format!("Enabled job {name} from schedule"))
}

/// Ensure that a job is disabled.
///
/// SLS Example:
///
///     nightly_cleanup:
///       schedule.disabled:
///         - persist: True
#[function]
pub fn disabled(
    context: &StateContext,
    /// Name of the job.
    name: String,
    #[keywords(further_absent)] kwargs: Map,
) -> CallResult {
    change(context, &name, "disable_job", kwargs, format!("Disabled job {name} from schedule"))
}

fn call(context: &StateContext, function: &str, mut arguments: Map) -> Result<Value, CallError> {
    if context.test {
        arguments.insert("test".into(), true.into());
    }
    context.call.call(&format!("schedule.{function}"), Args::keyword(arguments))
}

fn current(context: &StateContext, kwargs: &Map) -> Result<Map, CallError> {
    let offline = kwargs.get("offline").cloned();
    super::current(&context.call, None, &map! {"offline" => offline, "test" => context.test})
}

fn comment(answer: &Value) -> String {
    answer.get("comment").map(ToString::to_string).unwrap_or_default()
}

/// Returns the result of a state for the result of the execution function: its comment is used if it failed or in
/// test mode.
fn done(context: &StateContext, name: &str, answer: &Value, words: String, would: Option<&str>) -> StateReturn {
    let changes = || answer.get("changes").and_then(Value::as_map).cloned().unwrap_or_default();
    if !answer.get("result").is_some_and(Value::is_truthy) {
        return StateReturn::failed(name, comment(answer));
    }
    if context.test {
        let changes = would.map_or_else(changes, |would| map! {name => would});
        return StateReturn::ok(name, comment(answer)).with_changes(changes);
    }
    StateReturn::ok(name, words).with_changes(changes())
}

fn change(context: &StateContext, name: &str, function: &str, kwargs: Map, words: String) -> Result<Value, CallError> {
    if !current(context, &kwargs)?.contains_key(name) {
        return Ok(StateReturn::ok(name, format!("Job {name} not present in schedule")).into());
    }
    let mut arguments = kwargs;
    arguments.insert("name".into(), name.into());
    let report = call(context, function, arguments)?;
    let mut outcome = done(context, name, &report, words, None);
    if function != "delete" {
        // Salt reports no changes for these.
        outcome.changes = Map::new();
    }
    Ok(outcome.into())
}

/// Describes the further arguments of `schedule.present`.
pub(crate) fn further_present(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further("function", "a string", "Function to call, such as `state.apply`.");
    params.further("job_args", "a list", "Arguments of the function.");
    params.further("job_kwargs", "a mapping", "Keyword arguments of the function.");
    params.further("args", "a list", "Another name of `job_args`.");
    params.further("kwargs", "a mapping", "Another name of `job_kwargs`.");
    for name in ["seconds", "minutes", "hours", "days"] {
        params.further(name, "an integer", "Interval between runs.");
    }
    params.further("cron", "a string", "Times as the five fields of a crontab.");
    params.further(
        "when",
        "a string",
        "Time, or list of times, of the runs, such as `Monday 5:00pm`, or the name of one in the pillar or \
         grain `whens`.",
    );
    params.further("once", "a string", "Time of the only run, as `2026-12-31T23:30:00`.");
    params.further("once_fmt", "a string", "Format of `once`; `%Y-%m-%dT%H:%M:%S` by default.");
    params.further(
        "splay",
        "an integer or a mapping",
        "Highest number of seconds of a random delay; a mapping with `start` and `end` sets both ends.",
    );
    params.further(
        "range",
        "a mapping",
        "Times of day within which the job runs: `start` and `end`, and `invert: True` for the opposite.",
    );
    params.further("skip_during_range", "a mapping", "Times within which the job does not run: `start` and `end`.");
    params.further(
        "run_after_skip_range",
        "True or False",
        "Whether a run that `skip_during_range` skipped is made up for afterwards.",
    );
    params.further(
        "run_on_start",
        "True or False",
        "Whether the job also runs when the minion starts; true for intervals by default.",
    );
    params.further("until", "a string", "Time after which the job does not run any more.");
    params.further("after", "a string", "Time before which the job does not run.");
    params.further("enabled", "True or False", "Whether the job runs; true by default.");
    params.further("maxrunning", "an integer", "Number of runs that may overlap; 1 by default.");
    params.further(
        "jid_include",
        "True or False",
        "Whether each run is recorded as a job on the minion, which `maxrunning` needs; true by default.",
    );
    params.further("returner", "a string", "Returner, or list of returners, of the results.");
    params.further("return_config", "a string", "Name of the configuration of the returner.");
    params.further("return_kwargs", "a mapping", "Options of the returner.");
    params.further("return_job", "True or False", "Whether the result is returned to the master; true by default.");
    params.further("metadata", "a mapping", "Data that is returned with the result.");
    params.further(
        "persist",
        "True or False",
        "Whether the job is stored and survives a restart of the minion; true by default.",
    );
    params.further("offline", "True or False", "Whether the stored schedule is changed without the running minion.");
    for name in ["dry_run", "fire_event", "test", "wait"] {
        params.further(name, "anything", "Without effect.");
    }
}

/// Describes the further arguments of `schedule.absent`.
pub(crate) fn further_absent(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further("persist", "True or False", "Whether the stored schedule is changed, too; true by default.");
    params.further("offline", "True or False", "Whether the stored schedule is changed without the running minion.");
    for name in ["fire_event", "test"] {
        params.further(name, "anything", "Without effect.");
    }
}

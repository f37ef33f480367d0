//! `schedule`: states of jobs of the minion's schedule.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

/// State functions of `schedule`.
pub static FUNCTIONS: Functions<StateContext> = registry!("schedule", [present, absent, enabled, disabled]);

/// Ensure that a job with these options is in the schedule.
#[function]
pub fn present(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
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
#[function]
pub fn absent(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    change(context, &name, "delete", kwargs, format!("Removed job {name} from schedule"))
}

/// Ensure that a job is enabled.
#[function]
pub fn enabled(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
    change(context, &name, "enable_job", kwargs, format!("Enabled job {name} from schedule"))
}

/// Ensure that a job is disabled.
#[function]
pub fn disabled(context: &StateContext, name: String, #[keywords] kwargs: Map) -> CallResult {
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
    let mut done = done(context, name, &report, words, None);
    if function != "delete" {
        // Salt reports no changes for these.
        done.changes = Map::new();
    }
    Ok(done.into())
}

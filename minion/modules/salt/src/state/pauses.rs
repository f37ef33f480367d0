//! `state.pause` and related functions: pause or end a run between two states.

use brine_context::{Context, jobs};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_state::pause;
use brine_value::Value;

/// Execution functions of `state`.
pub static FUNCTIONS: Functions<Context> = registry!("state", [pause, resume, soft_kill, get_pauses]);

/// Pause a run before a state, or before its next one, for a number of seconds or until it is resumed.
///
/// CLI Example:
///
///     salt '*' state.pause 20261120235852025555
///     salt '*' state.pause 20261120235852025555 vim duration=20
#[function]
pub fn pause(
    context: &Context,
    /// Id of the job.
    jid: Value,
    /// Id of the state before which the run pauses or ends; the next one by default.
    state_id: Option<String>,
    /// Seconds after which the run goes on.
    duration: Option<f64>,
) -> CallResult {
    pause::pause(&context.minion, &jid.to_string(), state_id.as_deref(), duration).map_err(CallError::execution)?;
    Ok(Value::Nil)
}

/// Resume a paused run.
///
/// CLI Example:
///
///     salt '*' state.resume 20261120235852025555
#[function]
pub fn resume(
    context: &Context,
    /// Id of the job.
    jid: Value,
    /// Id of the state before which the run pauses or ends; the next one by default.
    state_id: Option<String>,
) -> CallResult {
    pause::resume(&context.minion, &jid.to_string(), state_id.as_deref()).map_err(CallError::execution)?;
    Ok(Value::Nil)
}

/// End a run before a state, or before its next one; the running state is completed.
///
/// CLI Example:
///
///     salt '*' state.soft_kill 20261120235852025555
///     salt '*' state.soft_kill 20261120235852025555 vim
#[function]
pub fn soft_kill(
    context: &Context,
    /// Id of the job.
    jid: Value,
    /// Id of the state before which the run pauses or ends; the next one by default.
    state_id: Option<String>,
) -> CallResult {
    pause::soft_kill(&context.minion, &jid.to_string(), state_id.as_deref()).map_err(CallError::execution)?;
    Ok(Value::Nil)
}

/// Return the pauses of all state runs, or of one.
///
/// CLI Example:
///
///     salt '*' state.get_pauses
#[function]
pub fn get_pauses(
    context: &Context,
    /// Id of the job; all by default.
    #[default]
    jid: Value,
) -> CallResult {
    let minion = &context.minion;
    // A run may be paused before it begins.
    let jobs = jobs::held(minion).into_iter().chain(jobs::running(minion));
    let running: Vec<String> = jobs.filter(|job| job.fun.starts_with("state.")).map(|job| job.jid).collect();
    pause::forget_all_but(minion, &running);
    let is_selected = |run: &String| jid.is_nil() || jid.to_string() == **run;
    let marks = running.iter().filter(|run| is_selected(run)).map(|run| (run, pause::marks(minion, run)));
    Ok(Value::Map(
        marks.filter(|(_, marks)| !marks.is_empty()).map(|(run, marks)| (run.into(), marks.into())).collect(),
    ))
}

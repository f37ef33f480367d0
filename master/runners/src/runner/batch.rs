//! `batch`: batches that the master runs.

use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_master_jobs::batches::{BatchRequest, State};
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;

use super::RunnerContext;

/// Runner functions of `batch`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("batch", [start, status, list_active, stop]);

/// Start a job in batches and return its job id, the minions that take part, and those that do not answer.
/// `salt --batch-size 10 --async` does it.
///
/// CLI Example:
///
///     salt-run batch.start '*' state.apply batch=10%
#[function]
pub fn start(
    context: &RunnerContext,
    /// Target.
    tgt: Value,
    /// Name of the function.
    fun: Value,
    /// Arguments of the function, as a list.
    #[default]
    arg: Vec<Value>,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
    /// Size of a batch: a number of minions, or a percentage.
    #[default("1".into())]
    batch: String,
    /// Whether a failure of a minion ends the batch job.
    #[default(false)]
    failhard: bool,
    /// Seconds between the return of a minion and the next one.
    #[default(0.0)]
    batch_wait: f64,
    /// Seconds to wait for a return.
    timeout: Option<u64>,
    /// Returner of the results.
    #[default]
    ret: String,
    /// Options of the job, such as `metadata` and `ret_config`.
    #[default]
    kwargs: Map,
) -> CallResult {
    let request =
        PublishRequest { tgt, tgt_type, fun, arg, ret, kwargs, ..PublishRequest::new("", "", &context.caller.user) };
    let timeout = timeout.unwrap_or(context.master.config.timeout.whole_seconds());
    let batch_request = BatchRequest { request, size: batch, failhard, wait: batch_wait, timeout };
    let (jid, minions, missing) =
        context.wait(context.master.jobs.start_batch(batch_request)).map_err(CallError::execution)?;
    Ok(map! {"jid" => jid.map(|jid| jid.to_string()), "minions" => minions, "missing" => missing}.into())
}

/// Return the progress of a batch; an empty result if the job id is unknown.
///
/// CLI Example:
///
///     salt-run batch.status 20261120235852025555
#[function]
pub fn status(
    context: &RunnerContext,
    /// The job id of the batch.
    jid: Value,
) -> CallResult {
    let (batches, jid) = (&context.master.jobs.batches, jid.to_string());
    let own = batches.get(&jid).map(|state| state.summary());
    let summary = own.or_else(|| Some(batches.observed.get(&jid)?.summary())).or_else(|| {
        let elsewhere = context.wait(context.master.jobs.batches_elsewhere());
        elsewhere.into_iter().find(|state| state.jid.as_str() == jid).map(|state| state.summary())
    });
    Ok(summary.map_or(Value::Nil, Value::Map))
}

/// Return the progress of the running batches.
///
/// CLI Example:
///
///     salt-run batch.list_active
#[function]
pub fn list_active(context: &RunnerContext) -> CallResult {
    let batches = &context.master.jobs.batches;
    let own = batches.active().into_iter().map(|state| state.summary());
    let followed = batches.observed.active().into_iter().map(|state| state.summary());
    let elsewhere = context.wait(context.master.jobs.batches_elsewhere());
    let mut all: Vec<Map> = own.chain(followed).chain(elsewhere.iter().map(State::summary)).collect();
    all.sort_by_key(|summary| summary.get("jid").map(ToString::to_string));
    Ok(all.into_iter().map(Value::Map).collect())
}

/// Stop a batch: no further minions get the job. Return False if no such batch is running.
///
/// CLI Example:
///
///     salt-run batch.stop 20261120235852025555
///     salt-run batch.stop 20261120235852025555 kill=True
#[function]
pub fn stop(
    context: &RunnerContext,
    /// The job id of the batch.
    jid: Value,
    /// Whether the job is killed on the minions that run it (False).
    #[default(false)]
    kill: bool,
) -> CallResult {
    let jid = jid.to_string();
    let (batches, user) = (&context.master.jobs.batches, &context.caller.user);
    let is_it = |state: &State| state.jid.as_str() == jid;
    let own = batches.active().into_iter().find(is_it);
    let own = own.or_else(|| context.wait(context.master.jobs.batches_elsewhere()).into_iter().find(is_it));
    let followed = || batches.observed.active_one(&jid);
    let request = match own.map(|state| state.kill_request(user)) {
        Some(request) => request,
        None => match followed() {
            Some(state) => state.kill_request(user),
            None => return Ok(false.into()),
        },
    };
    if kill {
        context.wait(context.master.jobs.publish(request)).map_err(CallError::execution)?;
    }
    let body = map! {"jid" => &jid, "reason" => "stop"};
    context.wait(context.master.events.fire(&format!("salt/batch/{jid}/stop"), &body));
    Ok(true.into())
}

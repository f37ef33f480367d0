//! `jobs.rerun`: publishes a job again.

use brine_function::{CallError, CallResult, function};
use brine_ids::Jid;
use brine_job::Load;
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;

use super::{cache, load, parse, returns};
use crate::runner::RunnerContext;

/// Publish a job again, with a new job id and the same function and arguments: to all of its minions, or only to those
/// that failed or did not return. Return the new job id and the minions. Only the job's own user and administrators may.
///
/// CLI Example:
///
///     salt-run jobs.rerun 20261120235852025555
///     salt-run jobs.rerun 20261120235852025555 failed=True missing=True
#[function]
pub fn rerun(
    context: &RunnerContext,
    /// The job id.
    jid: String,
    /// Only minions that returned a failure (False).
    #[default(false)]
    failed: bool,
    /// Only minions that did not return (False); both together select either.
    #[default(false)]
    missing: bool,
    /// The returner to read from (the master's job cache); a configured ext_job_cache takes precedence.
    ext_source: Option<String>,
) -> CallResult {
    let (cache, jid) = (cache(context, ext_source.as_deref())?, parse(&jid)?);
    let job = load(&*cache, &jid)?;
    let job =
        job.ok_or_else(|| CallError::execution(format!("job {jid} is not in the job cache: it cannot run again")))?;
    may_rerun(&context.caller.user, &job, &brine_master_access::access::process_user())?;
    let minions = selected(&job, &returns(&*cache, &jid)?, failed, missing);
    if minions.is_empty() {
        return Ok(map! {"jid" => Value::Nil, "minions" => Vec::<Value>::new()}.into());
    }
    let published = context.wait(context.master.jobs.publish(request(&job, &jid, &minions, &context.caller.user)?));
    let published = published.map_err(CallError::execution)?;
    Ok(map! {"jid" => published.jid.as_ref().map_or(Value::Nil, Value::from), "minions" => published.minions}.into())
}

/// Checks that a user may publish a job again: permission for `jobs.*` must not grant permission to run anything.
pub(in crate::runner) fn may_rerun(user: &str, job: &Load, process_user: &str) -> Result<(), CallError> {
    let is_administrator = user == "root" || user == process_user || user.starts_with("sudo_");
    if is_administrator || user == job.user() {
        return Ok(());
    }
    Err(CallError::execution(format!(
        "job {} was published by {}: only that user and administrators may run it again",
        job.jid(),
        job.user()
    )))
}

/// Returns the minions to which a job is published again: all of them, or those that failed or are missing.
fn selected(job: &Load, returns: &Map, failed: bool, missing: bool) -> Vec<String> {
    let has_failed = |one: &Value| {
        one.get("retcode").and_then(Value::as_i64).unwrap_or(0) != 0
            || one.get("success").and_then(Value::as_bool) == Some(false)
    };
    let is_selected = |id: &String| match returns.get(id.as_str()) {
        _ if !failed && !missing => true,
        Some(one) => failed && has_failed(one),
        None => missing,
    };
    job.minions().iter().map(ToString::to_string).filter(is_selected).collect()
}

fn request(job: &Load, jid: &Jid, minions: &[String], user: &str) -> Result<PublishRequest, CallError> {
    if job.fun().is_nil() || job.tgt().is_nil() {
        return Err(CallError::execution(format!(
            "job {jid} was a call of the master: call the function again instead"
        )));
    }
    if job.arg().iter().chain(job.metadata()).any(brine_mask::is_masked) {
        return Err(CallError::execution(format!(
            "job {jid} had secret arguments, which the job cache does not keep: publish it again with its arguments"
        )));
    }
    let request = PublishRequest::new("", "", user);
    Ok(PublishRequest {
        tgt: minions.to_vec().into(),
        tgt_type: "list".to_owned(),
        fun: job.fun().clone(),
        arg: job.arg().to_vec(),
        ret: job.ret().join(","),
        kwargs: job.metadata().map(|metadata| map! {"metadata" => metadata.clone()}).unwrap_or_default(),
        ..request
    })
}

#[cfg(test)]
mod tests;

//! `plan`: plans that need an approval, `plan_approval`. The master makes them from the returns of a dry run.

use brine_auth::PLANNED;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_job::plan::{self, Groups, Plan};
use brine_master_calls::REACTOR;
use brine_master_store::plans::{KeptPlan, PlanError};
use brine_value::{Value, map};

use super::RunnerContext;
use super::jobs::{cache, job_and_returns, may_rerun};

/// Runner functions of `plan`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("plan", [create, list, show, approve, delete]);

/// The names of callers that are no users: templates of the master, and engines.
const NO_USERS: [&str; 3] = [REACTOR, "engine", ""];

/// Make a plan from the dry run of `state.apply`, `state.sls` or `state.highstate` with this job id, and keep it on the
/// master. `salt ... --plan` calls this if the master has `plan_approval`. Only the user of the job may.
///
/// CLI Example:
///
///     salt-run plan.create 20261120235852025555
#[function]
pub fn create(
    context: &RunnerContext,
    /// The job id of the dry run.
    jid: String,
) -> CallResult {
    let refused = |message: String| Err(CallError::Execution(message));
    let (job, returns) = job_and_returns(&*cache(context, None)?, &jid)?;
    let Some(job) = job else { return refused(format!("job {jid} is not in the job cache: plan again")) };
    may_rerun(&context.caller.user, &job, &brine_master_access::access::process_user())?;
    let fun = job.fun().as_str().unwrap_or_default().to_owned();
    let args = Args::from_wire(job.arg());
    let is_dry = args.keyword.get("test") == Some(&true.into());
    if !PLANNED.contains(&fun.as_str()) || !is_dry || args.positional.len() > 1 {
        return refused(format!(
            "job {jid} is no dry run that can be planned: expected {} with test=True, got {fun}",
            PLANNED.join(", ")
        ));
    }
    let mut groups = Groups::default();
    for id in job.minions() {
        match returns.get(id.as_str()).and_then(|one| one.get("return")) {
            Some(returned) => groups.add(id.as_str(), returned, &jid),
            None => groups.add_silent(id.as_str()),
        }
    }
    let mut described = plan::describe(&fun, args, &context.caller.user);
    described.extend(map! {
        "tgt" => job.tgt().clone(),
        "tgt_type" => job.tgt_type(),
        "jid" => jid.as_str(),
        "version" => brine_config::VERSION,
    });
    let plan = Plan::new(described, groups.to_value()).map_err(CallError::execution)?;
    let record = context.storage().plans.add(&jid, plan).map_err(CallError::execution)?;
    announce(context, "new", &record.to_value());
    Ok(record.to_value().into())
}

/// Return the plans that the master keeps, newest first: their job, how many minions would change and in how many ways,
/// who made and approved them, and the job that applied them.
///
/// CLI Example:
///
///     salt-run plan.list
#[function]
pub fn list(context: &RunnerContext) -> CallResult {
    let summary = |id: String, plan: Result<KeptPlan, PlanError>| match plan {
        Err(error) => Value::from(map! {"id" => id, "error" => error.to_string()}),
        Ok(record) => {
            let map = record.plan.map();
            let field = |name: &str| map.get(name).cloned().unwrap_or_default();
            Value::from(map! {
                "id" => id,
                "fun" => field("fun"),
                "tgt" => field("tgt"),
                "user" => field("user"),
                "time" => field("time"),
                "minions" => record.plan.minions().len(),
                "groups" => record.plan.digests().len(),
                "digest" => record.digest,
                "approved_by" => record.approved_by,
                "applied" => record.applied,
            })
        }
    };
    Ok(context.storage().plans.list(summary).map_err(CallError::execution)?.into())
}

/// Return a plan: the minions that would change in the same way, with their changes.
///
/// CLI Example:
///
///     salt-run plan.show 20261120235852025555
#[function(out = "plan")]
pub fn show(
    context: &RunnerContext,
    /// The id of the plan.
    id: String,
) -> CallResult {
    Ok(context.storage().plans.get(&id).map_err(CallError::execution)?.to_value().into())
}

/// Approve a plan, so that `salt --apply` may apply it, once. The user who made it cannot approve it.
///
/// CLI Example:
///
///     salt-run plan.approve 20261120235852025555
#[function]
pub fn approve(
    context: &RunnerContext,
    /// The id of the plan.
    id: String,
    /// The digest that `plan.show` shows, so that only the plan that was read is approved.
    digest: Option<String>,
) -> CallResult {
    let user = context.caller.user.as_str();
    // A minion calls runners under its id, if `peer_run` lets it.
    let minions = context.storage().accepted().map_err(CallError::execution)?;
    if NO_USERS.contains(&user) || !context.caller.cause.is_empty() || minions.iter().any(|id| id == user) {
        return Err(CallError::execution(
            "a plan is approved by a user, not by a minion, a template, a reaction or an engine",
        ));
    }
    let record = context.storage().plans.approve(&id, user, digest.as_deref()).map_err(CallError::execution)?;
    announce(context, "approved", &record.to_value());
    Ok(map! {"id" => id, "digest" => record.digest, "approved_by" => record.approved_by}.into())
}

/// Delete a plan.
///
/// CLI Example:
///
///     salt-run plan.delete 20261120235852025555
#[function]
pub fn delete(
    context: &RunnerContext,
    /// The id of the plan.
    id: String,
) -> CallResult {
    context.storage().plans.delete(&id).map_err(CallError::execution)?;
    Ok(true.into())
}

/// Publishes an event about a plan, without its changes.
fn announce(context: &RunnerContext, what: &str, plan: &brine_value::Map) {
    let names = ["id", "fun", "tgt", "tgt_type", "user", "digest", "approved_by"];
    let body = names.iter().filter_map(|name| Some(((*name).into(), plan.get(*name)?.clone()))).collect();
    let id = plan.get("id").map(ToString::to_string).unwrap_or_default();
    context.wait(context.master.events.fire(&format!("salt/plan/{id}/{what}"), &body));
}

//! `salt.state`: applies SLS files on minions.

use brine_carriers::{APPLY_PLAN, PLANNED};
use brine_context::{StateContext, StateReturn};
use brine_function::arguments::refuse;
use brine_function::{Args, CallResult, Others, ParamList, function};
use brine_job::orchestration::{MinionResult, StepPlan};
use brine_job::plan::dry_run;
use brine_value::{FromValue, Map, Value, map};

use super::{Job, ReturnerArgs, RunArgs, is_success, with_jid, words};
use crate::saltutil::orchestration::master_of;

/// The arguments of `salt.state`.
#[derive(Args)]
pub struct StateArgs {
    /// Name of the state.
    name: String,
    /// Target: which minions.
    tgt: Value,
    /// Type of the target: `glob`, `list`, `grain`, `compound`, ...
    #[default("glob".into())]
    tgt_type: String,
    /// SLS files to apply.
    #[default]
    sls: Value,
    /// Whether the highstate is applied.
    highstate: Option<bool>,
    /// Top file to apply.
    top: Option<String>,
    /// Whether minions only report what they would change.
    test: Option<bool>,
    /// Values that override the pillar.
    #[default]
    pillar: Value,
    /// Environment of the pillar.
    #[default]
    pillarenv: Value,
    /// Environment of the SLS files.
    #[default]
    saltenv: Value,
    /// SLS files or ids to leave out.
    #[default]
    exclude: Value,
    /// Whether runs are queued on the minion.
    #[default(false.into())]
    queue: Value,
    /// Whether runs may be concurrent on the minion.
    #[default(false.into())]
    concurrent: Value,
    #[args]
    returners: ReturnerArgs,
    /// Whether a minion that does not return has failed.
    #[default(true)]
    expect_minions: bool,
    /// Minions that may fail.
    #[default]
    fail_minions: Value,
    /// Number of minions that may fail.
    #[default(0.into())]
    allow_fail: Value,
    #[args]
    how: RunArgs,
    /// Further arguments, ignored; `ssh` and `roster` are refused.
    #[keywords(further_state)]
    kwargs: Map,
}

/// Apply SLS files, a top file or the highstate on minions. `allow_fail` is the number of minions that may fail,
/// `fail_minions` lists some; with `expect_minions`, a minion that does not return has failed.
///
/// SLS Example:
///
///     web_servers:
///       salt.state:
///         - tgt: web*
///         - sls:
///           - nginx
///           - app
///         - batch: 25%
///         - require:
///           - salt: databases
///
///     databases:
///       salt.state:
///         - tgt: role:db
///         - tgt_type: grain
///         - highstate: True
#[function]
pub fn state(context: &StateContext, #[args] settings: StateArgs) -> CallResult {
    refuse("salt.state", &settings.kwargs, &super::SSH)?;
    let (fun, mods) = if settings.highstate == Some(true) {
        ("state.highstate", None)
    } else if let Some(top) = settings.top {
        ("state.top", Some(top))
    } else if settings.sls.is_truthy() {
        ("state.sls", Some(words(&settings.sls).join(",")))
    } else {
        return Ok(StateReturn::failed(&settings.name, "No highstate or sls specified, no execution made").into());
    };
    let Some(allow_fail) = usize::from_value(&settings.allow_fail) else {
        return Ok(StateReturn::failed(&settings.name, "Passed invalid value for 'allow_fail', must be an int").into());
    };
    let Value::Bool(_) = settings.concurrent else {
        return Ok(StateReturn::failed(&settings.name, "Must pass in boolean for value of 'concurrent'").into());
    };
    let test = settings.test.or(context.test.then_some(true));
    let mut kwargs = Map::new();
    for (key, value) in [
        ("test", test.into()),
        ("pillar", settings.pillar),
        ("pillarenv", settings.pillarenv),
        ("saltenv", settings.saltenv),
        ("exclude", settings.exclude),
    ] {
        if !value.is_nil() {
            kwargs.insert(key.into(), value);
        }
    }
    kwargs.insert("queue".into(), settings.queue);
    kwargs.insert("concurrent".into(), settings.concurrent);
    let args = Args { positional: mods.into_iter().map(Value::from).collect(), keyword: kwargs };
    let master = master_of(&context.call, "salt.state")?;
    let plan = master.step_plan(&settings.name);
    if plan != StepPlan::Run && !PLANNED.contains(&fun) {
        let comment = format!("{fun} cannot be planned: name SLS files, or 'highstate: True'");
        return Ok(StateReturn::failed(&settings.name, comment).into());
    }
    let (target, fun, args) = match &plan {
        StepPlan::Run => ((settings.tgt, settings.tgt_type), fun, args),
        StepPlan::Plan => ((settings.tgt, settings.tgt_type), fun, dry_run(args)),
        StepPlan::Apply(digests) if digests.is_empty() => {
            return Ok(StateReturn::ok(&settings.name, "The plan changes nothing in this step.").into());
        }
        StepPlan::Apply(digests) => {
            let minions = digests.values().filter_map(Value::as_list).flatten().cloned().collect::<Value>();
            ((minions, "list".to_owned()), APPLY_PLAN, applying(fun, digests, args))
        }
    };
    let job = Job::new(target, settings.returners, settings.how, settings.expect_minions);
    let answers = match job.run(context, "state", &settings.name, fun, args)? {
        Ok(answers) => answers,
        Err(error) => return Ok(StateReturn::failed(&settings.name, error.to_string()).into()),
    };
    if plan == StepPlan::Plan {
        master.planned(&settings.name, &answers);
    }
    Ok(applied(
        &settings.name,
        &answers,
        &words(&settings.fail_minions),
        allow_fail,
        settings.expect_minions,
        test == Some(true),
    )
    .into())
}

/// Returns the arguments of the function that applies a plan.
fn applying(fun: &str, digests: &Map, mut args: Args) -> Args {
    args.keyword.shift_remove("test");
    let plan = map! {"digests" => digests.clone()};
    args.positional.splice(0..0, [Value::from(fun), plan.into()]);
    args
}

/// Returns the result of states on minions.
fn applied(
    name: &str,
    answers: &[MinionResult],
    may_fail: &[String],
    allow_fail: usize,
    expect_minions: bool,
    test: bool,
) -> StateReturn {
    if answers.is_empty() && expect_minions {
        return StateReturn::failed(name, "No minions returned");
    }
    let (mut changes, mut failed, mut details, mut unchanged) = (Map::new(), Vec::new(), Vec::new(), Vec::new());
    for MinionResult { id, returned, .. } in answers {
        let value = returned.as_ref().and_then(|returned| returned.get("return"));
        let Some(value) = value.filter(|value| is_success(value)) else {
            if !may_fail.contains(id) {
                failed.push(id.as_str());
                details.extend(detail(id, value));
            }
            changes.insert(id.into(), value.cloned().unwrap_or(Value::Bool(false)));
            continue;
        };
        let changed = |result: &Value| result.get("changes").is_some_and(Value::is_truthy);
        if value.as_map().is_some_and(|results| results.values().any(changed)) {
            changes.insert(id.into(), value.clone());
        } else {
            unchanged.push(id.as_str());
        }
    }
    let mut outcome = StateReturn::ok(name, "");
    if failed.len() > allow_fail {
        outcome.result = Some(false);
        outcome.comment = format!("Run failed on minions: {}", failed.join(", "));
        for detail in details {
            outcome.comment.push_str(&format!("\n{detail}"));
        }
    } else {
        "States ran successfully.".clone_into(&mut outcome.comment);
        if !changes.is_empty() {
            let names: Vec<String> = changes.keys().map(ToString::to_string).collect();
            outcome.comment.push_str(&format!(" Updating {}.", names.join(", ")));
        }
        if !unchanged.is_empty() {
            outcome.comment.push_str(&format!(" No changes made to {}.", unchanged.join(", ")));
        }
        if test && !changes.is_empty() {
            outcome.result = None;
        }
    }
    if !changes.is_empty() {
        outcome.changes = map! {"out" => "highstate", "ret" => changes};
    }
    with_jid(outcome, answers)
}

/// Returns a line on a return that is not a result of states.
fn detail(id: &str, value: Option<&Value>) -> Option<String> {
    match value {
        None => Some(format!("Minion {id} did not return a state result.")),
        Some(Value::List(errors)) => {
            let errors: Vec<String> =
                errors.iter().filter(|error| error.is_truthy()).map(ToString::to_string).collect();
            Some(format!("Minion {id} returned errors: {}", errors.join("; ")))
        }
        Some(Value::Map(results)) if !results.is_empty() => None,
        Some(other) => Some(format!("Minion {id} returned {other} instead of a state result.")),
    }
}

/// Describes the further arguments of `salt.state`.
pub(crate) fn further_state(params: &mut ParamList) {
    params.others(Others::Unused);
    for name in ["roster", "ssh"] {
        params.further(name, "a string", "Refused: orchestrations have minions as targets, not hosts of salt-ssh.");
    }
    params.further("sync_mods", "a string", "Without effect: the minions synchronize their modules themselves.");
    params.further(
        "orchestration_jid",
        "a string",
        "Without effect: the id of the orchestration is recorded by the master.",
    );
}

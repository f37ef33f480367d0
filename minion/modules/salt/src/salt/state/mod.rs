//! `salt`: states of an orchestration, which run on the master: jobs for minions, runner and wheel functions,
//! waiting for events.

mod apply;
mod call;

use std::sync::Arc;
use std::time::Instant;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_job::orchestration::{Called, MasterAccess, MinionResult, OrchestratedJob, OrchestrationError};
use brine_text::glob::Glob;
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;

use crate::saltutil::orchestration::{master_of, parsed_arguments};
use brine_function::arguments::names;

/// State functions of `salt`.
pub static FUNCTIONS: Functions<StateContext> =
    registry!("salt", [apply::state, call::function, runner, wheel, wait_for_event, parallel_runners]);

/// Call a runner function on the master; further arguments are those of the function.
///
/// SLS Example:
///
///     manage.down:
///       salt.runner:
///         - removekeys: False
#[function]
pub fn runner(
    context: &StateContext,
    /// Name of the runner function.
    name: String,
    /// Arguments of the function. `arg` is a list of positional ones, `kwarg` a mapping of named ones.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    on_master(context, "Runner", name, kwargs, |master, name, args| master.runner(name, args))
}

/// Call a wheel function on the master; further arguments are those of the function.
///
/// SLS Example:
///
///     key.accept:
///       salt.wheel:
///         - match: web1
#[function]
pub fn wheel(
    context: &StateContext,
    /// Name of the wheel function.
    name: String,
    /// Arguments of the function. `arg` is a list of positional ones, `kwarg` a mapping of named ones.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    on_master(context, "Wheel", name, kwargs, |master, name, args| master.wheel(name, args))
}

/// The arguments by which a job would go to hosts of salt-ssh in the place of minions.
const SSH: [(&str, &str); 2] = [
    ("ssh", "orchestrations have minions as targets; run salt-ssh for other hosts"),
    ("roster", "orchestrations have minions as targets; run salt-ssh for other hosts"),
];

/// Wait until each id of a list has occurred in the field `event_id` of an event whose tag matches the name. `node` is
/// without effect: orchestrations run on the master.
///
/// SLS Example:
///
///     minions_are_back:
///       salt.wait_for_event:
///         - name: salt/minion/*/start
///         - id_list:
///           - web1
///           - web2
///         - timeout: 600
#[function]
pub fn wait_for_event(
    context: &StateContext,
    /// Glob of the tag.
    name: String,
    /// Ids to wait for, as a list.
    id_list: Value,
    /// Field of the event that has the id.
    #[default("id".into())]
    event_id: String,
    /// Seconds after which the state fails.
    #[default(300.0)]
    timeout: f64,
    /// Without effect: orchestrations run on the master.
    #[default("master".into())]
    node: String,
) -> CallResult {
    // The events are the master's: orchestrations only run there.
    _ = node;
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("Orchestration would wait for event '{name}'")).into());
    }
    let glob = Glob::new(&name).map_err(CallError::execution)?;
    let mut missing = match id_list {
        Value::List(ids) => ids,
        one => vec![one],
    };
    let (mut seen, started) = (Vec::new(), Instant::now());
    let time = brine_runtime::seconds::within(0.0..=1e9, timeout);
    let followed = master_of(&context.call, "salt.wait_for_event")?.follow(time, &mut |tag, data| {
        if !glob.is_match(tag) {
            return false;
        }
        let value = data.get(event_id.as_str());
        let value = value.or_else(|| data.get("data")?.get(&event_id)).cloned().unwrap_or_default();
        let ids = match value {
            Value::List(all) => all,
            one => vec![one],
        };
        let (now, rest) = std::mem::take(&mut missing).into_iter().partition(|id| ids.contains(id));
        missing = rest;
        seen.extend::<Vec<Value>>(now);
        missing.is_empty()
    });
    let all = followed.map_err(CallError::execution)?;
    let changes = if seen.is_empty() {
        Map::new()
    } else {
        map! {"minions_seen" => seen}
    };
    let outcome = if all {
        StateReturn::ok(&name, format!("All events seen in {} seconds.", started.elapsed().as_secs_f64()))
    } else {
        StateReturn::failed(&name, "Timeout value reached.")
    };
    Ok(outcome.with_changes(changes).into())
}

/// Call several runner functions in parallel: a mapping of ids to `name` and `kwarg`.
///
/// SLS Example:
///
///     both_sites:
///       salt.parallel_runners:
///         - runners:
///             site_a:
///               - name: state.orchestrate
///               - kwarg:
///                   mods: orch.site_a
///             site_b:
///               - name: state.orchestrate
///               - kwarg:
///                   mods: orch.site_b
#[function]
pub fn parallel_runners(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Mapping of ids to a mapping with `name`, the runner function, and `kwarg`, its arguments.
    runners: Value,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    let mut calls: Vec<(String, String, Map)> = Vec::new();
    match runners {
        Value::Str(one) => calls.push((one.clone(), one, Map::new())),
        Value::Map(runners) => {
            for (id, config) in runners {
                let config = flat(&config);
                let fun = config.get("name").map_or_else(|| id.to_string(), ToString::to_string);
                let kwargs = config.get("kwarg").and_then(Value::as_map).cloned().unwrap_or_default();
                calls.push((id.to_string(), fun, kwargs));
            }
        }
        _ => return Ok(StateReturn::failed(&name, "The runners parameter must be a string or dict.").into()),
    }
    if context.test {
        let funs: Vec<&str> = calls.iter().map(|(_, fun, _)| fun.as_str()).collect();
        let comment = format!("Runner functions {} would be executed.", funs.join(", "));
        return Ok(StateReturn::predicted(&name, comment).into());
    }
    let master = master_of(&context.call, "salt.parallel_runners")?;
    let all: Vec<(String, Called)> = std::thread::scope(|scope| {
        let threads: Vec<_> = calls
            .into_iter()
            .map(|(id, fun, kwargs)| (id, scope.spawn(move || master.runner(&fun, Args::keyword(kwargs)))))
            .collect();
        threads.into_iter().filter_map(|(id, thread)| Some((id, thread.join().ok()?))).collect()
    });
    Ok(parallel_result(&name, all).into())
}

/// The arguments about returners of a job that an orchestration publishes.
#[derive(Args)]
pub struct ReturnerArgs {
    /// Additional returners of the minions: a list, or names separated by commas.
    #[default]
    ret: Value,
    /// Configuration profile of the returners.
    #[default]
    ret_config: Value,
    /// Further arguments of the returners.
    #[default]
    ret_kwargs: Value,
}

/// The arguments about the run of such a job.
#[derive(Args)]
pub struct RunArgs {
    /// Seconds to wait for returns.
    timeout: Option<f64>,
    /// Size of batches: a number, or a percentage of the minions.
    #[default]
    batch: Value,
    /// Number of minions to choose at random from the target.
    subset: Option<usize>,
    /// Whether a failure ends the orchestration.
    #[default(false)]
    failhard: bool,
}

/// A job that an orchestration publishes.
struct Job {
    tgt: Value,
    tgt_type: String,
    returners: ReturnerArgs,
    how: RunArgs,
    expect_minions: bool,
}

impl Job {
    fn new(target: (Value, String), returners: ReturnerArgs, how: RunArgs, expect_minions: bool) -> Self {
        let (tgt, tgt_type) = target;
        Job { tgt, tgt_type, returners, how, expect_minions }
    }

    /// Publishes the job and waits for the returns. Minions without a return are only included if they are expected.
    fn run(
        self,
        context: &StateContext,
        kind: &str,
        name: &str,
        fun: &str,
        args: Args,
    ) -> Result<Result<Vec<MinionResult>, OrchestrationError>, CallError> {
        let master = master_of(&context.call, &format!("salt.{kind}"))?;
        let ret = words(&self.returners.ret).join(",");
        let report = map! {
            "arg" => args.positional.clone(),
            "kwarg" => args.keyword.clone(),
            "ret" => &ret,
            "timeout" => self.how.timeout,
            "tgt_type" => &self.tgt_type,
            "expect_minions" => self.expect_minions,
        };
        master.publish_progress(
            "args",
            map! {"type" => kind, "tgt" => self.tgt.clone(), "name" => name, "args" => report},
        );
        let options = [("ret_config", self.returners.ret_config), ("ret_kwargs", self.returners.ret_kwargs)];
        let kwargs = options.into_iter().filter(|(_, value)| !value.is_nil());
        let request = PublishRequest {
            tgt: self.tgt,
            tgt_type: self.tgt_type,
            arg: args.to_wire(),
            ret,
            kwargs: kwargs.map(|(name, value)| (name.into(), value)).collect(),
            ..PublishRequest::new("", fun, "")
        };
        let config = context.call.config();
        let asked = master.ask(OrchestratedJob {
            request,
            timeout: self.how.timeout.map(|seconds| brine_runtime::seconds::within(0.0..=1e9, seconds)),
            batch: (!self.how.batch.is_nil()).then(|| self.how.batch.to_string()),
            failhard: self.how.failhard || config.failhard,
            subset: self.how.subset,
        });
        let counts = |answer: &MinionResult| self.expect_minions || answer.returned.is_some() || answer.is_unknown;
        Ok(asked.map(|answers| answers.into_iter().filter(counts).collect()))
    }
}

/// Returns names as a list: they are given as a list, or separated by commas.
fn words(value: &Value) -> Vec<String> {
    if value.is_nil() { Vec::new() } else { names(value) }
}

/// Merges a list of one-key mappings.
fn flat(value: &Value) -> Map {
    match value {
        Value::Map(map) => map.clone(),
        Value::List(items) => {
            items.iter().filter_map(Value::as_map).flatten().map(|(k, v)| (k.clone(), v.clone())).collect()
        }
        _ => Map::new(),
    }
}

/// Whether all results of a state run are successful. Anything but a mapping is an error.
pub fn is_success(results: &Value) -> bool {
    let Some(results) = results.as_map().filter(|results| !results.is_empty()) else { return false };
    results.values().all(|result| match result.as_map() {
        Some(one) => match one.get("result") {
            Some(result) => *result != Value::Bool(false),
            None => is_success(result),
        },
        None => true,
    })
}

fn with_jid(mut outcome: StateReturn, answers: &[MinionResult]) -> StateReturn {
    outcome.more.extend(answers.first().map(|answer| ("__jid__".into(), Value::from(&answer.jid))));
    outcome
}

/// Returns the result of a function on minions.
fn called(name: &str, answers: &[MinionResult], may_fail: &[String], good: impl Fn(&Value) -> bool) -> StateReturn {
    if answers.is_empty() {
        return StateReturn::failed(name, "No minions responded");
    }
    let (mut changes, mut failed) = (Map::new(), Vec::new());
    for MinionResult { id, returned, .. } in answers {
        let retcode = returned.as_ref().and_then(|returned| returned.get("retcode")).is_some_and(Value::is_truthy);
        let value = returned.as_ref().map(|returned| returned.get("return").cloned().unwrap_or_default());
        let is_good = value.as_ref().is_some_and(|value| *value != Value::Bool(false) && good(value));
        if retcode || (!is_good && !may_fail.contains(id)) {
            failed.push(id.as_str());
        }
        changes.insert(id.into(), value.unwrap_or(Value::Bool(false)));
    }
    let ran: Vec<String> = changes.keys().map(ToString::to_string).collect();
    let ran = format!("Function {name} ran on {}.", ran.join(", "));
    let mut outcome = if failed.is_empty() {
        StateReturn::ok(name, format!("Function ran successfully. {ran}"))
    } else {
        let failed = failed.join(", ");
        StateReturn::failed(name, format!("Running function {name} failed on minions: {failed} {ran}"))
    };
    outcome.changes = map! {"ret" => changes};
    with_jid(outcome, answers)
}

/// Calls a runner or wheel function as a state.
fn on_master(
    context: &StateContext,
    kind: &str,
    name: String,
    mut kwargs: Map,
    call: impl FnOnce(&Arc<dyn MasterAccess>, &str, Args) -> Called,
) -> Result<Value, CallError> {
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("{kind} function '{name}' would be executed.")).into());
    }
    let word = kind.to_lowercase();
    let master = master_of(&context.call, &format!("salt.{word}"))?;
    let arg = kwargs.shift_remove("arg").unwrap_or_default();
    let kwarg = kwargs.shift_remove("kwarg").and_then(|kwarg| kwarg.as_map().cloned());
    let args = parsed_arguments(arg, kwarg, kwargs);
    let mut report = map! {"type" => &word, "name" => &name};
    if word == "wheel" {
        report.insert("args".into(), args.keyword.clone().into());
    } else {
        report.extend(map! {"args" => args.positional.clone(), "kwargs" => args.keyword.clone()});
    }
    master.publish_progress("args", report);
    let Called { jid, value, success } = call(master, &name, args);
    let success = success && value.as_map().is_none_or(|value| !value.contains_key("Error"));
    let verb = if success { "executed" } else { "failed" };
    let mut outcome = StateReturn::ok(&name, format!("{kind} function '{name}' {verb}."));
    outcome.result = Some(success);
    outcome.changes = map! {"return" => value};
    outcome.more = map! {"__jid__" => &jid};
    Ok(outcome.into())
}

/// Returns the result of runner functions that ran in parallel.
fn parallel_result(name: &str, all: Vec<(String, Called)>) -> StateReturn {
    let failed: Vec<&str> = all.iter().filter(|(_, called)| !called.success).map(|(id, _)| id.as_str()).collect();
    let comment = match failed[..] {
        [] => "All runner functions executed successfully.".to_owned(),
        [one] => format!("Runner {one} failed."),
        _ => format!("Runners {} failed.", failed.join(", ")),
    };
    let mut outcome = StateReturn::ok(name, comment);
    outcome.result = Some(failed.is_empty());
    let orchestrations = all.iter().all(|(_, called)| called.value.get("outputter") == Some(&"highstate".into()));
    if orchestrations {
        let changes = all.iter().filter_map(|(id, called)| {
            let changes = changes_in(called.value.get("data")?);
            changes.is_truthy().then(|| (Value::from(id), changes))
        });
        outcome.changes = changes.collect();
    } else {
        let values: Map = all.into_iter().map(|(id, called)| (id.into(), called.value)).collect();
        outcome.changes = map! {"ret" => values};
    }
    outcome
}

/// Returns the changes in the results of an orchestration.
fn changes_in(results: &Value) -> Value {
    let Some(map) = results.as_map() else { return Value::map() };
    if let Some(changes) = map.get("changes") {
        return match changes.get("ret") {
            Some(ret) if changes.get("out") == Some(&"highstate".into()) => ret.clone(),
            _ => changes.clone(),
        };
    }
    let entries = map.iter().map(|(key, value)| (key.clone(), changes_in(value)));
    Value::Map(entries.filter(|(_, changes)| changes.is_truthy()).collect())
}

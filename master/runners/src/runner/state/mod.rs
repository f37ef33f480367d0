//! `state`: orchestrations, that is, states that run on the master.

mod run;

use std::sync::Arc;

use brine_function::arguments::refuse;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_job::plan::Steps;
use brine_master_custom::Orchestrated;
use brine_sls::pillar::PILLAR_ENC;
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;

use self::run::{Run, run};
use super::RunnerContext;
use super::salt::with_keywords;

/// Runner functions of `state`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!(
    "state",
    [
        event,
        orchestrate,
        orch,
        sls,
        orchestrate_single,
        orchestrate_high,
        orchestrate_show_sls,
        orch_show_sls,
        graph,
        graph_highstate,
        pause,
        set_pause,
        resume,
        rm_pause,
        soft_kill
    ]
);

/// Follow the events of the master, one on each line. `salt-run` does this itself: the master returns nothing.
///
/// tagmatch: a glob over tags (`*`). count: end after so many events (-1 for never). quiet: print nothing (False).
/// pretty: print JSON over several lines (False). since: begin with events of the journal: a sequence number, a time, or
/// an age such as `10m`.
///
/// CLI Example:
///
///     salt-run state.event pretty=True
///     salt-run state.event 'salt/job/*' since=10m
#[function]
pub fn event(_context: &RunnerContext, #[rest] _args: Vec<Value>, #[keywords] _kwargs: Map) -> CallResult {
    Err(CallError::execution("state.event follows the event bus from salt-run, not within the master"))
}

/// The arguments of `state.orchestrate`.
#[derive(Args)]
pub struct OrchestrateArgs {
    /// SLS files to apply.
    mods: Value,
    /// Environment of the SLS files.
    #[default]
    saltenv: Value,
    /// Whether states only report what they would change.
    #[default]
    test: Value,
    /// SLS files or ids to leave out.
    #[default]
    exclude: Value,
    /// Values that override the pillar.
    #[default]
    pillar: Value,
    /// Environment of the pillar.
    #[default]
    pillarenv: Value,
    /// `True`: returns a plan, the changes of each step in test mode, minions that would change alike as one group. A
    /// mapping of steps to digests and minions: changes exactly that, as `salt-run --apply` asks.
    #[default]
    plan: Value,
    /// Job id of the run; a new one by default.
    orchestration_jid: Option<String>,
    /// Further arguments, ignored.
    #[keywords]
    kwargs: Map,
}

/// Apply SLS files on the master: an orchestration of jobs, runner and wheel functions. It fails if one of its states
/// fails.
///
/// CLI Example:
///
///     salt-run state.orchestrate orch.webservers
///     salt-run state.orchestrate orch.webservers pillar='{version: 2}' test=True
#[function]
pub fn orchestrate(context: &RunnerContext, #[args] args: OrchestrateArgs) -> CallResult {
    refuse("state.orchestrate", &args.kwargs, &[PILLAR_ENC])?;
    let plan = Steps::read(&args.plan).map_err(CallError::execution)?.map(Arc::new);
    let makes_plan = plan.as_ref().is_some_and(|plan| plan.makes_plan());
    let test = if makes_plan { true.into() } else { args.test };
    let keyword = [("saltenv", args.saltenv), ("test", test), ("exclude", args.exclude), ("pillarenv", args.pillarenv)];
    let run = Run { jid: args.orchestration_jid, plan: plan.clone() };
    let result = run.call(context, "state.sls", vec![args.mods], keyword, args.pillar)?;
    if let (Some(plan), true, Value::Map(results)) = (plan, makes_plan, &result.value) {
        let (steps, has_failures) = plan.finish(results).map_err(|error| CallError::Execution(error.to_string()))?;
        let data = map! {"steps" => steps};
        return Ok(map! {"data" => data, "outputter" => "plan", "retcode" => i64::from(has_failures)}.into());
    }
    let data = map! {context.master.id.as_str() => result.value};
    Ok(map! {"data" => data, "outputter" => "highstate", "retcode" => i64::from(result.retcode != 0)}.into())
}

/// Alias of `state.orchestrate`.
///
/// CLI Example:
///
///     salt-run state.orch orch.webservers
#[function]
pub fn orch(context: &RunnerContext, #[args] args: OrchestrateArgs) -> CallResult {
    orchestrate(context, args)
}

/// Alias of `state.orchestrate`.
///
/// CLI Example:
///
///     salt-run state.sls orch.webservers
#[function]
pub fn sls(context: &RunnerContext, #[args] args: OrchestrateArgs) -> CallResult {
    orchestrate(context, args)
}

/// Run one state on the master. `queue` is without effect: it is run at once.
///
/// CLI Example:
///
///     salt-run state.orchestrate_single fun=salt.wheel name=key.list_all
#[function]
pub fn orchestrate_single(
    context: &RunnerContext,
    /// Name of the state function.
    fun: String,
    /// Name of the state.
    name: String,
    /// Whether the state only predicts its changes.
    #[default]
    test: Value,
    /// Without effect: it runs at once.
    #[default(false)]
    queue: bool,
    /// Pillar over that of the master, as a mapping.
    #[default]
    pillar: Value,
    /// Arguments of the state.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    _ = queue;
    let keyword = [("test".into(), test), ("name".into(), name.into())].into_iter().chain(kwargs);
    let result = run(context, "state.single", vec![fun.into()], keyword, pillar)?;
    Ok(publish_result(context, result))
}

/// Run the given high data on the master. `queue` is without effect: it is run at once.
///
/// CLI Example:
///
///     salt-run state.orchestrate_high '{stage_one: {salt.state: [{tgt: "db*"}, {sls: [stage_one]}]}}'
#[function]
pub fn orchestrate_high(
    context: &RunnerContext,
    /// High data, as a mapping.
    data: Value,
    /// Whether the states only predict their changes.
    #[default]
    test: Value,
    /// Without effect: it runs at once.
    #[default(false)]
    queue: bool,
    /// Pillar over that of the master, as a mapping.
    #[default]
    pillar: Value,
    #[keywords] _kwargs: Map,
) -> CallResult {
    _ = queue;
    let result = run(context, "state.high", vec![data], [("test", test)], pillar)?;
    Ok(publish_result(context, result))
}

/// The arguments of `state.orchestrate_show_sls`.
#[derive(Args)]
pub struct ShowArgs {
    /// SLS files, as a list or separated by commas.
    mods: Value,
    /// Environment of the SLS files.
    #[default]
    saltenv: Value,
    /// Without effect: nothing is run.
    #[allow(dead_code, reason = "an argument without effect")]
    #[default]
    test: Value,
    /// Without effect: nothing is run.
    #[allow(dead_code, reason = "an argument without effect")]
    #[default(false)]
    queue: bool,
    /// Values that override the pillar.
    #[default]
    pillar: Value,
    /// Environment of the pillar.
    #[default]
    pillarenv: Value,
}

/// Return the high data of SLS files as an orchestration would run them.
///
/// CLI Example:
///
///     salt-run state.orchestrate_show_sls orch.webservers
#[function]
pub fn orchestrate_show_sls(
    context: &RunnerContext,
    #[args] args: ShowArgs,
    /// `pillar_enc` is refused; others are without effect.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    refuse("state.orchestrate_show_sls", &kwargs, &[PILLAR_ENC])?;
    let keyword = [("saltenv", args.saltenv), ("pillarenv", args.pillarenv)];
    let result = run(context, "state.show_sls", vec![args.mods], keyword, args.pillar)?;
    Ok(map! {context.master.id.as_str() => result.value}.into())
}

/// Alias of `state.orchestrate_show_sls`.
///
/// CLI Example:
///
///     salt-run state.orch_show_sls orch.webservers
#[function]
pub fn orch_show_sls(
    context: &RunnerContext,
    #[args] args: ShowArgs,
    /// `pillar_enc` is refused; others are without effect.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    orchestrate_show_sls(context, args, kwargs)
}

/// Return the requisites of SLS files as a graph in DOT: of an orchestration, or of minions by their ids.
///
/// CLI Example:
///
///     salt-run state.graph webserver | dot -Tpng -o state_graph.png
///     salt-run state.graph webserver tgt='*'
#[function]
pub fn graph(
    context: &RunnerContext,
    /// SLS files, as a list or with commas.
    mods: Value,
    /// Minions; without it the files are those of an orchestration.
    #[default]
    tgt: Value,
    /// The type of the target (glob).
    #[default("glob".into())]
    tgt_type: String,
    /// As in `state.graph` of a minion.
    #[default("base".into())]
    saltenv: Value,
    /// As in `state.graph` of a minion.
    #[default]
    test: Value,
    /// As in `state.graph` of a minion.
    #[default]
    pillar: Value,
    /// As in `state.graph` of a minion.
    #[default]
    pillarenv: Value,
    /// Seconds to wait for minions.
    timeout: Option<f64>,
) -> CallResult {
    let keyword = map! {"saltenv" => saltenv, "test" => test, "pillar" => pillar, "pillarenv" => pillarenv};
    draw_graph(context, "state.graph", vec![mods], keyword, (tgt, tgt_type), timeout)
}

/// Return the requisites of the highstate as a graph in DOT: of the master's host, or of minions by their ids.
///
/// CLI Example:
///
///     salt-run state.graph_highstate tgt='*'
#[function]
pub fn graph_highstate(
    context: &RunnerContext,
    /// Minions.
    #[default]
    tgt: Value,
    /// The type of the target (glob).
    #[default("glob".into())]
    tgt_type: String,
    /// As in `state.graph_highstate` of a minion.
    #[default]
    pillar: Value,
    /// As in `state.graph_highstate` of a minion.
    #[default]
    pillarenv: Value,
    /// Seconds to wait for minions.
    timeout: Option<f64>,
) -> CallResult {
    let keyword = map! {"pillar" => pillar, "pillarenv" => pillarenv};
    draw_graph(context, "state.graph_highstate", Vec::new(), keyword, (tgt, tgt_type), timeout)
}

/// Draws a graph on the master's host, or on minions.
fn draw_graph(
    context: &RunnerContext,
    function: &str,
    positional: Vec<Value>,
    keyword: Map,
    (tgt, tgt_type): (Value, String),
    timeout: Option<f64>,
) -> CallResult {
    if !keyword.get("pillar").is_none_or(|pillar| matches!(pillar, Value::Nil | Value::Map(_))) {
        return Err(CallError::execution("Pillar data must be formatted as a dictionary"));
    }
    if !tgt.is_truthy() {
        let pillar = keyword.get("pillar").cloned().unwrap_or_default();
        let keyword = keyword.into_iter().filter(|(name, _)| name.as_str() != Some("pillar"));
        return Ok(run(context, function, positional, keyword, pillar)?.value);
    }
    let keyword = keyword.into_iter().filter(|(_, value)| !value.is_nil()).collect();
    let request = PublishRequest { tgt, tgt_type, ..PublishRequest::new("*", function, &context.caller.user) };
    let request = PublishRequest { arg: with_keywords(positional, keyword), ..request };
    Ok(context.publish_and_wait(request, timeout)?.into())
}

/// Pause an orchestration before a state, or before its next one, for a number of seconds or until it is resumed.
///
/// CLI Example:
///
///     salt-run state.pause 20261120235852025555
#[function]
pub fn pause(
    context: &RunnerContext,
    /// Id of the job of the orchestration.
    jid: Value,
    /// Id of the state before which the run pauses or ends; the next one by default.
    #[default]
    state_id: Value,
    /// Seconds after which the run goes on.
    #[default]
    duration: Value,
) -> CallResult {
    control(context, "state.pause", jid, [("state_id", state_id), ("duration", duration)])
}

/// Alias of `state.pause`.
///
/// CLI Example:
///
///     salt-run state.set_pause 20261120235852025555
#[function]
pub fn set_pause(
    context: &RunnerContext,
    /// Id of the job of the orchestration.
    jid: Value,
    /// Id of the state before which the run pauses or ends; the next one by default.
    #[default]
    state_id: Value,
    /// Seconds after which the run goes on.
    #[default]
    duration: Value,
) -> CallResult {
    pause(context, jid, state_id, duration)
}

/// Alias of `state.resume`.
///
/// CLI Example:
///
///     salt-run state.rm_pause 20261120235852025555
#[function]
pub fn rm_pause(
    context: &RunnerContext,
    /// Id of the job of the orchestration.
    jid: Value,
    /// Id of the state before which the run pauses or ends; the next one by default.
    #[default]
    state_id: Value,
) -> CallResult {
    resume(context, jid, state_id)
}

/// Resume a paused orchestration.
///
/// CLI Example:
///
///     salt-run state.resume 20261120235852025555
#[function]
pub fn resume(
    context: &RunnerContext,
    /// Id of the job of the orchestration.
    jid: Value,
    /// Id of the state before which the run pauses or ends; the next one by default.
    #[default]
    state_id: Value,
) -> CallResult {
    control(context, "state.resume", jid, [("state_id", state_id)])
}

/// End an orchestration before a state, or before its next one: running states are completed.
///
/// CLI Example:
///
///     salt-run state.soft_kill 20261120235852025555
#[function]
pub fn soft_kill(
    context: &RunnerContext,
    /// Id of the job of the orchestration.
    jid: Value,
    /// Id of the state before which the run pauses or ends; the next one by default.
    #[default]
    state_id: Value,
) -> CallResult {
    control(context, "state.soft_kill", jid, [("state_id", state_id)])
}

/// Publishes the results as a progress event, and returns them.
fn publish_result(context: &RunnerContext, result: Orchestrated) -> Value {
    let data = map! {context.master.id.as_str() => result.value};
    let body = map! {"data" => data.clone(), "outputter" => "highstate"};
    context.progress_event(&body);
    data.into()
}

fn control(
    context: &RunnerContext,
    function: &str,
    jid: Value,
    keyword: impl IntoIterator<Item = (impl Into<Value>, Value)>,
) -> Result<Value, CallError> {
    let keyword = keyword.into_iter().filter(|(_, value)| !value.is_nil()).map(|(name, value)| (name.into(), value));
    let args = Args { positional: vec![jid], keyword: keyword.collect() };
    context.call_host(function, args)
}

//! `state`: applies and shows SLS files.

pub(super) mod disabled;
mod dynamic;
mod graph;
mod of_top;
mod options;
pub(super) mod package;
pub(super) mod pauses;
mod plan;
pub(super) mod requests;
pub(super) mod show;

use brine_context::{Context, Module};
use brine_function::arguments::names;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_sls::compile::{Chunk, HighData, Low, RunStep};
use brine_state::{Options, PillarError, Queue, StateRun};
use brine_value::{Map, Value, map};

use self::of_top::of_top_file;
use self::options::{local, of_single, options, refuse_misspelt};

pub(super) static MODULE: Module = Module {
    functions: &[
        &FUNCTIONS,
        &crate::saltutil::orchestration::STATE,
        &disabled::FUNCTIONS,
        &graph::FUNCTIONS,
        &package::FUNCTIONS,
        &pauses::FUNCTIONS,
        &plan::FUNCTIONS,
        &requests::FUNCTIONS,
        &show::FUNCTIONS,
    ],
    ..Module::EMPTY
};

/// Execution functions of `state`.
pub static FUNCTIONS: Functions<Context> =
    registry!("state", [apply, sls, highstate, top, test, single, high, low, template, template_str, sls_id, running]);

/// Apply the highstate, or the named SLS files.
///
/// Accepts test, pillar, exclude, saltenv, queue and concurrent.
///
/// CLI Example:
///
///     salt '*' state.apply
///     salt '*' state.apply nginx,users test=True
#[function(out = "highstate")]
pub fn apply(
    context: &Context,
    /// SLS files, as a list or with commas.
    #[default]
    mods: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let (fun, positional) = if mods.is_truthy() { ("state.sls", vec![mods]) } else { ("state.highstate", Vec::new()) };
    context.call(fun, Args { positional, keyword: kwargs })
}

/// Apply the named SLS files.
///
/// CLI Example:
///
///     salt '*' state.sls core,edit.vim
#[function(out = "highstate")]
pub fn sls(
    context: &Context,
    /// SLS files, as a list or with commas.
    mods: Value,
    /// Whether the states only predict their changes; that of the configuration by default.
    #[default]
    test: Value,
    /// SLS files and ids that are left out, as a list of mappings with `sls` or `id`.
    #[default]
    exclude: Value,
    /// What happens if another run is going on: `True` waits, a number waits if fewer runs wait; otherwise it is an
    /// error.
    #[default]
    queue: Value,
    /// Types of custom modules that are synchronized first, or `all`.
    #[default]
    sync_mods: Value,
    /// Whether an event is sent for each state.
    #[default]
    state_events: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let kwargs = with(kwargs, [("test", test), ("exclude", exclude), ("queue", queue), ("state_events", state_events)]);
    of_sls(context, &mods, &sync_mods, kwargs, None)
}

/// Apply the SLS files that the top file assigns to this minion.
///
/// CLI Example:
///
///     salt '*' state.highstate
#[function(out = "highstate")]
pub fn highstate(
    context: &Context,
    /// Whether the states only predict their changes; that of the configuration by default.
    #[default]
    test: Value,
    /// What happens if another run is going on: `True` waits, a number waits if fewer runs wait; otherwise it is an
    /// error.
    #[default]
    queue: Value,
    /// Whether an event is sent for each state.
    #[default]
    state_events: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    of_highstate(context, with(kwargs, [("test", test), ("queue", queue), ("state_events", state_events)]), None)
}

/// Apply the SLS files that another top file assigns to this minion.
///
/// CLI Example:
///
///     salt '*' state.top reverse_top.sls
#[function(out = "highstate")]
pub fn top(
    context: &Context,
    /// Path of the top file.
    topfn: String,
    /// Whether the states only predict their changes; that of the configuration by default.
    #[default]
    test: Value,
    /// What happens if another run is going on: `True` waits, a number waits if fewer runs wait; otherwise it is an
    /// error.
    #[default]
    queue: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let kwargs = with(kwargs, [("test", test), ("queue", queue)]);
    of_top_file(context, Options { state_top: Some(topfn), ..options(context, kwargs)? })
}

/// Apply states as `apply`, in test mode.
///
/// CLI Example:
///
///     salt '*' state.test nginx
#[function(out = "highstate")]
pub fn test(
    context: &Context,
    /// Arguments of `state.apply`.
    #[rest]
    args: Vec<Value>,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut keyword = kwargs;
    keyword.insert("test".into(), true.into());
    context.call("state.apply", Args { positional: args, keyword })
}

/// Call one state function.
///
/// CLI Example:
///
///     salt '*' state.single pkg.installed name=vim
#[function(out = "highstate")]
pub fn single(
    context: &Context,
    /// Name of the state function.
    fun: String,
    /// Name of the state, or of the request.
    name: Value,
    /// Whether the states only predict their changes; that of the configuration by default.
    #[default]
    test: Value,
    /// What happens if another run is going on: `True` waits, a number waits if fewer runs wait; otherwise it is an
    /// error.
    #[default]
    queue: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let Some((module, function)) = fun.split_once('.') else {
        context.set_retcode(1);
        return Ok("Invalid function passed".into());
    };
    let (options, args) = of_single(kwargs);
    refuse_misspelt(context, args.keys().filter(|name| brine_state::is_unknown_argument(context, &fun, name)))?;
    let own = with(options, [("test", test), ("queue", queue)]);
    let run = match started_with(context, local(context, own)?) {
        Ok(run) => run,
        Err(errors) => return brine_state::errors(context, errors),
    };
    // As in Salt, a state whose names are in another argument has the name `None`.
    let name = if name.is_nil() { Value::from("None") } else { name };
    let mut low = map! {"state" => module, "fun" => function, "name" => name};
    low.extend(args);
    run_low(context, &run, &low)
}

/// Apply high data.
///
/// CLI Example:
///
///     salt '*' state.high '{"vim": {"pkg": ["installed"]}}'
#[function]
pub fn high(
    context: &Context,
    /// High or low data, as a mapping.
    data: Value,
    /// Whether the states only predict their changes; that of the configuration by default.
    #[default]
    test: Value,
    /// What happens if another run is going on: `True` waits, a number waits if fewer runs wait; otherwise it is an
    /// error.
    #[default]
    queue: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let options = local(context, with(kwargs, [("test", test), ("queue", queue)]))?;
    applied_with(context, options, |run| run.data(&data))
}

/// Run one low chunk, and return its result.
///
/// CLI Example:
///
///     salt '*' state.low '{"state": "pkg", "fun": "installed", "name": "vi"}'
#[function]
pub fn low(
    context: &Context,
    /// High or low data, as a mapping.
    data: Map,
    /// What happens if another run is going on: `True` waits, a number waits if fewer runs wait; otherwise it is an
    /// error.
    #[default]
    queue: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let results = match started_with(context, local(context, with(kwargs, [("queue", queue)]))?) {
        Ok(run) => run_low(context, &run, &data)?,
        Err(errors) => return brine_state::errors(context, errors),
    };
    Ok(match results {
        Value::Map(results) => results.into_iter().next().map(|(_, result)| result).unwrap_or_default(),
        errors => errors,
    })
}

/// Render a file of this host as an SLS file, and apply it.
///
/// CLI Example:
///
///     salt '*' state.template /srv/other/web.sls
#[function(out = "highstate")]
pub fn template(
    context: &Context,
    /// Path of the template, or the template itself.
    tem: String,
    /// What happens if another run is going on: `True` waits, a number waits if fewer runs wait; otherwise it is an
    /// error.
    #[default]
    queue: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    applied_with(context, options(context, with(kwargs, [("queue", queue)]))?, |run| run.local_file(&tem))
}

/// Render a string as an SLS file, and apply it.
///
/// CLI Example:
///
///     salt '*' state.template_str 'a: test.nop'
#[function(out = "highstate")]
pub fn template_str(
    context: &Context,
    /// Path of the template, or the template itself.
    tem: String,
    /// What happens if another run is going on: `True` waits, a number waits if fewer runs wait; otherwise it is an
    /// error.
    #[default]
    queue: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    applied_with(context, local(context, with(kwargs, [("queue", queue)]))?, |run| run.text(&tem))
}

/// Apply one id of SLS files, with its requisites.
///
/// CLI Example:
///
///     salt '*' state.sls_id my_state my_module
#[function(out = "highstate")]
pub fn sls_id(
    context: &Context,
    /// Id of the state.
    id_: String,
    /// Names of SLS files, as a list or with commas.
    mods: Value,
    /// Whether the states only predict their changes; that of the configuration by default.
    #[default]
    test: Value,
    /// Whether the run waits for others that are in progress.
    #[default]
    queue: Value,
    /// Whether each state publishes an event when it is done.
    #[default]
    state_events: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let kwargs = with(kwargs, [("test", test), ("queue", queue), ("state_events", state_events)]);
    // As in Salt, `exclude` is ignored for an explicit id.
    let run = match started_with(context, options(context, in_environment(context, kwargs))?) {
        Ok(run) => run,
        Err(errors) => return brine_state::errors(context, errors),
    };
    let high = run.sls(names(&mods)).map(|mut high| {
        high.exclude.clear();
        high
    });
    let low = match high.and_then(|high| run.compile_to_show(high, Vec::new())) {
        Ok(low) => low.only(|chunk| chunk.id == id_),
        Err(errors) => return brine_state::errors(context, errors),
    };
    if low.steps.is_empty() {
        let (mods, saltenv) = (names(&mods).join(","), run.saltenv());
        let message = format!("No matches for ID '{id_}' found in SLS '{mods}' within saltenv '{saltenv}'");
        return Err(CallError::Invocation { function: "state.sls_id".into(), message });
    }
    ran(context, &run, Ok(low))
}

/// Return messages on the state runs in progress.
///
/// CLI Example:
///
///     salt '*' state.running
#[function]
pub fn running(
    context: &Context,
    /// Whether concurrent runs are permitted: then there is no message.
    #[default(false)]
    concurrent: bool,
) -> CallResult {
    if concurrent {
        return Ok(Value::List(Vec::new()));
    }
    Ok(brine_state::other_runs(context).map_err(CallError::execution)?.into())
}

/// Returns keyword arguments merged with positional ones.
fn with<const N: usize>(mut kwargs: Map, extra: [(&str, Value); N]) -> Map {
    kwargs.extend(extra.into_iter().filter(|(_, value)| !value.is_nil()).map(|(name, value)| (name.into(), value)));
    kwargs
}

/// Returns the keyword arguments of a run of SLS files by name, with the environment set.
fn in_environment(context: &Context, mut kwargs: Map) -> Map {
    if kwargs.get("saltenv").is_none_or(Value::is_nil) {
        let saltenv = context.config().saltenv.clone().unwrap_or_else(|| "base".to_owned());
        kwargs.insert("saltenv".into(), saltenv.into());
    }
    kwargs
}

/// Starts a run, which excludes other runs.
fn started_with(context: &Context, mut options: Options) -> Result<StateRun, Vec<String>> {
    if options.queue == Queue::Refuse {
        options.queue = Queue::of(&brine_config::opts::modules::state_queue(&context.config().opts));
    }
    let turn = brine_state::only_run(context, &options)?;
    Ok(StateRun::new(context, options).map_err(PillarError::lines)?.with_turn(turn))
}

/// Runs the high data that `high` returns.
fn applied_with(
    context: &Context,
    options: Options,
    high: impl FnOnce(&StateRun) -> Result<HighData, Vec<String>>,
) -> Result<Value, CallError> {
    match started_with(context, options) {
        Ok(run) => ran(context, &run, high(&run).and_then(|high| run.compile(high))),
        Err(errors) => brine_state::errors(context, errors),
    }
}

fn ran(context: &Context, run: &StateRun, low: Result<Low, Vec<String>>) -> Result<Value, CallError> {
    if let (Ok(low), Some(digest)) = (&low, &run.options.plan)
        && let Some(refusal) = plan::refusal(run, low, digest)?
    {
        return brine_state::errors(context, refusal);
    }
    match low {
        Ok(low) if run.options.planning && run.settings().test => Ok(plan::dry_run(run, &low)?.into()),
        Ok(low) => Ok(brine_state::run(&run.context, &low, &run.settings())?.into()),
        Err(errors) => brine_state::errors(context, errors),
    }
}

/// Runs one low chunk. One that cannot be called returns errors.
fn run_low(context: &Context, run: &StateRun, low: &Map) -> Result<Value, CallError> {
    let Some(chunk) = Chunk::from_value(low) else {
        let missing = ["state", "fun", "name"].iter().filter(|name| !low.contains_key(**name));
        return brine_state::errors(context, missing.map(|name| format!("Missing \"{name}\" data")).collect());
    };
    if let Some(wrong) = brine_state::call_errors(&run.context, &chunk) {
        return brine_state::errors(context, wrong.lines().map(str::to_owned).collect());
    }
    let step = RunStep { chunk: 0, check: false, needs: Vec::new() };
    ran(context, run, Ok(Low { chunks: vec![chunk], steps: vec![step], listeners: Vec::new() }))
}

/// Applies SLS files by name, if they change what was planned.
fn of_sls(
    context: &Context,
    mods: &Value,
    sync_mods: &Value,
    kwargs: Map,
    plan: Option<String>,
) -> Result<Value, CallError> {
    dynamic::sync(context, sync_mods)?;
    let messages = disabled::disabled_messages(context, &names(mods));
    if !messages.is_empty() {
        return brine_state::errors(context, messages);
    }
    let options = Options { plan, ..options(context, in_environment(context, kwargs))? };
    applied_with(context, options, |run| run.sls(names(mods)))
}

/// Applies the highstate, if it changes what was planned.
fn of_highstate(context: &Context, kwargs: Map, plan: Option<String>) -> Result<Value, CallError> {
    if let Some(refusal) = disabled::highstate(context) {
        return Ok(refusal);
    }
    of_top_file(context, Options { plan, ..options(context, kwargs)? })
}

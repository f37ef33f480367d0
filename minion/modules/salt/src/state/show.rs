//! `state.show_*` and related functions on SLS files and the highstate. They change nothing on the host, so they do
//! not wait for a state run, and excluded states (`exclude`) are shown.

use brine_context::Context;
use brine_function::arguments::names;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_sls::compile::{Chunk, HighData, Low};
use brine_state::{Options, PillarError, StateRun, Top};
use brine_value::{Map, Value, map};

use super::of_top::{TopData, of_top};
use super::options::options;
use super::{in_environment, with};

/// Execution functions of `state`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "state",
    [
        show_sls,
        show_low_sls,
        show_highstate,
        show_lowstate,
        show_top,
        show_states,
        show_state_usage,
        sls_exists,
        id_exists
    ]
);

/// Return the high data of SLS files.
///
/// CLI Example:
///
///     salt '*' state.show_sls core,edit.vim
#[function]
pub fn show_sls(
    context: &Context,
    /// SLS files, as a list or with commas.
    mods: Value,
    /// Whether the states only predict their changes; that of the configuration by default.
    #[default]
    test: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    shown(context, in_environment(context, with(kwargs, [("test", test)])), |run| {
        run.as_written(names(&mods)).map(|high| high.to_value())
    })
}

/// Return the low chunks of SLS files in the order of execution, without the requisites that are declared by another
/// state: `extend`, `require_in`, ...
///
/// CLI Example:
///
///     salt '*' state.show_low_sls core,edit.vim
#[function]
pub fn show_low_sls(
    context: &Context,
    /// SLS files, as a list or with commas.
    mods: Value,
    /// Whether the states only predict their changes; that of the configuration by default.
    #[default]
    test: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    shown(context, in_environment(context, with(kwargs, [("test", test)])), |run| {
        let high = run.as_written(names(&mods))?;
        run.compile_as_written(&high).map(|low| low.to_value())
    })
}

/// Return the high data of the highstate.
///
/// CLI Example:
///
///     salt '*' state.show_highstate
#[function]
pub fn show_highstate(
    context: &Context,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    shown(context, kwargs, |run| {
        top_of(context, run)?;
        let high = match of_top(run)? {
            TopData::High(high) => high,
            TopData::Nothing(_) => HighData::default(),
        };
        // As in Salt, where the exclusion list is treated as a failed state.
        if !high.exclude.is_empty() || high.states.is_empty() {
            context.set_retcode(2);
        }
        Ok(high.to_value())
    })
}

/// Return the low chunks of the highstate, in the order of execution.
///
/// CLI Example:
///
///     salt '*' state.show_lowstate
#[function]
pub fn show_lowstate(
    context: &Context,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    shown(context, kwargs, |run| match top_of(context, run).and_then(|top| low_of(run, &top)) {
        // Salt returns errors in place of chunks, as success.
        Err(errors) if context.config().salt_exit_status => Ok(errors.into()),
        low => low.map(|low| low.to_value()),
    })
}

/// Return the SLS files that the top file assigns to this minion, by environment.
///
/// CLI Example:
///
///     salt '*' state.show_top
#[function]
pub fn show_top(
    context: &Context,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    shown(context, kwargs, |run| {
        let matches = matches_of(top_of(context, run)?)?;
        Ok(Value::Map(matches.into_iter().map(|(saltenv, names)| (saltenv.into(), names.into())).collect()))
    })
}

/// Return the SLS files of the highstate in order, including included ones.
///
/// CLI Example:
///
///     salt '*' state.show_states
#[function]
pub fn show_states(
    context: &Context,
    /// Whether the names are sorted.
    #[default(true)]
    sorted: bool,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    shown(context, kwargs, |run| {
        let low = low_of(run, &top_of(context, run)?)?;
        let mut chunks: Vec<&Chunk> = low.in_order().collect();
        if sorted {
            chunks.sort_by(|one, other| one.order.total_cmp(&other.order));
        }
        let mut seen: Vec<&str> = Vec::new();
        for chunk in chunks {
            if !seen.contains(&chunk.sls.as_str()) {
                seen.push(&chunk.sls);
            }
        }
        Ok(seen.into_iter().map(Value::from).collect())
    })
}

/// Return the SLS files that the top file assigns to this minion, and those it does not, by environment.
///
/// CLI Example:
///
///     salt '*' state.show_state_usage
#[function]
pub fn show_state_usage(
    context: &Context,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut kwargs = kwargs;
    // As in Salt, all environments are shown.
    kwargs.shift_remove("saltenv");
    shown(context, kwargs, |run| {
        let mut usage = Map::new();
        let matches = matches_of(top_of(context, run)?)?;
        for saltenv in context.minion.files.environments().map_err(|error| vec![error.to_string()])? {
            let assigned = matches.iter().find(|(name, _)| *name == saltenv).map_or(&[][..], |(_, sls)| sls);
            let available = run.available(&saltenv);
            let (used, unused): (Vec<String>, Vec<String>) =
                available.into_iter().partition(|sls| assigned.contains(sls));
            let (count_used, count_unused) = (used.len(), unused.len());
            let report = map! {
                "used" => used,
                "unused" => unused,
                "count_all" => count_used + count_unused,
                "count_used" => count_used,
                "count_unused" => count_unused,
            };
            usage.insert(saltenv.into(), report.into());
        }
        Ok(usage.into())
    })
}

/// Return whether SLS files exist and can be rendered.
///
/// CLI Example:
///
///     salt '*' state.sls_exists core,edit.vim
#[function]
pub fn sls_exists(
    context: &Context,
    /// SLS files, as a list or with commas.
    mods: Value,
    /// Whether the states only predict their changes; that of the configuration by default.
    #[default]
    test: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    shown(context, in_environment(context, with(kwargs, [("test", test)])), |run| {
        let exist = names(&mods).iter().all(|sls| run.exists(sls));
        if !exist {
            context.set_retcode(1);
        }
        Ok(exist.into())
    })
}

/// Return whether SLS files have these ids.
///
/// CLI Example:
///
///     salt '*' state.id_exists create_myfile,update_template filestate
#[function]
pub fn id_exists(
    context: &Context,
    /// Ids of states, as a list or with commas.
    ids: Value,
    /// SLS files, as a list or with commas.
    mods: Value,
    /// Whether the states only predict their changes; that of the configuration by default.
    #[default]
    test: Value,
    /// Options of the run: `pillar`, `pillarenv`, `saltenv`, `exclude`, `test`, `queue`, `concurrent`, `state_events`,
    /// `mock` and `localconfig`, where they are not listed here. Those of `state.single` and `state.request` are the
    /// arguments of the state, or of the call, too.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    shown(context, in_environment(context, with(kwargs, [("test", test)])), |run| {
        let high = run.sls(names(&mods))?;
        Ok(names(&ids).iter().all(|id| high.states.contains_key(id.as_str())).into())
    })
}

/// Runs a query. Errors of the pillar are errors of the call.
pub(super) fn shown(
    context: &Context,
    kwargs: Map,
    look: impl FnOnce(&StateRun) -> Result<Value, Vec<String>>,
) -> Result<Value, CallError> {
    let options = Options { exclude: Vec::new(), ..options(context, kwargs)? };
    let run = StateRun::new(context, options).map_err(PillarError::error)?;
    look(&run).or_else(|errors| brine_state::errors(context, errors))
}

pub(super) fn low_of_top(run: &StateRun) -> Result<Low, Vec<String>> {
    low_of(run, &run.top())
}

fn low_of(run: &StateRun, top: &Top) -> Result<Low, Vec<String>> {
    let (high, errors) = run.high_and_errors(&top.matches);
    run.compile_to_show(high, errors)
}

/// Returns what the top files assign, or why one cannot be rendered. Salt ignores such a file, and so does this with
/// `salt_exit_status`.
fn top_of(context: &Context, run: &StateRun) -> Result<Top, Vec<String>> {
    let top = run.top();
    match &top.nothing {
        Some(reason) if top.is_broken && !context.config().salt_exit_status => Err(vec![reason.clone()]),
        _ => Ok(top),
    }
}

fn matches_of(top: Top) -> Result<Vec<(String, Vec<String>)>, Vec<String>> {
    if top.errors.is_empty() { Ok(top.matches) } else { Err(top.errors) }
}

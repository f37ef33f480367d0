//! `state`: bringing this host to the state that SLS files describe, and looking at them.

pub(super) mod disabled;

use brine_core::function::CallError;
use brine_core::sls::compile::{Chunk, HighData, Low, Step};
use brine_core::value::FromValue;
use brine_core::{Map, Value, functions, map};

use crate::context::Context;
use crate::state::{self, NoPillar, Options, StateRun, Top, pause};

functions! {
    module "state", context Context;

    /// Brings the host to its highstate, or to what the named SLS files describe.
    ///
    /// Takes test, pillar, exclude, saltenv, queue and concurrent.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.apply
    ///     salt '*' state.apply nginx,users test=True
    fn apply(context, mods: Value = Value::Nil, **kwargs) out "highstate" {
        if mods.is_truthy() { sls(context, mods, kwargs) } else { highstate(context, kwargs) }
    }

    /// Brings the host to what the named SLS files describe.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.sls core,edit.vim
    fn sls(context, mods: Value, **kwargs) out "highstate" {
        let refusals = disabled::refusals(context, &names(&mods));
        if !refusals.is_empty() {
            return state::errors(context, refusals);
        }
        applied(context, kwargs, |run| run.sls(names(&mods)))
    }

    /// Brings the host to what the top file assigns to it.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.highstate
    fn highstate(context, **kwargs) out "highstate" {
        if let Some(refusal) = disabled::highstate(context) {
            return Ok(refusal);
        }
        let run = match started(context, kwargs, true)? {
            Ok(run) => run,
            Err(errors) => return state::errors(context, errors),
        };
        match of_top(&run) {
            Ok(None) => {
                context.set_retcode(2);
                Ok(no_states().into())
            }
            Ok(Some(high)) => ran(context, &run, run.compile(high)),
            Err(errors) => state::errors(context, errors),
        }
    }

    /// Runs one state function.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.single pkg.installed name=vim
    fn single(context, fun: String, name: Value, **kwargs) out "highstate" {
        let Some((module, function)) = fun.split_once('.') else {
            context.set_retcode(1);
            return Ok("Invalid function passed".into());
        };
        let (mut own, args): (Map, Map) = kwargs.into_iter().partition(|(key, _)| key.as_str().is_some_and(is_option));
        // As in Salt, a single state is always called.
        own.shift_remove("mock");
        let run = match started(context, own, true)? {
            Ok(run) => run,
            Err(errors) => return state::errors(context, errors),
        };
        let mut low = map! {"state" => module, "fun" => function, "name" => name};
        low.extend(args);
        one(context, &run, &low)
    }

    /// Runs high data that is given as it is.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.high '{"vim": {"pkg": ["installed"]}}'
    fn high(context, data: Map, **kwargs) out "highstate" {
        applied(context, kwargs, |run| run.data(&data.clone().into()))
    }

    /// Runs one low chunk that is given as it is.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.low '{"state": "pkg", "fun": "installed", "name": "vi"}'
    fn low(context, data: Map, **kwargs) out "highstate" {
        match started(context, kwargs, true)? {
            Ok(run) => one(context, &run, &data),
            Err(errors) => state::errors(context, errors),
        }
    }

    /// Renders a file of this host as an SLS and runs it.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.template /srv/other/web.sls
    fn template(context, tem: String, **kwargs) out "highstate" {
        applied(context, kwargs, |run| run.local_file(&tem))
    }

    /// Renders a text as an SLS and runs it.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.template_str 'a: test.nop'
    fn template_str(context, tem: String, **kwargs) out "highstate" {
        applied(context, kwargs, |run| run.text(&tem))
    }

    /// Runs one id of SLS files, with all that it needs.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.sls_id my_state my_module
    fn sls_id(context, id: String, mods: Value, **kwargs) out "highstate" {
        let run = match started(context, kwargs, true)? {
            Ok(run) => run,
            Err(errors) => return state::errors(context, errors),
        };
        let low = match run.sls(names(&mods)).and_then(|high| run.compile(high)) {
            Ok(low) => low.only(|chunk| chunk.id == id),
            Err(errors) => return state::errors(context, errors),
        };
        if low.steps.is_empty() {
            let (mods, saltenv) = (names(&mods).join(","), run.saltenv());
            let message = format!("No matches for ID '{id}' found in SLS '{mods}' within saltenv '{saltenv}'");
            return Err(CallError::Invocation { function: "state.sls_id".into(), message });
        }
        ran(context, &run, Ok(low))
    }

    /// The high data of SLS files.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.show_sls core,edit.vim
    fn show_sls(context, mods: Value, **kwargs) {
        let shown = prepared(context, kwargs)?.and_then(|run| {
            let high = run.sls(names(&mods))?;
            let wrong = high.wrong();
            if wrong.is_empty() { Ok(high) } else { Err(wrong) }
        });
        show(context, shown.map(|high| high.to_value()))
    }

    /// The low chunks of SLS files, in the order in which they would run, without what is written at the other
    /// end: `extend`, `require_in`, ...
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.show_low_sls core,edit.vim
    fn show_low_sls(context, mods: Value, **kwargs) {
        let shown = prepared(context, kwargs)?.and_then(|run| {
            let high = run.sls(names(&mods))?;
            run.compile_as_written(&high)
        });
        show(context, shown.map(|low| low.to_value()))
    }

    /// The high data of the highstate.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.show_highstate
    fn show_highstate(context, **kwargs) {
        let shown = prepared(context, kwargs)?.and_then(|run| of_top(&run));
        let high = shown.map(Option::unwrap_or_default);
        // As in Salt, where the list of what is excluded is taken for a failed state.
        if high.as_ref().is_ok_and(|high| !high.exclude.is_empty() || high.states.is_empty()) {
            context.set_retcode(2);
        }
        show(context, high.map(|high| high.to_value()))
    }

    /// The low chunks of the highstate, in the order in which they would run.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.show_lowstate
    fn show_lowstate(context, **kwargs) {
        show(context, prepared(context, kwargs)?.and_then(|run| low_of_top(&run)).map(|low| low.to_value()))
    }

    /// The SLS files that the top file assigns to this minion, by environment.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.show_top
    fn show_top(context, **kwargs) {
        let shown = prepared(context, kwargs)?.and_then(|run| matches_of(run.top()));
        show(context, shown.map(|matches| Value::Map(matches.into_iter().map(|(saltenv, names)| (saltenv.into(), names.into())).collect())))
    }

    /// The SLS files that the highstate runs, in order, with those that are included.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.show_states
    fn show_states(context, sorted: bool = true, **kwargs) {
        let shown = prepared(context, kwargs)?.and_then(|run| low_of_top(&run)).map(|low| {
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
            seen.into_iter().map(Value::from).collect()
        });
        show(context, shown)
    }

    /// Whether SLS files are there and render.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.sls_exists core,edit.vim
    fn sls_exists(context, mods: Value, **kwargs) {
        let exist = match prepared(context, kwargs)? {
            Ok(run) => names(&mods).iter().all(|sls| run.exists(sls)),
            Err(errors) => return state::errors(context, errors),
        };
        if !exist {
            context.set_retcode(1);
        }
        Ok(exist.into())
    }

    /// Whether SLS files have these ids.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.id_exists create_myfile,update_template filestate
    fn id_exists(context, ids: Value, mods: Value, **kwargs) {
        let shown = prepared(context, kwargs)?.and_then(|run| run.sls(names(&mods)));
        show(context, shown.map(|high| names(&ids).iter().all(|id| high.states.contains_key(id.as_str())).into()))
    }

    /// Holds up a run before a state, or before its next one, for so many seconds or until it is resumed.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.pause 20261120235852025555
    ///     salt '*' state.pause 20261120235852025555 vim duration=20
    fn pause(context, jid: Value, state_id: Option<String> = None, duration: Option<f64> = None) {
        pause::pause(&context.minion, &jid.to_string(), state_id.as_deref(), duration).map_err(CallError::execution)?;
        Ok(Value::Nil)
    }

    /// Lets a run that is held up go on.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.resume 20261120235852025555
    fn resume(context, jid: Value, state_id: Option<String> = None) {
        pause::resume(&context.minion, &jid.to_string(), state_id.as_deref()).map_err(CallError::execution)?;
        Ok(Value::Nil)
    }

    /// Ends a run before a state, or before its next one: what runs comes to its end.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.soft_kill 20261120235852025555
    ///     salt '*' state.soft_kill 20261120235852025555 vim
    fn soft_kill(context, jid: Value, state_id: Option<String> = None) {
        pause::soft_kill(&context.minion, &jid.to_string(), state_id.as_deref()).map_err(CallError::execution)?;
        Ok(Value::Nil)
    }

    /// The state runs under way, in words.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.running
    fn running(context, concurrent: bool = false) {
        let told = state::only_run(context, &Options { concurrent, ..Options::default() });
        Ok(told.err().unwrap_or_default().into())
    }
}

/// Names as a list, or as text with commas.
pub(crate) fn names(mods: &Value) -> Vec<String> {
    match mods {
        Value::List(names) => names.iter().map(ToString::to_string).collect(),
        text => text.to_string().split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect(),
    }
}

/// Arguments of the run, which are not those of a single state.
fn is_option(name: &str) -> bool {
    const OPTIONS: [&str; 11] = [
        "test",
        "saltenv",
        "pillarenv",
        "pillar",
        "exclude",
        "queue",
        "concurrent",
        "force",
        "mock",
        "state_events",
        "localconfig",
    ];
    OPTIONS.contains(&name) || name.starts_with("__pub_")
}

fn options(mut kwargs: Map) -> Result<Options, CallError> {
    fn take<T: FromValue>(kwargs: &mut Map, name: &str) -> Result<Option<T>, CallError> {
        match kwargs.shift_remove(name).filter(|value| !value.is_nil()) {
            None => Ok(None),
            Some(value) => T::try_from_value(&value)
                .map(Some)
                .map_err(|error| CallError::Execution(format!("argument '{name}': {error}"))),
        }
    }
    let mut flag = |name: &str| kwargs.get(name).is_some_and(Value::is_truthy);
    let [queue, concurrent, force, mock, state_events] =
        ["queue", "concurrent", "force", "mock", "state_events"].map(&mut flag);
    Ok(Options {
        test: take(&mut kwargs, "test")?,
        saltenv: take(&mut kwargs, "saltenv")?,
        pillarenv: take(&mut kwargs, "pillarenv")?,
        pillar: match kwargs.shift_remove("pillar") {
            None | Some(Value::Nil) => Map::new(),
            Some(Value::Map(pillar)) => pillar,
            Some(_) => {
                let message = "Pillar data must be formatted as a dictionary, unless pillar_enc is specified.";
                return Err(CallError::Invocation { function: "state".into(), message: message.into() });
            }
        },
        exclude: match kwargs.shift_remove("exclude") {
            None | Some(Value::Nil) => Vec::new(),
            Some(Value::List(items)) => items,
            Some(text) => names(&text).into_iter().map(Value::from).collect(),
        },
        queue,
        concurrent,
        force,
        mock,
        state_events,
    })
}

/// A run that only looks. A pillar with errors is an error of the call, as there is nothing to look at.
fn prepared(context: &Context, kwargs: Map) -> Result<Result<StateRun, Vec<String>>, CallError> {
    started(context, kwargs, false)?.map(Ok).map_err(|told| {
        let told: Vec<String> = told.iter().skip(1).map(|error| format!("- {error}")).collect();
        CallError::Execution(format!("Pillar failed to render. Additional info follows:\n\n{}", told.join("\n")))
    })
}

/// A run; one that changes something is alone.
fn started(context: &Context, kwargs: Map, alone: bool) -> Result<Result<StateRun, Vec<String>>, CallError> {
    let options = options(kwargs)?;
    if !alone {
        return StateRun::new(context, options).map(Ok).map_err(NoPillar::error);
    }
    if let Err(refusal) = state::only_run(context, &options) {
        return Ok(Err(refusal));
    }
    Ok(StateRun::new(context, options).map_err(NoPillar::lines))
}

/// Runs the high data that `high` gives.
fn applied(
    context: &Context,
    kwargs: Map,
    high: impl FnOnce(&StateRun) -> Result<HighData, Vec<String>>,
) -> Result<Value, CallError> {
    match started(context, kwargs, true)? {
        Ok(run) => ran(context, &run, high(&run).and_then(|high| run.compile(high))),
        Err(errors) => state::errors(context, errors),
    }
}

fn ran(context: &Context, run: &StateRun, low: Result<Low, Vec<String>>) -> Result<Value, CallError> {
    match low {
        Ok(low) => Ok(state::run(&run.context, &low, &run.settings())?.into()),
        Err(errors) => state::errors(context, errors),
    }
}

/// Runs one low chunk. One that cannot be called is told as errors.
fn one(context: &Context, run: &StateRun, low: &Map) -> Result<Value, CallError> {
    let Some(chunk) = Chunk::from_value(low) else {
        let missing = ["state", "fun", "name"].iter().filter(|name| !low.contains_key(**name));
        return state::errors(context, missing.map(|name| format!("Missing \"{name}\" data")).collect());
    };
    if let Some(wrong) = state::unfit(&run.context, &chunk) {
        return state::errors(context, wrong.lines().map(str::to_owned).collect());
    }
    let step = Step { chunk: 0, check: false, needs: Vec::new() };
    ran(context, run, Ok(Low { chunks: vec![chunk], steps: vec![step], listeners: Vec::new() }))
}

fn matches_of(top: Top) -> Result<Vec<(String, Vec<String>)>, Vec<String>> {
    if top.errors.is_empty() { Ok(top.matches) } else { Err(top.errors) }
}

/// The high data of the highstate, or nothing if no top file has anything for this minion.
fn of_top(run: &StateRun) -> Result<Option<HighData>, Vec<String>> {
    let Top { matches, errors, .. } = run.top();
    if errors.is_empty() && matches.is_empty() {
        return Ok(None);
    }
    // What is wrong with the top file and with what it names is told at once.
    match (run.high(&matches), errors.is_empty()) {
        (Ok(high), true) => Ok(Some(high)),
        (Ok(_), false) => Err(errors),
        (Err(more), _) => Err(errors.into_iter().chain(more).collect()),
    }
}

fn low_of_top(run: &StateRun) -> Result<Low, Vec<String>> {
    match of_top(run)? {
        Some(high) => run.compile(high),
        None => Ok(Low::default()),
    }
}

/// What a highstate returns that has nothing to do.
fn no_states() -> Map {
    let entry = map! {
        "result" => false,
        "comment" => "No Top file or master_tops data matches found. Please see master log for details.",
        "name" => "No States",
        "changes" => map! {},
        "__run_num__" => 0,
    };
    map! {"no_|-states_|-states_|-None" => entry}
}

fn show(context: &Context, shown: Result<Value, Vec<String>>) -> Result<Value, CallError> {
    match shown {
        Ok(value) => Ok(value),
        Err(errors) => state::errors(context, errors),
    }
}

//! `state`: bringing this host to the state that SLS files describe, and looking at them.

use brine_core::function::CallError;
use brine_core::sls::compile::{self, Chunk};
use brine_core::value::FromValue;
use brine_core::{Map, Value, functions, map};

use crate::context::Context;
use crate::state::{self, Options, Settings};

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
        let options = options(kwargs)?;
        let names = names(&mods);
        run(context, &options, |context| state::compile_sls(context, &names, &options))
    }

    /// Brings the host to what the top file assigns to it.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.highstate
    fn highstate(context, **kwargs) out "highstate" {
        let options = options(kwargs)?;
        if let Err(refusal) = state::only_run(context, &options) {
            return state::errors(context, refusal);
        }
        match state::top_sls(context, &options) {
            Ok(names) if names.is_empty() => {
                context.set_retcode(2);
                let comment = "No Top file or master_tops data matches found. Please see master log for details.";
                let entry = map! {"result" => false, "comment" => comment, "name" => "No States", "changes" => map!{}, "__run_num__" => 0};
                Ok(map! {"no_|-states_|-states_|-None" => entry}.into())
            }
            Ok(names) => run(context, &options, |context| state::compile_sls(context, &names, &options)),
            Err(errors) => state::errors(context, errors),
        }
    }

    /// Runs one state function.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.single pkg.installed name=vim
    fn single(context, fun: String, name: Value = Value::Nil, **kwargs) out "highstate" {
        if context.minion.states.get(&fun).is_none() {
            return state::errors(context, vec![format!("Specified state '{fun}' was not found")]);
        }
        let (own, args): (Map, Map) = kwargs.into_iter().partition(|(key, _)| matches!(key.as_str(), Some("test" | "pillar" | "saltenv" | "queue" | "concurrent")));
        let options = options(own)?;
        let name = if name.is_nil() { Value::from(&fun) } else { name.to_string().into() };
        let mut list: Vec<Value> = args.into_iter().filter(|(key, _)| !key.as_str().is_some_and(|key| key.starts_with("__"))).map(|(key, value)| map! {key => value}.into()).collect();
        list.push(map! {"name" => name.clone()}.into());
        let high: Value = map! {name => map!{fun => list}}.into();
        run(context, &options, |_| compile::compile(compile::load_data(&high, "single", "base")))
    }

    /// Runs high data that is given as it is.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.high '{"vim": {"pkg": ["installed"]}}'
    fn high(context, data: Map, **kwargs) out "highstate" {
        let options = options(kwargs)?;
        run(context, &options, |_| compile::compile(compile::load_data(&data.clone().into(), "high", "base")))
    }

    /// Renders a text as an SLS and runs it.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.template_str 'a: test.nop'
    fn template_str(context, tem: String, **kwargs) out "highstate" {
        let options = options(kwargs)?;
        run(context, &options, |context| {
            let source = state::source(context, &options)?;
            let saltenv = options.saltenv(context);
            let data = source.render_text(&tem, &saltenv).map_err(|error| vec![error])?;
            compile::compile(compile::load_data(&data, "template_str", &saltenv))
        })
    }

    /// The high data of SLS files.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.show_sls core,edit.vim
    fn show_sls(context, mods: Value, **kwargs) {
        let options = options(kwargs)?;
        show_high(context, &names(&mods), &options)
    }

    /// The low chunks of SLS files, in the order in which they would run.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.show_low_sls core,edit.vim
    fn show_low_sls(context, mods: Value, **kwargs) {
        let options = options(kwargs)?;
        show_low(context, state::compile_sls(context, &names(&mods), &options))
    }

    /// The high data of the highstate.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.show_highstate
    fn show_highstate(context, **kwargs) {
        let options = options(kwargs)?;
        match state::top_sls(context, &options) {
            Ok(names) => show_high(context, &names, &options),
            Err(errors) => state::errors(context, errors),
        }
    }

    /// The low chunks of the highstate, in the order in which they would run.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.show_lowstate
    fn show_lowstate(context, **kwargs) {
        let options = options(kwargs)?;
        let low = state::top_sls(context, &options).and_then(|names| state::compile_sls(context, &names, &options));
        show_low(context, low)
    }

    /// The SLS files that the top file assigns to this minion, by environment.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.show_top
    fn show_top(context, **kwargs) {
        let options = options(kwargs)?;
        match state::top_sls(context, &options) {
            Ok(names) if names.is_empty() => Ok(Value::map()),
            Ok(names) => Ok(map! {options.saltenv(context) => names}.into()),
            Err(errors) => state::errors(context, errors),
        }
    }

    /// The SLS files that the highstate runs.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.show_states
    fn show_states(context, **kwargs) {
        let options = options(kwargs)?;
        match state::top_sls(context, &options).and_then(|names| state::compile_sls(context, &names, &options)) {
            Ok(chunks) => {
                let mut seen: Vec<String> = Vec::new();
                for chunk in chunks {
                    if !seen.contains(&chunk.sls) {
                        seen.push(chunk.sls);
                    }
                }
                Ok(seen.into())
            }
            Err(errors) => state::errors(context, errors),
        }
    }

    /// Whether SLS files are there and render.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.sls_exists core,edit.vim
    fn sls_exists(context, mods: Value, **kwargs) {
        let options = options(kwargs)?;
        let source = match state::source(context, &options) {
            Ok(source) => source,
            Err(errors) => return state::errors(context, errors),
        };
        let saltenv = options.saltenv(context);
        let exists = |sls: &String| compile::SlsSource::render(&source, sls, &saltenv).is_ok_and(|found| found.is_some());
        Ok(names(&mods).iter().all(exists).into())
    }

    /// The state runs under way, in words.
    ///
    /// CLI Example:
    ///
    ///     salt '*' state.running
    fn running(context) {
        match state::only_run(context, &Options::default()) {
            Ok(()) => Ok(Value::List(Vec::new())),
            Err(told) => Ok(told.into()),
        }
    }
}

/// Names as a list, or as text with commas.
fn names(mods: &Value) -> Vec<String> {
    match mods {
        Value::List(names) => names.iter().map(ToString::to_string).collect(),
        text => text.to_string().split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect(),
    }
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
    let exclude: Option<Value> = take(&mut kwargs, "exclude")?;
    Ok(Options {
        test: take(&mut kwargs, "test")?,
        saltenv: take(&mut kwargs, "saltenv")?,
        pillar: take(&mut kwargs, "pillar")?.unwrap_or_default(),
        exclude: exclude.map(|exclude| names(&exclude).into_iter().map(Value::from).collect()).unwrap_or_default(),
        queue: take(&mut kwargs, "queue")?.unwrap_or(false),
        concurrent: take(&mut kwargs, "concurrent")?.unwrap_or(false),
    })
}

/// Compiles and runs, one run at a time.
fn run(
    context: &Context,
    options: &Options,
    compile: impl FnOnce(&Context) -> Result<Vec<Chunk>, Vec<String>>,
) -> Result<Value, CallError> {
    if let Err(refusal) = state::only_run(context, options) {
        return state::errors(context, refusal);
    }
    match compile(context) {
        Ok(chunks) => {
            let config = context.config();
            let settings = Settings {
                test: options.test.unwrap_or(config.test),
                failhard: config.failhard,
                saltenv: options.saltenv(context),
            };
            Ok(state::run(context, &chunks, &settings).into())
        }
        Err(errors) => state::errors(context, errors),
    }
}

fn show_high(context: &Context, names: &[String], options: &Options) -> Result<Value, CallError> {
    let source = match state::source(context, options) {
        Ok(source) => source,
        Err(errors) => return state::errors(context, errors),
    };
    let high = compile::load(&source, names, &options.saltenv(context));
    if high.errors.is_empty() { Ok(high.states.into()) } else { state::errors(context, high.errors) }
}

fn show_low(context: &Context, chunks: Result<Vec<Chunk>, Vec<String>>) -> Result<Value, CallError> {
    match chunks {
        Ok(chunks) => Ok(chunks.iter().map(Chunk::to_value).collect()),
        Err(errors) => state::errors(context, errors),
    }
}

//! The options of a state run: those among the keyword arguments of its function.

use std::path::PathBuf;

use brine_context::Context;
use brine_function::CallError;
use brine_function::arguments::{names, refuse};
use brine_job::plan::PLANNING;
use brine_sls::pillar::PILLAR_ENC;
use brine_state::{Options, Queue};
use brine_text::nearest::nearest;
use brine_value::{FromValue, Map, Value};

/// Returns the options of the run of a single state, and the arguments of the state. As in Salt, those such as `force` and
/// `saltenv` are both. A single state is always called: `mock` is an argument of the state alone.
pub(super) fn of_single(kwargs: Map) -> (Map, Map) {
    let options = kwargs.iter().filter(|(key, _)| key.as_str().is_some_and(|key| key != "mock" && is_option(key)));
    let options = options.map(|(key, value)| (key.clone(), value.clone())).collect();
    let is_published = |key: &Value| key.as_str().is_some_and(|key| key.starts_with("__pub_"));
    (options, kwargs.into_iter().filter(|(key, _)| !is_published(key)).collect())
}

/// The arguments that are options of the run.
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

/// Whether an argument is an option of the run.
fn is_option(name: &str) -> bool {
    OPTIONS.contains(&name) || name.starts_with("__pub_")
}

/// Refuses misspelt options of a run: `tset=True` would change the host. As in Salt, other arguments are ignored.
pub(super) fn refuse_misspelt<'a>(context: &Context, names: impl Iterator<Item = &'a Value>) -> Result<(), CallError> {
    for name in names.filter_map(Value::as_str).filter(|name| !is_option(name) && *name != "sync_mods") {
        let lower = name.to_lowercase();
        let option = OPTIONS.into_iter().find(|option| *option == lower).or_else(|| nearest(&lower, OPTIONS));
        if let Some(option) = option {
            return Err(CallError::Invocation {
                function: context.job.fun.clone(),
                message: format!("the argument '{name}' is unknown, and nothing is run (did you mean '{option}'?)"),
            });
        }
    }
    Ok(())
}

/// Returns the options of a run.
pub(super) fn options(context: &Context, mut kwargs: Map) -> Result<Options, CallError> {
    fn take<T: FromValue>(kwargs: &mut Map, name: &str) -> Result<Option<T>, CallError> {
        match kwargs.shift_remove(name).filter(|value| !value.is_nil()) {
            None => Ok(None),
            Some(value) => T::try_from_value(&value)
                .map(Some)
                .map_err(|error| CallError::Execution(format!("argument '{name}': {error}"))),
        }
    }
    refuse(&context.job.fun, &kwargs, &[PILLAR_ENC])?;
    refuse_misspelt(context, kwargs.keys())?;
    let saltenv: Option<String> = take(&mut kwargs, "saltenv")?;
    if context.config().lock_saltenv
        && let Some(saltenv) = &saltenv
        && saltenv != context.config().saltenv.as_deref().unwrap_or("base")
    {
        return Err(CallError::Execution("lock_saltenv is enabled, saltenv cannot be changed".into()));
    }
    let mut flag = |name: &str| kwargs.get(name).is_some_and(Value::is_truthy);
    let [concurrent, force, mock, state_events] = ["concurrent", "force", "mock", "state_events"].map(&mut flag);
    Ok(Options {
        test: take(&mut kwargs, "test")?,
        saltenv,
        pillarenv: take(&mut kwargs, "pillarenv")?,
        pillar: match kwargs.shift_remove("pillar") {
            None | Some(Value::Nil) => Map::new(),
            Some(Value::Map(pillar)) => pillar,
            Some(_) => {
                let message = "Pillar data must be formatted as a dictionary, unless pillar_enc is specified.";
                return Err(CallError::Invocation { function: context.job.fun.clone(), message: message.into() });
            }
        },
        exclude: match kwargs.shift_remove("exclude") {
            None | Some(Value::Nil) => Vec::new(),
            Some(Value::List(items)) => items,
            Some(text) => names(&text).into_iter().map(Value::from).collect(),
        },
        queue: kwargs.get("queue").map(Queue::of).unwrap_or_default(),
        concurrent,
        force,
        mock,
        state_events,
        state_top: None,
        local_state: false,
        plan: None,
        planning: kwargs.get(PLANNING).is_some_and(Value::is_truthy),
        // As in Salt, a missing file is ignored.
        localconfig: take(&mut kwargs, "localconfig")?.filter(|path: &PathBuf| path.is_file()),
    })
}

/// Returns the options of a run without SLS files, which the master's options do not apply to.
pub(super) fn local(context: &Context, kwargs: Map) -> Result<Options, CallError> {
    Ok(Options { local_state: true, ..options(context, kwargs)? })
}

#[cfg(test)]
mod tests {
    use brine_function::Args;
    use brine_value::map;

    use super::*;

    #[test]
    fn a_refused_argument_names_the_function_of_the_job() {
        let of_test = crate::testing::context(&[]);
        let job = brine_context::Job::local(&brine_ids::Jid::new(), "state.apply", &Args::default());
        let context = Context::new(of_test.minion, std::sync::Arc::new(job));
        let error = context.call("state.apply", Args::keyword(map! {"pillar_enc" => "gpg"})).unwrap_err();
        let start = "ERROR executing 'state.apply': the argument 'pillar_enc' is not supported";
        assert!(error.to_string().starts_with(start), "{error}");
    }

    #[test]
    fn a_misspelt_option_of_a_run_is_refused_and_nothing_is_run() {
        let context =
            crate::testing::context(&[("t.sls", "a: test.succeed_with_changes"), ("top.sls", "base: {'*': [t]}")]);
        for (fun, positional, wrong, option) in [
            ("state.apply", &["t"][..], "tset", "test"),
            ("state.apply", &["t"], "Test", "test"),
            ("state.apply", &[], "tets", "test"),
            ("state.highstate", &[], "pilar", "pillar"),
            ("state.sls", &["t"], "salt_env", "saltenv"),
            ("state.sls_id", &["a", "t"], "exlude", "exclude"),
            ("state.show_sls", &["t"], "pillar_env", "pillarenv"),
            ("state.single", &["file.touch", "/nonexistent/x"], "TEST", "test"),
            ("state.single", &["file.managed", "/nonexistent/x"], "tset", "test"),
        ] {
            let positional = positional.iter().map(|text| Value::from(*text)).collect();
            let error = context.call(fun, Args { positional, keyword: map! {wrong => true} }).unwrap_err().to_string();
            let end = format!("the argument '{wrong}' is unknown, and nothing is run (did you mean '{option}'?)");
            assert!(error.ends_with(&end), "{fun}: {error}");
        }
        for other in ["name", "sync_mods", "whatever", "__pub_jid"] {
            let args = Args { positional: vec!["t".into()], keyword: map! {other => true} };
            assert!(context.call("state.show_sls", args).is_ok(), "{other}");
        }
    }

    #[test]
    fn single_passes_options_of_the_run_to_the_state() {
        let arguments = map! {
            "source" => "/a", "force" => true, "saltenv" => "prod", "exclude" => "x", "pillar" => map! {"a" => 1},
            "concurrent" => true, "mock" => true, "__pub_jid" => "1",
        };
        let (options, args) = of_single(arguments);
        let names = |map: &Map| map.keys().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(&options), ["force", "saltenv", "exclude", "pillar", "concurrent", "__pub_jid"]);
        assert_eq!(names(&args), ["source", "force", "saltenv", "exclude", "pillar", "concurrent", "mock"]);
    }
}

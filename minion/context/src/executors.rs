//! Executors, which call the function of a job: `module_executors` of the job or of the configuration.
//!
//! `direct_call` is built in and the default; `sudo` replaces the last executor if the option `sudo_user` is set.
//! Others are custom modules (`_executors`). They are tried in turn until one returns a value.

use brine_function::{Args, CallError, CallResult};
use brine_value::Value;

use crate::{Context, sudo};

/// The executor that calls the function itself.
const DIRECT_CALL: &str = "direct_call";
/// The option of jobs and of the configuration that lists executors.
const OPTION: &str = "module_executors";
/// The maximum number of executors of a job.
const MAX_EXECUTORS: usize = 32;

/// Calls the function of a job through its executors.
pub(crate) fn call(context: &Context, fun: &str, args: Args) -> CallResult {
    let wrong = |message: String| CallError::Invocation { function: fun.to_owned(), message };
    let mut names = names(context).map_err(wrong)?;
    let user = sudo::user(context);
    if let (Some(_), Some(last)) = (user, names.last_mut()) {
        sudo::NAME.clone_into(last);
    }
    if names.iter().all(|name| name == DIRECT_CALL) || !is_callable(context, &names, fun) {
        return context.call(fun, args);
    }
    for name in &names {
        let value = if name == DIRECT_CALL {
            context.call(fun, args.clone())?
        } else if let (sudo::NAME, Some(user)) = (name.as_str(), user) {
            sudo::call(context, user, fun, args.clone())?
        } else {
            let called = context.minion.custom.call_executor(context, name, fun, args.clone());
            called.ok_or_else(|| wrong(format!("Executor '{name}' is not available")))??
        };
        if !value.is_nil() {
            return Ok(value);
        }
    }
    Ok(Value::Nil)
}

/// Whether the job or the configuration names executors.
pub(crate) fn are_configured(context: &Context) -> bool {
    let of_job = context.job.load.get(OPTION).is_some_and(Value::is_truthy);
    of_job || !context.config().module_executors.is_nil() || sudo::user(context).is_some()
}

/// Returns the names of the executors of a job.
fn names(context: &Context) -> Result<Vec<String>, String> {
    let of_job = context.job.load.get(OPTION).filter(|value| value.is_truthy());
    match of_job.unwrap_or(&context.config().module_executors) {
        Value::Nil => Ok(vec![DIRECT_CALL.to_owned()]),
        Value::Str(name) => Ok(vec![name.clone()]),
        Value::List(names) if (1..=MAX_EXECUTORS).contains(&names.len()) => {
            Ok(names.iter().map(ToString::to_string).collect())
        }
        other => Err(format!(
            "Wrong executors specification: {other}. String or non-empty list of at most {MAX_EXECUTORS} expected"
        )),
    }
}

/// Returns whether the executors are tried: the function exists, or one of them accepts missing functions
/// (`allow_missing_func`).
fn is_callable(context: &Context, names: &[String], fun: &str) -> bool {
    let serves = |name: &String| {
        let function = format!("{name}.allow_missing_func");
        let answer = context.minion.custom.call_of(context, "executors", &function, Args::positional([fun.into()]));
        answer.is_some_and(|answer| answer.is_ok_and(|answer| answer.is_truthy()))
    };
    context.minion.functions.get(fun).is_some() || names.iter().filter(|name| *name != DIRECT_CALL).any(serves)
}

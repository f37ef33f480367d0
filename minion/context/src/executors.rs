//! Executors, which call the function of a job: `module_executors` of the job or of the configuration.
//!
//! `direct_call` is built in and the default; `splay` waits for a part of `splaytime` that depends on the id of the
//! minion; `sudo` replaces the last executor if the option `sudo_user` is set. Others are custom modules (`_executors`).
//! They are tried in turn until one returns a value.

use std::time::Duration;

use brine_function::{Args, CallError, CallResult};
use brine_value::Value;

use crate::{Context, sudo};

/// The executor that calls the function itself.
const DIRECT_CALL: &str = "direct_call";
/// The option of jobs and of the configuration that lists executors.
const OPTION: &str = "module_executors";
/// The executor that spreads the runs of a job over some time.
const SPLAY: &str = "splay";
/// The longest time over which `splay` spreads jobs, in seconds: a week.
const MAX_SPLAY_TIME: f64 = 604_800.0;
/// The number of different delays.
const DELAYS: u32 = 8192;
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
            match context.minion.custom.call_executor(context, name, fun, args.clone()) {
                Some(called) => called?,
                None if name == SPLAY => splay(context, fun)?,
                None => return Err(wrong(format!("Executor '{name}' is not available"))),
            }
        };
        if !value.is_nil() {
            return Ok(value);
        }
    }
    Ok(Value::Nil)
}

/// Waits for the minion's part of `splaytime`, which `executor_opts` or the configuration set.
fn splay(context: &Context, fun: &str) -> CallResult {
    let of_job = context.job.load.get("executor_opts").and_then(|options| options.get("splaytime"));
    let time = of_job.cloned().unwrap_or_else(|| brine_config::opts::modules::splaytime(&context.config().opts));
    let seconds = time.as_f64().unwrap_or_default();
    if !(seconds > 0.0 && seconds <= MAX_SPLAY_TIME) {
        let message = format!("splaytime must be a positive integer of at most {MAX_SPLAY_TIME}");
        return Err(CallError::Invocation { function: fun.to_owned(), message });
    }
    let delay = delay(seconds, context.minion.id.as_bytes());
    if brine_host::process::cancelled_within(&context.job.cancel, delay) {
        return Err(CallError::Execution("the job was ended".into()));
    }
    Ok(Value::Nil)
}

/// Returns the minion's part of a time in whole seconds, as in Salt, by Jenkins' one-at-a-time hash of its id.
fn delay(seconds: f64, id: &[u8]) -> Duration {
    let mixed = id.iter().fold(0_u32, |hash, byte| {
        let hash = hash.wrapping_add(u32::from(*byte));
        let hash = hash.wrapping_add(hash << 10);
        hash ^ (hash >> 6)
    });
    let mixed = mixed.wrapping_add(mixed << 3);
    let mixed = mixed ^ (mixed >> 11);
    let mixed = mixed.wrapping_add(mixed << 15);
    let part = f64::from(mixed % DELAYS) / f64::from(DELAYS);
    Duration::try_from_secs_f64((seconds * part).floor()).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splay_delays_minions_as_salt_does() {
        for (id, seconds, expected) in [
            ("web1", 300.0, 234),
            ("web1", 10.0, 7),
            ("web1", 0.5, 0),
            ("web2", 300.0, 204),
            ("web2", 10.0, 6),
            ("web2", 0.5, 0),
            ("db1.example.com", 300.0, 5),
            ("db1.example.com", 10.0, 0),
            ("db1.example.com", 0.5, 0),
            ("a", 300.0, 189),
            ("a", 10.0, 6),
            ("a", 0.5, 0),
            ("minion-0042", 300.0, 80),
            ("minion-0042", 10.0, 2),
            ("minion-0042", 0.5, 0),
        ] {
            assert_eq!(delay(seconds, id.as_bytes()).as_secs(), expected, "{id} {seconds}");
        }
    }
}

//! `test`: functions for testing runners and reactions.

use std::time::Duration;

use brine_config::master_template_opts;
use brine_function::{CallResult, Functions, function, registry};
use brine_runtime::seconds;
use brine_value::{Map, Value, list, map};

use super::RunnerContext;
use crate::wheel;

/// Runner functions of `test`.
pub static FUNCTIONS: Functions<RunnerContext> =
    registry!("test", [arg, raw_arg, metasyntactic, stdout_print, sleep, stream, get_opts]);

/// Return the arguments.
///
/// CLI Example:
///
///     salt-run test.arg foo bar baz=qux
#[function]
pub fn arg(
    _context: &RunnerContext,
    /// Any arguments.
    #[rest]
    args: Vec<Value>,
    /// Any keyword arguments.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(map! {"args" => args, "kwargs" => super::public(kwargs)}.into())
}

/// Return the arguments, with those that the publisher adds.
///
/// CLI Example:
///
///     salt-run test.raw_arg foo bar baz=qux
#[function]
pub fn raw_arg(
    _context: &RunnerContext,
    /// Any arguments.
    #[rest]
    args: Vec<Value>,
    /// Any keyword arguments.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(map! {"args" => args, "kwargs" => kwargs}.into())
}

/// Return the metasyntactic variables of a country, `us` or `uk`.
///
/// CLI Example:
///
///     salt-run test.metasyntactic locality=uk
#[function]
pub fn metasyntactic(
    _context: &RunnerContext,
    /// Language of the words, such as `us`.
    #[default("us".into())]
    locality: String,
) -> CallResult {
    Ok(match locality.as_str() {
        "us" => list![
            "foo", "bar", "baz", "qux", "quux", "quuz", "corge", "grault", "garply", "waldo", "fred", "plugh", "xyzzy",
            "thud"
        ],
        "uk" => list!["wibble", "wobble", "wubble", "flob"],
        _ => Value::Nil,
    })
}

/// Return `bar`.
///
/// CLI Example:
///
///     salt-run test.stdout_print
#[function]
pub fn stdout_print(_context: &RunnerContext) -> CallResult {
    Ok("bar".into())
}

/// Sleep for a number of seconds, and return True.
///
/// CLI Example:
///
///     salt-run test.sleep 3
#[function]
pub fn sleep(
    context: &RunnerContext,
    /// Seconds to wait.
    #[default(10.0)]
    s_time: f64,
) -> CallResult {
    context.wait(tokio::time::sleep(seconds::within(0.0..=86_400.0, s_time)));
    Ok(Value::Bool(true))
}

/// Publish 99 progress events within ten seconds, and return True.
///
/// CLI Example:
///
///     salt-run test.stream
#[function]
pub fn stream(context: &RunnerContext) -> CallResult {
    for percent in 1..100 {
        context.progress(&format!("Runner is {percent}% done"));
        context.wait(tokio::time::sleep(Duration::from_millis(100)));
    }
    Ok(Value::Bool(true))
}

/// Return the options of the master. Passwords, secrets, tokens and API keys are shown as `<hidden>`.
///
/// CLI Example:
///
///     salt-run test.get_opts
#[function(secret)]
pub fn get_opts(context: &RunnerContext) -> CallResult {
    let mut opts = master_template_opts(&context.master.config);
    opts.insert("id".into(), context.master.id.as_str().into());
    Ok(wheel::config::visible(opts).into())
}

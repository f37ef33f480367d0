//! `test`: functions for testing runners and reactions.

use brine_function::{CallResult, Function, function, registry};
use brine_runtime::seconds;
use brine_value::{Map, Value, map};

use super::RunnerContext;

/// Runner functions of `test`.
pub static FUNCTIONS: &[Function<RunnerContext>] = registry!("test", [arg, sleep]);

/// Return the arguments.
///
/// CLI Example:
///
///     salt-run test.arg foo bar baz=qux
#[function]
pub fn arg(_context: &RunnerContext, #[rest] args: Vec<Value>, #[keywords] kwargs: Map) -> CallResult {
    Ok(map! {"args" => args, "kwargs" => kwargs}.into())
}

/// Sleep for a number of seconds, and return True.
///
/// CLI Example:
///
///     salt-run test.sleep 3
#[function]
pub fn sleep(context: &RunnerContext, #[default(10.0)] s_time: f64) -> CallResult {
    context.wait(tokio::time::sleep(seconds::within(0.0..=86_400.0, s_time)));
    Ok(Value::Bool(true))
}

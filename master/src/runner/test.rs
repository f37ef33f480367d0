//! `test`: for trying out runners and reactions.

use brine_function::{CallResult, Function, function, registry};
use brine_runtime::seconds;
use brine_value::{Map, Value, map};

use super::RunnerContext;

/// Runner functions of `test`.
pub static FUNCTIONS: &[Function<RunnerContext>] = registry!("test", [arg, sleep]);

/// Gives back what it was called with.
///
/// CLI Example:
///
///     salt-run test.arg foo bar baz=qux
#[function]
pub fn arg(_context: &RunnerContext, #[rest] args: Vec<Value>, #[keywords] kwargs: Map) -> CallResult {
    Ok(map! {"args" => args, "kwargs" => kwargs}.into())
}

/// Waits for a number of seconds, and gives true.
///
/// CLI Example:
///
///     salt-run test.sleep 3
#[function]
pub fn sleep(context: &RunnerContext, #[default(10.0)] s_time: f64) -> CallResult {
    context.wait(tokio::time::sleep(seconds::within(0.0..=86_400.0, s_time)));
    Ok(Value::Bool(true))
}

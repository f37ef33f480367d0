//! `test`: for trying out runners and reactions.

use brine_function::functions;
use brine_runtime::seconds;
use brine_value::{Value, map};

use super::RunnerContext;

functions! {
    module "test", context RunnerContext;

    /// Gives back what it was called with.
    ///
    /// CLI Example:
    ///
    ///     salt-run test.arg foo bar baz=qux
    fn arg(_context, *args, **kwargs) {
        Ok(map! {"args" => args, "kwargs" => kwargs}.into())
    }

    /// Waits for a number of seconds, and gives true.
    ///
    /// CLI Example:
    ///
    ///     salt-run test.sleep 3
    fn sleep(context, s_time: f64 = 10.0) {
        context.wait(tokio::time::sleep(seconds::within(0.0..=86_400.0, s_time)));
        Ok(Value::Bool(true))
    }
}

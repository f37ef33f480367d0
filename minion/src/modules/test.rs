//! `test`: for trying out.

use std::time::{Duration, Instant};

use brine_core::function::CallError;
use brine_core::{Map, Value, functions, list, map};

use crate::context::Context;

functions! {
    module "test", context Context;

    /// Gives true: the minion is there and answers.
    ///
    /// CLI Example:
    ///
    ///     salt '*' test.ping
    fn ping(_context) {
        Ok(Value::Bool(true))
    }

    /// Gives back its text.
    ///
    /// CLI Example:
    ///
    ///     salt '*' test.echo 'foo bar baz'
    fn echo(_context, text: Value) {
        Ok(text)
    }

    /// Gives back all it was called with.
    ///
    /// CLI Example:
    ///
    ///     salt '*' test.arg 1 "two" 3.1 txt="hello" wow='{a: 1}'
    fn arg(_context, *args, **kwargs) {
        Ok(map! {"args" => args, "kwargs" => kwargs}.into())
    }

    /// Gives back the keyword arguments.
    ///
    /// CLI Example:
    ///
    ///     salt '*' test.kwarg num=1 txt="two"
    fn kwarg(_context, **kwargs) {
        Ok(kwargs.into())
    }

    /// Gives Python's names of the types of its arguments.
    ///
    /// CLI Example:
    ///
    ///     salt '*' test.arg_type 1 'int'
    fn arg_type(_context, *args, **kwargs) {
        let name = |value: &Value| Value::from(format!("<class '{}'>", value.type_name()));
        let kwargs: Map = kwargs.iter().map(|(key, value)| (key.clone(), name(value))).collect();
        Ok(map! {"args" => args.iter().map(name).collect::<Value>(), "kwargs" => kwargs}.into())
    }

    /// Waits for a number of seconds, and gives true.
    ///
    /// CLI Example:
    ///
    ///     salt '*' test.sleep 20
    fn sleep(context, length: f64) {
        let end = Instant::now() + Duration::from_secs_f64(length.clamp(0.0, 1e9));
        while Instant::now() < end {
            if context.job.cancel.is_cancelled() {
                return Err(CallError::Execution("the job was ended".into()));
            }
            // A thread cannot wait for its time and for the job's end at once.
            std::thread::sleep(Duration::from_millis(20).min(end.saturating_duration_since(Instant::now())));
        }
        Ok(Value::Bool(true))
    }

    /// Gives the version of Brine.
    ///
    /// CLI Example:
    ///
    ///     salt '*' test.version
    fn version(_context) {
        Ok(brine_core::VERSION.into())
    }

    /// Gives the versions of what matters.
    ///
    /// CLI Example:
    ///
    ///     salt '*' test.versions_report
    fn versions_report(_context) {
        Ok(format!("Brine Version:\n          Brine: {}\n", brine_core::VERSION).into())
    }

    /// Gives true.
    ///
    /// CLI Example:
    ///
    ///     salt '*' test.true
    fn true_(_context) as "true" {
        Ok(Value::Bool(true))
    }

    /// Gives false.
    ///
    /// CLI Example:
    ///
    ///     salt '*' test.false
    fn false_(_context) as "false" {
        Ok(Value::Bool(false))
    }

    /// Sets the retcode of the job, and gives true.
    ///
    /// CLI Example:
    ///
    ///     salt '*' test.retcode 42
    fn retcode(context, code: i64 = 42) {
        context.set_retcode(code);
        Ok(Value::Bool(true))
    }

    /// Fails.
    ///
    /// CLI Example:
    ///
    ///     salt '*' test.exception 'Oh noes!'
    fn exception(_context, message: String = "Test Exception".into()) {
        Err(CallError::Execution(message))
    }

    /// Gives the number of Fibonacci at a place, and the seconds it took.
    ///
    /// CLI Example:
    ///
    ///     salt '*' test.fib 3
    fn fib(_context, num: u32) {
        let start = Instant::now();
        let (mut a, mut b) = (0i64, 1i64);
        for _ in 0..num.min(90) {
            (a, b) = (b, a + b);
        }
        Ok(list![a, start.elapsed().as_secs_f64()])
    }

    /// Gives some data, for trying out outputters.
    ///
    /// CLI Example:
    ///
    ///     salt '*' test.outputter foobar
    fn outputter(_context, data: Value) {
        Ok(data)
    }
}

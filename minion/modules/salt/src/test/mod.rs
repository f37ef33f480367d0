//! `test`: functions for testing.

mod providers;
mod reports;
pub(crate) mod state;
mod versions;

use std::sync::Arc;
use std::time::Instant;

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, list, map, python};
use sha2::{Digest, Sha256};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `test`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "test",
    [
        ping,
        echo,
        arg,
        kwarg,
        arg_type,
        sleep,
        versions::version,
        versions::versions_report,
        versions::versions,
        versions::versions_information,
        arg_repr,
        arg_clean,
        attr_call,
        conf_test,
        collatz,
        true_,
        false_,
        retcode,
        exception,
        fib,
        outputter,
        rand_sleep,
        random_hash,
        rand_str,
        providers::provider,
        providers::providers,
        assertion,
        cross_test,
        try_,
        not_loaded,
        raise_exception,
        get_opts,
        reports::opts_pkg,
        reports::module_report,
        reports::deprecation_warning,
        reports::tty
    ]
);

/// Return true, as a check that the minion responds.
///
/// CLI Example:
///
///     salt '*' test.ping
#[function]
pub fn ping(_context: &Context) -> CallResult {
    Ok(Value::Bool(true))
}

/// Return the given text.
///
/// CLI Example:
///
///     salt '*' test.echo 'foo bar baz'
#[function]
pub fn echo(
    _context: &Context,
    /// Text to return.
    text: Value,
) -> CallResult {
    Ok(text)
}

/// Return the arguments of the call.
///
/// CLI Example:
///
///     salt '*' test.arg 1 "two" 3.1 txt="hello" wow='{a: 1}'
#[function]
pub fn arg(
    _context: &Context,
    /// Any arguments.
    #[rest]
    args: Vec<Value>,
    /// Any keyword arguments.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(map! {"args" => args, "kwargs" => kwargs}.into())
}

/// Return the keyword arguments of the call.
///
/// CLI Example:
///
///     salt '*' test.kwarg num=1 txt="two"
#[function]
pub fn kwarg(
    _context: &Context,
    /// Any keyword arguments.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(kwargs.into())
}

/// Return Python's names of the types of the arguments.
///
/// CLI Example:
///
///     salt '*' test.arg_type 1 'int'
#[function]
pub fn arg_type(
    _context: &Context,
    /// Any arguments.
    #[rest]
    args: Vec<Value>,
    /// Any keyword arguments.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let name = |value: &Value| Value::from(format!("<class '{}'>", value.type_name()));
    let kwargs: Map = kwargs.iter().map(|(key, value)| (key.clone(), name(value))).collect();
    Ok(map! {"args" => args.iter().map(name).collect::<Value>(), "kwargs" => kwargs}.into())
}

/// Sleep for a number of seconds, and return true.
///
/// CLI Example:
///
///     salt '*' test.sleep 20
#[function]
pub fn sleep(
    context: &Context,
    /// Seconds to wait.
    length: f64,
) -> CallResult {
    wait(context, length)?;
    Ok(Value::Bool(true))
}

/// Return the arguments of the call, in Python's notation.
///
/// CLI Example:
///
///     salt '*' test.arg_repr 1 "two" 3.1 txt="hello" wow='{a: 1}'
#[function]
pub fn arg_repr(
    _context: &Context,
    /// Any arguments.
    #[rest]
    args: Vec<Value>,
    /// Any keyword arguments.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let comma = if args.len() == 1 { "," } else { "" };
    let args = args.iter().map(python::repr).collect::<Vec<_>>().join(", ");
    Ok(map! {"args" => format!("({args}{comma})"), "kwargs" => python::repr(&kwargs.into())}.into())
}

/// Return the arguments of the call, without those that publishing adds.
///
/// CLI Example:
///
///     salt '*' test.arg_clean 1 "two" txt="hello"
#[function]
pub fn arg_clean(
    _context: &Context,
    /// Any arguments.
    #[rest]
    args: Vec<Value>,
    /// Any keyword arguments.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let kwargs: Map = kwargs.into_iter().filter(|(name, _)| !name.to_string().starts_with("__")).collect();
    Ok(map! {"args" => args, "kwargs" => kwargs}.into())
}

/// Return all grains.
///
/// CLI Example:
///
///     salt '*' test.attr_call
#[function]
pub fn attr_call(context: &Context) -> CallResult {
    Ok(Value::Map((*context.grains()).clone()))
}

/// Return the option `test.foo`.
///
/// CLI Example:
///
///     salt '*' test.conf_test
#[function]
pub fn conf_test(context: &Context) -> CallResult {
    Ok(brine_config::opts::modules::test_foo(&context.opts()))
}

/// Return the Collatz sequence from a number down to 1, and the seconds it took.
///
/// CLI Example:
///
///     salt '*' test.collatz 3
#[function]
pub fn collatz(
    _context: &Context,
    /// First number.
    start: u64,
) -> CallResult {
    let begun = Instant::now();
    let next = |n: &u64| Some(if n.is_multiple_of(2) { n / 2 } else { n.checked_mul(3)?.checked_add(1)? });
    let steps = std::iter::successors(Some(start).filter(|n| *n > 0), next).take_while(|n| *n != 1);
    Ok(list![steps.map(Value::from).collect::<Value>(), begun.elapsed().as_secs_f64()])
}

/// Return true.
///
/// CLI Example:
///
///     salt '*' test.true
#[function(name = "true")]
pub fn true_(_context: &Context) -> CallResult {
    Ok(Value::Bool(true))
}

/// Return false.
///
/// CLI Example:
///
///     salt '*' test.false
#[function(name = "false")]
pub fn false_(_context: &Context) -> CallResult {
    Ok(Value::Bool(false))
}

/// Set the retcode of the job, and return true.
///
/// CLI Example:
///
///     salt '*' test.retcode 42
#[function]
pub fn retcode(
    context: &Context,
    /// Retcode of the job.
    #[default(42)]
    code: i64,
) -> CallResult {
    context.set_retcode(code);
    Ok(Value::Bool(true))
}

/// Raise an error.
///
/// CLI Example:
///
///     salt '*' test.exception 'Oh noes!'
#[function]
pub fn exception(
    _context: &Context,
    /// Message of the exception.
    #[default("Test Exception".into())]
    message: String,
) -> CallResult {
    Err(CallError::Exception(message))
}

/// Return the Fibonacci number at an index, and the seconds it took.
///
/// CLI Example:
///
///     salt '*' test.fib 3
#[function]
pub fn fib(
    _context: &Context,
    /// Number of the Fibonacci number.
    num: u32,
) -> CallResult {
    let start = Instant::now();
    let (mut a, mut b) = (0i64, 1i64);
    for _ in 0..num.min(90) {
        (a, b) = (b, a + b);
    }
    Ok(list![a, start.elapsed().as_secs_f64()])
}

/// Return the given data, to test outputters.
///
/// CLI Example:
///
///     salt '*' test.outputter foobar
#[function]
pub fn outputter(
    _context: &Context,
    /// Data to return.
    data: Value,
) -> CallResult {
    Ok(data)
}

/// Sleep for a random number of seconds up to the given one, and return true.
///
/// CLI Example:
///
///     salt '*' test.rand_sleep 60
#[function]
pub fn rand_sleep(
    context: &Context,
    /// Highest number of seconds to wait.
    #[default(60.0)]
    max: f64,
) -> CallResult {
    wait(context, rand::random::<f64>() * max)?;
    Ok(Value::Bool(true))
}

/// Return a random hash of the given type, in hex.
///
/// CLI Example:
///
///     salt '*' test.random_hash
#[function]
pub fn random_hash(
    _context: &Context,
    /// Number of random bytes, or of characters.
    #[default(9_999_999_999)]
    size: u64,
    /// Type of the hash.
    hash_type: Option<String>,
) -> CallResult {
    let kind = hash_type.as_deref().unwrap_or("sha256");
    if kind != "sha256" {
        return Err(CallError::Execution(format!(
            "hash type is invalid: expected sha256 or another hash, got '{kind}'"
        )));
    }
    let number = rand::random_range(0..=size).to_string();
    Ok(brine_digest::hex(Sha256::digest(number)).into())
}

/// Return a random hash, as `random_hash`.
///
/// CLI Example:
///
///     salt '*' test.rand_str
#[function]
pub fn rand_str(
    context: &Context,
    /// Number of random bytes, or of characters.
    #[default(9_999_999_999)]
    size: u64,
    /// Type of the hash.
    hash_type: Option<String>,
) -> CallResult {
    random_hash(context, size, hash_type)
}

/// Fail unless the argument is truthy.
///
/// CLI Example:
///
///     salt '*' test.assertion False
#[function]
pub fn assertion(
    _context: &Context,
    /// Value that must be true.
    assertion: Value,
) -> CallResult {
    if assertion.is_truthy() { Ok(Value::Nil) } else { Err(CallError::Execution("AssertionError".into())) }
}

/// Call another function.
///
/// CLI Example:
///
///     salt '*' test.cross_test file.file_exists /etc/hostname
#[function]
pub fn cross_test(
    context: &Context,
    /// Name of the function.
    func: String,
    /// Arguments of the function.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    context.call(&func, Args::positional(args))
}

/// Call another function, and return nothing if that fails, or with `return_try_exception` the error.
///
/// CLI Example:
///
///     salt '*' test.try module=test.exception
#[function(name = "try")]
pub fn try_(
    context: &Context,
    /// Name of the module, or of the function.
    module: String,
    /// Whether the text of the exception is returned.
    #[default(false)]
    return_try_exception: bool,
    /// Arguments of the function.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    match context.call(&module, Args::keyword(kwargs)) {
        Err(error) if return_try_exception => Ok(error.to_string().into()),
        Err(_) => Ok(Value::Nil),
        result => result,
    }
}

/// List the modules that could not be loaded: none, because modules are part of Brine.
///
/// CLI Example:
///
///     salt '*' test.not_loaded
#[function]
pub fn not_loaded(_context: &Context) -> CallResult {
    Ok(list![])
}

/// Raise an exception of Python or Salt by name, with the arguments as its message. Returns false if there is no
/// such exception.
///
/// CLI Example:
///
///     salt '*' test.raise_exception TypeError 'An integer is required'
///     salt '*' test.raise_exception salt.exceptions.CommandExecutionError 'Something went wrong'
#[function]
pub fn raise_exception(
    _context: &Context,
    /// Name of the exception.
    name: String,
    /// Arguments of the exception.
    #[rest]
    args: Vec<Value>,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let message = match &args[..] {
        [one] => one.to_string(),
        several => several.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let function = || "test.raise_exception".to_owned();
    match name.as_str() {
        "salt.exceptions.CommandExecutionError" => Err(CallError::Execution(message)),
        "salt.exceptions.SaltInvocationError" => Err(CallError::Invocation { function: function(), message }),
        "TypeError" => Err(CallError::Arguments { function: function(), message }),
        name if name.ends_with("Error") || name.ends_with("Exception") || EXCEPTIONS.contains(&name) => {
            Err(CallError::Exception(format!("{}: {message}", name.rsplit('.').next().unwrap_or(name))))
        }
        name => {
            tracing::error!("unknown exception {name}");
            Ok(false.into())
        }
    }
}

/// Return all options of the minion.
///
/// CLI Example:
///
///     salt '*' test.get_opts
#[function]
pub fn get_opts(context: &Context) -> CallResult {
    Ok(Arc::unwrap_or_clone(context.opts()).into())
}

/// Python exceptions whose names do not end with `Error`.
const EXCEPTIONS: &[&str] = &["KeyboardInterrupt", "StopAsyncIteration", "StopIteration", "SystemExit"];

/// Waits for a number of seconds, or until the job is ended.
fn wait(context: &Context, seconds: f64) -> Result<(), CallError> {
    let time = brine_runtime::seconds::within(0.0..=1e9, seconds);
    if brine_host::process::cancelled_within(&context.job.cancel, time) {
        return Err(CallError::Execution("the job was ended".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;

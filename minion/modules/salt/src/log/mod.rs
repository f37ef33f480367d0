//! `log`: writes to the minion's log, from SLS files and templates.

use brine_context::{Context, Module};
use brine_function::{CallResult, Functions, function, registry};
use brine_value::Value;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `log`.
pub static FUNCTIONS: Functions<Context> = registry!("log", [debug, info, warning, error, exception, critical]);

/// Log a message at the debug level. Returns true.
///
/// CLI Example:
///
///     salt '*' log.debug 'message'
#[function]
pub fn debug(
    context: &Context,
    /// Text of the log message.
    message: Value,
) -> CallResult {
    tracing::debug!(jid = context.job.jid, "{message}");
    Ok(true.into())
}

/// Log a message at the info level. Returns true.
///
/// CLI Example:
///
///     salt '*' log.info 'message'
#[function]
pub fn info(
    context: &Context,
    /// Text of the log message.
    message: Value,
) -> CallResult {
    tracing::info!(jid = context.job.jid, "{message}");
    Ok(true.into())
}

/// Log a message at the warning level. Returns true.
///
/// CLI Example:
///
///     salt '*' log.warning 'message'
#[function]
pub fn warning(
    context: &Context,
    /// Text of the log message.
    message: Value,
) -> CallResult {
    tracing::warn!(jid = context.job.jid, "{message}");
    Ok(true.into())
}

/// Log a message at the error level. Returns true.
///
/// CLI Example:
///
///     salt '*' log.error 'message'
#[function]
pub fn error(
    context: &Context,
    /// Text of the log message.
    message: Value,
) -> CallResult {
    tracing::error!(jid = context.job.jid, "{message}");
    Ok(true.into())
}

/// Log a message at the error level, as `error`: there is no exception in a call. Returns true.
///
/// CLI Example:
///
///     salt '*' log.exception 'message'
#[function]
pub fn exception(
    context: &Context,
    /// Text of the log message.
    message: Value,
) -> CallResult {
    error(context, message)
}

/// Log a message at the critical level, which is logged as an error. Returns true.
///
/// CLI Example:
///
///     salt '*' log.critical 'message'
#[function]
pub fn critical(
    context: &Context,
    /// Text of the log message.
    message: Value,
) -> CallResult {
    error(context, message)
}

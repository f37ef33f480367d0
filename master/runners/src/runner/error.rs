//! `error`: deliberate failures, to test error handling.

use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::Value;

use super::RunnerContext;

/// Runner functions of `error`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("error", [error]);

/// Fail with an error of this name and message; without a name, return an empty result.
///
/// CLI Example:
///
///     salt-run error.error name=Exception message='This is an error.'
#[function]
pub fn error(
    _context: &RunnerContext,
    /// Name of the exception.
    name: Option<String>,
    /// Message of the exception.
    #[default]
    message: String,
) -> CallResult {
    match name {
        Some(name) => Err(CallError::execution(format!("{name}: {message}"))),
        None => Ok(Value::map()),
    }
}

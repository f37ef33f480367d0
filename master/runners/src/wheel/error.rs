//! `wheel.error`: deliberate failures, to test error handling.

use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::Value;

use super::WheelContext;

/// Wheel functions of `error`.
pub static FUNCTIONS: Functions<WheelContext> = registry!("error", [error]);

/// Fail with an error of this name and message; without a name, return an empty result.
#[function]
pub fn error(
    _context: &WheelContext,
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

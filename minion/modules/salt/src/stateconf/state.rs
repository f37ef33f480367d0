//! `stateconf`: states that do nothing; their arguments are settings for the renderer `stateconf`.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallResult, Functions, function, registry};
use brine_value::Map;

/// State functions of `stateconf`.
pub static FUNCTIONS: Functions<StateContext> = registry!("stateconf", [set, context]);

/// Do nothing; the arguments are settings of an SLS for the renderer `stateconf`.
///
/// SLS Example:
///
///     .defaults:
///       stateconf.set:
///         - port: 8080
///         - user: app
#[function]
pub fn set(
    _context: &StateContext,
    /// Name of the state.
    name: String,
    /// Names and values of the settings.
    #[keywords]
    _kwargs: Map,
) -> CallResult {
    Ok(StateReturn::ok(&name, "").into())
}

/// Do nothing, as `stateconf.set`.
///
/// SLS Example:
///
///     .defaults:
///       stateconf.context:
///         - port: 8080
#[function]
pub fn context(
    _call: &StateContext,
    /// Name of the state.
    name: String,
    /// Names and values of the settings.
    #[keywords]
    _kwargs: Map,
) -> CallResult {
    Ok(StateReturn::ok(&name, "").into())
}

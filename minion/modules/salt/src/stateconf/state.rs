//! `stateconf`: states that do nothing; their arguments are settings for the renderer `stateconf`.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallResult, Functions, function, registry};
use brine_value::Map;

/// State functions of `stateconf`.
pub static FUNCTIONS: Functions<StateContext> = registry!("stateconf", [set, context]);

/// Do nothing; the arguments are settings of an SLS for the renderer `stateconf`.
#[function]
pub fn set(_context: &StateContext, name: String, #[keywords] _kwargs: Map) -> CallResult {
    Ok(StateReturn::ok(&name, "").into())
}

/// Do nothing, as `stateconf.set`.
#[function]
pub fn context(_call: &StateContext, name: String, #[keywords] _kwargs: Map) -> CallResult {
    Ok(StateReturn::ok(&name, "").into())
}

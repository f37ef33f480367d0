//! `event`: publishes events on the master's bus.

use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

use super::RunnerContext;

/// Runner functions of `event`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("event", [send]);

/// Fire an event on the master's bus. Return True when the journal has persisted it.
///
/// CLI Example:
///
///     salt-run event.send my/custom/event '{"foo": "bar"}'
#[function]
pub fn send(
    context: &RunnerContext,
    /// Tag of the event.
    tag: String,
    /// Data of the event, as a mapping.
    #[default]
    data: Map,
) -> CallResult {
    let mut data = data;
    context.caller.mark(&mut data);
    context.wait(context.master.bus.fire_durably(&tag, &data)).map_err(CallError::execution)?;
    Ok(Value::Bool(true))
}

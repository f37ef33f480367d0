//! `wheel.minions`: the connected minions.

use brine_function::{CallResult, Functions, function, registry};

use super::WheelContext;

/// Wheel functions of `minions`.
pub static FUNCTIONS: Functions<WheelContext> = registry!("minions", [connected]);

/// Return the ids of the minions that are connected to the master, sorted.
#[function]
pub fn connected(context: &WheelContext) -> CallResult {
    Ok(context.host.connected().into())
}

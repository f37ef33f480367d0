//! `firewall`: the state of a connection through firewalls.

use brine_context::{Module, StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

pub(super) static MODULE: Module = Module { states: &[&FUNCTIONS], ..Module::EMPTY };

/// State functions of `firewall`.
pub static FUNCTIONS: Functions<StateContext> = registry!("firewall", [check]);

/// Ensure that this host can connect to a port of another. Test mode makes no connection.
///
/// kwargs
///     `proto` (`tcp` or `udp`), `family` (`ipv4` or `ipv6`) and `timeout`, as of `network.connect`.
#[function]
pub fn check(context: &StateContext, name: String, #[default] port: Value, #[keywords] mut kwargs: Map) -> CallResult {
    let test = kwargs.shift_remove("test").map_or(context.test, |test| test.is_truthy());
    if test {
        return Ok(StateReturn::ok(&name, "The connection will be tested").into());
    }
    let args = Args { positional: vec![name.as_str().into(), port], keyword: kwargs };
    let tried = context.call.call("network.connect", args)?;
    let comment = tried.get("comment").map(ToString::to_string).unwrap_or_default();
    let result = tried.get("result").and_then(Value::as_bool);
    Ok(StateReturn { result, ..StateReturn::ok(&name, comment) }.into())
}

#[cfg(test)]
mod tests;

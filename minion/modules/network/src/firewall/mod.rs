//! `firewall`: the state of a connection through firewalls.

use brine_context::{Module, StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, Others, ParamList, function, registry};
use brine_value::{Map, Value};

pub(super) static MODULE: Module = Module { states: &[&FUNCTIONS], ..Module::EMPTY };

/// State functions of `firewall`.
pub static FUNCTIONS: Functions<StateContext> = registry!("firewall", [check]);

/// Ensure that this host can connect to a port of another. Test mode makes no connection.
///
/// SLS Example:
///
///     db.example.com:
///       firewall.check:
///         - port: 5432
///         - proto: tcp
///         - timeout: 5
#[function]
pub fn check(
    context: &StateContext,
    /// Host name or address.
    name: String,
    /// Port.
    #[default]
    port: Value,
    #[keywords(further_check)] mut kwargs: Map,
) -> CallResult {
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

/// Describes the further arguments of `firewall.check`.
pub(crate) fn further_check(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further("proto", "a string", "Protocol: `tcp` (by default) or `udp`.");
    params.further("family", "a string", "Address family: `ipv4` or `ipv6`.");
    params.further("timeout", "a number", "Seconds to wait for the connection.");
}

#[cfg(test)]
mod tests;

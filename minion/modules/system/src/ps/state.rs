//! `process`: states of processes.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

/// State functions of `process`.
pub static FUNCTIONS: Functions<StateContext> = registry!("process", [absent]);

/// Ensure that no process, or none of a user, has this string in its command line: matching ones are sent a signal.
///
/// SLS Example:
///
///     /opt/app/bin/worker:
///       process.absent:
///         - user: app
///         - signal: TERM
#[function]
pub fn absent(
    context: &StateContext,
    /// String in the command lines of the processes.
    name: String,
    /// Owner of the processes; any by default.
    user: Option<String>,
    /// Signal that they get, by name or number; `TERM` by default.
    #[default]
    signal: Value,
) -> CallResult {
    let none = "No matching processes running";
    let mut args = map! {"pattern" => &name, "user" => user};
    if context.test {
        let running = context.call.call("ps.pgrep", Args::keyword(args))?;
        let count = running.as_list().map_or(0, <[Value]>::len);
        let report = if count == 0 { none.to_owned() } else { format!("{count} processes will be killed") };
        return Ok(StateReturn::predicted(&name, report).into());
    }
    if signal.is_truthy() {
        args.insert("signal".into(), signal);
    }
    args.insert("full".into(), true.into());
    let result = context.call.call("ps.pkill", Args::keyword(args))?;
    let count = result.get("killed").and_then(Value::as_list).map_or(0, <[Value]>::len);
    let report = if count == 0 { none.to_owned() } else { format!("Killed {count} processes") };
    let changes = result.as_map().cloned().unwrap_or_else(Map::new);
    Ok(StateReturn::ok(&name, report).with_changes(changes).into())
}

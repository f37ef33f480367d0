//! `mine`: the mines of the minions.

use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_master_facts::mine;
use brine_value::{FromValue, Map, Value};
use brine_wire::{MineQuery, PublishRequest};

use super::RunnerContext;

/// Runner functions of `mine`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("mine", [get, update]);

/// Return the results of one or more functions from the mines of minions. The master may read all of them.
///
/// CLI Example:
///
///     salt-run mine.get '*' network.ip_addrs
#[function]
pub fn get(
    context: &RunnerContext,
    /// Target of the minions.
    tgt: Value,
    /// A function or its alias; several separated by commas or as a list give a mapping by function.
    fun: Value,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
    /// A minion; what it may not read by `mine_get` or `allow_tgt` is left out.
    id: Option<String>,
) -> CallResult {
    let functions: Vec<String> = match &fun {
        Value::Str(names) => names.split(',').map(|name| name.trim().to_owned()).collect(),
        other => Vec::from_value(other).ok_or_else(|| {
            CallError::execution(format!("fun is invalid: expected a name or a list of names, got {other}"))
        })?,
    };
    let by_function = functions.len() > 1 || fun.as_list().is_some();
    if let Some(id) = id {
        let requester = id.parse().map_err(CallError::execution)?;
        let query = MineQuery { tgt, tgt_type, functions, by_function };
        return Ok(context.master.facts.mine_get(context.storage(), &requester, &query)?.into());
    }
    let mut mines = Map::new();
    for id in context.minions(tgt, tgt_type)? {
        let mut entries = context.storage().mines.get(&id).map_err(CallError::execution)?;
        for function in &functions {
            let Some(value) = entries.shift_remove(function.as_str()).and_then(mine::result) else { continue };
            if !by_function {
                mines.insert(id.as_str().into(), value);
            } else if let Value::Map(results) = mines.entry(function.as_str().into()).or_insert_with(Value::map) {
                results.insert(id.as_str().into(), value);
            }
        }
    }
    Ok(mines.into())
}

/// Update the mines of minions, and return the result of each.
///
/// CLI Example:
///
///     salt-run mine.update 'web*'
#[function]
pub fn update(
    context: &RunnerContext,
    /// Target of the minions.
    tgt: Value,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
    /// Whether the mines are emptied first (False).
    #[default(false)]
    clear: bool,
    /// The functions to run instead of the minions' own.
    #[default]
    mine_functions: Value,
) -> CallResult {
    let mut request = PublishRequest { tgt, tgt_type, ..PublishRequest::new("*", "mine.update", &context.caller.user) };
    request.arg = vec![clear.into(), mine_functions];
    context.publish_and_wait(request, None).map(Value::Map)
}

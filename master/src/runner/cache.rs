//! `cache`: the grains, pillar and mines that the master has stored for its minions.

use brine_function::{CallError, CallResult, Function, function, registry};
use brine_target::Facts;
use brine_value::{Map, Value};

use super::RunnerContext;

/// Runner functions of `cache`.
pub static FUNCTIONS: &[Function<RunnerContext>] =
    registry!("cache", [grains, pillar, mine, clear_mine, clear_mine_func]);

/// Return the grains of minions as of their last pillar request.
///
/// CLI Example:
///
///     salt-run cache.grains 'web*'
#[function]
pub fn grains(
    context: &RunnerContext,
    tgt: Value,
    #[default("glob".into())] tgt_type: String,
    #[keywords] _kwargs: Map,
) -> CallResult {
    of_minions(context, tgt, tgt_type, |facts| facts.grains().cloned())
}

/// Return the pillar of minions as of their last pillar request.
///
/// CLI Example:
///
///     salt-run cache.pillar tgt='web*'
#[function]
pub fn pillar(
    context: &RunnerContext,
    #[default("*".into())] tgt: Value,
    #[default("glob".into())] tgt_type: String,
    #[keywords] _kwargs: Map,
) -> CallResult {
    of_minions(context, tgt, tgt_type, |facts| facts.pillar().cloned())
}

/// Return the mines of minions, with all of their functions.
///
/// CLI Example:
///
///     salt-run cache.mine tgt='web*'
#[function]
pub fn mine(
    context: &RunnerContext,
    #[default("*".into())] tgt: Value,
    #[default("glob".into())] tgt_type: String,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let mut found = Map::new();
    for id in context.minions(tgt, tgt_type)? {
        let mine = context.storage().mines.get(&id).map_err(CallError::execution)?;
        found.insert(id.into(), mine.into());
    }
    Ok(found.into())
}

/// Remove the mines of minions.
///
/// CLI Example:
///
///     salt-run cache.clear_mine tgt='web*'
#[function]
pub fn clear_mine(context: &RunnerContext, tgt: Value, #[default("glob".into())] tgt_type: String) -> CallResult {
    let minions = context.minions(tgt, tgt_type)?;
    for id in &minions {
        context.storage().mines.flush(id).map_err(CallError::execution)?;
    }
    Ok((!minions.is_empty()).into())
}

/// Remove the result of one function from the mines of minions.
///
/// CLI Example:
///
///     salt-run cache.clear_mine_func tgt='*' clear_mine_func_flag=network.ip_addrs
#[function]
pub fn clear_mine_func(
    context: &RunnerContext,
    tgt: Value,
    #[default("glob".into())] tgt_type: String,
    #[default] clear_mine_func_flag: String,
) -> CallResult {
    let minions = context.minions(tgt, tgt_type)?;
    for id in &minions {
        let id = id.parse().map_err(CallError::execution)?;
        context.storage().mines.delete(&id, &clear_mine_func_flag).map_err(CallError::execution)?;
    }
    Ok((!minions.is_empty()).into())
}

/// Returns a part of the stored data by minion, without minions that have none.
fn of_minions(
    context: &RunnerContext,
    tgt: Value,
    tgt_type: String,
    part: impl Fn(&dyn Facts) -> Option<Map>,
) -> Result<Value, CallError> {
    let data = &context.storage().minion_data;
    let minions = context.minions(tgt, tgt_type)?;
    let found = minions.iter().filter_map(|id| Some((Value::from(id), Value::from(part(&data.facts(id))?))));
    Ok(Value::Map(found.collect()))
}

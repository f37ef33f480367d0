//! `cache`: the grains, pillar and mines that the master has stored for its minions, and data of callers by bank and key.

use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_ids::MinionId;
use brine_target::TargetFacts;
use brine_value::{Map, Value};

use super::RunnerContext;

/// Runner functions of `cache`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!(
    "cache",
    [
        grains,
        pillar,
        mine,
        clear_pillar,
        clear_grains,
        clear_mine,
        clear_mine_func,
        clear_all,
        clear_git_lock,
        store,
        list,
        fetch,
        flush
    ]
);

/// Return the grains of minions as of their last pillar request.
///
/// CLI Example:
///
///     salt-run cache.grains 'web*'
#[function]
pub fn grains(
    context: &RunnerContext,
    /// Target of the minions.
    tgt: Value,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
    #[keywords] _kwargs: Map,
) -> CallResult {
    of_minions(context, tgt, tgt_type, |facts| facts.grains().cloned())
}

/// Return the pillar of minions as of their last pillar request.
///
/// CLI Example:
///
///     salt-run cache.pillar tgt='web*'
#[function(secret)]
pub fn pillar(
    context: &RunnerContext,
    /// Target of the minions.
    #[default("*".into())]
    tgt: Value,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
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
    /// Target of the minions.
    #[default("*".into())]
    tgt: Value,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
    #[keywords] _kwargs: Map,
) -> CallResult {
    let mut mines = Map::new();
    for id in context.minions(tgt, tgt_type)? {
        let mine = context.storage().mines.get(&id).map_err(CallError::execution)?;
        mines.insert(id.into(), mine.into());
    }
    Ok(mines.into())
}

/// Remove the stored pillar of minions, of which targets see nothing until the minions request their pillar again. Return
/// False without a target.
///
/// CLI Example:
///
///     salt-run cache.clear_pillar tgt='web*'
#[function]
pub fn clear_pillar(
    context: &RunnerContext,
    /// Target of the minions.
    #[default]
    tgt: Value,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
) -> CallResult {
    clear(context, tgt, tgt_type, &Parts { pillar: true, ..Parts::default() })
}

/// Remove the stored grains of minions. Until these request their pillar again, every target by grains may match them.
/// Return False without a target.
///
/// CLI Example:
///
///     salt-run cache.clear_grains tgt='web*'
#[function]
pub fn clear_grains(
    context: &RunnerContext,
    /// Target of the minions.
    #[default]
    tgt: Value,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
) -> CallResult {
    clear(context, tgt, tgt_type, &Parts { grains: true, ..Parts::default() })
}

/// Remove the mines of minions. Return False without a target.
///
/// CLI Example:
///
///     salt-run cache.clear_mine tgt='web*'
#[function]
pub fn clear_mine(
    context: &RunnerContext,
    /// Target of the minions.
    #[default]
    tgt: Value,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
) -> CallResult {
    clear(context, tgt, tgt_type, &Parts { mine: true, ..Parts::default() })
}

/// Remove the result of one function from the mines of minions. Return False without a target or a function.
///
/// CLI Example:
///
///     salt-run cache.clear_mine_func tgt='*' clear_mine_func_flag=network.ip_addrs
#[function]
pub fn clear_mine_func(
    context: &RunnerContext,
    /// Target of the minions.
    #[default]
    tgt: Value,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
    /// The function, or its alias.
    clear_mine_func_flag: Option<String>,
) -> CallResult {
    clear(context, tgt, tgt_type, &Parts { mine_function: clear_mine_func_flag, ..Parts::default() })
}

/// Remove the stored grains, pillar and mines of minions. Return False without a target.
///
/// CLI Example:
///
///     salt-run cache.clear_all tgt='web*'
#[function]
pub fn clear_all(
    context: &RunnerContext,
    /// Target of the minions.
    #[default]
    tgt: Value,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
) -> CallResult {
    clear(context, tgt, tgt_type, &Parts { grains: true, pillar: true, mine: true, mine_function: None })
}

/// Return that there were no locks: fetches of repositories exclude each other within the master, without lock files
/// that could be left behind.
///
/// CLI Example:
///
///     salt-run cache.clear_git_lock gitfs
#[function]
pub fn clear_git_lock(
    _context: &RunnerContext,
    /// `gitfs` or `git_pillar`.
    role: String,
    /// Without effect.
    #[default]
    remote: Value,
    /// Without effect.
    #[default]
    r#type: Value,
) -> CallResult {
    _ = (remote, r#type);
    if ["gitfs", "git_pillar", "winrepo"].contains(&role.as_str()) {
        return Ok("No locks were removed".into());
    }
    Err(CallError::execution(format!("Invalid role '{role}': expected gitfs or git_pillar")))
}

/// Store data by bank and key in the master's store.
///
/// CLI Example:
///
///     salt-run cache.store mycache mykey 'The time has come the walrus said'
#[function]
pub fn store(
    context: &RunnerContext,
    /// Name of the bank.
    bank: String,
    /// Key in the bank.
    key: String,
    /// Data to store.
    data: Value,
    /// Without effect, the data is in the store.
    #[default]
    cachedir: Value,
) -> CallResult {
    _ = cachedir;
    if MinionBank::named(&bank).is_some() {
        return Err(CallError::execution(format!("the bank {bank} is the master's own: choose another name")));
    }
    context.storage().banks.store(&bank, &key, &data).map_err(CallError::execution)?;
    Ok(Value::Nil)
}

/// Return the keys of a bank and the names of the banks below it. The banks `grains`, `pillar` and `mine` have a key for
/// each minion with such data.
///
/// CLI Example:
///
///     salt-run cache.list mycache
#[function]
pub fn list(
    context: &RunnerContext,
    /// Name of the bank.
    bank: String,
    /// Without effect, the data is in the store.
    #[default]
    cachedir: Value,
) -> CallResult {
    _ = cachedir;
    let Some(kind) = MinionBank::named(&bank) else {
        return Ok(context.storage().banks.list(&bank).map_err(CallError::execution)?.into());
    };
    let mut ids = Vec::new();
    for id in context.storage().accepted().map_err(CallError::execution)? {
        if kind.data(context, &id)?.is_some() {
            ids.push(id);
        }
    }
    ids.sort();
    Ok(ids.into())
}

/// Return the data of a key; an empty result if there is none.
///
/// CLI Example:
///
///     salt-run cache.fetch mycache mykey
#[function(secret)]
pub fn fetch(
    context: &RunnerContext,
    /// Name of the bank.
    bank: String,
    /// Key in the bank.
    key: String,
    /// Without effect, the data is in the store.
    #[default]
    cachedir: Value,
) -> CallResult {
    _ = cachedir;
    let data = match MinionBank::named(&bank) {
        Some(kind) => kind.data(context, &key)?.map(Value::from),
        None => context.storage().banks.fetch(&bank, &key).map_err(CallError::execution)?,
    };
    Ok(data.unwrap_or_else(Value::map))
}

/// Remove a key of a bank, or the bank with all banks below it. Return whether there was any. To remove data of minions,
/// use `cache.clear_grains`, `clear_pillar` and `clear_mine`.
///
/// CLI Example:
///
///     salt-run cache.flush mycache mykey
#[function]
pub fn flush(
    context: &RunnerContext,
    /// Name of the bank.
    bank: String,
    /// Key in the bank.
    key: Option<String>,
    /// Without effect, the data is in the store.
    #[default]
    cachedir: Value,
) -> CallResult {
    _ = cachedir;
    if MinionBank::named(&bank).is_some() {
        return Err(CallError::execution(format!("the bank {bank} is the master's own: use cache.clear_{bank}")));
    }
    Ok(context.storage().banks.flush(&bank, key.as_deref()).map_err(CallError::execution)?.into())
}

/// A bank of Salt's with data of minions, which Brine stores in separate tables.
#[derive(Clone, Copy)]
enum MinionBank {
    Grains,
    Pillar,
    Mine,
}

impl MinionBank {
    fn named(bank: &str) -> Option<Self> {
        match bank.trim_matches('/') {
            "grains" => Some(MinionBank::Grains),
            "pillar" => Some(MinionBank::Pillar),
            "mine" => Some(MinionBank::Mine),
            _ => None,
        }
    }

    fn data(self, context: &RunnerContext, id: &str) -> Result<Option<Map>, CallError> {
        let storage = context.storage();
        let facts = storage.minion_data.facts(id);
        Ok(match self {
            MinionBank::Grains => facts.grains().cloned(),
            MinionBank::Pillar => facts.pillar().cloned(),
            MinionBank::Mine => {
                Some(storage.mines.get(id).map_err(CallError::execution)?).filter(|mine| !mine.is_empty())
            }
        })
    }
}

/// The parts of minions' data that are to be removed.
#[derive(Default)]
struct Parts {
    grains: bool,
    pillar: bool,
    mine: bool,
    mine_function: Option<String>,
}

/// Removes data of minions. As in Salt, the result is False without a target, or if there is nothing to remove.
fn clear(context: &RunnerContext, tgt: Value, tgt_type: String, parts: &Parts) -> CallResult {
    let has_part = parts.grains || parts.pillar || parts.mine || parts.mine_function.is_some();
    if tgt.is_nil() || !has_part {
        return Ok(false.into());
    }
    let storage = context.storage();
    for id in context.minions(tgt, tgt_type)? {
        let id: MinionId = id.parse().map_err(CallError::execution)?;
        if parts.grains || parts.pillar {
            storage.minion_data.clear(&id, parts.grains, parts.pillar).map_err(CallError::execution)?;
        }
        if parts.mine {
            storage.mines.flush(id.as_str()).map_err(CallError::execution)?;
        } else if let Some(function) = &parts.mine_function {
            storage.mines.delete(&id, function).map_err(CallError::execution)?;
        }
    }
    Ok(true.into())
}

/// Returns a part of the stored data by minion. Minions without such data are left out.
fn of_minions(
    context: &RunnerContext,
    tgt: Value,
    tgt_type: String,
    part: impl Fn(&dyn TargetFacts) -> Option<Map>,
) -> Result<Value, CallError> {
    let data = &context.storage().minion_data;
    let minions = context.minions(tgt, tgt_type)?;
    let entries = minions.iter().filter_map(|id| Some((Value::from(id), Value::from(part(&data.facts(id))?))));
    Ok(Value::Map(entries.collect()))
}

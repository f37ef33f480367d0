//! `mine`: data that minions publish for other minions. The master stores it.

mod docker;

use brine_context::{Context, MINE_FUNCTIONS, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use super::config;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS, &docker::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `mine`.
pub static FUNCTIONS: Functions<Context> = registry!("mine", [send, update, get, delete, flush, valid]);

/// Call a function and send its return to the mine under `name`, which is the function unless `mine_function` names
/// another one. `allow_tgt` (of type `allow_tgt_type`) selects the minions that may read it.
/// Returns false if there is no such function or it fails.
///
/// CLI Example:
///
///     salt '*' mine.send grains.get os
///     salt '*' mine.send system mine_function=grains.get os allow_tgt='web*'
#[function]
pub fn send(
    context: &Context,
    /// Name of the function, or of its alias.
    name: String,
    /// Arguments of the function.
    #[rest]
    args: Vec<Value>,
    /// Keyword arguments of the function, and `mine_function`, the function if `name` is an alias.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    match entry(context, &name, args, kwargs) {
        Some(value) => publish(context, map! {name => value}, false),
        None => Ok(Value::Bool(false)),
    }
}

/// Call functions and send their returns to the mine: those of `mine_functions` in the minion's configuration and
/// pillar, or given in the same form. The minion does so by itself at start and every `mine_interval`. `clear`
/// removes the rest of the mine.
///
/// CLI Example:
///
///     salt '*' mine.update
#[function]
pub fn update(
    context: &Context,
    /// Whether old data is removed first.
    #[default(false)]
    clear: bool,
    /// Functions, as in the option `mine_functions`, which is used by default.
    #[default]
    mine_functions: Value,
) -> CallResult {
    let functions = if mine_functions.is_truthy() { definitions(mine_functions) } else { configured(context)? };
    if functions.is_empty() {
        return Ok(Value::Nil);
    }
    let mut data = Map::new();
    for (name, definition) in functions {
        let (args, kwargs) = arguments(definition);
        if let Some(value) = entry(context, &name, args, kwargs) {
            data.insert(name.into(), value);
        }
    }
    if data.is_empty() && !clear { Ok(Value::Bool(true)) } else { publish(context, data, clear) }
}

/// The arguments of `mine.get` that select the sources of `salt-ssh`.
#[derive(Args)]
pub struct SshArgs {
    /// Accepted for compatibility with Salt: the roster is that of `salt-ssh`.
    roster: Option<String>,
    /// Whether the function is called on hosts of the roster. Only with `salt-ssh`.
    #[default(true)]
    ssh_minions: bool,
    /// Whether the mine of the running master is read. Only with `salt-ssh`.
    #[default(false)]
    regular_minions: bool,
}

/// Return mine data of minions: by minion, or by function and minion if several functions are given.
///
/// With `salt-ssh`, the function is called on the hosts of the roster if it is one of their `mine_functions`.
///
/// CLI Example:
///
///     salt '*' mine.get '*' network.ip_addrs
///     salt '*' mine.get 'os:Fedora' network.ip_addrs grain
#[function]
pub fn get(
    context: &Context,
    /// Target of the minions whose data is returned.
    tgt: Value,
    /// Name of the function, or of its alias.
    fun: Value,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
    /// Whether data of this minion is left out.
    #[default(false)]
    exclude_minion: bool,
    #[args] ssh: SshArgs,
) -> CallResult {
    let upstream = &context.minion.upstream;
    if !upstream.has_mine() {
        // Without a master there is no mine.
        return Ok(Value::map());
    }
    let mut load = map! {"cmd" => "_mine_get", "tgt" => tgt, "fun" => fun, "tgt_type" => tgt_type};
    if !upstream.has_master() {
        let SshArgs { roster, ssh_minions, regular_minions } = ssh;
        if let Some(roster) = roster {
            tracing::debug!(roster, "the argument roster of mine.get has no effect: salt-ssh uses its own roster");
        }
        load.extend(map! {"ssh_minions" => ssh_minions, "regular_minions" => regular_minions});
    }
    let mut data = context.minion.upstream.ask(load).map_err(CallError::execution)?;
    if let (true, Value::Map(data)) = (exclude_minion, &mut data) {
        let own = context.minion.id.as_str();
        data.shift_remove(own);
        data.values_mut().filter_map(Value::as_map_mut).for_each(|of_function| _ = of_function.shift_remove(own));
    }
    Ok(data)
}

/// Delete a function from this minion's mine.
///
/// CLI Example:
///
///     salt '*' mine.delete grains.get
#[function]
pub fn delete(
    context: &Context,
    /// Name of the function, or of its alias.
    fun: String,
) -> CallResult {
    context.minion.upstream.ask(map! {"cmd" => "_mine_delete", "fun" => fun}).map_err(CallError::execution)
}

/// Delete all of this minion's mine.
///
/// CLI Example:
///
///     salt '*' mine.flush
#[function]
pub fn flush(context: &Context) -> CallResult {
    context.minion.upstream.ask(map! {"cmd" => "_mine_flush"}).map_err(CallError::execution)
}

/// Return the valid entries of `mine_functions` in the minion's configuration and pillar: by their name in the mine,
/// the arguments of the function, or, if it has another name, the function with its arguments.
///
/// CLI Example:
///
///     salt '*' mine.valid
#[function]
pub fn valid(context: &Context) -> CallResult {
    let functions = configured(context)?;
    if functions.is_empty() {
        return Ok(Value::Nil);
    }
    let mut report = Map::new();
    for (name, definition) in functions {
        let (mut args, mut kwargs) = arguments(definition.clone());
        let function = kwargs.shift_remove("mine_function").map(|function| function.to_string());
        if context.minion.functions.get(function.as_deref().unwrap_or(&name)).is_none() {
            continue;
        }
        let description = match function {
            None => definition,
            Some(function) => {
                kwargs.retain(|name, _| !matches!(name.as_str(), Some("allow_tgt" | "allow_tgt_type")));
                args.extend(kwargs.into_iter().map(|(name, value)| map! {name => value}.into()));
                map! {function => args}.into()
            }
        };
        report.insert(name.into(), description);
    }
    Ok(report.into())
}

/// Returns `mine_functions` of the configuration and the pillar.
fn configured(context: &Context) -> Result<Vec<(String, Value)>, CallError> {
    config::merge(context, MINE_FUNCTIONS.into(), Value::Nil, false, false, false).map(definitions)
}

/// Returns the names and definitions of the functions of the mine.
fn definitions(functions: Value) -> Vec<(String, Value)> {
    match functions {
        Value::Map(functions) => {
            functions.into_iter().map(|(name, definition)| (name.to_string(), definition)).collect()
        }
        Value::List(names) => names.into_iter().map(|name| (name.to_string(), Value::Nil)).collect(),
        _ => Vec::new(),
    }
}

/// Returns the result of a mine function for `mine.get` of `salt-ssh`; `None` if it is not defined, or fails.
///
/// Only functions in `mine_functions` of the roster (`functions`), the configuration or the pillar are called, because
/// the request comes from another host.
pub fn mine_result(context: &Context, name: &str, functions: Value) -> Option<Value> {
    let own = configured(context).unwrap_or_default();
    let (_, arguments_given) = definitions(functions).into_iter().chain(own).find(|(defined, _)| defined == name)?;
    let (args, mut kwargs) = arguments(arguments_given);
    // Access lists only apply to minions of a master.
    kwargs.retain(|name, _| !matches!(name.as_str(), Some("allow_tgt" | "allow_tgt_type")));
    entry(context, name, args, kwargs)
}

fn publish(context: &Context, data: Map, clear: bool) -> Result<Value, CallError> {
    let load = map! {"cmd" => "_mine", "data" => data, "clear" => clear};
    context.minion.upstream.ask(load).map_err(CallError::execution)
}

/// Returns the mine entry of a function; `None` if it cannot be called.
fn entry(context: &Context, name: &str, positional: Vec<Value>, mut keyword: Map) -> Option<Value> {
    let function =
        keyword.shift_remove("mine_function").map_or_else(|| name.to_owned(), |function| function.to_string());
    let (allow, kind) = (keyword.shift_remove("allow_tgt"), keyword.shift_remove("allow_tgt_type"));
    keyword.retain(|name, _| !name.as_str().is_some_and(|name| name.starts_with("__pub_")));
    match context.call_nested(&function, Args { positional, keyword }) {
        Ok(value) => match allow {
            None | Some(Value::Nil) => Some(value),
            Some(allow) => Some(
                map! {"__data__" => value, "__saltmine_acl__" => 1, "allow_tgt" => allow, "allow_tgt_type" => kind}
                    .into(),
            ),
        },
        Err(error) => {
            tracing::error!(function, %error, "calling a mine function failed");
            None
        }
    }
}

/// Returns the arguments of a function in `mine_functions`: a list, in which one-key mappings are keyword
/// arguments, or a mapping.
fn arguments(definition: Value) -> (Vec<Value>, Map) {
    match definition {
        Value::Map(keyword) => (Vec::new(), keyword),
        Value::List(items) => {
            let (mut positional, mut keyword) = (Vec::new(), Map::new());
            for item in items {
                match item {
                    Value::Map(named) => keyword.extend(named),
                    value => positional.push(value),
                }
            }
            (positional, keyword)
        }
        _ => (Vec::new(), Map::new()),
    }
}

#[cfg(test)]
mod tests;

//! `grains`: facts about this host.

pub(crate) mod state;

use std::path::PathBuf;

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_system::files;
use brine_value::{Map, Value, map};
use brine_yaml::{Data, Style, entry_at, traverse};

use crate::config::PathArgs;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `grains`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "grains",
    [items, item, get, fetch, ls, has_value, equals, filter_by, setval, setvals, set, delval, delkey, append, remove]
);

/// Return all grains.
///
/// CLI Example:
///
///     salt '*' grains.items
#[function]
pub fn items(context: &Context) -> CallResult {
    Ok(Value::Map((*context.grains()).clone()))
}

/// Return several grains by name.
///
/// CLI Example:
///
///     salt '*' grains.item os osrelease
#[function]
pub fn item(
    context: &Context,
    /// Names of grains.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    let grains = context.grains();
    let named = args.iter().map(|name| {
        let value = entry_at(&grains, &name.to_string(), ":").cloned().unwrap_or_else(|| "".into());
        (name.clone(), value)
    });
    Ok(Value::Map(named.collect()))
}

/// Return the grain at a path such as `ip4_interfaces:eth0`, or the default.
///
/// CLI Example:
///
///     salt '*' grains.get pkg:apache
#[function]
pub fn get(context: &Context, #[args] path: PathArgs) -> CallResult {
    Ok(entry_at(&context.grains(), &path.key, &path.delimiter).cloned().unwrap_or(path.default))
}

/// Return the grain at a path, as `get`.
///
/// CLI Example:
///
///     salt '*' grains.fetch pkg:apache
#[function]
pub fn fetch(context: &Context, #[args] path: PathArgs) -> CallResult {
    get(context, path)
}

/// Return the names of all grains.
///
/// CLI Example:
///
///     salt '*' grains.ls
#[function]
pub fn ls(context: &Context) -> CallResult {
    let mut names: Vec<String> = context.grains().keys().map(ToString::to_string).collect();
    names.sort();
    Ok(names.into())
}

/// Return whether there is a grain at this path.
///
/// CLI Example:
///
///     salt '*' grains.has_value pkg:apache
#[function]
pub fn has_value(
    context: &Context,
    /// Name of the grain; `a:b` is the key `b` of the mapping `a`.
    key: String,
) -> CallResult {
    Ok(entry_at(&context.grains(), &key, ":").is_some().into())
}

/// Return whether a grain equals a value.
///
/// CLI Example:
///
///     salt '*' grains.equals fqdn host.example.org
#[function]
pub fn equals(
    context: &Context,
    /// Name of the grain; `a:b` is the key `b` of the mapping `a`.
    key: String,
    /// Value to compare with.
    value: Value,
) -> CallResult {
    let have = entry_at(&context.grains(), &key, ":").map(ToString::to_string).unwrap_or_default();
    Ok((have == value.to_string()).into())
}

/// Look up a value in a mapping by a grain: `{'Debian': .., 'RedHat': .., 'default': ..}`.
///
/// CLI Example:
///
///     salt '*' grains.filter_by '{Debian: Debheads rule, RedHat: I love my hat}'
#[function]
pub fn filter_by(
    context: &Context,
    /// Mapping of values to results.
    lookup_dict: Map,
    /// Grain whose value selects the result.
    #[default("os_family".into())]
    grain: String,
    /// Mapping that is merged into the result.
    #[default]
    merge: Value,
    /// Key of the result if no value matches.
    #[default("default".into())]
    default: Value,
    /// Key of a mapping that the result is merged into.
    #[default]
    base: Value,
) -> CallResult {
    choose(&lookup_dict, entry_at(&context.grains(), &grain, ":"), merge, &default, &base)
}

/// Set a grain permanently. A null value deletes it if `destructive` is true.
///
/// CLI Example:
///
///     salt '*' grains.setval key val
///     salt '*' grains.setval key "{'sub-key': 'val', 'sub-key2': 'val2'}"
#[function]
pub fn setval(
    context: &Context,
    /// Name of the grain; `a:b` is the key `b` of the mapping `a`.
    key: Value,
    /// Value.
    val: Value,
    /// Whether the grain is removed instead of becoming null.
    #[default(false)]
    destructive: bool,
    /// Whether the pillar is refreshed afterwards.
    #[default(true)]
    refresh_pillar: bool,
) -> CallResult {
    setvals(context, [(key, val)].into_iter().collect(), destructive, refresh_pillar)
}

/// Set several grains permanently.
///
/// CLI Example:
///
///     salt '*' grains.setvals "{'key1': 'val1', 'key2': 'val2'}"
#[function]
pub fn setvals(
    context: &Context,
    /// Grains and their values, as a mapping.
    grains: Map,
    /// Whether the grain is removed instead of becoming null.
    #[default(false)]
    destructive: bool,
    /// Whether the pillar is refreshed afterwards.
    #[default(true)]
    refresh_pillar: bool,
) -> CallResult {
    change(context, |own| {
        for (key, value) in &grains {
            if value.is_nil() && destructive {
                own.shift_remove(key);
            } else {
                own.insert(key.clone(), value.clone());
            }
        }
    })?;
    if refresh_pillar && context.minion.upstream.has_master() {
        // The grains are set; a failed pillar refresh does not undo that.
        if let Err(error) = context.call("saltutil.refresh_pillar", Args::default()) {
            tracing::warn!(jid = context.job.jid, %error, "refreshing the pillar after a change of grains failed");
        }
    }
    Ok(grains.into())
}

/// Set the grain at a path permanently. A list or mapping is only replaced with `force`.
///
/// CLI Example:
///
///     salt '*' grains.set 'apps:myApp:port' 2209
#[function]
pub fn set(
    context: &Context,
    /// Name of the grain; `a:b` is the key `b` of the mapping `a`.
    key: String,
    /// Value.
    #[default("".into())]
    val: Value,
    /// Whether a grain that is a list or a mapping may be replaced by a value of another type.
    #[default(false)]
    force: bool,
    /// Whether the grain is removed instead of becoming null.
    #[default(false)]
    destructive: bool,
    /// Separator of the keys in `key`.
    #[default(":".into())]
    delimiter: String,
) -> CallResult {
    let all = grains(context);
    let is_complex = |value: &Value| matches!(value, Value::Map(_) | Value::List(_));
    let failed = |comment: String| Ok(map! {"comment" => comment, "changes" => map! {}, "result" => false}.into());
    match traverse(&all, &key, &delimiter) {
        Some(have) if *have == val && !(val.is_nil() && destructive) => {
            return Ok(map! {"comment" => "Grain is already set", "changes" => map! {}, "result" => true}.into());
        }
        Some(have) if !force && is_complex(have) => {
            return failed(format!("The key '{key}' exists but is a dict or a list. Use 'force=True' to overwrite."));
        }
        Some(have) if !force && !have.is_nil() && is_complex(&val) => {
            return failed(format!(
                "The key '{key}' exists and the given value is a dict or a list. Use 'force=True' to overwrite."
            ));
        }
        _ => {}
    }
    match within(&all, &key, &delimiter, val, force, destructive) {
        Ok((key, value)) => {
            let changes = setval(context, key.into(), value, destructive, true)?;
            Ok(map! {"comment" => "", "changes" => changes, "result" => true}.into())
        }
        Err(comment) => failed(comment),
    }
}

/// Set the grain at a path to null, or delete it if `destructive` is true.
///
/// CLI Example:
///
///     salt '*' grains.delval key
#[function]
pub fn delval(
    context: &Context,
    /// Name of the grain; `a:b` is the key `b` of the mapping `a`.
    key: String,
    /// Whether the grain is removed instead of becoming null.
    #[default(false)]
    destructive: bool,
    /// Whether a grain that is a list or a mapping may be replaced by a value of another type.
    #[default(false)]
    force: bool,
) -> CallResult {
    set(context, key, Value::Nil, force, destructive, ":".into())
}

/// Delete the grain at a path.
///
/// CLI Example:
///
///     salt '*' grains.delkey key
#[function]
pub fn delkey(
    context: &Context,
    /// Name of the grain; `a:b` is the key `b` of the mapping `a`.
    key: String,
    /// Whether a grain that is a list or a mapping may be replaced by a value of another type.
    #[default(false)]
    force: bool,
) -> CallResult {
    delval(context, key, true, force)
}

/// Append to a grain that is a list; `convert` makes any other grain a list.
///
/// CLI Example:
///
///     salt '*' grains.append key val
#[function]
pub fn append(
    context: &Context,
    /// Name of the grain; `a:b` is the key `b` of the mapping `a`.
    key: String,
    /// Value.
    val: Value,
    /// Whether a grain that is no list becomes one.
    #[default(false)]
    convert: bool,
    /// Separator of the keys in `key`.
    #[default(":".into())]
    delimiter: String,
) -> CallResult {
    let all = grains(context);
    let mut list = match traverse(&all, &key, &delimiter) {
        Some(Value::List(list)) => list.clone(),
        None => Vec::new(),
        Some(Value::Nil) if convert => Vec::new(),
        Some(other) if convert => vec![other.clone()],
        Some(_) => return Ok(format!("The key {key} is not a valid list").into()),
    };
    if list.contains(&val) {
        return Ok(format!("The val {val} was already in the list {key}").into());
    }
    match val {
        Value::List(several) => list.extend(several),
        one => list.push(one),
    }
    set_list(context, &all, &key, &delimiter, list)
}

/// Remove a value from a grain that is a list.
///
/// CLI Example:
///
///     salt '*' grains.remove key val
#[function]
pub fn remove(
    context: &Context,
    /// Name of the grain; `a:b` is the key `b` of the mapping `a`.
    key: String,
    /// Value.
    val: Value,
    /// Separator of the keys in `key`.
    #[default(":".into())]
    delimiter: String,
) -> CallResult {
    let all = grains(context);
    let mut list = match traverse(&all, &key, &delimiter) {
        Some(Value::List(list)) => list.clone(),
        None => Vec::new(),
        Some(_) => return Ok(format!("The key {key} is not a valid list").into()),
    };
    let Some(at) = list.iter().position(|have| *have == val) else {
        return Ok(format!("The val {val} was not in the list {key}").into());
    };
    list.remove(at);
    set_list(context, &all, &key, &delimiter, list)
}

/// `filter_by`: returns the entry of a mapping for a value, matched by name or by glob, for a list that of the first of
/// its items that has one, or that of `default`, merged over that of `base`; `merge` is merged over both. An entry that
/// is null counts as none.
pub(super) fn choose(
    lookup: &Map,
    value: Option<&Value>,
    merge: Value,
    default: &Value,
    base: &Value,
) -> Result<Value, CallError> {
    let entry = |value: &Value| {
        let value = value.to_string();
        let by_glob = || lookup.iter().find(|(key, _)| brine_text::glob::fnmatch(&key.to_string(), &value));
        lookup.get(value.as_str()).or_else(|| by_glob().map(|(_, entry)| entry)).filter(|entry| !entry.is_nil())
    };
    let by_value = match value {
        Some(Value::List(values)) => values.iter().find_map(entry),
        value => value.and_then(entry),
    };
    let mut chosen = by_value.or_else(|| lookup.get(default)).cloned().unwrap_or_default();
    if base.is_truthy() {
        chosen = match (lookup.get(base), chosen) {
            (Some(base), Value::Nil) => base.clone(),
            (Some(Value::Map(base)), Value::Map(over)) => {
                let mut under = base.clone();
                brine_value::merge(&mut under, &over);
                under.into()
            }
            (Some(Value::Map(_)), _) => {
                let message = "filter_by default and look-up values must both be dictionaries.";
                return Err(CallError::Execution(message.into()));
            }
            (_, chosen) => chosen,
        };
    }
    // An empty value merges nothing.
    if merge.is_truthy() {
        let Value::Map(over) = merge else {
            return Err(CallError::Execution("filter_by merge argument must be a dictionary.".into()));
        };
        let mut merged = match chosen {
            Value::Nil => Map::new(),
            Value::Map(merged) => merged,
            odd => {
                return Err(CallError::Execution(format!("merge failed: the matched value '{odd}' is not a mapping")));
            }
        };
        brine_value::merge(&mut merged, &over);
        chosen = merged.into();
    }
    Ok(chosen)
}

fn set_list(context: &Context, all: &Value, key: &str, delimiter: &str, list: Vec<Value>) -> Result<Value, CallError> {
    let (key, value) = within(all, key, delimiter, list.into(), false, false).map_err(CallError::Execution)?;
    setval(context, key.into(), value, false, true)
}

/// Returns the top-level grain of a path, with a value set at the end of the path.
fn within(
    all: &Value,
    path: &str,
    delimiter: &str,
    value: Value,
    force: bool,
    destructive: bool,
) -> Result<(String, Value), String> {
    let split = if delimiter.is_empty() { None } else { path.rsplit_once(delimiter) };
    let Some((above, key)) = split else { return Ok((path.to_owned(), value)) };
    let one = |value| Value::from(map! {key => value});
    let value = match traverse(all, above, delimiter).cloned().unwrap_or_else(Value::map) {
        Value::Map(mut map) => {
            if value.is_nil() && destructive {
                map.shift_remove(key);
            } else {
                map.insert(key.into(), value);
            }
            map.into()
        }
        Value::List(mut items) => {
            let mut exists = false;
            for item in &mut items {
                if item.as_str() == Some(key) {
                    *item = one(value.clone());
                } else if let Some(inner) = item.as_map_mut().and_then(|map| map.get_mut(key)) {
                    *inner = value.clone();
                } else {
                    continue;
                }
                exists = true;
            }
            if !exists {
                items.push(one(value));
            }
            items.into()
        }
        have if force || have.as_str() == Some(key) => one(value),
        have => {
            return Err(format!(
                "The key '{above}' value is '{have}', which is different from the provided key '{key}'. Use \
                 'force=True' to overwrite."
            ));
        }
    };
    within(all, above, delimiter, value, force, destructive)
}

fn grains(context: &Context) -> Value {
    Value::Map((*context.grains()).clone())
}

/// Returns the path of the file with persistent grains.
fn persistent_file(context: &Context) -> PathBuf {
    context.config().config_dir.join("grains")
}

/// Changes the persistent grains, on disk and in memory.
fn change(context: &Context, change: impl FnOnce(&mut Map)) -> Result<(), CallError> {
    let path = persistent_file(context);
    let text = files::read_if_exists(&path).map_err(CallError::execution)?.unwrap_or_default();
    let Data { value, mut dates } =
        brine_yaml::load_data(&text).map_err(|error| CallError::Execution(format!("{}: {error}", path.display())))?;
    let before = match value {
        Value::Map(own) => own,
        _ => Map::new(),
    };
    let mut own = before.clone();
    change(&mut own);
    dates.kept(&before, &own);
    let written = brine_yaml::dump_data(&Value::Map(own.clone()), &dates, Style::BLOCK);
    files::write_atomic(&path, written.as_bytes(), 0o644).map_err(CallError::execution)?;
    let mut all = (*context.grains()).clone();
    for gone in before.keys().filter(|key| !own.contains_key(*key)) {
        all.shift_remove(gone);
    }
    all.extend(own);
    context.minion.grains.set(all);
    Ok(())
}

#[cfg(test)]
mod tests;

//! `defaults`: merges mappings, for formulas.

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, json, merge_deep};
use brine_yaml::entry_at;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `defaults`.
pub static FUNCTIONS: Functions<Context> = registry!("defaults", [merge, get, deepcopy, update]);

/// Merge a mapping recursively into another and return the result; values of the source win. With `merge_lists`,
/// missing items are appended to lists. `in_place` and `convert_none` are without effect: the result is a new mapping.
///
/// CLI Example:
///
///     salt '*' defaults.merge '{a: b}' '{d: e}'
#[function]
pub fn merge(
    _context: &Context,
    /// Mapping to change.
    dest: Map,
    /// Mapping of new values.
    src: Map,
    /// Whether lists are joined instead of replaced.
    #[default(false)]
    merge_lists: bool,
    /// Without effect: the result is a new mapping.
    #[default(true)]
    in_place: bool,
    /// Without effect.
    #[default(true)]
    convert_none: bool,
) -> CallResult {
    _ = (in_place, convert_none);
    let mut dest = dest;
    merge_deep(&mut dest, &src, merge_lists);
    Ok(dest.into())
}

/// Return the value at a path of a formula's `defaults.yaml` (or `.json`), or the default.
///
/// CLI Example:
///
///     salt '*' defaults.get core:users:root
#[function]
pub fn get(
    context: &Context,
    /// Key of the value; `a:b` is the key `b` of the mapping `a`.
    key: String,
    /// Result if there is no such key.
    #[default("".into())]
    default: Value,
) -> CallResult {
    let (formula, path) = key.split_once(':').map_or((key.as_str(), ""), |(formula, path)| (formula, path));
    let defaults = of_formula(context, formula)?;
    if path.is_empty() {
        return Ok(defaults.unwrap_or_default());
    }
    let entry = defaults.as_ref().and_then(Value::as_map).and_then(|map| entry_at(map, path, ":"));
    Ok(entry.cloned().unwrap_or(default))
}

/// Return a copy of a value.
///
/// CLI Example:
///
///     salt '*' defaults.deepcopy '{a: b}'
#[function]
pub fn deepcopy(
    _context: &Context,
    /// Value to copy.
    source: Value,
) -> CallResult {
    Ok(source)
}

/// Merge defaults into each mapping of a group, and return the result. `in_place` and `convert_none` are without effect.
///
/// CLI Example:
///
///     salt '*' defaults.update '{web: {port: 8080}}' '{port: 80, host: localhost}'
#[function]
pub fn update(
    _context: &Context,
    /// Mapping to change.
    dest: Map,
    /// Mapping of defaults.
    defaults: Map,
    /// Whether lists are joined instead of replaced.
    #[default(true)]
    merge_lists: bool,
    /// Without effect: the result is a new mapping.
    #[default(true)]
    in_place: bool,
    /// Without effect.
    #[default(true)]
    convert_none: bool,
) -> CallResult {
    _ = (in_place, convert_none);
    let updated = dest.into_iter().map(|(name, own)| {
        let mut all = defaults.clone();
        match own {
            Value::Map(own) => {
                merge_deep(&mut all, &own, merge_lists);
                (name, Value::Map(all))
            }
            Value::Nil => (name, Value::Map(all)),
            other => (name, other),
        }
    });
    Ok(updated.collect::<Map>().into())
}

/// Returns the defaults of a formula, if it has any.
fn of_formula(context: &Context, formula: &str) -> Result<Option<Value>, CallError> {
    type Read = fn(&str) -> Result<Value, CallError>;
    let kinds: [(&str, Read); 2] = [
        ("yaml", |text| brine_yaml::load(text).map_err(CallError::execution)),
        ("json", |text| json::from_json(text).map_err(CallError::execution)),
    ];
    for (kind, read) in kinds {
        let file =
            context.minion.files.read(&format!("{formula}/defaults.{kind}"), "base").map_err(CallError::execution)?;
        if let Some(content) = file {
            let defaults = read(&String::from_utf8(content).map_err(CallError::execution)?)?;
            return Ok(Some(if defaults.is_nil() { Value::map() } else { defaults }));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;

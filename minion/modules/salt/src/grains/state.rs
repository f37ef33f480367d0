//! `grains`: states of persistent grains.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, list, map};
use brine_yaml::traverse;

/// State functions of `grains`.
pub static FUNCTIONS: Functions<StateContext> =
    registry!("grains", [exists, present, list_present, list_absent, absent, append]);

/// Ensure that a grain exists, with any value.
///
/// SLS Example:
///
///     role:
///       grains.exists: []
#[function]
pub fn exists(
    context: &StateContext,
    /// Name of the grain; `a:b` is the key `b` of the mapping `a`.
    name: String,
    /// Separator of the keys in `name`.
    #[default(":".into())]
    delimiter: String,
) -> CallResult {
    let name = with_colons(&name, &delimiter);
    Ok(match grain(context, &name) {
        Some(_) => StateReturn::ok(&name, "Grain exists"),
        None => StateReturn::failed(&name, "Grain does not exist"),
    }
    .into())
}

/// Ensure that a grain has this value.
///
/// Grains are stored in the file `grains` beside the minion's configuration and are available to the states that
/// follow with `reload_grains: True`.
///
/// SLS Example:
///
///     role:
///       grains.present:
///         - value: web
///
///     app:port:
///       grains.present:
///         - value: 8080
#[function]
pub fn present(
    context: &StateContext,
    /// Name of the grain; `a:b` is the key `b` of the mapping `a`.
    name: String,
    /// Value of the grain.
    value: Value,
    /// Separator of the keys in `name`.
    #[default(":".into())]
    delimiter: String,
    /// Whether a grain that is a list or a mapping may be replaced by a value of another type.
    #[default(false)]
    force: bool,
) -> CallResult {
    let name = with_colons(&name, &delimiter);
    let have = grain(context, &name);
    if have.as_ref() == Some(&value) {
        return Ok(StateReturn::ok(&name, "Grain is already set").into());
    }
    if context.test {
        let (word, changes) = match have {
            None => ("added", map! {"new" => &name}),
            Some(_) => ("changed", map! {"changed" => map! {name.as_str() => value}}),
        };
        return Ok(StateReturn::predicted(&name, format!("Grain {name} is set to be {word}"))
            .with_changes(changes)
            .into());
    }
    let mut outcome = set(context, &name, value.clone(), false, force)?;
    if outcome.result == Some(true) && !outcome.changes.is_empty() {
        outcome.comment = format!("Set grain {name} to {value}");
    }
    Ok(outcome.in_order(SET_RESULT_KEYS))
}

/// Ensure that a grain is a list with this value, or all of these values.
///
/// SLS Example:
///
///     roles:
///       grains.list_present:
///         - value:
///           - web
///           - db
#[function]
pub fn list_present(
    context: &StateContext,
    /// Name of the grain; `a:b` is the key `b` of the mapping `a`.
    name: String,
    /// Value, or list of values.
    value: Value,
    /// Separator of the keys in `name`.
    #[default(":".into())]
    delimiter: String,
) -> CallResult {
    let name = with_colons(&name, &delimiter);
    let have = grain(context, &name).unwrap_or_else(|| "".into());
    let Some(list) = have.as_list().or_else(|| (!have.is_truthy()).then_some(&[])) else {
        return Ok(StateReturn::failed(&name, format!("Grain {name} is not a valid list")).into());
    };
    let mut missing = value.clone();
    let mut before = String::new();
    match &value {
        Value::List(values) => {
            let (existing, new): (Vec<Value>, Vec<Value>) = values.iter().cloned().partition(|one| list.contains(one));
            if !existing.is_empty() {
                let existing = Value::List(existing);
                before =
                    format!("Removed value {existing} from update due to value found in \"{name}\" (or pending).\n");
            }
            missing = new.into();
        }
        one if list.contains(one) => missing = list![],
        _ => {}
    }
    if missing == list![] {
        return Ok(StateReturn::ok(&name, format!("Value {value} is already in grain {name} (or pending)")).into());
    }
    if context.test {
        let comment = if have.is_truthy() {
            format!("Value {missing} is set to be appended to grain {name}")
        } else {
            format!("Grain {name} is set to be added")
        };
        return Ok(StateReturn::predicted(&name, comment).with_changes(map! {"new" => have}).into());
    }
    let args = Args::positional([name.as_str().into(), missing.clone()]);
    let Value::Map(new) = context.call.call("grains.append", args)? else {
        return Ok(StateReturn::failed(&name, format!("Failed append value {missing} to grain {name}")).into());
    };
    let outcome = StateReturn::ok(&name, format!("{before}Append value {missing} to grain {name}"));
    Ok(outcome.with_changes(map! {"new" => new}).into())
}

/// Ensure that a grain that is a list does not have this value, or any of these values.
///
/// SLS Example:
///
///     roles:
///       grains.list_absent:
///         - value: db
#[function]
pub fn list_absent(
    context: &StateContext,
    /// Name of the grain; `a:b` is the key `b` of the mapping `a`.
    name: String,
    /// Value, or list of values, to remove.
    value: Vec<Value>,
    /// Separator of the keys in `name`.
    #[default(":".into())]
    delimiter: String,
) -> CallResult {
    let name = with_colons(&name, &delimiter);
    let list = match grain(context, &name).filter(Value::is_truthy) {
        None => return Ok(StateReturn::ok(&name, format!("Grain {name} does not exist")).into()),
        Some(Value::List(list)) => list,
        Some(_) => return Ok(StateReturn::failed(&name, format!("Grain {name} is not a valid list")).into()),
    };
    let (mut comments, mut deleted) = (Vec::new(), Vec::new());
    for one in &value {
        if !list.contains(one) {
            comments.push(format!("Value {one} is absent from grain {name}"));
            continue;
        }
        if context.test {
            comments.push(format!("Value {one} in grain {name} is set to be deleted"));
        } else {
            context.call.call("grains.remove", Args::positional([name.as_str().into(), one.clone()]))?;
            comments.push(format!("Value {one} was deleted from grain {name}"));
        }
        deleted.push(one.clone());
    }
    let mut outcome = StateReturn::ok(&name, comments.join("\n"));
    if !deleted.is_empty() {
        outcome.result = if context.test { None } else { Some(true) };
        outcome.changes = map! {"deleted" => deleted};
    }
    Ok(outcome.into())
}

/// Ensure that a grain is null, or with `destructive` absent.
///
/// SLS Example:
///
///     role:
///       grains.absent:
///         - destructive: True
#[function]
pub fn absent(
    context: &StateContext,
    /// Name of the grain; `a:b` is the key `b` of the mapping `a`.
    name: String,
    /// Whether the grain is removed; otherwise it becomes null.
    #[default(false)]
    destructive: bool,
    /// Separator of the keys in `name`.
    #[default(":".into())]
    delimiter: String,
    /// Whether a grain that is a list or a mapping may be removed.
    #[default(false)]
    force: bool,
) -> CallResult {
    let name = with_colons(&name, &delimiter);
    let Some(have) = grain(context, &name) else {
        return Ok(StateReturn::ok(&name, format!("Grain {name} does not exist")).into());
    };
    let (would, was, changes) = match (destructive, have.is_nil()) {
        (true, _) => (
            format!("Grain {name} is set to be deleted"),
            format!("Grain {name} was deleted"),
            map! {"deleted" => &name},
        ),
        (false, false) => (
            format!("Value for grain {name} is set to be deleted (None)"),
            format!("Value for grain {name} was set to None"),
            map! {"grain" => &name, "value" => Value::Nil},
        ),
        (false, true) => (String::new(), "Grain is already set".into(), Map::new()),
    };
    if context.test {
        return Ok(StateReturn::predicted(&name, would).with_changes(changes).into());
    }
    let mut outcome = set(context, &name, Value::Nil, destructive, force)?;
    if outcome.result == Some(true) {
        (outcome.comment, outcome.changes) = (was, changes);
    }
    Ok(outcome.in_order(SET_RESULT_KEYS))
}

/// Append a value to a grain that is a list; `convert` makes any other grain a list.
///
/// SLS Example:
///
///     roles:
///       grains.append:
///         - value: web
///         - convert: True
#[function]
pub fn append(
    context: &StateContext,
    /// Name of the grain; `a:b` is the key `b` of the mapping `a`.
    name: String,
    /// Value to append.
    value: Value,
    /// Whether a grain that is no list becomes one.
    #[default(false)]
    convert: bool,
    /// Separator of the keys in `name`.
    #[default(":".into())]
    delimiter: String,
) -> CallResult {
    let name = with_colons(&name, &delimiter);
    let have = grain(context, &name);
    let is_there = context.call.grains().contains_key(name.as_str()) || have.as_ref().is_some_and(Value::is_truthy);
    let would = match have {
        _ if !is_there => return Ok(StateReturn::failed(&name, format!("Grain {name} does not exist")).into()),
        Some(Value::List(list)) if list.contains(&value) => {
            let comment = format!("Value {value} is already in the list for grain {name}");
            return Ok(StateReturn::ok(&name, comment).into());
        }
        Some(Value::List(_)) => format!("Value {value} in grain {name} is set to be added"),
        _ if convert => format!("Grain {name} is set to be converted to list and value {value} will be added"),
        _ => return Ok(StateReturn::failed(&name, format!("Grain {name} is not a valid list")).into()),
    };
    let changes = map! {"added" => value.clone()};
    if context.test {
        return Ok(StateReturn::predicted(&name, would).with_changes(changes).into());
    }
    let comment = format!("Value {value} was added to grain {name}");
    context.call.call("grains.append", Args::positional([name.as_str().into(), value, convert.into()]))?;
    Ok(StateReturn::ok(&name, comment).with_changes(changes).into())
}

fn with_colons(name: &str, delimiter: &str) -> String {
    if delimiter.is_empty() { name.to_owned() } else { name.replace(delimiter, ":") }
}

fn grain(context: &StateContext, name: &str) -> Option<Value> {
    traverse(&Value::Map((*context.call.grains()).clone()), name, ":").cloned()
}

/// Order of the keys in results of `grains.set`.
const SET_RESULT_KEYS: [&str; 4] = ["comment", "changes", "result", "name"];

/// Sets a grain and returns the result of `grains.set`.
fn set(
    context: &StateContext,
    name: &str,
    value: Value,
    destructive: bool,
    force: bool,
) -> Result<StateReturn, CallError> {
    let args = map! {"key" => name, "val" => value, "destructive" => destructive, "force" => force};
    let report = context.call.call("grains.set", Args::keyword(args))?;
    Ok(StateReturn {
        result: report.get("result").and_then(Value::as_bool),
        changes: report.get("changes").and_then(Value::as_map).cloned().unwrap_or_default(),
        ..StateReturn::ok(name, report.get("comment").map(ToString::to_string).unwrap_or_default())
    })
}

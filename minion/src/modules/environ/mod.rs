//! `environ`: the environment that the minion gives to the commands it runs.
//!
//! What is set is kept apart and given to each command: the minion's own environment cannot change while others of
//! its threads may read it.

pub(crate) mod state;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use brine_function::{CallResult, Function, function, registry};
use brine_value::{Map, Value};
use parking_lot::RwLock;

use super::Room;
use crate::context::Context;

/// What was set, or taken away (`None`), since the minion was started.
static CHANGED: LazyLock<RwLock<BTreeMap<String, Option<String>>>> = LazyLock::new(RwLock::default);

/// All functions of this room.
pub(super) static ROOM: Room = Room { functions: &[FUNCTIONS], states: &[state::FUNCTIONS] };

/// Execution functions of `environ`.
pub static FUNCTIONS: &[Function<Context>] = registry!("environ", [get, has_value, item, items, setval, setenv]);

/// Gives the value of a variable, or the default.
///
/// CLI Example:
///
///     salt '*' environ.get HOME
#[function]
pub fn get(_context: &Context, key: String, #[default("".into())] default: Value) -> CallResult {
    Ok(variable(&key).map_or(default, Value::from))
}

/// Says whether there is a variable, and has this value.
///
/// CLI Example:
///
///     salt '*' environ.has_value HOME /root
#[function]
pub fn has_value(_context: &Context, key: String, #[default] value: Option<String>) -> CallResult {
    Ok(variable(&key).is_some_and(|have| value.is_none_or(|value| have == value)).into())
}

/// Gives the values of several variables.
///
/// CLI Example:
///
///     salt '*' environ.item '[HOME, PATH]'
#[function]
pub fn item(_context: &Context, keys: Vec<String>, #[default("".into())] default: Value) -> CallResult {
    let item = |key: String| (Value::from(key.as_str()), variable(&key).map_or(default.clone(), Value::from));
    Ok(keys.into_iter().map(item).collect::<Map>().into())
}

/// Gives all variables.
///
/// CLI Example:
///
///     salt '*' environ.items
#[function]
pub fn items(_context: &Context) -> CallResult {
    Ok(all().into_iter().map(|(name, value)| (name.into(), value.into())).collect::<Map>().into())
}

/// Sets a variable, for commands that are run from now on. False takes it away if `false_unsets` is given.
///
/// CLI Example:
///
///     salt '*' environ.setval LANG C.UTF-8
#[function]
pub fn setval(_context: &Context, key: String, val: Value, #[default(false)] false_unsets: bool) -> CallResult {
    match val {
        Value::Str(text) => {
            set(&key, Some(text.as_str()));
            Ok(text.as_str().into())
        }
        Value::Bool(false) => {
            set(&key, if false_unsets { None } else { Some("") });
            Ok(if false_unsets { Value::Nil } else { "".into() })
        }
        _ => Ok(false.into()),
    }
}

/// Sets several variables, as `setval` does each; with `clear_all` all others are taken away.
///
/// CLI Example:
///
///     salt '*' environ.setenv '{"LANG": "C.UTF-8", "TZ": false}' false_unsets=True
#[function]
pub fn setenv(
    context: &Context,
    environ: Value,
    #[default(false)] false_unsets: bool,
    #[default(false)] clear_all: bool,
) -> CallResult {
    let Value::Map(environ) = environ else { return Ok(false.into()) };
    if !environ.values().all(|value| matches!(value, Value::Str(_) | Value::Bool(false))) {
        return Ok(false.into());
    }
    let mut answer = Map::new();
    if clear_all {
        let others = all().into_keys().filter(|name| !environ.contains_key(&Value::from(name.as_str())));
        for name in others {
            answer.insert(name.as_str().into(), setval(context, name, false.into(), false_unsets)?);
        }
    }
    for (name, value) in environ {
        answer.insert(name.clone(), setval(context, name.to_string(), value, false_unsets)?);
    }
    Ok(answer.into())
}

/// The value of a variable.
pub fn variable(name: &str) -> Option<String> {
    CHANGED.read().get(name).cloned().unwrap_or_else(|| std::env::var(name).ok())
}

/// All variables.
pub fn all() -> BTreeMap<String, String> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let mut found: BTreeMap<String, String> =
        std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect();
    for (name, value) in CHANGED.read().iter() {
        match value {
            Some(value) => _ = found.insert(name.clone(), value.clone()),
            None => _ = found.remove(name),
        }
    }
    found
}

/// Sets a variable, or takes it away.
pub fn set(name: &str, value: Option<&str>) {
    CHANGED.write().insert(name.to_owned(), value.map(str::to_owned));
}

/// What commands get beside the environment that the minion was started with: `None` for what they must not get.
pub fn changed() -> BTreeMap<String, Option<String>> {
    CHANGED.read().clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn commands_get_what_was_set() {
        let context = testing::context(&[]);
        let call = |fun: &str, args: Vec<Value>| {
            context.call(fun, brine_function::Args { positional: args, ..Default::default() }).unwrap()
        };
        assert_eq!(call("environ.setval", vec!["BRINE_TRIED".into(), "yes".into()]), "yes".into());
        assert_eq!(call("environ.get", vec!["BRINE_TRIED".into()]), "yes".into());
        assert_eq!(call("cmd.run", vec!["echo $BRINE_TRIED".into()]), "yes".into());
        assert_eq!(call("environ.has_value", vec!["BRINE_TRIED".into(), "no".into()]), false.into());
        set("BRINE_TRIED", None);
        assert_eq!(call("cmd.run", vec!["echo ${BRINE_TRIED-gone}".into()]), "gone".into());
        assert_eq!(call("environ.get", vec!["BRINE_TRIED".into(), 7.into()]), 7.into());
    }
}

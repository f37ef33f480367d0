//! `environ`: the environment of commands that the minion runs.
//!
//! Changes are stored in [`brine_host::environment`].

pub(crate) mod state;

use brine_context::{Context, Module};
use brine_function::{CallResult, Functions, function, registry};
use brine_host::environment::{set, variable, variables};
use brine_value::{Map, Value};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `environ`.
pub static FUNCTIONS: Functions<Context> = registry!("environ", [get, has_value, item, items, setval, setenv]);

/// Return the value of an environment variable, or the default.
///
/// CLI Example:
///
///     salt '*' environ.get HOME
#[function]
pub fn get(
    _context: &Context,
    /// Name of the variable.
    key: String,
    /// Result if the variable is not set.
    #[default("".into())]
    default: Value,
) -> CallResult {
    Ok(variable(&key).map_or(default, Value::from))
}

/// Return whether an environment variable is set, and has this value.
///
/// CLI Example:
///
///     salt '*' environ.has_value HOME /root
#[function]
pub fn has_value(
    _context: &Context,
    /// Name of the variable.
    key: String,
    /// Expected value.
    value: Option<String>,
) -> CallResult {
    Ok(variable(&key).is_some_and(|have| value.is_none_or(|value| have == value)).into())
}

/// Return the values of several environment variables.
///
/// CLI Example:
///
///     salt '*' environ.item '[HOME, PATH]'
#[function]
pub fn item(
    _context: &Context,
    /// Names of variables, as a list or with commas.
    keys: Vec<String>,
    /// Result if the variable is not set.
    #[default("".into())]
    default: Value,
) -> CallResult {
    let item = |key: String| (Value::from(key.as_str()), variable(&key).map_or(default.clone(), Value::from));
    Ok(keys.into_iter().map(item).collect::<Map>().into())
}

/// Return all environment variables.
///
/// CLI Example:
///
///     salt '*' environ.items
#[function]
pub fn items(_context: &Context) -> CallResult {
    Ok(variables().into_iter().map(|(name, value)| (name.into(), value.into())).collect::<Map>().into())
}

/// Set an environment variable for later commands. False unsets it if `false_unsets` is true.
///
/// CLI Example:
///
///     salt '*' environ.setval LANG C.UTF-8
#[function]
pub fn setval(
    _context: &Context,
    /// Name of the variable.
    key: String,
    /// New value; `False` is an empty string, or unsets the variable with `false_unsets`.
    val: Value,
    /// Whether `False` unsets a variable; otherwise it becomes an empty string.
    #[default(false)]
    false_unsets: bool,
) -> CallResult {
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

/// Set several environment variables, as `setval`; `clear_all` unsets all others.
///
/// CLI Example:
///
///     salt '*' environ.setenv '{"LANG": "C.UTF-8", "TZ": false}' false_unsets=True
#[function]
pub fn setenv(
    context: &Context,
    /// Variables and their values, as a mapping.
    environ: Value,
    /// Whether `False` unsets a variable; otherwise it becomes an empty string.
    #[default(false)]
    false_unsets: bool,
    /// Whether all other variables are made empty.
    #[default(false)]
    clear_all: bool,
) -> CallResult {
    let Value::Map(environ) = environ else { return Ok(false.into()) };
    if !environ.values().all(|value| matches!(value, Value::Str(_) | Value::Bool(false))) {
        return Ok(false.into());
    }
    let mut answer = Map::new();
    if clear_all {
        let others = variables().into_keys().filter(|name| !environ.contains_key(&Value::from(name.as_str())));
        for name in others {
            answer.insert(name.as_str().into(), setval(context, name, false.into(), false_unsets)?);
        }
    }
    for (name, value) in environ {
        answer.insert(name.clone(), setval(context, name.to_string(), value, false_unsets)?);
    }
    Ok(answer.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn set_variables_are_passed_to_commands() {
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

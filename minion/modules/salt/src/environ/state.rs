//! `environ`: states of the environment of commands.

use std::collections::BTreeMap;

use brine_context::{StateContext, StateReturn};
use brine_function::{CallResult, Functions, function, registry};
use brine_host::environment;
use brine_value::{Map, Value};

/// State functions of `environ`.
pub static FUNCTIONS: Functions<StateContext> = registry!("environ", [setenv]);

/// Ensure that environment variables are set for commands of this minion: one of this name, or those of a mapping.
/// False is an empty string, or unsets the variable with `false_unsets`; `clear_all` empties all others. `update_minion`
/// and `permanent` are without effect: the variables are those of the running minion.
///
/// SLS Example:
///
///     https_proxy:
///       environ.setenv:
///         - value: http://proxy.example.com:3128
///
///     app_settings:
///       environ.setenv:
///         - value:
///             APP_ENV: production
///             APP_DEBUG: False
#[function]
pub fn setenv(
    context: &StateContext,
    /// Name of the variable; any name if `value` is a mapping.
    name: String,
    /// Value of the variable, or a mapping of variables to values.
    value: Value,
    /// Whether `False` unsets a variable; otherwise it becomes an empty string.
    #[default(false)]
    false_unsets: bool,
    /// Whether all other variables are made empty.
    #[default(false)]
    clear_all: bool,
    /// Without effect: the variables are those of the running minion.
    #[default(false)]
    update_minion: bool,
    /// Without effect: the variables are those of the running minion.
    #[default(false)]
    permanent: bool,
) -> CallResult {
    _ = (update_minion, permanent);
    let desired = match desired_variables(&name, &value, false_unsets) {
        Ok(desired) => desired,
        Err(error) => return Ok(StateReturn::failed(&name, error).into()),
    };
    let have = environment::variables();
    // A single empty string equals an unset variable.
    let missing = value.as_str().map(|_| String::new());
    let differs = |(name, value): &(&String, &Option<String>)| have.get(*name).or(missing.as_ref()) != value.as_ref();
    let changes = desired.iter().filter(differs).map(|(name, value)| (name.clone(), value.clone()));
    let mut changes: BTreeMap<String, Option<String>> = changes.collect();
    if clear_all {
        let others = have.iter().filter(|(name, value)| !desired.contains_key(*name) && !value.is_empty());
        changes.extend(others.map(|(name, _)| (name.clone(), (!false_unsets).then(String::new))));
    }
    if !context.test {
        for (name, value) in &changes {
            environment::set(name, value.as_deref());
        }
    }
    let comment = match (changes.is_empty(), context.test) {
        (true, true) => "Environ values are already set with the correct values",
        (true, false) => "Environ values were already set with the correct values",
        (false, true) => "Environ values will be changed",
        (false, false) => "Environ values were set",
    };
    let report: Map =
        changes.into_iter().map(|(name, value)| (name.into(), value.map_or(Value::Nil, Value::from))).collect();
    Ok(StateReturn::ok(&name, comment).with_changes(report).into())
}

/// Returns the desired variables of the state; `None` unsets a variable.
fn desired_variables(
    name: &str,
    value: &Value,
    false_unsets: bool,
) -> Result<BTreeMap<String, Option<String>>, &'static str> {
    let single = |value: &Value| match value {
        Value::Str(text) => Ok(Some(text.clone())),
        Value::Bool(false) => Ok((!false_unsets).then(String::new)),
        _ => Err("Environ value must be string, dict or False"),
    };
    match value {
        Value::Map(map) => map.iter().map(|(name, value)| Ok((name.to_string(), single(value)?))).collect(),
        value => Ok(BTreeMap::from([(name.to_owned(), single(value)?)])),
    }
}

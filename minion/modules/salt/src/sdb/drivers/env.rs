//! `env`: the environment of the minion's process.

use brine_host::environment;
use brine_value::Value;

pub fn get(key: &str) -> Value {
    environment::variable(key).into()
}

/// Sets a variable. As in Salt, an existing one is left unchanged.
pub fn set(key: &str, value: Value) -> Value {
    if let Some(have) = environment::variable(key) {
        return have.into();
    }
    environment::set(key, Some(&value.to_string()));
    value
}

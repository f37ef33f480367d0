//! The check of the arguments of built-in engines.

use brine_value::Map;

/// Returns an error for arguments that an engine does not have.
pub(crate) fn check_names(kwargs: &Map, names: &[&str]) -> Result<(), String> {
    match kwargs.keys().map(ToString::to_string).find(|name| !names.contains(&name.as_str())) {
        Some(unknown) => Err(format!("the argument '{unknown}' is unknown: expected {}", names.join(", "))),
        None => Ok(()),
    }
}

//! Encodes and decodes jobs, returns and events as JSON, in the form of Salt's returners.
//!
//! JSON has neither byte strings nor keys of other types: both are decoded as strings.

use brine_event::Event;
use brine_job::{Load, Return};
use brine_value::{Map, Value, json, map};

use crate::ReturnerError;

/// Encodes a mapping on one line.
pub(crate) fn of_map(map: &Map) -> String {
    json::to_json(&Value::Map(map.clone()))
}

/// Encodes an event on one line, with its fields in Salt's order.
pub(crate) fn of_event(event: &Event) -> String {
    json::to_json(&map! {"data" => event.data(), "tag" => event.tag()}.into())
}

/// Decodes a value.
pub(crate) fn to_value(returner: &'static str, key: &str, text: &str) -> Result<Value, ReturnerError> {
    json::from_json(text).map_err(|error| ReturnerError::damaged(returner, key, error))
}

/// Decodes a mapping.
pub(crate) fn to_map(returner: &'static str, key: &str, text: &str) -> Result<Map, ReturnerError> {
    match to_value(returner, key, text)? {
        Value::Map(map) => Ok(map),
        other => Err(ReturnerError::damaged(returner, key, format!("expected a mapping, got {}", other.type_name()))),
    }
}

/// Decodes the load of a job.
pub(crate) fn to_load(returner: &'static str, key: &str, text: &str) -> Result<Load, ReturnerError> {
    let map = to_map(returner, key, text)?;
    Load::from_map(map).map_err(|error| ReturnerError::damaged(returner, key, error))
}

/// Decodes a return.
pub(crate) fn to_return(returner: &'static str, key: &str, text: &str) -> Result<Return, ReturnerError> {
    let map = to_map(returner, key, text)?;
    Return::from_map(map).map_err(|error| ReturnerError::damaged(returner, key, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_errors_name_the_key() {
        for (text, reason) in [("{", "EOF"), ("[]", "expected a mapping, got list"), ("{}", "field 'jid'")] {
            let error = to_load("redis", "load:1", text).unwrap_err().to_string();
            assert!(error.starts_with("decoding the value of load:1 (redis) failed: "), "{error}");
            assert!(error.contains(reason), "{error}");
        }
    }
}

//! Jobs, returns and events as JSON, as Salt's returners keep them.
//!
//! JSON has neither bytes nor keys that are no text: both come back as text.

use brine_event::Event;
use brine_job::{Load, Return};
use brine_value::{Map, Value, json, map};

use crate::ReturnerError;

/// A map on one line.
pub(crate) fn of_map(map: &Map) -> String {
    json::to_json(&Value::Map(map.clone()))
}

/// An event on one line, its fields in Salt's order.
pub(crate) fn of_event(event: &Event) -> String {
    json::to_json(&map! {"data" => event.data(), "tag" => event.tag()}.into())
}

/// Reads any value.
pub(crate) fn to_value(returner: &'static str, key: &str, text: &str) -> Result<Value, ReturnerError> {
    json::from_json(text).map_err(|error| ReturnerError::damaged(returner, key, error))
}

/// Reads a map.
pub(crate) fn to_map(returner: &'static str, key: &str, text: &str) -> Result<Map, ReturnerError> {
    match to_value(returner, key, text)? {
        Value::Map(map) => Ok(map),
        other => Err(ReturnerError::damaged(returner, key, format!("it is no mapping but {}", other.type_name()))),
    }
}

/// Reads a job.
pub(crate) fn to_load(returner: &'static str, key: &str, text: &str) -> Result<Load, ReturnerError> {
    let map = to_map(returner, key, text)?;
    Load::from_map(map).map_err(|error| ReturnerError::damaged(returner, key, error))
}

/// Reads a return.
pub(crate) fn to_return(returner: &'static str, key: &str, text: &str) -> Result<Return, ReturnerError> {
    let map = to_map(returner, key, text)?;
    Return::from_map(map).map_err(|error| ReturnerError::damaged(returner, key, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_is_told_with_its_place() {
        for (text, reason) in [("{", "EOF"), ("[]", "it is no mapping but list"), ("{}", "field 'jid'")] {
            let error = to_load("redis", "load:1", text).unwrap_err().to_string();
            assert!(error.starts_with("redis holds something unreadable under load:1: "), "{error}");
            assert!(error.contains(reason), "{error}");
        }
    }
}

//! Validates the results of custom state functions.

use brine_function::{CallError, CallResult};
use brine_value::Value;

/// Checks the result of a custom state as Salt does.
pub(super) fn verified(result: Value) -> CallResult {
    let wrong = |message: String| Err(CallError::Exception(message));
    let Value::Map(mut result) = result else {
        return wrong("Malformed state return. Data must be a dictionary type.".into());
    };
    let missing: Vec<&str> =
        ["name", "result", "changes", "comment"].into_iter().filter(|key| !result.contains_key(*key)).collect();
    if !missing.is_empty() {
        return wrong(format!("The following keys were not present in the state return: {}", missing.join(",")));
    }
    if let Some(value) = result.get_mut("result").filter(|value| !value.is_nil()) {
        *value = value.is_truthy().into();
    }
    if result.get("changes").is_some_and(|changes| changes.as_map().is_none()) {
        return wrong("'Changes' should be a dictionary.".into());
    }
    match result.get("comment") {
        Some(Value::List(lines)) => {
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            result.insert("comment".into(), lines.join("\n").into());
        }
        Some(Value::Str(_)) => {}
        other => {
            let comment = other.map(ToString::to_string).unwrap_or_default();
            result.insert("comment".into(), comment.into());
        }
    }
    Ok(result.into())
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn results_of_custom_states_are_checked() {
        let good = map! {"name" => "a", "result" => true, "changes" => map! {}, "comment" => list!["b", "c"]};
        assert_eq!(verified(good.clone().into()).unwrap().get("comment"), Some(&"b\nc".into()));
        let mut loose = good.clone();
        loose.insert("result".into(), "yes".into());
        assert_eq!(verified(loose.into()).unwrap().get("result"), Some(&true.into()));
        for (key, value, error) in [
            ("changes", Some(list![]), "should be a dictionary"),
            ("comment", None, "not present in the state return: comment"),
        ] {
            let mut bad = good.clone();
            match value {
                Some(value) => _ = bad.insert(key.into(), value),
                None => _ = bad.shift_remove(key),
            }
            assert!(verified(bad.into()).unwrap_err().to_string().contains(error), "{key}");
        }
        assert!(verified(list![]).is_err());
    }
}

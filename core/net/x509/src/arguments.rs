//! The arguments of extensions: OpenSSL's notation, lists and mappings.

use brine_value::Value;

use crate::known::REASONS;
use crate::{Result, X509Error, general_name, invalid};

/// Parses OpenSSL's notation. Returns the items, each with its value if there is one, and whether the text starts with
/// `critical`.
pub(crate) fn notation(text: &str) -> (Vec<(String, Option<String>)>, bool) {
    let rest = text.strip_prefix("critical");
    let items = rest.map_or(text, |rest| rest.trim_matches(',').trim()).split(',').map(str::trim);
    let pair = |item: &str| match item.split_once(':') {
        Some((name, value)) => (name.trim().to_owned(), Some(value.trim().to_owned())),
        None => (item.to_owned(), None),
    };
    (items.filter(|item| !item.is_empty()).map(pair).collect(), rest.is_some())
}

/// Whether an argument contains a word: as a substring, an item or a key.
pub(crate) fn has(value: &Value, word: &str) -> bool {
    match value {
        Value::Str(text) => text.contains(word),
        Value::List(list) => list.iter().any(|item| item.as_str() == Some(word)),
        Value::Map(map) => map.contains_key(&Value::from(word)),
        _ => false,
    }
}

/// Returns the error of an argument of another type or form.
pub(crate) fn expected(name: &str, what: &str) -> X509Error {
    invalid(format!("{name} is invalid: expected {what}"))
}

/// Returns a boolean in a mapping; false if it is missing.
pub(crate) fn flag(value: &Value, key: &str) -> bool {
    value.get(key).is_some_and(Value::is_truthy)
}

/// Parses a non-negative integer.
pub(crate) fn count(name: &str, value: &Value) -> Result<u64> {
    let number = value.as_i64().or_else(|| value.as_str()?.trim().parse().ok());
    number.and_then(|number| u64::try_from(number).ok()).ok_or_else(|| expected(name, "a number"))
}

/// Parses general names in an argument into pairs of type and value.
pub(crate) fn names(name: &str, value: &Value) -> Result<Vec<(String, Value)>> {
    match value {
        Value::Str(text) => notation(text)
            .0
            .into_iter()
            .map(|(kind, value)| Ok((kind, value.unwrap_or_else(|| "__present__".to_owned()).into())))
            .collect(),
        Value::List(list) => {
            let mut pairs = Vec::new();
            for item in list {
                match item {
                    Value::Str(text) if text.contains(':') => pairs.push(general_name::pair(text)?),
                    Value::Map(map) => pairs.extend(map.iter().map(|(kind, value)| (kind.to_string(), value.clone()))),
                    _ => {}
                }
            }
            Ok(pairs)
        }
        _ => Err(expected(name, "a string or a list")),
    }
}

/// Returns the CRLReason number of a reason for revocation.
pub(crate) fn reason(word: &str) -> Result<u64> {
    let number = REASONS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, number)| *number);
    number.ok_or_else(|| invalid(format!("'{word}' is not a valid ReasonFlags")))
}

//! Conversions between Rust types and [`Value`].

use std::path::PathBuf;

use indexmap::IndexMap;

use super::{Map, Value};

macro_rules! from {
    ($($type:ty => $variant:expr),* $(,)?) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Self {
                let make: fn($type) -> Value = $variant;
                make(value)
            }
        })*
    };
}

from! {
    bool => Value::Bool,
    i64 => Value::Int,
    i32 => |n| Value::Int(n.into()),
    u8 => |n| Value::Int(n.into()),
    u16 => |n| Value::Int(n.into()),
    u32 => |n| Value::Int(n.into()),
    u64 => |n| i64::try_from(n).map_or(Value::UInt(n), Value::Int),
    usize => |n| Value::from(n as u64),
    f64 => Value::Float,
    String => Value::Str,
    &str => |s| Value::Str(s.to_owned()),
    &String => |s| Value::Str(s.clone()),
    Vec<u8> => Value::Bytes,
    Vec<Value> => Value::List,
    Map => Value::Map,
    () => |()| Value::Nil,
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Nil, Into::into)
    }
}

impl From<Vec<String>> for Value {
    fn from(items: Vec<String>) -> Self {
        items.into_iter().collect()
    }
}

impl<T: Into<Value>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(iter: I) -> Self {
        Value::List(iter.into_iter().map(Into::into).collect())
    }
}

/// The error of a value of the wrong type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, got {got}")]
pub struct WrongType {
    /// A description of the expected type.
    pub expected: &'static str,
    /// Python's name of the actual type.
    pub got: &'static str,
}

/// Conversion from a [`Value`] with Salt's leniency: a number converts to a string, a string to a list of one.
pub trait FromValue: Sized {
    /// A description of the expected type, for messages.
    const EXPECTED: &'static str;

    /// Converts the value; `None` if its type does not fit.
    fn from_value(value: &Value) -> Option<Self>;

    /// Converts the value.
    fn try_from_value(value: &Value) -> Result<Self, WrongType> {
        Self::from_value(value).ok_or(WrongType { expected: Self::EXPECTED, got: value.type_name() })
    }
}

impl FromValue for Value {
    const EXPECTED: &'static str = "any value";
    fn from_value(value: &Value) -> Option<Self> {
        Some(value.clone())
    }
}

impl FromValue for bool {
    const EXPECTED: &'static str = "True or False";
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(b) => Some(*b),
            Value::Int(n) => Some(*n != 0),
            Value::Nil => Some(false),
            Value::Str(s) => match s.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => Some(true),
                "false" | "no" | "off" | "0" | "" | "none" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }
}

impl FromValue for i64 {
    const EXPECTED: &'static str = "an integer";
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Int(n) => Some(*n),
            Value::Bool(b) => Some(i64::from(*b)),
            Value::Str(s) => s.trim().parse().ok(),
            _ => None,
        }
    }
}

macro_rules! narrow {
    ($($type:ty => $expected:literal),*) => {
        $(impl FromValue for $type {
            const EXPECTED: &'static str = $expected;
            fn from_value(value: &Value) -> Option<Self> {
                i64::from_value(value).and_then(|n| n.try_into().ok())
            }
        })*
    };
}

narrow! {
    u64 => "a non-negative integer",
    u32 => "a non-negative integer",
    u16 => "an integer from 0 to 65535",
    usize => "a non-negative integer",
    i32 => "an integer"
}

impl FromValue for f64 {
    const EXPECTED: &'static str = "a number";
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Str(s) => s.trim().parse().ok(),
            other => other.as_f64(),
        }
    }
}

impl FromValue for String {
    const EXPECTED: &'static str = "a string";
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Str(s) => Some(s.clone()),
            Value::Bytes(b) => Some(String::from_utf8_lossy(b).into_owned()),
            Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Big(_) | Value::Float(_) => {
                Some(value.to_string())
            }
            _ => None,
        }
    }
}

impl FromValue for Map {
    const EXPECTED: &'static str = "a mapping";
    fn from_value(value: &Value) -> Option<Self> {
        value.as_map().cloned()
    }
}

impl<T: FromValue> FromValue for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    fn from_value(value: &Value) -> Option<Self> {
        if value.is_nil() { Some(None) } else { T::from_value(value).map(Some) }
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    const EXPECTED: &'static str = "a list";
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::List(items) => items.iter().map(T::from_value).collect(),
            Value::Nil | Value::Bool(false) => Some(Vec::new()),
            Value::Str(text) if text.is_empty() => Some(Vec::new()),
            one => T::from_value(one).map(|item| vec![item]),
        }
    }
}

impl FromValue for PathBuf {
    const EXPECTED: &'static str = "a path";
    fn from_value(value: &Value) -> Option<Self> {
        value.as_str().map(PathBuf::from)
    }
}

impl From<PathBuf> for Value {
    fn from(path: PathBuf) -> Self {
        Value::Str(path.to_string_lossy().into_owned())
    }
}

/// Directories by environment, as in `file_roots`.
impl FromValue for IndexMap<String, Vec<PathBuf>> {
    const EXPECTED: &'static str = "a mapping of environment to a list of directories";
    fn from_value(value: &Value) -> Option<Self> {
        value.as_map()?.iter().map(|(key, value)| Some((String::from_value(key)?, Vec::from_value(value)?))).collect()
    }
}

/// Directories by environment.
impl From<IndexMap<String, Vec<PathBuf>>> for Value {
    fn from(roots: IndexMap<String, Vec<PathBuf>>) -> Self {
        let pairs =
            roots.into_iter().map(|(environment, directories)| (environment.into(), directories.into_iter().collect()));
        Value::Map(pairs.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list;

    #[test]
    fn conversions_are_as_lenient_as_in_salt() {
        assert_eq!(String::from_value(&Value::from(5)), Some("5".into()));
        assert_eq!(bool::from_value(&Value::from("yes")), Some(true));
        assert_eq!(i64::from_value(&Value::from(" 7 ")), Some(7));
        assert_eq!(Vec::<String>::from_value(&Value::from("one")), Some(vec!["one".into()]));
        assert_eq!(Vec::<String>::from_value(&Value::from("")), Some(Vec::new()));
        assert_eq!(Option::<String>::from_value(&Value::Nil), Some(None));
        assert_eq!(u16::from_value(&Value::from(70_000)), None);
        assert_eq!(String::from_value(&list![1]), None);
    }

    #[test]
    fn a_type_error_names_the_actual_type() {
        let error = Map::try_from_value(&Value::from("x")).unwrap_err();
        assert_eq!(error.to_string(), "expected a mapping, got str");
    }

    #[test]
    fn only_numbers_above_the_signed_range_are_unsigned() {
        assert_eq!(Value::from(3u64), Value::Int(3));
        assert_eq!(Value::from(u64::MAX), Value::UInt(u64::MAX));
    }
}

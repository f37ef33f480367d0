//! The data model of msgpack, JSON and YAML, with Salt's semantics.
//!
//! Mappings keep their order, keys may be of any type, bytes stay bytes. `msgpack` is the encoding on the wire and on
//! the bus; `json` and `python` format values for people.

#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "peers choose the numbers"
)]

mod big;
mod convert;
pub mod json;
pub mod levels;
mod merge;
pub mod msgpack;
pub mod python;
mod url;

use std::fmt;
use std::hash::{Hash, Hasher};

pub use big::BigInt;
pub use convert::{FromValue, WrongType};
pub use merge::{merge, merge_deep};
pub use url::{percent_encoded, percent_encoded_path};

/// One item of data, as exchanged between all parts of Brine.
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// Null: `None`, `null`, `~`.
    #[default]
    Nil,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer above [`i64::MAX`]; smaller ones are always [`Value::Int`].
    UInt(u64),
    /// An integer beyond 64 bits. It is a string on the wire, as in Salt.
    Big(BigInt),
    /// A floating point number.
    Float(f64),
    /// A string.
    Str(String),
    /// Bytes that are not UTF-8.
    Bytes(Vec<u8>),
    /// A list. Tuples become lists on the wire.
    List(Vec<Value>),
    /// A mapping in insertion order.
    Map(Map),
}

/// An ordered mapping whose keys may be of any type.
pub type Map = indexmap::IndexMap<Value, Value>;

impl Value {
    /// Returns the empty mapping.
    pub fn map() -> Self {
        Value::Map(Map::new())
    }

    /// Returns the string, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(s) => Some(s),
            _ => None,
        }
    }

    /// Returns the boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// Returns the integer, if this is one that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(n) => Some(*n),
            _ => None,
        }
    }

    /// Returns the number as floating point, if this is a number.
    #[allow(clippy::cast_precision_loss, reason = "the nearest float, as in Python")]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::UInt(n) => Some(*n as f64),
            Value::Big(n) => Some(n.as_f64()),
            Value::Float(f) => Some(*f),
            _ => None,
        }
    }

    /// Returns the items, if this is a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the mapping, if this is one.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the mapping mutably, if this is one.
    pub fn as_map_mut(&mut self) -> Option<&mut Map> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the bytes of a string or of bytes.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Str(s) => Some(s.as_bytes()),
            Value::Bytes(b) => Some(b),
            _ => None,
        }
    }

    /// Returns the value of a string key, if this is a mapping that contains it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map().and_then(|map| map.get(key))
    }

    /// Whether this is null.
    pub fn is_nil(&self) -> bool {
        matches!(self, Value::Nil)
    }

    /// Whether this is true in Python: empty, zero and null are false.
    pub fn is_truthy(&self) -> bool {
        match self {
            Value::Nil => false,
            Value::Bool(b) => *b,
            Value::Int(n) => *n != 0,
            Value::UInt(_) | Value::Big(_) => true,
            Value::Float(f) => *f != 0.0,
            Value::Str(s) => !s.is_empty(),
            Value::Bytes(b) => !b.is_empty(),
            Value::List(l) => !l.is_empty(),
            Value::Map(m) => !m.is_empty(),
        }
    }

    /// Returns Python's name of this type, for messages to authors of YAML.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Nil => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::UInt(_) | Value::Big(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "str",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "list",
            Value::Map(_) => "dict",
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Nil, Value::Nil) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::UInt(a), Value::UInt(b)) => a == b,
            (Value::Big(a), Value::Big(b)) => a == b,
            // Compares the bits, so that equality is an equivalence relation and agrees with `Hash`: NaN equals itself.
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Str(a), Value::Str(b)) => a == b,
            (Value::Bytes(a), Value::Bytes(b)) => a == b,
            (Value::List(a), Value::List(b)) => a == b,
            (Value::Map(a), Value::Map(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            // A string hashes like `str`, so that mappings can be searched by `&str` without a copy.
            Value::Str(s) => s.as_str().hash(state),
            Value::Nil => 0u8.hash(state),
            Value::Bool(b) => b.hash(state),
            Value::Int(n) => n.hash(state),
            Value::UInt(n) => n.hash(state),
            Value::Big(n) => n.hash(state),
            Value::Float(f) => f.to_bits().hash(state),
            Value::Bytes(b) => b.hash(state),
            Value::List(l) => l.hash(state),
            // Equality of mappings ignores the order, so the hash must, too.
            Value::Map(m) => m.len().hash(state),
        }
    }
}

impl indexmap::Equivalent<Value> for str {
    fn equivalent(&self, key: &Value) -> bool {
        key.as_str() == Some(self)
    }
}

/// Formats like Python's `str()`: strings bare, containers as literals.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Str(s) => f.write_str(s),
            other => python::write_repr(other, f),
        }
    }
}

/// Builds a [`Map`] from `key => value` pairs of types that convert to [`Value`].
#[macro_export]
macro_rules! map {
    ($($key:expr => $value:expr),* $(,)?) => {{
        #[allow(unused_mut)]
        let mut map = $crate::Map::new();
        $(map.insert($crate::Value::from($key), $crate::Value::from($value));)*
        map
    }};
}

/// Builds a [`Value::List`] from items of types that convert to [`Value`].
#[macro_export]
macro_rules! list {
    ($($item:expr),* $(,)?) => {
        $crate::Value::List(vec![$($crate::Value::from($item)),*])
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_searched_by_string_without_a_copy() {
        let map = map! {"a" => 1, 2 => "two"};
        assert_eq!(map.get("a"), Some(&Value::Int(1)));
        assert_eq!(map.get("b"), None);
        assert_eq!(map.get(&Value::Int(2)), Some(&Value::from("two")));
    }

    #[test]
    fn equality_of_mappings_ignores_order() {
        assert_eq!(Value::from(map! {"a" => 1, "b" => 2}), Value::from(map! {"b" => 2, "a" => 1}));
    }

    #[test]
    fn truthiness_matches_python() {
        for (value, truth) in [
            (Value::Nil, false),
            (Value::from(""), false),
            (Value::from("no"), true),
            (Value::from(0), false),
            (Value::from(0.5), true),
            (list![], false),
            (Value::map(), false),
            (list![Value::Nil], true),
        ] {
            assert_eq!(value.is_truthy(), truth, "{value:?}");
        }
    }
}

//! Values as JSON.

use std::borrow::Cow;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::value::RawValue;

use super::{Map, Value};

/// Formats a value as JSON on one line with Python's spacing (`, ` and `: `), as Salt prints events.
pub fn to_json(value: &Value) -> String {
    write(value, PythonSpacing)
}

/// Formats a value as JSON over several lines.
pub fn to_json_pretty(value: &Value, indent: usize) -> String {
    let spaces = " ".repeat(indent);
    write(value, serde_json::ser::PrettyFormatter::with_indent(spaces.as_bytes()))
}

/// Returns a copy with all mappings sorted by the string form of their keys.
pub fn sorted(value: &Value) -> Value {
    match value {
        Value::List(items) => Value::List(items.iter().map(sorted).collect()),
        Value::Map(map) => {
            let mut pairs: Vec<_> = map.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            pairs.sort_by_key(|(key, _)| key.to_string());
            Value::Map(pairs.into_iter().collect())
        }
        other => other.clone(),
    }
}

/// Parses JSON.
pub fn from_json(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

fn write(value: &Value, formatter: impl serde_json::ser::Formatter) -> String {
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    // Cannot fail: keys are always converted to strings below, a `Vec` accepts all writes, and the output is UTF-8.
    _ = value.serialize(&mut serializer);
    String::from_utf8(out).unwrap_or_default()
}

struct PythonSpacing;

impl serde_json::ser::Formatter for PythonSpacing {
    fn begin_array_value<W: ?Sized + std::io::Write>(&mut self, w: &mut W, first: bool) -> std::io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(&mut self, w: &mut W, first: bool) -> std::io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, w: &mut W) -> std::io::Result<()> {
        w.write_all(b": ")
    }
}

/// Returns a key as a string, as Python's `json` writes it.
fn key_text(key: &Value) -> Cow<'_, str> {
    match key {
        Value::Nil => "null".into(),
        Value::Str(text) => text.into(),
        Value::Bool(b) => b.to_string().into(),
        other => other.to_string().into(),
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Nil => serializer.serialize_unit(),
            Value::Bool(b) => serializer.serialize_bool(*b),
            Value::Int(n) => serializer.serialize_i64(*n),
            Value::UInt(n) => serializer.serialize_u64(*n),
            Value::Big(n) if serializer.is_human_readable() => {
                let digits = RawValue::from_string(n.to_string()).map_err(serde::ser::Error::custom)?;
                digits.serialize(serializer)
            }
            Value::Big(n) => serializer.collect_str(n),
            Value::Float(f) => serializer.serialize_f64(*f),
            Value::Str(s) => serializer.serialize_str(s),
            Value::Bytes(b) if serializer.is_human_readable() => serializer.serialize_str(&String::from_utf8_lossy(b)),
            Value::Bytes(b) => serializer.serialize_bytes(b),
            Value::List(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    seq.serialize_element(item)?;
                }
                seq.end()
            }
            Value::Map(map) => {
                let text_keys = serializer.is_human_readable();
                let mut out = serializer.serialize_map(Some(map.len()))?;
                for (key, value) in map {
                    if text_keys {
                        out.serialize_entry(&key_text(key), value)?;
                    } else {
                        out.serialize_entry(key, value)?;
                    }
                }
                out.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

macro_rules! visit {
    ($($method:ident($type:ty)),*) => {
        $(fn $method<E>(self, value: $type) -> Result<Value, E> {
            Ok(Value::from(value))
        })*
    };
}

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any value")
    }

    visit!(
        visit_bool(bool),
        visit_i64(i64),
        visit_u64(u64),
        visit_f64(f64),
        visit_str(&str),
        visit_string(String),
        visit_byte_buf(Vec<u8>)
    );

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Value, E> {
        Ok(Value::Bytes(value.to_vec()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, value)) = access.next_entry::<Value, Value>()? {
            map.insert(key, value);
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{list, map};

    #[test]
    fn one_line_has_pythons_spacing() {
        let value = Value::from(map! {"b" => list![1, 2.5, Value::Nil], "a" => map!{true => "ü"}, 1 => "x"});
        assert_eq!(to_json(&value), r#"{"b": [1, 2.5, null], "a": {"true": "ü"}, "1": "x"}"#);
        assert_eq!(to_json(&list![]), "[]");
    }

    #[test]
    fn json_round_trips() {
        let text = r#"{"z": 1, "a": [true, null, -3, 1.5, "q\n"], "big": 18446744073709551615}"#;
        assert_eq!(to_json(&from_json(text).unwrap()), text);
    }

    #[test]
    fn sorting_is_recursive() {
        let value = from_json(r#"{"b": {"d": 1, "c": 2}, "a": [{"f": 1, "e": 2}]}"#).unwrap();
        assert_eq!(to_json(&sorted(&value)), r#"{"a": [{"e": 2, "f": 1}], "b": {"c": 2, "d": 1}}"#);
    }
}

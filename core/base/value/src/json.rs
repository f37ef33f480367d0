//! Values as JSON.

use std::borrow::Cow;
use std::cell::Cell;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
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

/// The error of parsing JSON within a memory limit.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The text is not JSON.
    #[error(transparent)]
    Syntax(#[from] serde_json::Error),
    /// The value would take more memory than is allowed.
    #[error("the value takes more than the allowed {0} bytes of memory")]
    TooLarge(usize),
}

/// Parses JSON of an untrusted sender. The value takes at most `memory` bytes, from which its size is subtracted
/// (all of it if it does not suffice): a million empty lists are three megabytes of JSON, and a hundred of memory.
///
/// # Examples
/// ```
/// use brine_value::json::from_json_within;
///
/// let mut memory = 5000;
/// assert!(from_json_within("[1, 2, 3]", &mut memory).is_ok());
/// assert!(memory < 5000);
/// assert!(from_json_within(&format!("[1{}]", ",1".repeat(1000)), &mut memory).is_err());
/// ```
///
/// # Errors
/// The text is not JSON, or the value would be too large.
pub fn from_json_within(text: &str, memory: &mut usize) -> Result<Value, JsonError> {
    let meter = Meter { left: Cell::new(*memory), is_exceeded: Cell::new(false) };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = ValueSeed(Some(&meter)).deserialize(&mut deserializer);
    let value = read.and_then(|value| deserializer.end().map(|()| value)).map_err(|error| {
        if !meter.is_exceeded.get() {
            return JsonError::from(error);
        }
        JsonError::TooLarge(std::mem::take(memory))
    })?;
    *memory = meter.left.get();
    Ok(value)
}

/// Counts the memory of a value as it is built.
struct Meter {
    left: Cell<usize>,
    is_exceeded: Cell<bool>,
}

impl Meter {
    fn take<E: serde::de::Error>(&self, bytes: usize) -> Result<(), E> {
        let Some(left) = self.left.get().checked_sub(bytes) else {
            self.is_exceeded.set(true);
            return Err(E::custom("too large"));
        };
        self.left.set(left);
        Ok(())
    }

    fn release(&self, bytes: usize) {
        self.left.set(self.left.get() + bytes);
    }
}

/// The memory of an item of a list, and of an entry of a mapping with its hash and index, in bytes. The allocator rounds
/// sizes up by at most a quarter.
const ITEM_COST: usize = size_of::<Value>() + size_of::<Value>() / 4;
const ENTRY_COST: usize = 2 * ITEM_COST + 32;
/// The smallest capacities of lists and mappings.
const MIN_CAPACITY: usize = 4;

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
        ValueSeed(None).deserialize(deserializer)
    }
}

/// Builds a value, and counts its memory if there is a limit.
#[derive(Clone, Copy)]
struct ValueSeed<'m>(Option<&'m Meter>);

impl ValueSeed<'_> {
    /// Counts a string or bytes.
    fn count<E: serde::de::Error>(self, length: usize) -> Result<(), E> {
        self.0.map_or(Ok(()), |meter| meter.take(length + length / 4 + 16))
    }

    /// Counts the growth of a collection of this capacity, and returns the new one. While the content moves, both
    /// allocations exist: the old one is released afterwards by [`Self::moved`].
    fn grow<E: serde::de::Error>(self, capacity: usize, cost: usize) -> Result<usize, E> {
        let grown = MIN_CAPACITY.max(2 * capacity);
        self.0.map_or(Ok(()), |meter| meter.take(grown.saturating_mul(cost)))?;
        Ok(grown)
    }

    fn moved(self, capacity: usize, cost: usize) {
        if let Some(meter) = self.0 {
            meter.release(capacity * cost);
        }
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

macro_rules! visit {
    ($($method:ident($type:ty)),*) => {
        $(fn $method<E>(self, value: $type) -> Result<Value, E> {
            Ok(Value::from(value))
        })*
    };
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any value")
    }

    visit!(visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64), visit_byte_buf(Vec<u8>));

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.count(value.len())?;
        Ok(value.into())
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        self.count(value.len())?;
        Ok(value.into())
    }

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
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let (mut items, mut counted) = (Vec::new(), 0);
        while let Some(item) = seq.next_element_seed(self)? {
            if items.len() == items.capacity() {
                let grown = self.grow::<A::Error>(counted, ITEM_COST)?;
                items.reserve_exact(grown - items.len());
                self.moved(counted, ITEM_COST);
                counted = grown;
            }
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let (mut map, mut counted) = (Map::new(), 0);
        while let Some((key, value)) = access.next_entry_seed(self, self)? {
            if map.len() == map.capacity() {
                let grown = self.grow::<A::Error>(counted, ENTRY_COST)?;
                map.reserve_exact(grown - map.len());
                self.moved(counted, ENTRY_COST);
                counted = grown;
            }
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
    fn counted_memory_covers_what_is_allocated() {
        let size = 20_000;
        let repeated = |text: &str| format!("[{}1]", text.repeat(size / text.len()));
        for (kind, text) in [
            ("numbers", repeated("1,")),
            ("empty lists", repeated("[],")),
            ("empty mappings", repeated("{},")),
            ("lists of one", repeated("[1],")),
            ("mappings of one", repeated(r#"{"":1},"#)),
            ("empty strings", repeated(r#""","#)),
            ("letters", repeated(r#""a","#)),
            ("words", repeated(r#""web1.example.org","#)),
            ("a string", format!("\"{}\"", "x".repeat(size))),
            (
                "a mapping",
                format!("{{{}\"\":1}}", (0..size / 8).map(|n| format!("\"{n:x}\":1,")).collect::<Vec<_>>().concat()),
            ),
        ] {
            let memory = 200 * size;
            let mut left = memory;
            let before = brine_allocator::held();
            let value = from_json_within(&text, &mut left).unwrap();
            let allocated = usize::try_from(brine_allocator::held() - before).unwrap();
            let counted = memory - left;
            assert!(allocated <= counted + 512, "{kind}: {allocated} bytes are allocated, {counted} counted");
            assert!(counted <= 5 * allocated, "{kind}: {allocated} bytes are allocated, {counted} counted");
            assert_eq!(value, from_json(&text).unwrap());
            let mut less = counted - 1;
            assert!(matches!(from_json_within(&text, &mut less), Err(JsonError::TooLarge(_))), "{kind}");
        }
        assert!(matches!(from_json_within("[1] 2", &mut 1000), Err(JsonError::Syntax(_))));
        assert!(matches!(from_json_within("[", &mut 1000), Err(JsonError::Syntax(_))));
    }

    #[test]
    fn sorting_is_recursive() {
        let value = from_json(r#"{"b": {"d": 1, "c": 2}, "a": [{"f": 1, "e": 2}]}"#).unwrap();
        assert_eq!(to_json(&sorted(&value)), r#"{"a": [{"e": 2, "f": 1}], "b": {"c": 2, "d": 1}}"#);
    }
}

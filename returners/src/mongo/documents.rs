//! Values as BSON and back, and the keys of Salt's documents.
//!
//! BSON has neither integers beyond 64 bits nor keys of other types: both become strings.

use brine_value::{Map, Value};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document};

/// The conversion of a mapping's keys.
pub(super) type Keys = fn(&str) -> String;

/// Returns the key unchanged, except for NUL, which BSON keys cannot contain.
pub(super) fn plain(key: &str) -> String {
    key.replace('\0', "\u{fffd}")
}

/// Converts a key of a return, as Salt does.
pub(super) fn without_dots(key: &str) -> String {
    plain(key).replace('.', "-")
}

/// The characters that keys of jobs cannot contain, and Salt's replacements. `%` is first, because the others contain
/// it.
const ESCAPES: [(char, &str); 4] = [('%', "%25"), ('\\', "%5c"), ('$', "%24"), ('.', "%2e")];

/// Escapes a key of a job, as Salt does.
pub(super) fn escaped(key: &str) -> String {
    ESCAPES.iter().fold(plain(key), |key, (character, escape)| key.replace(*character, escape))
}

/// Reverses [`escaped`].
pub(super) fn unescaped(key: &str) -> String {
    ESCAPES.iter().rev().fold(key.to_owned(), |key, (character, escape)| key.replace(escape, &character.to_string()))
}

/// Converts a mapping to a document. Of keys that are converted to the same key, the last one is kept.
pub(super) fn to_document(map: &Map, keys: Keys) -> Document {
    map.iter().map(|(key, value)| (keys(&key.to_string()), to_bson(value, keys))).collect()
}

fn to_bson(value: &Value, keys: Keys) -> Bson {
    match value {
        Value::Nil => Bson::Null,
        Value::Bool(value) => Bson::Boolean(*value),
        Value::Int(value) => i32::try_from(*value).map_or(Bson::Int64(*value), Bson::Int32),
        Value::Float(value) => Bson::Double(*value),
        Value::UInt(_) | Value::Big(_) => Bson::String(value.to_string()),
        Value::Str(text) => Bson::String(text.clone()),
        Value::Bytes(bytes) => Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: bytes.clone() }),
        Value::List(list) => Bson::Array(list.iter().map(|value| to_bson(value, keys)).collect()),
        Value::Map(map) => Bson::Document(to_document(map, keys)),
    }
}

/// Converts a document to a mapping.
pub(super) fn to_map(document: Document, keys: Keys) -> Map {
    document.into_iter().map(|(key, value)| (keys(&key).into(), to_value(value, keys))).collect()
}

fn to_value(value: Bson, keys: Keys) -> Value {
    match value {
        Bson::Null | Bson::Undefined => Value::Nil,
        Bson::Boolean(value) => value.into(),
        Bson::Int32(value) => i64::from(value).into(),
        Bson::Int64(value) => value.into(),
        Bson::Double(value) => value.into(),
        Bson::String(text) => text.into(),
        Bson::Binary(binary) => Value::Bytes(binary.bytes),
        Bson::Array(list) => list.into_iter().map(|value| to_value(value, keys)).collect::<Vec<_>>().into(),
        Bson::Document(document) => to_map(document, keys).into(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn values_are_read_as_they_were_written() {
        let data = map! {
            "a.b" => map! {"$c%2e\\" => list![1, -5_000_000_000_i64, 2.5, true, Value::Nil, "ü"]},
            "bytes" => Value::Bytes(vec![0xff, 0]), "empty" => map! {},
        };
        let document = to_document(&data, escaped);
        assert!(document.get_document("a%2eb").unwrap().contains_key("%24c%252e%5c"), "{document}");
        assert_eq!(to_map(document, unescaped), data);
    }

    #[test]
    fn keys_have_no_dots() {
        let data = map! {"/etc/a.conf" => map! {"b.c\0" => "d.e"}};
        let expected = map! {"/etc/a-conf" => map! {"b-c\u{fffd}" => "d.e"}};
        assert_eq!(to_map(to_document(&data, without_dots), plain), expected);
        let large = map! {"n" => Value::UInt(u64::MAX)};
        assert_eq!(to_map(to_document(&large, plain), plain), map! {"n" => "18446744073709551615"});
    }
}

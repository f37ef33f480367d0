//! The conversion between [`Value`] and the values of templates, and the arguments of calls.

use brine_value::{Map, Value};
use minijinja::Error;
use minijinja::value::{Kwargs, Value as JinjaValue, ValueKind};

use super::{Dict, List, Origin, is_ordered};
use crate::limits;

/// The maximum nesting of containers; a runaway loop builds deeper ones.
pub(super) const MAX_DEPTH: usize = 200;

/// Converts a value for templates. Lists and mappings are copies that the template may change.
pub(crate) fn to_jinja(value: &Value) -> JinjaValue {
    to_jinja_of(value, &Origin::default())
}

/// Converts like [`to_jinja`] a value inside of a container of this origin.
pub(super) fn to_jinja_of(value: &Value, origin: &Origin) -> JinjaValue {
    match value {
        Value::Nil => JinjaValue::from(()),
        Value::Bool(b) => JinjaValue::from(*b),
        Value::Int(n) => JinjaValue::from(*n),
        Value::UInt(n) => JinjaValue::from(*n),
        // minijinja has integers of 128 bits; larger ones are strings.
        Value::Big(n) => n.as_i128().map_or_else(|| JinjaValue::from(n.to_string()), JinjaValue::from),
        Value::Float(f) => JinjaValue::from(*f),
        Value::Str(s) => JinjaValue::from(s.as_str()),
        Value::Bytes(b) => JinjaValue::from_bytes(b.clone()),
        // A limit is exceeded, and the next check fails.
        Value::List(_) | Value::Map(_) if !limits::walk() => JinjaValue::from(()),
        Value::List(items) => {
            JinjaValue::from_object(List::of(items.iter().map(|item| to_jinja_of(item, origin)), origin))
        }
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| (to_jinja(key), to_jinja_of(value, origin)));
            JinjaValue::from_object(Dict::of(entries, origin))
        }
    }
}

/// Converts like [`to_jinja`], with mappings as Python's `OrderedDict`.
pub(crate) fn to_ordered(value: &Value) -> JinjaValue {
    to_jinja_of(value, &Origin::ordered())
}

/// Converts like [`to_jinja`]; each mapping takes its type (dict or OrderedDict) from the first origin that has a
/// mapping at the same path.
pub(crate) fn like(value: &Value, origins: &[JinjaValue]) -> JinjaValue {
    let inside = |of: &[&JinjaValue], key: &JinjaValue| -> Vec<JinjaValue> {
        of.iter().filter_map(|origin| origin.get_item(key).ok()).collect()
    };
    match value {
        Value::Map(map) => {
            let maps: Vec<_> = origins.iter().filter(|origin| origin.kind() == ValueKind::Map).collect();
            let entries = map.iter().map(|(key, value)| {
                let key = to_jinja(key);
                let value = like(value, &inside(&maps, &key));
                (key, value)
            });
            JinjaValue::from_object(Dict::new(entries, maps.first().is_some_and(|map| is_ordered(map))))
        }
        Value::List(items) => {
            let lists: Vec<_> = origins.iter().filter(|origin| origin.kind() == ValueKind::Seq).collect();
            let items = items.iter().enumerate().map(|(place, item)| like(item, &inside(&lists, &place.into())));
            JinjaValue::from_object(items.collect::<List>())
        }
        _ => to_jinja(value),
    }
}

/// Converts a template's value to plain data. Undefined becomes nil.
pub(crate) fn from_jinja(value: &JinjaValue) -> Value {
    convert(value, 0)
}

fn convert(value: &JinjaValue, depth: usize) -> Value {
    if depth > MAX_DEPTH || !limits::walk() {
        return Value::Nil;
    }
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Value::Nil,
        ValueKind::Bool => Value::Bool(value.is_true()),
        ValueKind::Number => number(value),
        ValueKind::String => Value::from(value.as_str().unwrap_or_default()),
        ValueKind::Bytes => Value::Bytes(value.as_bytes().unwrap_or_default().to_vec()),
        ValueKind::Seq | ValueKind::Iterable => {
            value.try_iter().map(|items| items.map(|item| convert(&item, depth + 1)).collect()).unwrap_or_default()
        }
        ValueKind::Map => Value::Map(
            pairs(value).map(|(key, value)| (convert(&key, depth + 1), convert(&value, depth + 1))).collect(),
        ),
        _ => Value::from(value.to_string()),
    }
}

fn number(value: &JinjaValue) -> Value {
    if !value.is_integer() {
        return f64::try_from(value.clone()).map_or(Value::Nil, Value::Float);
    }
    let large = || i128::try_from(value.clone()).ok().map(Value::from);
    let float = || f64::try_from(value.clone()).map_or(Value::Nil, Value::Float);
    value.as_i64().map(Value::Int).or_else(large).unwrap_or_else(float)
}

/// Returns the entries of a mapping.
pub(crate) fn pairs(map: &JinjaValue) -> impl Iterator<Item = (JinjaValue, JinjaValue)> {
    let keys = map.try_iter().into_iter().flatten();
    keys.map(|key| {
        let value = map.get_item(&key).unwrap_or_default();
        (key, value)
    })
}

/// Splits the arguments of a call into positional and keyword arguments.
pub(crate) fn split_args(args: &[JinjaValue]) -> Result<(Vec<JinjaValue>, Map), Error> {
    let (positional, keyword) = split_kwargs(args)?;
    Ok((positional, keyword.iter().map(|(name, value)| (Value::from(name), from_jinja(value))).collect()))
}

/// Keyword arguments as template values.
pub(crate) type Keywords = Vec<(String, JinjaValue)>;

/// Splits like [`split_args`], without converting values.
pub(crate) fn split_kwargs(args: &[JinjaValue]) -> Result<(Vec<JinjaValue>, Keywords), Error> {
    let Some((last, rest)) = args.split_last().filter(|(last, _)| last.is_kwargs()) else {
        return Ok((args.to_vec(), Vec::new()));
    };
    let kwargs = Kwargs::try_from(last.clone())?;
    let named = kwargs.args().map(|name| Ok((name.to_owned(), kwargs.get::<JinjaValue>(name)?)));
    Ok((rest.to_vec(), named.collect::<Result<_, Error>>()?))
}

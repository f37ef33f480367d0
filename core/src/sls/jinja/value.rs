//! Data in templates: converted in and out, printed as Python prints it, changed in place.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use minijinja::value::{Enumerator, Kwargs, Object, ObjectExt, ObjectRepr, Value as JinjaValue, ValueKind, from_args};
use minijinja::{Error, ErrorKind, Output, State};
use parking_lot::RwLock;

use crate::value::{Map, Value, python};

/// A value as templates see it. Lists and mappings are copies that the template may change.
pub(super) fn to_jinja(value: &Value) -> JinjaValue {
    match value {
        Value::Nil => JinjaValue::from(()),
        Value::Bool(b) => JinjaValue::from(*b),
        Value::Int(n) => JinjaValue::from(*n),
        Value::UInt(n) => JinjaValue::from(*n),
        Value::Float(f) => JinjaValue::from(*f),
        Value::Str(s) => JinjaValue::from(s.as_str()),
        Value::Bytes(b) => JinjaValue::from_bytes(b.clone()),
        Value::List(items) => JinjaValue::from_object(List(RwLock::new(items.iter().map(to_jinja).collect()))),
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| (to_jinja(key), to_jinja(value)));
            JinjaValue::from_object(Dict(RwLock::new(entries.collect())))
        }
    }
}

/// A template's value as all others see it.
pub(super) fn from_jinja(value: &JinjaValue) -> Value {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Value::Nil,
        ValueKind::Bool => Value::Bool(value.is_true()),
        ValueKind::Number => value
            .as_i64()
            .filter(|_| value.is_integer())
            .map_or_else(|| f64::try_from(value.clone()).map_or(Value::Nil, Value::Float), Value::Int),
        ValueKind::String => Value::from(value.as_str().unwrap_or_default()),
        ValueKind::Bytes => Value::Bytes(value.as_bytes().unwrap_or_default().to_vec()),
        ValueKind::Seq | ValueKind::Iterable => {
            value.try_iter().map(|items| items.map(|item| from_jinja(&item)).collect()).unwrap_or_default()
        }
        ValueKind::Map => Value::Map(
            value
                .try_iter()
                .map(|keys| {
                    keys.map(|key| (from_jinja(&key), value.get_item(&key).map(|v| from_jinja(&v)).unwrap_or_default()))
                        .collect()
                })
                .unwrap_or_default(),
        ),
        _ => Value::from(value.to_string()),
    }
}

/// Positional and keyword arguments of a call.
pub(super) fn split_args(args: &[JinjaValue]) -> Result<(Vec<JinjaValue>, Map), Error> {
    let Some((last, rest)) = args.split_last().filter(|(last, _)| last.is_kwargs()) else {
        return Ok((args.to_vec(), Map::new()));
    };
    let kwargs: Kwargs = Kwargs::try_from(last.clone())?;
    let mut keyword = Map::new();
    for name in kwargs.args() {
        keyword.insert(name.into(), from_jinja(&kwargs.get::<JinjaValue>(name)?));
    }
    Ok((rest.to_vec(), keyword))
}

/// Prints a value into the output as Python's `str` does.
pub(super) fn format(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &JinjaValue) -> Result<(), Error> {
    let written = match value.kind() {
        ValueKind::None => out.write_str("None"),
        ValueKind::Bool => out.write_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::String | ValueKind::Undefined => return minijinja::escape_formatter(out, state, value),
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map | ValueKind::Number => {
            let mut text = String::new();
            write_literal(&from_jinja(value), &mut text).and_then(|()| out.write_str(&text))
        }
        _ => out.write_str(&value.to_string()),
    };
    written.map_err(|_| Error::new(ErrorKind::WriteFailure, "the output cannot be written"))
}

/// As `repr`, but texts with line ends inside mappings are double-quoted: what is printed into an SLS
/// must be read by YAML as it was.
fn write_literal(value: &Value, out: &mut String) -> fmt::Result {
    use fmt::Write;
    match value {
        Value::List(items) => {
            out.write_char('[')?;
            for (i, item) in items.iter().enumerate() {
                out.write_str(if i > 0 { ", " } else { "" })?;
                write_literal(item, out)?;
            }
            out.write_char(']')
        }
        Value::Map(map) => {
            out.write_char('{')?;
            for (i, (key, value)) in map.iter().enumerate() {
                out.write_str(if i > 0 { ", " } else { "" })?;
                python::write_repr(key, out)?;
                out.write_str(": ")?;
                match value {
                    Value::Str(text) if text.contains(['\n', '\r', '\t']) => {
                        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
                        let quoted = quoted.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
                        write!(out, "\"{quoted}\"")?;
                    }
                    other => write_literal(other, out)?,
                }
            }
            out.write_char('}')
        }
        other => python::write_repr(other, out),
    }
}

/// A mapping that is shared with others: looked at, not changed.
#[derive(Debug)]
pub(super) struct SharedMap(pub Arc<Map>);

impl Object for SharedMap {
    fn get_value(self: &Arc<Self>, key: &JinjaValue) -> Option<JinjaValue> {
        let found = match key.as_str() {
            Some(text) => self.0.get(text),
            None => self.0.get(&from_jinja(key)),
        };
        found.map(to_jinja)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.keys().map(to_jinja).collect())
    }
}

/// A mapping that the template may change.
#[derive(Debug, Default)]
pub(super) struct Dict(RwLock<IndexMap<JinjaValue, JinjaValue>>);

impl Dict {
    fn update(&self, other: &JinjaValue) -> Result<(), Error> {
        let mut pairs = Vec::new();
        for item in other.try_iter()? {
            if other.kind() == ValueKind::Map {
                pairs.push((item.clone(), other.get_item(&item)?));
            } else {
                pairs.push((item.get_item_by_index(0)?, item.get_item_by_index(1)?));
            }
        }
        self.0.write().extend(pairs);
        Ok(())
    }
}

fn missing(key: &JinjaValue) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("KeyError: {}", python::repr(&from_jinja(key))))
}

impl Object for Dict {
    fn get_value(self: &Arc<Self>, key: &JinjaValue) -> Option<JinjaValue> {
        self.0.read().get(key).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.read().keys().cloned().collect())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.0.read().len())
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        args: &[JinjaValue],
    ) -> Result<JinjaValue, Error> {
        match method {
            "update" => {
                let (positional, keyword) = split_args(args)?;
                for other in &positional {
                    self.update(other)?;
                }
                self.0.write().extend(keyword.iter().map(|(key, value)| (to_jinja(key), to_jinja(value))));
                Ok(JinjaValue::from(()))
            }
            "setdefault" => {
                let (key, default): (JinjaValue, Option<JinjaValue>) = from_args(args)?;
                let default = default.unwrap_or_else(|| JinjaValue::from(()));
                Ok(self.0.write().entry(key).or_insert(default).clone())
            }
            "pop" => {
                let (key, default): (JinjaValue, Option<JinjaValue>) = from_args(args)?;
                self.0.write().shift_remove(&key).or(default).ok_or_else(|| missing(&key))
            }
            "popitem" => {
                let (key, value) = self.0.write().pop().ok_or_else(|| missing(&JinjaValue::from("popitem")))?;
                Ok(JinjaValue::from(vec![key, value]))
            }
            "clear" => {
                self.0.write().clear();
                Ok(JinjaValue::from(()))
            }
            "copy" => Ok(JinjaValue::from_object(Dict(RwLock::new(self.0.read().clone())))),
            // `get`, `items`, `keys`, `values`: the same as for all mappings.
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}

/// A list that the template may change.
#[derive(Debug, Default)]
pub(super) struct List(RwLock<Vec<JinjaValue>>);

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &JinjaValue) -> Option<JinjaValue> {
        self.0.read().get(key.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.mapped_enumerator(|this| Box::new(this.0.read().clone().into_iter()))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.0.read().len())
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        args: &[JinjaValue],
    ) -> Result<JinjaValue, Error> {
        let place = |items: &[JinjaValue], index: i64| {
            let from_end = if index < 0 { index + items.len() as i64 } else { index };
            usize::try_from(from_end).unwrap_or(0)
        };
        let none = || Ok(JinjaValue::from(()));
        let not_there = || Error::new(ErrorKind::InvalidOperation, "ValueError: the list does not have it");
        match method {
            "append" => {
                let (item,): (JinjaValue,) = from_args(args)?;
                self.0.write().push(item);
                none()
            }
            "extend" => {
                let (items,): (JinjaValue,) = from_args(args)?;
                let items: Vec<_> = items.try_iter()?.collect();
                self.0.write().extend(items);
                none()
            }
            "insert" => {
                let (index, item): (i64, JinjaValue) = from_args(args)?;
                let mut items = self.0.write();
                let at = place(&items, index).min(items.len());
                items.insert(at, item);
                none()
            }
            "pop" => {
                let (index,): (Option<i64>,) = from_args(args)?;
                let mut items = self.0.write();
                let at = place(&items, index.unwrap_or(-1));
                if at < items.len() { Ok(items.remove(at)) } else { Err(not_there()) }
            }
            "remove" => {
                let (item,): (JinjaValue,) = from_args(args)?;
                let mut items = self.0.write();
                let at = items.iter().position(|have| *have == item).ok_or_else(not_there)?;
                items.remove(at);
                none()
            }
            "index" => {
                let (item,): (JinjaValue,) = from_args(args)?;
                self.0.read().iter().position(|have| *have == item).map(JinjaValue::from).ok_or_else(not_there)
            }
            "reverse" => {
                self.0.write().reverse();
                none()
            }
            "sort" => {
                self.0.write().sort();
                none()
            }
            "copy" => Ok(JinjaValue::from_object(List(RwLock::new(self.0.read().clone())))),
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}

//! Data in templates: converted in and out, printed as Python prints it.

use std::fmt::{self, Write};

use minijinja::value::{Kwargs, Value as JinjaValue, ValueKind};
use minijinja::{Error, ErrorKind, Output, State};

use super::containers::{Dict, List, Mark, Range, View};
use crate::value::{Map, Value, python};

/// Containers inside each other. What is deeper was made by a loop that went wrong.
const MAX_DEPTH: usize = 200;

/// A value as templates see it. Lists and mappings are copies that the template may change.
pub(super) fn to_jinja(value: &Value) -> JinjaValue {
    to_marked(value, &Mark::default())
}

/// As [`to_jinja`], with a mark that is set when something in it is changed.
pub(super) fn to_marked(value: &Value, mark: &Mark) -> JinjaValue {
    match value {
        Value::Nil => JinjaValue::from(()),
        Value::Bool(b) => JinjaValue::from(*b),
        Value::Int(n) => JinjaValue::from(*n),
        Value::UInt(n) => JinjaValue::from(*n),
        // What not even 128 bits hold is text there.
        Value::Big(n) => n.as_i128().map_or_else(|| JinjaValue::from(n.to_string()), JinjaValue::from),
        Value::Float(f) => JinjaValue::from(*f),
        Value::Str(s) => JinjaValue::from(s.as_str()),
        Value::Bytes(b) => JinjaValue::from_bytes(b.clone()),
        Value::List(items) => {
            JinjaValue::from_object(List::marked(items.iter().map(|item| to_marked(item, mark)), mark))
        }
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| (to_jinja(key), to_marked(value, mark)));
            JinjaValue::from_object(Dict::marked(entries, mark))
        }
    }
}

/// A template's value as all others see it. What is undefined is nothing.
pub(super) fn from_jinja(value: &JinjaValue) -> Value {
    convert(value, 0)
}

fn convert(value: &JinjaValue, depth: usize) -> Value {
    if depth > MAX_DEPTH {
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

/// The entries of a mapping.
pub(super) fn pairs(map: &JinjaValue) -> impl Iterator<Item = (JinjaValue, JinjaValue)> {
    let keys = map.try_iter().into_iter().flatten();
    keys.map(|key| {
        let value = map.get_item(&key).unwrap_or_default();
        (key, value)
    })
}

/// Positional and keyword arguments of a call.
pub(super) fn split_args(args: &[JinjaValue]) -> Result<(Vec<JinjaValue>, Map), Error> {
    let (positional, keyword) = split_kwargs(args)?;
    Ok((positional, keyword.iter().map(|(name, value)| (Value::from(name), from_jinja(value))).collect()))
}

/// Keyword arguments as the template has them.
pub(super) type Keywords = Vec<(String, JinjaValue)>;

/// As [`split_args`], with the values as the template has them.
pub(super) fn split_kwargs(args: &[JinjaValue]) -> Result<(Vec<JinjaValue>, Keywords), Error> {
    let Some((last, rest)) = args.split_last().filter(|(last, _)| last.is_kwargs()) else {
        return Ok((args.to_vec(), Vec::new()));
    };
    let kwargs = Kwargs::try_from(last.clone())?;
    let named = kwargs.args().map(|name| Ok((name.to_owned(), kwargs.get::<JinjaValue>(name)?)));
    Ok((rest.to_vec(), named.collect::<Result<_, Error>>()?))
}

/// Prints a value into the output as Python's `str` does.
pub(super) fn format(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &JinjaValue) -> Result<(), Error> {
    match value.kind() {
        ValueKind::String | ValueKind::Undefined => minijinja::escape_formatter(out, state, value),
        _ => {
            refuse_undefined_entries(value, 0)?;
            let failed = |_| Error::new(ErrorKind::WriteFailure, "the output cannot be written");
            out.write_str(&text(value)).map_err(failed)
        }
    }
}

/// Refuses a mapping with an undefined value in it: these are printed, where items of lists are only shown.
pub(super) fn refuse_undefined_entries(value: &JinjaValue, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH || value.downcast_object_ref::<Dict>().is_none() {
        return Ok(());
    }
    for (_, inner) in pairs(value) {
        if inner.is_undefined() {
            // Only minijinja itself can say which expression it comes from.
            inner.get_attr("")?;
        }
        refuse_undefined_entries(&inner, depth + 1)?;
    }
    Ok(())
}

/// The text that Python's `str` gives.
pub(super) fn text(value: &JinjaValue) -> String {
    let mut out = String::new();
    // Writing into a `String` cannot fail.
    _ = match value.as_str().filter(|_| value.kind() == ValueKind::String) {
        Some(text) => out.write_str(text),
        None => write(value, &mut out, 0),
    };
    out
}

/// Writes as Python's `repr` does, but texts with line ends inside mappings are double-quoted: what is
/// printed into an SLS must be read by YAML as it was.
pub(super) fn write(value: &JinjaValue, out: &mut impl Write, depth: usize) -> fmt::Result {
    if depth > MAX_DEPTH {
        return out.write_str("...");
    }
    match value.kind() {
        ValueKind::Undefined => out.write_str("Undefined"),
        ValueKind::Map => write_map(value, out, depth),
        ValueKind::Seq | ValueKind::Iterable => match value.downcast_object_ref::<View>() {
            Some(view) => {
                write!(out, "{}(", view.name())?;
                write_items(value, out, depth, ["[", "]"])?;
                out.write_char(')')
            }
            None if value.is_tuple() => {
                let one = value.len() == Some(1);
                write_items(value, out, depth, ["(", if one { ",)" } else { ")" }])
            }
            None if value.downcast_object_ref::<Range>().is_some() => write!(out, "{value}"),
            None => write_items(value, out, depth, ["[", "]"]),
        },
        // However large.
        ValueKind::Number if value.is_integer() => write!(out, "{value}"),
        ValueKind::String if value.is_safe() => {
            out.write_str("Markup(")?;
            python::write_repr(&convert(value, 0), out)?;
            out.write_char(')')
        }
        ValueKind::None | ValueKind::Bool | ValueKind::Number | ValueKind::String | ValueKind::Bytes => {
            python::write_repr(&convert(value, 0), out)
        }
        _ => write!(out, "{value}"),
    }
}

fn write_items(value: &JinjaValue, out: &mut impl Write, depth: usize, ends: [&str; 2]) -> fmt::Result {
    out.write_str(ends[0])?;
    for (i, item) in value.try_iter().into_iter().flatten().enumerate() {
        out.write_str(if i > 0 { ", " } else { "" })?;
        write(&item, out, depth + 1)?;
    }
    out.write_str(ends[1])
}

fn write_map(value: &JinjaValue, out: &mut impl Write, depth: usize) -> fmt::Result {
    // Such as a module or a namespace, which say themselves what they are.
    if value.downcast_object_ref::<Dict>().is_none() && !super::containers::is_plain_map(value) {
        if super::operators::type_name(value) == "Namespace" {
            let entries: JinjaValue = JinjaValue::from_object(pairs(value).collect::<Dict>());
            out.write_str("<Namespace ")?;
            write(&entries, out, depth + 1)?;
            return out.write_char('>');
        }
        return write!(out, "{value}");
    }
    out.write_char('{')?;
    for (i, (key, value)) in pairs(value).enumerate() {
        out.write_str(if i > 0 { ", " } else { "" })?;
        write(&key, out, depth + 1)?;
        out.write_str(": ")?;
        match value.as_str() {
            Some(text) if text.contains(['\n', '\r', '\t']) => out.write_str(&double_quoted(text))?,
            _ => write(&value, out, depth + 1)?,
        }
    }
    out.write_char('}')
}

/// A text as YAML's double-quoted scalar on one line.
pub(super) fn double_quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0' => out.push_str("\\0"),
            c if c.is_control() => _ = write!(out, "\\x{:02X}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

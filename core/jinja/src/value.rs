//! Data in templates: its conversion from and to [`Value`], and Python's printing.

use std::fmt::{self, Write};

use brine_value::{Map, Value, python};
use minijinja::value::{Kwargs, Tuple, Value as JinjaValue, ValueKind};
use minijinja::{Error, ErrorKind, Output, State};

use super::containers::{Dict, List, Origin, Range, View, is_ordered};
use super::limits;
use super::operators::is_lenient;

/// The maximum nesting of containers; a runaway loop builds deeper ones.
const MAX_DEPTH: usize = 200;

/// Converts a value for templates. Lists and mappings are copies that the template may change.
pub(super) fn to_jinja(value: &Value) -> JinjaValue {
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
pub(super) fn to_ordered(value: &Value) -> JinjaValue {
    to_jinja_of(value, &Origin::ordered())
}

/// Converts like [`to_jinja`]; each mapping takes its type (dict or OrderedDict) from the first origin that has a
/// mapping at the same path.
pub(super) fn like(value: &Value, origins: &[JinjaValue]) -> JinjaValue {
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
pub(super) fn from_jinja(value: &JinjaValue) -> Value {
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
pub(super) fn pairs(map: &JinjaValue) -> impl Iterator<Item = (JinjaValue, JinjaValue)> {
    let keys = map.try_iter().into_iter().flatten();
    keys.map(|key| {
        let value = map.get_item(&key).unwrap_or_default();
        (key, value)
    })
}

/// Splits the arguments of a call into positional and keyword arguments.
pub(super) fn split_args(args: &[JinjaValue]) -> Result<(Vec<JinjaValue>, Map), Error> {
    let (positional, keyword) = split_kwargs(args)?;
    Ok((positional, keyword.iter().map(|(name, value)| (Value::from(name), from_jinja(value))).collect()))
}

/// Keyword arguments as template values.
pub(super) type Keywords = Vec<(String, JinjaValue)>;

/// Splits like [`split_args`], without converting values.
pub(super) fn split_kwargs(args: &[JinjaValue]) -> Result<(Vec<JinjaValue>, Keywords), Error> {
    let Some((last, rest)) = args.split_last().filter(|(last, _)| last.is_kwargs()) else {
        return Ok((args.to_vec(), Vec::new()));
    };
    let kwargs = Kwargs::try_from(last.clone())?;
    let named = kwargs.args().map(|name| Ok((name.to_owned(), kwargs.get::<JinjaValue>(name)?)));
    Ok((rest.to_vec(), named.collect::<Result<_, Error>>()?))
}

/// Writes a value to the output as Python's `str`.
pub(super) fn format(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &JinjaValue) -> Result<(), Error> {
    match value.kind() {
        ValueKind::String | ValueKind::Undefined => {
            limits::reserve(value.as_str().map_or(0, str::len))?;
            minijinja::escape_formatter(out, state, value)?;
        }
        _ => {
            refuse_undefined_entries(value, 0)?;
            let failed = |_| Error::new(ErrorKind::WriteFailure, "the output cannot be written");
            let text = in_form(value, Form::Printed);
            limits::reserve(text.len())?;
            out.write_str(&text).map_err(failed)?;
        }
    }
    limits::check_fuel(state)
}

/// Returns the text that `{{ value }}` prints.
pub(super) fn printed(value: &JinjaValue) -> Result<String, Error> {
    refuse_undefined_entries(value, 0)?;
    Ok(in_form(value, Form::Printed))
}

/// Returns an error for a mapping that contains an undefined value, directly or in an inner mapping. Undefined items of
/// lists are no error, as in Salt.
pub(super) fn refuse_undefined_entries(value: &JinjaValue, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH || value.downcast_object_ref::<Dict>().is_none() {
        return Ok(());
    }
    limits::check()?;
    for (_, inner) in pairs(value) {
        if inner.is_undefined() && !is_lenient() {
            // minijinja's own error names the expression.
            inner.get_attr("")?;
        }
        refuse_undefined_entries(&inner, depth + 1)?;
    }
    Ok(())
}

/// Returns the text of Python's `str`.
pub(super) fn text(value: &JinjaValue) -> String {
    in_form(value, Form::Str)
}

fn in_form(value: &JinjaValue, form: Form) -> String {
    let mut out = String::new();
    if value.is_undefined() && is_lenient() {
        return out;
    }
    // Writing into a `String` cannot fail.
    _ = match value.as_str().filter(|_| value.kind() == ValueKind::String) {
        Some(text) => out.write_str(text),
        None => write_form(value, &mut out, form, 0),
    };
    out
}

/// The notation of containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As `{{ value }}`: all mappings in braces, and multi-line strings in them double-quoted, so that YAML in an SLS
    /// parses the same value.
    Printed,
    /// As Python's `str` and `repr`.
    Str,
}

/// Writes a value as Python's `repr`.
pub(super) fn write(value: &JinjaValue, out: &mut impl Write) -> fmt::Result {
    write_form(value, out, Form::Str, 0)
}

fn write_form(value: &JinjaValue, out: &mut impl Write, form: Form, depth: usize) -> fmt::Result {
    if depth > MAX_DEPTH {
        return out.write_str("...");
    }
    if !limits::walk() {
        return Err(fmt::Error);
    }
    match value.kind() {
        ValueKind::Undefined => out.write_str("Undefined"),
        ValueKind::Map => write_map(value, out, form, depth),
        ValueKind::Seq | ValueKind::Iterable => match value.downcast_object_ref::<View>() {
            Some(view) => {
                write!(out, "{}(", view.name())?;
                write_items(value, out, Form::Str, depth, ["[", "]"])?;
                out.write_char(')')
            }
            None if value.is_tuple() => {
                let one = value.len() == Some(1);
                write_items(value, out, form, depth, ["(", if one { ",)" } else { ")" }])
            }
            None if value.downcast_object_ref::<Range>().is_some() => write!(out, "{value}"),
            None => write_items(value, out, form, depth, ["[", "]"]),
        },
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

fn write_items(value: &JinjaValue, out: &mut impl Write, form: Form, depth: usize, ends: [&str; 2]) -> fmt::Result {
    out.write_str(ends[0])?;
    for (i, item) in value.try_iter().into_iter().flatten().enumerate() {
        out.write_str(if i > 0 { ", " } else { "" })?;
        write_form(&item, out, form, depth + 1)?;
    }
    out.write_str(ends[1])
}

fn write_map(value: &JinjaValue, out: &mut impl Write, form: Form, depth: usize) -> fmt::Result {
    // Modules and namespaces have their own notation.
    if value.downcast_object_ref::<Dict>().is_none() && !super::containers::is_plain_map(value) {
        if super::operators::type_name(value) == "Namespace" {
            let entries: JinjaValue = JinjaValue::from_object(pairs(value).collect::<Dict>());
            out.write_str("<Namespace ")?;
            write_form(&entries, out, Form::Str, depth + 1)?;
            return out.write_char('>');
        }
        return write!(out, "{value}");
    }
    if form == Form::Str && is_ordered(value) {
        if value.len() == Some(0) {
            return out.write_str("OrderedDict()");
        }
        out.write_str("OrderedDict(")?;
        let items = pairs(value).map(|(key, value)| JinjaValue::from(Tuple::from([key, value])));
        write_items(&items.collect(), out, form, depth, ["[", "]"])?;
        return out.write_char(')');
    }
    out.write_char('{')?;
    for (i, (key, value)) in pairs(value).enumerate() {
        out.write_str(if i > 0 { ", " } else { "" })?;
        write_form(&key, out, form, depth + 1)?;
        out.write_str(": ")?;
        match value.as_str() {
            Some(text) if form == Form::Printed && text.contains(['\n', '\r', '\t']) => {
                out.write_str(&double_quoted(text))?;
            }
            _ => write_form(&value, out, form, depth + 1)?,
        }
    }
    out.write_char('}')
}

/// Returns a string as YAML's double-quoted scalar on one line.
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

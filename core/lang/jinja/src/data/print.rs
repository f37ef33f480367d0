//! Values as text: what `{{ value }}` prints, Python's `str` and `repr`, and YAML's double-quoted scalar.

use std::fmt::{self, Write};

use brine_value::python;
use minijinja::value::{Tuple, Value as JinjaValue, ValueKind};
use minijinja::{Error, ErrorKind, Output, State};

use super::convert::{MAX_DEPTH, from_jinja, pairs};
use super::types::type_name;
use super::undefined::{is_lenient, refuse_undefined_entries};
use super::{Dict, Range, View, is_ordered, is_plain_map};
use crate::limits;

/// Writes a value to the output as Python's `str`.
pub(crate) fn format(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &JinjaValue) -> Result<(), Error> {
    match value.kind() {
        ValueKind::String | ValueKind::Undefined => {
            limits::reserve(value.as_str().map_or(0, str::len))?;
            minijinja::escape_formatter(out, state, value)?;
        }
        _ => {
            refuse_undefined_entries(value)?;
            let failed = |_| Error::new(ErrorKind::WriteFailure, "the output cannot be written");
            let text = in_form(value, Form::Printed);
            limits::reserve(text.len())?;
            out.write_str(&text).map_err(failed)?;
        }
    }
    limits::check_fuel(state)
}

/// Returns the text that `{{ value }}` prints.
pub(crate) fn printed(value: &JinjaValue) -> Result<String, Error> {
    refuse_undefined_entries(value)?;
    Ok(in_form(value, Form::Printed))
}

/// Returns the text of Python's `str`.
pub(crate) fn text(value: &JinjaValue) -> String {
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
            python::write_repr(&from_jinja(value), out)?;
            out.write_char(')')
        }
        ValueKind::None | ValueKind::Bool | ValueKind::Number | ValueKind::String | ValueKind::Bytes => {
            python::write_repr(&from_jinja(value), out)
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
    if value.downcast_object_ref::<Dict>().is_none() && !is_plain_map(value) {
        if type_name(value) == "Namespace" {
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
pub(crate) fn double_quoted(text: &str) -> String {
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

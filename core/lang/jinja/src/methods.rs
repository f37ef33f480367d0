//! Python's methods of strings, sequences and mappings that minijinja lacks, and methods as values.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use brine_text::tabs;
use minijinja::formatting::FormatStyle;
use minijinja::value::{Object, ObjectRepr, Tuple, Value as JinjaValue, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State};
use minijinja_contrib::pycompat;

use super::data::{
    Dict, List, View, is_ordered, pairs, refuse_undefined, split_kwargs, to_mutable, type_name, type_name_in_errors,
};
use super::formatting;
use super::limits;
use super::messages::UNDEFINED;

/// The maximum length of a padded string, in characters: a width must not exhaust memory.
const MAX_WIDTH: usize = 1 << 20;

/// The public methods of Python's mappings.
const OF_DICT: &[&str] =
    &["clear", "copy", "fromkeys", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"];

/// The public methods of Python's lists.
const OF_LIST: &[&str] =
    &["append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort"];

/// The public methods of Python's strings.
const OF_STRING: &[&str] = &[
    "capitalize",
    "casefold",
    "center",
    "count",
    "encode",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "maketrans",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "translate",
    "upper",
    "zfill",
];

/// The public methods of Python's integers.
const OF_INTEGER: &[&str] =
    &["as_integer_ratio", "bit_count", "bit_length", "conjugate", "from_bytes", "is_integer", "to_bytes"];

/// The public methods of Python's floating point numbers.
const OF_FLOAT: &[&str] = &["as_integer_ratio", "conjugate", "fromhex", "hex", "is_integer"];

/// A method of a value that is not called yet.
#[derive(Debug)]
pub(super) struct BoundMethod {
    of: JinjaValue,
    name: String,
}

impl BoundMethod {
    /// Returns the method of this name that a value has in Python.
    pub(super) fn of(value: &JinjaValue, name: &str) -> Option<JinjaValue> {
        let names = match type_name(value) {
            "dict" | "collections.OrderedDict" => OF_DICT,
            "list" => OF_LIST,
            "tuple" | "range" => &["count", "index"],
            "str" | "Markup" => OF_STRING,
            "int" | "bool" => OF_INTEGER,
            "float" => OF_FLOAT,
            _ => &[],
        };
        let has = names.contains(&name) || (type_name(value) == "collections.OrderedDict" && name == "move_to_end");
        has.then(|| JinjaValue::from_object(BoundMethod { of: value.clone(), name: name.to_owned() }))
    }
}

impl Object for BoundMethod {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<built-in method {} of {} object>", self.name, type_name(&self.of))
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[JinjaValue]) -> Result<JinjaValue, Error> {
        self.of.call_method(state, &self.name, args)
    }
}

/// Returns the attribute of a value that a test examines: a method, or as in Jinja else an entry.
pub(super) fn tested_attribute(value: &JinjaValue, name: &str) -> Result<JinjaValue, Error> {
    refuse_undefined(value)?;
    match (type_name(value), name) {
        ("int" | "bool" | "float", "real" | "imag") | ("int" | "bool", "numerator" | "denominator") => {
            Ok(value.clone())
        }
        _ => BoundMethod::of(value, name).map_or_else(|| value.get_attr(name), Ok),
    }
}

/// Returns the item of a value that a test examines: an entry, or as in Jinja else a method.
pub(super) fn tested_item(value: &JinjaValue, key: &JinjaValue) -> Result<JinjaValue, Error> {
    refuse_undefined(value)?;
    if value.kind() == ValueKind::Map {
        // Python cannot look it up.
        refuse_undefined(key)?;
    }
    let item = value.get_item(key)?;
    match key.as_str() {
        Some(name) if item.is_undefined() => tested_attribute(value, name),
        _ => Ok(item),
    }
}

/// Calls a method that the value does not have itself.
pub(super) fn call(
    state: &mut State<'_, '_>,
    value: &JinjaValue,
    method: &str,
    args: &[JinjaValue],
) -> Result<JinjaValue, Error> {
    let args = &*by_position(method, args)?;
    if value.kind() == ValueKind::String {
        args.iter().try_for_each(refuse_undefined)?;
        reserve(value.as_str().unwrap_or_default(), method, args)?;
    }
    let own_answer = match value.kind() {
        ValueKind::String => string(value.as_str().unwrap_or_default(), method, args)?,
        ValueKind::Map => match (method, args) {
            // A shallow copy, as in Python: inner containers stay shared.
            ("copy", []) => Some(JinjaValue::from_object(Dict::new(pairs(value), is_ordered(value)))),
            // An undefined value is not a default in minijinja.
            ("get", [key, default]) => {
                refuse_undefined(key)?;
                Some(Some(value.get_item(key)?).filter(|item| !item.is_undefined()).unwrap_or_else(|| default.clone()))
            }
            ("get", [key]) => {
                refuse_undefined(key)?;
                None
            }
            (_, []) => View::of(value, method),
            _ => None,
        },
        ValueKind::Seq | ValueKind::Iterable => sequence(value, method, args)?,
        ValueKind::Bytes if method == "decode" => Some(decoded(value.as_bytes().unwrap_or_default())?),
        _ => None,
    };
    let called = match own_answer {
        Some(answer) => answer,
        None => pycompat::unknown_method_callback(state, value, method, args)
            .map_err(|error| lacking(value, method, error))?,
    };
    // Lists returned by methods are mutable.
    Ok(to_mutable(&called))
}

/// Reserves the memory of a string method's result.
fn reserve(text: &str, method: &str, args: &[JinjaValue]) -> Result<(), Error> {
    match (method, args) {
        ("split" | "rsplit" | "splitlines", _) => limits::reserve_parts(text),
        ("replace", [old, new, ..]) => {
            limits::reserve_replaced(text, old.as_str().unwrap_or_default(), new.as_str().unwrap_or_default())
        }
        ("join", [items]) if items.kind() != ValueKind::Map => {
            let items = items.try_iter()?.collect::<Vec<_>>();
            let size = |item: &JinjaValue| item.as_str().map_or(0, str::len).saturating_add(text.len());
            limits::reserve(items.iter().map(size).fold(0, usize::saturating_add))
        }
        ("expandtabs", [width, ..]) => {
            let width = width.as_usize().unwrap_or(8).min(MAX_WIDTH);
            limits::reserve(text.matches('\t').count().saturating_mul(width).saturating_add(text.len()))
        }
        _ => limits::reserve(text.len()),
    }
}

/// Decodes bytes as UTF-8.
fn decoded(bytes: &[u8]) -> Result<JinjaValue, Error> {
    std::str::from_utf8(bytes).map(JinjaValue::from).map_err(|error| {
        let (at, byte) = (error.valid_up_to(), bytes.get(error.valid_up_to()).copied().unwrap_or_default());
        let why = if error.error_len().is_none() { "unexpected end of data" } else { "invalid start byte" };
        let message = format!("'utf-8' codec can't decode byte {byte:#04x} in position {at}: {why}");
        Error::new(ErrorKind::InvalidOperation, message)
    })
}

/// Returns the error of a missing method, with the type that lacks it.
fn lacking(value: &JinjaValue, method: &str, error: Error) -> Error {
    if error.kind() != ErrorKind::UnknownMethod || value.is_undefined() {
        return error;
    }
    let message = format!("{UNDEFINED}'{}' has no attribute '{method}'", type_name_in_errors(value));
    // minijinja handles errors of this kind as missing attributes.
    Error::new(ErrorKind::UnknownMethod, message)
}

/// Returns the arguments of a method by position; some are named in calls.
fn by_position<'a>(method: &str, args: &'a [JinjaValue]) -> Result<Cow<'a, [JinjaValue]>, Error> {
    let names: &[&str] = match method {
        "split" | "rsplit" => &["sep", "maxsplit"],
        "splitlines" => &["keepends"],
        _ => return Ok(args.into()),
    };
    let (mut positional, named) = split_kwargs(args)?;
    for name in names.iter().skip(positional.len()) {
        let argument = named.iter().find(|(keyword, _)| keyword == name).map(|(_, value)| value.clone());
        positional.push(argument.unwrap_or_else(|| JinjaValue::from(())));
    }
    while positional.last().is_some_and(JinjaValue::is_none) {
        positional.pop();
    }
    Ok(positional.into())
}

fn sequence(value: &JinjaValue, method: &str, args: &[JinjaValue]) -> Result<Option<JinjaValue>, Error> {
    Ok(match (method, args) {
        ("copy", []) => Some(JinjaValue::from_object(value.try_iter()?.collect::<List>())),
        ("index", [item]) => {
            let absent = || Error::new(ErrorKind::InvalidOperation, "the item is not in the sequence");
            Some(JinjaValue::from(value.try_iter()?.position(|have| have == *item).ok_or_else(absent)?))
        }
        _ => None,
    })
}

fn string(text: &str, method: &str, args: &[JinjaValue]) -> Result<Option<JinjaValue>, Error> {
    let parts = |parts: [&str; 3]| JinjaValue::from(Tuple::from(parts.map(JinjaValue::from)));
    Ok(Some(match method {
        "partition" => {
            let (by,): (&str,) = from_args(args)?;
            text.split_once(by).map_or_else(|| parts([text, "", ""]), |(before, after)| parts([before, by, after]))
        }
        "rpartition" => {
            let (by,): (&str,) = from_args(args)?;
            text.rsplit_once(by).map_or_else(|| parts(["", "", text]), |(before, after)| parts([before, by, after]))
        }
        "rsplit" => rsplit(text, args)?,
        "zfill" => {
            let (width,): (usize,) = from_args(args)?;
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['-', '+'])));
            JinjaValue::from(format!("{sign}{}{digits}", fill('0', width, text)))
        }
        "ljust" | "rjust" | "center" => {
            let (width, fill_with): (usize, Option<char>) = from_args(args)?;
            let padding = fill(fill_with.unwrap_or(' '), width, text);
            let middle = padding.len() / 2 + usize::from(padding.len() % 2 == 1 && width % 2 == 1);
            JinjaValue::from(match method {
                "ljust" => format!("{text}{padding}"),
                "rjust" => format!("{padding}{text}"),
                _ => {
                    let left: String = padding.chars().take(middle.min(padding.chars().count())).collect();
                    let right: String = padding.chars().skip(left.chars().count()).collect();
                    format!("{left}{text}{right}")
                }
            })
        }
        "index" | "rindex" => {
            let (what,): (&str,) = from_args(args)?;
            let at = if method == "index" { text.find(what) } else { text.rfind(what) };
            let absent = || Error::new(ErrorKind::InvalidOperation, "substring not found");
            JinjaValue::from(text[..at.ok_or_else(absent)?].chars().count())
        }
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            JinjaValue::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            JinjaValue::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "expandtabs" => {
            let (width,): (Option<usize>,) = from_args(args)?;
            JinjaValue::from(tabs::expand(text, width.unwrap_or(8).min(MAX_WIDTH)))
        }
        "format" => JinjaValue::from(formatting::format(FormatStyle::StrFormat, text, args)?),
        "swapcase" => JinjaValue::from(text.chars().flat_map(swap_case).collect::<String>()),
        "isdecimal" => JinjaValue::from(!text.is_empty() && text.chars().all(|c| c.is_ascii_digit())),
        "isidentifier" => JinjaValue::from(
            text.starts_with(|c: char| c == '_' || c.is_alphabetic())
                && text.chars().all(|c| c == '_' || c.is_alphanumeric()),
        ),
        "isprintable" => JinjaValue::from(!text.chars().any(char::is_control)),
        "casefold" => JinjaValue::from(text.to_lowercase()),
        "encode" => JinjaValue::from_bytes(text.as_bytes().to_vec()),
        "join" => {
            let (items,): (&JinjaValue,) = from_args(args)?;
            let items: Vec<JinjaValue> = items.try_iter()?.collect();
            if let Some((place, other)) = items.iter().enumerate().find(|(_, item)| item.as_str().is_none()) {
                let message = format!("sequence item {place}: expected str instance, {} found", type_name(other));
                return Err(Error::new(ErrorKind::InvalidOperation, message));
            }
            JinjaValue::from(items.iter().filter_map(JinjaValue::as_str).collect::<Vec<_>>().join(text))
        }
        _ => return Ok(None),
    }))
}

fn rsplit(text: &str, args: &[JinjaValue]) -> Result<JinjaValue, Error> {
    let (by, most): (Option<&str>, Option<i64>) = from_args(args)?;
    // No limit, or one piece more than the number of splits.
    let pieces = most.and_then(|most| usize::try_from(most).ok()).map_or(usize::MAX, |most| most.saturating_add(1));
    let mut parts: Vec<&str> = match by {
        Some("") => return Err(Error::new(ErrorKind::InvalidOperation, "empty separator")),
        Some(by) => text.rsplitn(pieces, by).collect(),
        None => {
            let (mut parts, mut rest) = (Vec::new(), text.trim_end());
            while parts.len() + 1 < pieces {
                let Some((before, last)) = rest.rsplit_once(char::is_whitespace) else { break };
                parts.push(last);
                rest = before.trim_end();
            }
            if !rest.is_empty() {
                parts.push(rest);
            }
            parts
        }
    };
    parts.reverse();
    Ok(parts.into_iter().map(JinjaValue::from).collect())
}

fn fill(padding: char, width: usize, text: &str) -> String {
    let missing = width.min(MAX_WIDTH).saturating_sub(text.chars().count());
    std::iter::repeat_n(padding, missing).collect()
}

fn swap_case(c: char) -> Vec<char> {
    if c.is_lowercase() { c.to_uppercase().collect() } else { c.to_lowercase().collect() }
}

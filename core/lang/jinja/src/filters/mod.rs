//! The filters, tests and globals of Jinja and Salt that minijinja lacks or implements differently.

mod data;
mod dates;
mod files;
mod globals;
mod links;
mod lists;
mod network;
mod numbers;
mod pattern;
mod query;
mod series;
mod text;
mod undefined;

use std::ops::Deref;

use brine_value::{Map, Value};
use minijinja::functions::Function;
use minijinja::value::{
    ArgType, FunctionArgs, FunctionResult, Kwargs, Rest, Value as JinjaValue, ValueKind, ValueOrKwargs, from_args,
};
use minijinja::{Environment, Error, ErrorKind, State};

pub(super) use data::walk as traverse;

use super::data::{
    Keywords, from_jinja, is_lenient, raise, refuse_undefined, refuse_undefined_within, split_args, split_kwargs,
    type_name, type_name_in_errors,
};
use super::limits;
use super::methods::BoundMethod;

/// Adds the filters, tests and globals.
pub(super) fn add_to(environment: &mut Environment<'static>) {
    data::add_to(environment);
    dates::add_to(environment);
    files::add_to(environment);
    globals::add_to(environment);
    links::add_to(environment);
    lists::add_to(environment);
    network::add_to(environment);
    numbers::add_to(environment);
    series::add_to(environment);
    undefined::add_to(environment);
    pattern::add_to(environment);
    query::add_to(environment);
    text::add_to(environment);
    for name in ["length", "count"] {
        environment.add_filter(name, |value: JinjaValue| {
            let none = || raise(format_args!("object of type '{}' has no len()", type_name(&value)));
            if value.is_undefined() && is_lenient() {
                return Ok(0);
            }
            minijinja::filters::length(&value).map_err(|error| if value.is_undefined() { error } else { none() })
        });
    }
    environment.add_filter("last", |value: JinjaValue| match value.kind() {
        ValueKind::None | ValueKind::Bool | ValueKind::Number => {
            Err(raise(format_args!("'{}' object is not reversible", type_name(&value))))
        }
        ValueKind::Undefined | ValueKind::Map | ValueKind::Bytes => {
            Ok(iterable(value)?.try_iter()?.last().unwrap_or_default())
        }
        _ => minijinja::filters::last(value),
    });
    environment.add_filter("reverse", |value: Defined| match value.kind() {
        ValueKind::None | ValueKind::Bool | ValueKind::Number => {
            Err(Error::new(ErrorKind::SyntaxError, "argument must be iterable"))
        }
        _ => value.reverse(),
    });
    environment.add_filter("items", |value: JinjaValue| match value.kind() {
        ValueKind::Undefined => Ok(JinjaValue::from(Vec::<JinjaValue>::new())),
        ValueKind::Map => minijinja::filters::items(&value),
        _ => Err(raise("Can only get item pairs from a mapping.")),
    });
    by_name(environment, "attr", &["name"], |value: Defined, name: String| match value.kind() {
        // Entries are not attributes, but methods are.
        _ if is_data(&value) => Ok(BoundMethod::of(&value, &name).unwrap_or_default()),
        _ => value.get_attr(&name),
    });
    named_test(environment, "filter", minijinja::tests::is_filter);
    named_test(environment, "test", minijinja::tests::is_test);
    environment.add_test("list", |value: JinjaValue| is_list(&value));
    environment.add_test("sequence", |value: JinjaValue| {
        matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Bytes)
    });
    environment.add_test("iterable", |value: Defined| {
        value.kind() == ValueKind::Bytes || (value.kind() != ValueKind::None && value.try_iter().is_ok())
    });
    environment.add_test("callable", |value: JinjaValue| value.kind() == ValueKind::Plain);
    environment.add_filter("striptags", minijinja_contrib::filters::striptags);
    for name in ["default", "d"] {
        environment.add_filter(name, default);
    }
    prepared(environment, "split", minijinja::filters::split, Ok);
    prepared(environment, "lines", minijinja::filters::lines, Ok);
    by_name(environment, "trim", &["chars"], minijinja::filters::trim);
    by_name(environment, "batch", &["linecount", "fill_with"], limited(minijinja::filters::batch));
    by_name(environment, "slice", &["slices", "fill_with"], limited(minijinja::filters::slice));
}

fn named_test(environment: &mut Environment<'static>, name: &'static str, test: fn(&State<'_, '_>, &str) -> bool) {
    environment.add_test(name, move |state: &State<'_, '_>, value: Defined| match type_name(&value) {
        kind @ ("list" | "dict") => Err(raise(format_args!("unhashable type: '{kind}'"))),
        _ => Ok(value.as_str().is_some_and(|name| test(state, name))),
    });
}

/// The maximum number of parts that a template may request, each a value even if empty.
const MAX_PARTS: usize = 100_000;

fn parts(count: usize) -> Result<usize, Error> {
    if count > MAX_PARTS {
        return Err(raise(format_args!("{count} parts requested: expected at most {MAX_PARTS}")));
    }
    Ok(count)
}

/// A filter that divides a sequence.
type Divide = fn(&State<'_, '_>, JinjaValue, usize, Option<JinjaValue>) -> Result<JinjaValue, Error>;

/// Returns the filter with a maximum number of parts.
fn limited(
    divide: Divide,
) -> impl Fn(&State<'_, '_>, JinjaValue, usize, Option<JinjaValue>) -> Result<JinjaValue, Error> {
    move |state, value, count, fill_with| divide(state, value, parts(count)?, fill_with)
}

/// Adds a filter of positional arguments that can also be passed by name.
fn by_name<F, Rv, FilterArgs>(environment: &mut Environment<'static>, name: &str, names: &'static [&str], filter: F)
where
    F: Function<Rv, FilterArgs>,
    Rv: FunctionResult,
    FilterArgs: for<'a> FunctionArgs<'a>,
{
    let own = name.to_owned();
    prepared(environment, name, filter, move |args| {
        let (positional, others) = by_position(names, &args, 1)?;
        match others.first() {
            Some((unknown, _)) => Err(raise(format_args!("{own}() got an unexpected keyword argument '{unknown}'"))),
            None => Ok(positional),
        }
    });
}

/// Returns the first argument, which may be passed by this name, and the others. Those that are passed by other names
/// stay named.
fn first_and_others(name: &str, args: Args) -> Result<(String, Args), Error> {
    let args: Vec<_> = args.0.into_iter().map(ValueOrKwargs::into_value).collect();
    let (mut positional, others) = by_position(&[name], &args, 0)?;
    if !others.is_empty() {
        positional.push(others.into_iter().collect::<Kwargs>().into());
    }
    from_args(&positional)
}

/// Returns the positional arguments, among them the named ones of `names`, and the other named arguments.
fn by_position(names: &[&str], args: &[JinjaValue], before: usize) -> Result<(Vec<JinjaValue>, Keywords), Error> {
    let (mut positional, mut named) = split_kwargs(args)?;
    for (index, name) in names.iter().enumerate().skip(positional.len().saturating_sub(before)) {
        match named.iter().position(|(keyword, _)| keyword == name) {
            Some(place) => positional.push(named.swap_remove(place).1),
            None if names[index..].iter().any(|later| named.iter().any(|(keyword, _)| keyword == later)) => {
                positional.push(JinjaValue::from(()));
            }
            None => {}
        }
    }
    Ok((positional, named))
}

/// Adds a filter whose arguments `prepare` checks or rearranges.
fn prepared<F, Rv, FilterArgs>(
    environment: &mut Environment<'static>,
    name: &str,
    filter: F,
    prepare: impl Fn(Vec<JinjaValue>) -> Result<Vec<JinjaValue>, Error> + Send + Sync + 'static,
) where
    F: Function<Rv, FilterArgs>,
    Rv: FunctionResult,
    FilterArgs: for<'a> FunctionArgs<'a>,
{
    let inner = format!("__{name}__");
    environment.add_filter(inner.clone(), filter);
    environment.add_filter(name.to_owned(), move |state: &mut State<'_, '_>, args: Args| {
        let args = prepare(args.iter().cloned().map(ValueOrKwargs::into_value).collect())?;
        match args.first().and_then(JinjaValue::as_str) {
            // These create a value for each part of the text.
            Some(text) if matches!(&*inner, "__split__" | "__lines__" | "__batch__" | "__slice__") => {
                limits::reserve_parts(text)?;
            }
            Some(text) => limits::reserve(text.len())?,
            None => limits::check()?,
        }
        state.apply_filter(&inner, &args)
    });
}

/// `default(default_value='', boolean=False)`.
fn default(value: JinjaValue, args: Args) -> Result<JinjaValue, Error> {
    let args: Vec<_> = args.iter().cloned().map(ValueOrKwargs::into_value).collect();
    let (positional, named) = split_kwargs(&args)?;
    let argument = |index: usize, name: &str| {
        positional.get(index).or_else(|| named.iter().find(|(keyword, _)| keyword == name).map(|(_, value)| value))
    };
    let any_nothing = argument(1, "boolean").is_some_and(JinjaValue::is_true);
    if value.is_undefined() || (any_nothing && !value.is_true()) {
        return Ok(argument(0, "default_value").cloned().unwrap_or_else(|| JinjaValue::from("")));
    }
    Ok(value)
}

/// Reserves memory for text that a filter has escaped: in a chain, each filter may double it.
fn counted(text: String) -> Result<String, Error> {
    limits::reserve(text.len()).map(|()| text)
}

/// Returns a value that can be iterated over, or an error.
fn iterable(value: JinjaValue) -> Result<JinjaValue, Error> {
    refuse_undefined(&value)?;
    match value.as_str() {
        Some(text) => limits::reserve_parts(text)?,
        None => limits::reserve_values(value.len().unwrap_or_default())?,
    }
    match value.kind() {
        ValueKind::Bytes => Ok(value.as_bytes().unwrap_or_default().iter().copied().map(JinjaValue::from).collect()),
        ValueKind::None | ValueKind::Bool | ValueKind::Number => {
            Err(raise(format_args!("'{}' object is not iterable", type_name(&value))))
        }
        _ => Ok(value),
    }
}

/// Returns the error of a value without an attribute.
fn lacks(value: &JinjaValue, attribute: &str) -> Error {
    raise(format_args!("'{}' object has no attribute '{attribute}'", type_name(value)))
}

/// Whether a value is data: no function, macro or module.
fn is_data(value: &JinjaValue) -> bool {
    match value.kind() {
        ValueKind::Plain | ValueKind::Invalid => false,
        ValueKind::Map => type_name(value) == "dict",
        _ => true,
    }
}

/// Whether a value is a list in Python.
fn is_list(value: &JinjaValue) -> bool {
    value.kind() == ValueKind::Seq && type_name(value) == "list"
}

/// The arguments of a filter after the value, by position or by name.
struct Options {
    positional: Vec<JinjaValue>,
    keyword: Map,
}

/// The further arguments of a filter.
type Args = Rest<ValueOrKwargs>;

impl Options {
    fn new(args: &Args) -> Result<Self, Error> {
        let args: Vec<_> = args.iter().cloned().map(ValueOrKwargs::into_value).collect();
        let (positional, keyword) = split_args(&args)?;
        Ok(Options { positional, keyword })
    }

    fn get(&self, index: usize, name: &str) -> Option<Value> {
        self.keyword.get(name).cloned().or_else(|| self.positional.get(index).map(from_jinja))
    }

    fn flag(&self, index: usize, name: &str, default: bool) -> bool {
        self.get(index, name).map_or(default, |value| value.is_truthy())
    }
}

/// An argument that is not undefined.
struct Defined(JinjaValue);

impl Deref for Defined {
    type Target = JinjaValue;

    fn deref(&self) -> &JinjaValue {
        &self.0
    }
}

impl<'a> ArgType<'a> for Defined {
    type Output = Self;

    fn from_value(value: Option<&'a JinjaValue>) -> Result<Self, Error> {
        let value = JinjaValue::from_value(value)?;
        refuse_undefined(&value)?;
        Ok(Defined(value))
    }
}

/// Returns the bytes of a string or of bytes, as Salt's `to_bytes`; other types are refused.
fn bytes_of(value: &JinjaValue) -> Result<Vec<u8>, Error> {
    refuse_undefined(value)?;
    match (value.kind(), value.as_bytes()) {
        (ValueKind::String | ValueKind::Bytes, Some(bytes)) => limits::reserve(bytes.len()).map(|()| bytes.to_vec()),
        _ => Err(raise(format_args!("expected str, bytes, or bytearray not {}", class(value)))),
    }
}

/// Returns a string, or UTF-8 bytes as one; other types are refused.
fn text_of(value: &JinjaValue) -> Result<String, Error> {
    String::from_utf8(bytes_of(value)?).map_err(raise)
}

/// Returns Python's notation for the type of a value.
fn class(value: &JinjaValue) -> String {
    match value.kind() {
        ValueKind::None => "<class 'NoneType'>".to_owned(),
        _ => format!("<class '{}'>", type_name_in_errors(value).trim_end_matches(" object")),
    }
}

/// Converts a value without undefined values in it.
fn defined(value: &JinjaValue) -> Result<Value, Error> {
    if value.is_undefined() {
        // minijinja's own error names the expression.
        value.get_attr("")?;
    }
    let converted = from_jinja(value);
    // Before the second walk: a small value may contain others many times.
    limits::check()?;
    refuse_undefined_within(value)?;
    Ok(converted)
}

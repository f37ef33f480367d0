//! What operators and calls do in Python and not in minijinja: an order only of what is alike, and macros that take more
//! arguments than they name.

use std::cmp::Ordering;
use std::sync::Arc;

use minijinja::value::{Enumerator, Kwargs, Object, Rest, Tuple, Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};

use super::containers::Dict;
use super::value::split_kwargs;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_function("__lt__", |a: JinjaValue, b: JinjaValue| order("<", &a, &b).map(Ordering::is_lt));
    environment.add_function("__gt__", |a: JinjaValue, b: JinjaValue| order(">", &a, &b).map(Ordering::is_gt));
    environment.add_function("__le__", |a: JinjaValue, b: JinjaValue| order("<=", &a, &b).map(Ordering::is_le));
    environment.add_function("__ge__", |a: JinjaValue, b: JinjaValue| order(">=", &a, &b).map(Ordering::is_ge));
    environment.add_function("__each__", |items: Rest<JinjaValue>| -> Result<JinjaValue, Error> {
        let items = match <[JinjaValue; 1]>::try_from(items.to_vec()) {
            Ok([one]) => one,
            // `for x in a, b`
            Err(several) => return Ok(JinjaValue::from(Tuple::from(several))),
        };
        match items.kind() {
            ValueKind::None | ValueKind::Bool | ValueKind::Number => {
                let message = format!("'{}' object is not iterable", type_name(&items));
                Err(Error::new(ErrorKind::InvalidOperation, message))
            }
            _ => Ok(items),
        }
    });
    environment.add_function("__varargs__", |inner: JinjaValue| JinjaValue::from_object(Wrapped { inner }));
}

/// How two values are ordered. Numbers, texts and sequences are, each with their like.
fn order(operator: &str, a: &JinjaValue, b: &JinjaValue) -> Result<Ordering, Error> {
    for value in [a, b] {
        if value.is_undefined() {
            // Only minijinja itself can say which expression it comes from.
            value.get_attr("")?;
        }
    }
    let class = |value: &JinjaValue| match value.kind() {
        ValueKind::Number | ValueKind::Bool => Some("number"),
        ValueKind::String => Some("str"),
        ValueKind::Bytes => Some("bytes"),
        ValueKind::Seq | ValueKind::Iterable => Some(if value.is_tuple() { "tuple" } else { "list" }),
        ValueKind::Plain => Some("object"),
        _ => None,
    };
    if class(a).is_none() || class(a) != class(b) {
        let message =
            format!("'{operator}' not supported between instances of '{}' and '{}'", type_name(a), type_name(b));
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    Ok(a.cmp(b))
}

/// What Python calls the type of a value.
fn type_name(value: &JinjaValue) -> &'static str {
    match value.kind() {
        ValueKind::None => "NoneType",
        ValueKind::Bool => "bool",
        ValueKind::Number if value.is_integer() => "int",
        ValueKind::Number => "float",
        ValueKind::String => "str",
        ValueKind::Bytes => "bytes",
        ValueKind::Seq | ValueKind::Iterable if value.is_tuple() => "tuple",
        ValueKind::Seq | ValueKind::Iterable => "list",
        ValueKind::Map => "dict",
        _ => "object",
    }
}

/// A macro whose last two parameters are what else it was given.
#[derive(Debug)]
struct Wrapped {
    inner: JinjaValue,
}

impl Wrapped {
    fn parameters(&self) -> Vec<JinjaValue> {
        let all = self.inner.get_attr("arguments").and_then(|names| names.try_iter().map(Iterator::collect));
        let mut all: Vec<JinjaValue> = all.unwrap_or_default();
        all.truncate(all.len().saturating_sub(2));
        all
    }
}

impl Object for Wrapped {
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&["name", "arguments", "caller"])
    }

    fn get_value(self: &Arc<Self>, key: &JinjaValue) -> Option<JinjaValue> {
        match key.as_str()? {
            "arguments" => Some(JinjaValue::from(Tuple::from(self.parameters()))),
            name => self.inner.get_attr(name).ok().filter(|value| !value.is_undefined()),
        }
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[JinjaValue]) -> Result<JinjaValue, Error> {
        let parameters = self.parameters();
        let (mut positional, keywords) = split_kwargs(args)?;
        let more = positional.split_off(positional.len().min(parameters.len()));
        let is_own = |name: &str| name == "caller" || parameters.iter().any(|known| known.as_str() == Some(name));
        let (own, others): (Vec<_>, Vec<_>) = keywords.into_iter().partition(|(name, _)| is_own(name));
        let others: Dict = others.into_iter().map(|(name, value)| (JinjaValue::from(name), value)).collect();
        let extra = [
            ("varargs".to_owned(), JinjaValue::from(Tuple::from(more))),
            ("kwargs".to_owned(), JinjaValue::from_object(others)),
        ];
        positional.push(own.into_iter().chain(extra).collect::<Kwargs>().into());
        self.inner.call(state, &positional)
    }
}

//! Python's operators, with its types, results and error messages.

mod compare;

use std::cmp::Ordering;
use std::fmt::Write;

use minijinja::value::{Rest, Tuple, Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error, ErrorKind};

use super::data::{List, Range, View, escape, refuse_undefined, type_name};
use super::formatting::percent;
use super::limits;
use super::methods::{tested_attribute, tested_item};
pub(super) use compare::order;

/// An operator with two operands.
type Operator = fn(&JinjaValue, &JinjaValue) -> Result<JinjaValue, Error>;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    compare::add_to(environment);
    let operators: [(&str, Operator); 7] = [
        ("__add__", add),
        ("__sub__", sub),
        ("__mul__", mul),
        ("__div__", div),
        ("__floordiv__", floor_div),
        ("__mod__", modulo),
        ("__pow__", pow),
    ];
    for (name, operator) in operators {
        environment.add_function(name, move |a: JinjaValue, b: JinjaValue| {
            refuse_undefined(&a)?;
            refuse_undefined(&b)?;
            operator(&a, &b)
        });
    }
    environment.add_function("__neg__", |value: JinjaValue| match Number::of(&value) {
        Some(Number::Whole(n)) => n.checked_neg().map(whole).ok_or_else(too_large),
        Some(Number::Float(f)) => Ok(JinjaValue::from(-f)),
        None => unary("-", &value),
    });
    environment.add_function("__pos__", |value: JinjaValue| match Number::of(&value) {
        Some(Number::Whole(n)) => Ok(whole(n)),
        Some(Number::Float(_)) => Ok(value),
        None => unary("+", &value),
    });
    environment.add_function(
        "__slice__",
        |of: JinjaValue, start: JinjaValue, stop: JinjaValue, step: Option<JinjaValue>| {
            slice(&of, &start, &stop, &step.unwrap_or_default())
        },
    );
    environment.add_function("__each__", |items: Rest<JinjaValue>| each(&items).map(checked));
    environment.add_function("__concat__", |parts: Rest<JinjaValue>| concat(&parts));
    environment.add_function("__each_of__", |count: usize, items: Rest<JinjaValue>| -> Result<JinjaValue, Error> {
        let items = each(&items)?;
        let items = items.try_iter()?.map(|item| unpack(count, item)).collect::<Result<Vec<_>, _>>()?;
        Ok(checked(JinjaValue::from(items)))
    });
    environment.add_function("__unpack__", unpack);
    environment.add_function("__tested__", |of: JinjaValue, name: String| tested_attribute(&of, &name));
    environment.add_function("__tested_item__", |of: JinjaValue, key: JinjaValue| tested_item(&of, &key));
}

/// Returns an error with Python's message.
fn raise<T>(message: impl Into<std::borrow::Cow<'static, str>>) -> Result<T, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

fn too_large() -> Error {
    Error::new(ErrorKind::InvalidOperation, "a number is too large")
}

/// Returns the items of a loop, with the limits checked for each item.
fn checked(items: JinjaValue) -> JinjaValue {
    match items.kind() {
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => limits::Checked::value(items),
        _ => items,
    }
}

/// `a ~ b ~ c`.
fn concat(parts: &[JinjaValue]) -> Result<JinjaValue, Error> {
    parts.iter().try_for_each(refuse_undefined)?;
    let size: usize = parts.iter().filter_map(JinjaValue::as_str).map(str::len).sum();
    // The engine copies the string once more.
    limits::reserve(size.saturating_mul(2))?;
    let mut text = String::with_capacity(size);
    for part in parts {
        match part.as_str() {
            Some(part) => text.push_str(part),
            // Writing into a `String` fails only if a limit is exceeded.
            None => _ = write!(text, "{part}"),
        }
    }
    limits::check()?;
    Ok(JinjaValue::from(text))
}

/// Returns the items of a loop.
fn each(items: &[JinjaValue]) -> Result<JinjaValue, Error> {
    let items = match items {
        [one] => one.clone(),
        // `for x in a, b`
        several => return Ok(JinjaValue::from(Tuple::from(several.to_vec()))),
    };
    match items.kind() {
        ValueKind::None | ValueKind::Bool | ValueKind::Number => {
            raise(format!("'{}' object is not iterable", type_name(&items)))
        }
        ValueKind::Plain if items.try_iter().is_err() => {
            raise(format!("'{}' object is not iterable", type_name(&items)))
        }
        // Converted to a list, so that `loop.length` is defined.
        ValueKind::String => {
            limits::reserve_parts(items.as_str().unwrap_or_default())?;
            Ok(items.as_str().unwrap_or_default().chars().map(|c| JinjaValue::from(c.to_string())).collect())
        }
        ValueKind::Bytes => Ok(items.as_bytes().unwrap_or_default().iter().copied().map(JinjaValue::from).collect()),
        _ => Ok(items),
    }
}

/// Unpacks a value into a tuple of `count` items.
fn unpack(count: usize, value: JinjaValue) -> Result<JinjaValue, Error> {
    refuse_undefined(&value)?;
    let items: Vec<JinjaValue> = match value.kind() {
        ValueKind::String => {
            limits::reserve_parts(value.as_str().unwrap_or_default())?;
            value.as_str().unwrap_or_default().chars().map(|c| JinjaValue::from(c.to_string())).collect()
        }
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => value.try_iter()?.collect(),
        _ => return raise(format!("cannot unpack non-iterable {} object", type_name(&value))),
    };
    match items.len().cmp(&count) {
        Ordering::Equal => Ok(JinjaValue::from(Tuple::from(items))),
        Ordering::Greater => raise(format!("too many values to unpack (expected {count})")),
        Ordering::Less => raise(format!("not enough values to unpack (expected {count}, got {})", items.len())),
    }
}

/// `of[start:stop:step]`.
fn slice(of: &JinjaValue, start: &JinjaValue, stop: &JinjaValue, step: &JinjaValue) -> Result<JinjaValue, Error> {
    refuse_undefined(of)?;
    match of.kind() {
        ValueKind::String | ValueKind::Bytes | ValueKind::Seq | ValueKind::Iterable => {}
        _ if matches!(type_name(of), "dict" | "collections.OrderedDict") => return raise("unhashable type: 'slice'"),
        _ => return raise(format!("'{}' object is not subscriptable", type_name(of))),
    }
    let index = |value: &JinjaValue| match value.kind() {
        ValueKind::None | ValueKind::Undefined => Ok(None),
        _ => match Number::of(value) {
            Some(Number::Whole(n)) => Ok(Some(i64::try_from(n).unwrap_or(if n < 0 { i64::MIN } else { i64::MAX }))),
            _ => raise("slice indices must be integers or None or have an __index__ method"),
        },
    };
    match of.as_str() {
        Some(text) => limits::reserve_parts(text)?,
        None => limits::reserve_values(of.len().or(of.as_bytes().map(<[u8]>::len)).unwrap_or_default())?,
    }
    let (start, stop, step) = (index(start)?, index(stop)?, index(step)?.unwrap_or(1));
    if step == 0 {
        return raise("slice step cannot be zero");
    }
    let items: Vec<JinjaValue> = match of.kind() {
        ValueKind::String => of.as_str().unwrap_or_default().chars().map(|c| JinjaValue::from(c.to_string())).collect(),
        ValueKind::Bytes => of.as_bytes().unwrap_or_default().iter().copied().map(JinjaValue::from).collect(),
        ValueKind::Seq | ValueKind::Iterable => of.try_iter()?.collect(),
        _ => return Ok(JinjaValue::UNDEFINED),
    };
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    // A negative step may stop one before the first item.
    let (low, high) = if step < 0 { (-1, length - 1) } else { (0, length) };
    let bound = |at: i64| if at < 0 { at.saturating_add(length).max(low) } else { at.min(high) };
    let first = start.map_or(if step < 0 { high } else { low }, bound);
    let end = stop.map_or(if step < 0 { low } else { high }, bound);
    let (mut at, mut taken) = (first, Vec::new());
    while (step > 0 && at < end) || (step < 0 && at > end) {
        taken.extend(usize::try_from(at).ok().and_then(|at| items.get(at)).cloned());
        at = at.saturating_add(step);
    }
    Ok(if of.kind() == ValueKind::String {
        JinjaValue::from(taken.iter().filter_map(JinjaValue::as_str).collect::<String>())
    } else if of.kind() == ValueKind::Bytes {
        JinjaValue::from_bytes(taken.into_iter().filter_map(|byte| u8::try_from(byte).ok()).collect())
    } else if of.is_tuple() {
        JinjaValue::from(Tuple::from(taken))
    } else {
        JinjaValue::from_object(taken.into_iter().collect::<List>())
    })
}

/// A number of Python's operators.
#[derive(Debug, Clone, Copy)]
enum Number {
    Whole(i128),
    Float(f64),
}

impl Number {
    fn of(value: &JinjaValue) -> Option<Self> {
        match value.kind() {
            ValueKind::Bool => Some(Number::Whole(i128::from(value.is_true()))),
            ValueKind::Number if value.is_integer() => i128::try_from(value.clone()).ok().map(Number::Whole),
            ValueKind::Number => f64::try_from(value.clone()).ok().map(Number::Float),
            _ => None,
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "as in Python")]
    fn float(self) -> f64 {
        match self {
            Number::Whole(n) => n as f64,
            Number::Float(f) => f,
        }
    }
}

fn numbers(a: &JinjaValue, b: &JinjaValue) -> Option<(Number, Number)> {
    Number::of(a).zip(Number::of(b))
}

fn whole(n: i128) -> JinjaValue {
    i64::try_from(n).map_or_else(|_| JinjaValue::from(n), JinjaValue::from)
}

/// Calculates with two numbers, by a function for integers and one for floats.
fn calculate(
    (a, b): (Number, Number),
    wholes: impl Fn(i128, i128) -> Option<i128>,
    floats: impl Fn(f64, f64) -> f64,
) -> Result<JinjaValue, Error> {
    match (a, b) {
        (Number::Whole(a), Number::Whole(b)) => wholes(a, b).map(whole).ok_or_else(too_large),
        (a, b) => Ok(JinjaValue::from(floats(a.float(), b.float()))),
    }
}

fn unsupported(operator: &str, a: &JinjaValue, b: &JinjaValue) -> Result<JinjaValue, Error> {
    let (a, b) = (type_name(a), type_name(b));
    raise(format!("unsupported operand type(s) for {operator}: '{a}' and '{b}'"))
}

fn unary(operator: &str, value: &JinjaValue) -> Result<JinjaValue, Error> {
    refuse_undefined(value)?;
    raise(format!("bad operand type for unary {operator}: '{}'", type_name(value)))
}

/// Returns whether a value is a list, not a tuple.
fn is_list(value: &JinjaValue) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
        && !value.is_tuple()
        && value.downcast_object_ref::<Range>().is_none()
        && value.downcast_object_ref::<View>().is_none()
}

pub(super) fn add(a: &JinjaValue, b: &JinjaValue) -> Result<JinjaValue, Error> {
    if let Some(both) = numbers(a, b) {
        return calculate(both, i128::checked_add, |a, b| a + b);
    }
    let bytes = |value: &JinjaValue| value.as_bytes().map_or(0, <[u8]>::len);
    limits::reserve(bytes(a).saturating_add(bytes(b)).saturating_mul(2))?;
    if let (ValueKind::Bytes, ValueKind::Bytes) = (a.kind(), b.kind()) {
        return Ok(JinjaValue::from_bytes([a, b].map(|part| part.as_bytes().unwrap_or_default()).concat()));
    }
    let texts = |value: &JinjaValue| value.kind() == ValueKind::String;
    if let (Some(left), Some(right), true) = (a.as_str(), b.as_str(), texts(a) && texts(b)) {
        // Concatenated with safe HTML, other text is escaped.
        return Ok(match (a.is_safe(), b.is_safe()) {
            (false, false) => JinjaValue::from(format!("{left}{right}")),
            (true, true) => JinjaValue::from_safe_string(format!("{left}{right}")),
            (true, false) => JinjaValue::from_safe_string(format!("{left}{}", escape(right))),
            (false, true) => JinjaValue::from_safe_string(format!("{}{right}", escape(left))),
        });
    }
    limits::reserve_values(a.len().unwrap_or_default().saturating_add(b.len().unwrap_or_default()))?;
    let joined = |a: &JinjaValue, b: &JinjaValue| Ok::<_, Error>(a.try_iter()?.chain(b.try_iter()?));
    if is_list(a) && is_list(b) {
        return Ok(JinjaValue::from_object(joined(a, b)?.collect::<List>()));
    }
    if a.is_tuple() && b.is_tuple() {
        return Ok(JinjaValue::from(Tuple::from(joined(a, b)?.collect::<Vec<_>>())));
    }
    match type_name(a) {
        left @ ("str" | "list" | "tuple") => {
            raise(format!("can only concatenate {left} (not \"{}\") to {left}", type_name(b)))
        }
        "bytes" => raise(format!("can't concat {} to bytes", type_name(b))),
        _ => unsupported("+", a, b),
    }
}

fn sub(a: &JinjaValue, b: &JinjaValue) -> Result<JinjaValue, Error> {
    match numbers(a, b) {
        Some(both) => calculate(both, i128::checked_sub, |a, b| a - b),
        None => unsupported("-", a, b),
    }
}

fn mul(a: &JinjaValue, b: &JinjaValue) -> Result<JinjaValue, Error> {
    if let Some(both) = numbers(a, b) {
        return calculate(both, i128::checked_mul, |a, b| a * b);
    }
    let repeats = |value: &JinjaValue| value.kind() == ValueKind::String || value.is_tuple() || is_list(value);
    let (of, times) = if repeats(a) { (a, b) } else { (b, a) };
    if !repeats(of) {
        return unsupported("*", a, b);
    }
    let Some(Number::Whole(times)) = Number::of(times) else {
        return raise(format!("can't multiply sequence by non-int of type '{}'", type_name(times)));
    };
    let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
    match of.as_str() {
        Some(text) => limits::reserve(text.len().saturating_mul(times).saturating_mul(2))?,
        None => limits::reserve_values(of.len().unwrap_or_default().saturating_mul(times))?,
    }
    if let Some(repeated) = of.as_str() {
        let repeated = repeated.repeat(times);
        return Ok(if of.is_safe() { JinjaValue::from_safe_string(repeated) } else { JinjaValue::from(repeated) });
    }
    let items: Vec<JinjaValue> = of.try_iter()?.collect();
    let repeated = std::iter::repeat_n(items, times).flatten();
    Ok(if of.is_tuple() {
        JinjaValue::from(Tuple::from(repeated.collect::<Vec<_>>()))
    } else {
        JinjaValue::from_object(repeated.collect::<List>())
    })
}

fn div(a: &JinjaValue, b: &JinjaValue) -> Result<JinjaValue, Error> {
    match numbers(a, b) {
        Some((Number::Whole(_), Number::Whole(0))) => raise("division by zero"),
        Some((_, b)) if b.float() == 0.0 => raise("float division by zero"),
        Some((a, b)) => Ok(JinjaValue::from(a.float() / b.float())),
        None => unsupported("/", a, b),
    }
}

fn floor_div(a: &JinjaValue, b: &JinjaValue) -> Result<JinjaValue, Error> {
    let floor =
        |a: i128, b: i128| a.checked_div_euclid(b).map(|n| if b < 0 && a.rem_euclid(b) != 0 { n - 1 } else { n });
    match numbers(a, b) {
        Some((Number::Whole(_), Number::Whole(0))) => raise("integer division or modulo by zero"),
        Some((_, b)) if b.float() == 0.0 => raise("float floor division by zero"),
        // As in Python: the remainder is subtracted first.
        Some(both) => calculate(both, floor, |a, b| ((a - rest_of_floats(a, b)) / b).round()),
        None => unsupported("//", a, b),
    }
}

/// Returns the remainder of a division, with the sign of the divisor.
fn rest_of_floats(a: f64, b: f64) -> f64 {
    let n = a % b;
    if n != 0.0 && (n < 0.0) != (b < 0.0) { n + b } else { n }
}

fn modulo(a: &JinjaValue, b: &JinjaValue) -> Result<JinjaValue, Error> {
    if a.kind() == ValueKind::String {
        return percent(a, b);
    }
    // The result has the sign of the divisor.
    let rest = |a: i128, b: i128| a.checked_rem(b).map(|n| if n != 0 && (n < 0) != (b < 0) { n + b } else { n });
    match numbers(a, b) {
        Some((Number::Whole(_), Number::Whole(0))) => raise("integer modulo by zero"),
        Some((_, b)) if b.float() == 0.0 => raise("float modulo"),
        Some(both) => calculate(both, rest, rest_of_floats),
        None => unsupported("%", a, b),
    }
}

fn pow(a: &JinjaValue, b: &JinjaValue) -> Result<JinjaValue, Error> {
    let Some((base, exponent)) = numbers(a, b) else { return unsupported("** or pow()", a, b) };
    if base.float() == 0.0 && exponent.float() < 0.0 {
        return raise("0.0 cannot be raised to a negative power");
    }
    match (base, exponent) {
        (Number::Whole(base), Number::Whole(exponent)) if exponent >= 0 => {
            let exponent = u32::try_from(exponent).ok();
            exponent.and_then(|exponent| base.checked_pow(exponent)).map(whole).ok_or_else(too_large)
        }
        (base, exponent) => Ok(JinjaValue::from(base.float().powf(exponent.float()))),
    }
}

#[cfg(test)]
mod tests;

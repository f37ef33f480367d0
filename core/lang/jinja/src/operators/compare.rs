//! Comparisons: operators, chains of them, and tests.

use std::cmp::Ordering;

use minijinja::value::{Rest, Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error};

use super::super::data::{Dict, refuse_undefined, type_name};
use super::{Number, modulo, numbers, raise};

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_function("__lt__", |a: JinjaValue, b: JinjaValue| order("<", &a, &b).map(Ordering::is_lt));
    environment.add_function("__gt__", |a: JinjaValue, b: JinjaValue| order(">", &a, &b).map(Ordering::is_gt));
    environment.add_function("__le__", |a: JinjaValue, b: JinjaValue| order("<=", &a, &b).map(Ordering::is_le));
    environment.add_function("__ge__", |a: JinjaValue, b: JinjaValue| order(">=", &a, &b).map(Ordering::is_ge));
    environment.add_function("__in__", |item: JinjaValue, of: JinjaValue| contains(&item, &of));
    environment.add_function("__chain__", |parts: Rest<JinjaValue>| chain(&parts));
    for (names, operator) in [
        (["lt", "lessthan", "<"], "<"),
        (["gt", "greaterthan", ">"], ">"),
        (["le", "<=", "<="], "<="),
        (["ge", ">=", ">="], ">="),
    ] {
        for name in names {
            environment.add_test(name, move |a: JinjaValue, b: JinjaValue| compare(&a, operator, &b));
        }
    }
    environment.add_test("in", |item: JinjaValue, of: JinjaValue| contains(&item, &of));
    let by = |a: &JinjaValue, b: i64| modulo(a, &JinjaValue::from(b));
    environment.add_test("odd", move |value: JinjaValue| {
        defined(&value).and_then(|value| Ok(by(value, 2)? == JinjaValue::from(1)))
    });
    environment.add_test("even", move |value: JinjaValue| {
        defined(&value).and_then(|value| Ok(by(value, 2)? == JinjaValue::from(0)))
    });
    environment.add_test("divisibleby", |value: JinjaValue, by: JinjaValue| {
        Ok::<_, Error>(modulo(defined(&value)?, defined(&by)?)? == JinjaValue::from(0))
    });
}

fn defined(value: &JinjaValue) -> Result<&JinjaValue, Error> {
    refuse_undefined(value).map(|()| value)
}

/// Whether a comparison holds.
fn compare(a: &JinjaValue, operator: &str, b: &JinjaValue) -> Result<bool, Error> {
    match operator {
        "<" => order(operator, a, b).map(Ordering::is_lt),
        ">" => order(operator, a, b).map(Ordering::is_gt),
        "<=" => order(operator, a, b).map(Ordering::is_le),
        ">=" => order(operator, a, b).map(Ordering::is_ge),
        "!=" => Ok(defined(a)? != defined(b)?),
        "in" => contains(a, b),
        "not in" => contains(a, b).map(|is_in| !is_in),
        _ => Ok(defined(a)? == defined(b)?),
    }
}

/// `a < b <= c`: compares each value with the next one until a comparison fails.
fn chain(parts: &[JinjaValue]) -> Result<bool, Error> {
    for at in (0..parts.len().saturating_sub(2)).step_by(2) {
        if !compare(&parts[at], parts[at + 1].as_str().unwrap_or_default(), &parts[at + 2])? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Orders two values. Only numbers, strings and sequences have an order, each among themselves.
pub(in super::super) fn order(operator: &str, a: &JinjaValue, b: &JinjaValue) -> Result<Ordering, Error> {
    if let Some((a, b)) = numbers(a, b) {
        return Ok(match (a, b) {
            (Number::Whole(a), Number::Whole(b)) => a.cmp(&b),
            (a, b) => a.float().partial_cmp(&b.float()).unwrap_or(Ordering::Equal),
        });
    }
    refuse_undefined(a)?;
    refuse_undefined(b)?;
    let class = |value: &JinjaValue| match value.kind() {
        ValueKind::Number | ValueKind::Bool => Some("number"),
        ValueKind::String => Some("str"),
        ValueKind::Bytes => Some("bytes"),
        ValueKind::Seq | ValueKind::Iterable => match type_name(value) {
            name @ ("tuple" | "list") => Some(name),
            _ => None,
        },
        _ => None,
    };
    if class(a).is_none() || class(a) != class(b) {
        let (left, right) = (type_name(a), type_name(b));
        return raise(format!("'{operator}' not supported between instances of '{left}' and '{right}'"));
    }
    if matches!(class(a), Some("list" | "tuple")) {
        let (mut left, mut right) = (a.try_iter()?, b.try_iter()?);
        loop {
            match (left.next(), right.next()) {
                (Some(a), Some(b)) if a == b => {}
                (Some(a), Some(b)) => return order(operator, &a, &b),
                (a, b) => return Ok(a.is_some().cmp(&b.is_some())),
            }
        }
    }
    Ok(a.cmp(b))
}

/// Whether a value contains an item, key or substring.
fn contains(item: &JinjaValue, of: &JinjaValue) -> Result<bool, Error> {
    refuse_undefined(of)?;
    refuse_undefined(item)?;
    match of.kind() {
        ValueKind::String => match item.as_str() {
            Some(part) => Ok(of.as_str().unwrap_or_default().contains(part)),
            None => raise(format!("'in <string>' requires string as left operand, not {}", type_name(item))),
        },
        ValueKind::Map => match of.downcast_object_ref::<Dict>() {
            Some(dict) => dict.contains(item),
            None => Ok(of.get_item(item).is_ok_and(|value| !value.is_undefined())),
        },
        ValueKind::Seq | ValueKind::Iterable => Ok(of.try_iter()?.any(|have| have == *item)),
        ValueKind::Plain => Ok(of.try_iter().is_ok_and(|mut items| items.any(|have| have == *item))
            || of.get_item(item).is_ok_and(|value| !value.is_undefined())),
        ValueKind::Bytes => {
            let (of, part) = (of.as_bytes().unwrap_or_default(), item.as_bytes().unwrap_or_default());
            Ok(part.is_empty() || of.windows(part.len()).any(|window| window == part))
        }
        // Only in a lenient template.
        ValueKind::Undefined => Ok(false),
        _ => raise(format!("argument of type '{}' is not iterable", type_name(of))),
    }
}

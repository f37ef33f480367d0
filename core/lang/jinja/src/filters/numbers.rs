//! Filters for numbers, with Python's conversions and error messages.

use brine_value::{Value, python};
use minijinja::value::{Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error};

use super::super::data::{from_jinja, raise, refuse_undefined, split_kwargs, text, to_jinja, type_name};
use super::super::operators::add;
use super::{Args, Defined, Options, by_name, defined, iterable, undefined};

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_filter("abs", |value: Defined| match value.kind() {
        ValueKind::Bool => Ok(JinjaValue::from(i64::from(value.is_true()))),
        ValueKind::Number => minijinja::filters::abs(value.0),
        _ => Err(raise(format_args!("bad operand type for abs(): '{}'", type_name(&value)))),
    });
    by_name(environment, "round", &["precision", "method"], round);
    environment.add_filter("int", int);
    by_name(environment, "float", &["default"], |value: JinjaValue, default: Option<f64>| -> Result<f64, Error> {
        let value = defined(&value)?;
        let parsed = value.as_str().and_then(|text| text.trim().parse().ok());
        let number = parsed.or_else(|| value.as_f64()).or_else(|| value.as_bool().map(|b| f64::from(u8::from(b))));
        Ok(number.or(default).unwrap_or_default())
    });
    for name in ["to_num", "str_to_num"] {
        environment.add_filter(name, |value: Defined| match value.kind() {
            ValueKind::String => Ok(number(&text(&value)).unwrap_or(value.0)),
            // Only strings keep their fraction.
            ValueKind::Bool | ValueKind::Number => int(value.0, minijinja::value::Rest(Vec::new())),
            _ => {
                let message = "int() argument must be a string, a bytes-like object or a real number";
                Err(raise(format_args!("{message}, not '{}'", type_name(&value))))
            }
        });
    }
    environment.add_filter("avg", |value: Defined| -> Result<f64, Error> {
        if value.kind() != ValueKind::Seq || type_name(&value) != "list" {
            return float(&value);
        }
        let items: Vec<JinjaValue> = value.try_iter()?.collect();
        let sum = float(&sum_of(&items, JinjaValue::from(0))?)?;
        if items.is_empty() { Err(raise("division by zero")) } else { Ok(sum / items.len() as f64) }
    });
    environment.add_filter("sum", sum);
    environment.add_filter("filesizeformat", |value: Defined, args: Args| -> Result<String, Error> {
        Ok(size_text(float(&value)?, Options::new(&args)?.flag(0, "binary", false)))
    });
}

/// Converts a value like Python's `float`.
fn float(value: &JinjaValue) -> Result<f64, Error> {
    let value = match value.kind() {
        ValueKind::Bool => return Ok(f64::from(u8::from(value.is_true()))),
        ValueKind::Number => return f64::try_from(value.clone()),
        _ => value,
    };
    let repr = || python::repr(&from_jinja(value));
    if let Some(text) = value.as_str() {
        return text.trim().parse().map_err(|_| raise(format_args!("could not convert string to float: {}", repr())));
    }
    let message = "float() argument must be a string or a real number";
    Err(raise(format_args!("{message}, not '{}'", type_name(value))))
}

/// Rounds to a number of places, as Python: by the digits of the number itself, 2.67499... for 2.675.
fn rounded(number: f64, places: usize) -> f64 {
    // No float has more places.
    if !number.is_finite() || places > 1074 { number } else { format!("{number:.places$}").parse().unwrap_or(number) }
}

/// `round(precision=0, method='common')`.
fn round(value: Defined, precision: Option<i32>, method: Option<String>) -> Result<JinjaValue, Error> {
    let method = method.unwrap_or_else(|| "common".to_owned());
    if !matches!(method.as_str(), "common" | "ceil" | "floor") {
        return Err(raise("method must be common, ceil or floor"));
    }
    match (value.kind(), method.as_str()) {
        (ValueKind::Bool, "common") => Ok(JinjaValue::from(i64::from(value.is_true()))),
        (ValueKind::Number, "common") if value.is_integer() && precision.unwrap_or(0) >= 0 => Ok(value.0),
        (ValueKind::Number | ValueKind::Bool, _) => {
            if let (Some(places @ 1..), "common") = (precision, method.as_str()) {
                return Ok(JinjaValue::from(rounded(float(&value)?, places.unsigned_abs() as usize)));
            }
            // Larger exponents exceed the range of floats.
            let factor = 10f64.powi(precision.unwrap_or(0).clamp(-308, 290));
            let scaled = float(&value)? * factor;
            let rounded = match method.as_str() {
                "ceil" => scaled.ceil(),
                "floor" => scaled.floor(),
                // Ties are rounded to even.
                _ => scaled.round_ties_even(),
            };
            let rounded = rounded / factor;
            #[allow(clippy::cast_possible_truncation, reason = "it is whole")]
            let is_whole = value.is_integer() && method == "common" && rounded.abs() < 9e15;
            Ok(if is_whole { JinjaValue::from(rounded as i64) } else { JinjaValue::from(rounded) })
        }
        _ => Err(raise(format_args!("type {} doesn't define __round__ method", type_name(&value)))),
    }
}

/// `sum(attribute=None, start=0)`.
fn sum(value: Defined, args: Args) -> Result<JinjaValue, Error> {
    let args: Vec<JinjaValue> = args.iter().cloned().map(minijinja::value::ValueOrKwargs::into_value).collect();
    let (positional, named) = split_kwargs(&args)?;
    let argument = |index: usize, name: &str| {
        let named = || named.iter().find(|(keyword, _)| keyword == name).map(|(_, value)| value.clone());
        positional.get(index).cloned().or_else(named).filter(|value| !value.is_none())
    };
    let mut items: Vec<JinjaValue> = iterable(value.0)?.try_iter()?.collect();
    if let Some(attribute) = argument(0, "attribute") {
        let path = text(&attribute);
        items = items.iter().map(|item| undefined::reached(item, &path)).collect::<Result<_, _>>()?;
    }
    sum_of(&items, argument(1, "start").unwrap_or_else(|| JinjaValue::from(0)))
}

fn sum_of(items: &[JinjaValue], start: JinjaValue) -> Result<JinjaValue, Error> {
    items.iter().try_fold(start, |sum, item| {
        refuse_undefined(item)?;
        add(&sum, item)
    })
}

/// Returns a byte count in human-readable form.
fn size_text(bytes: f64, binary: bool) -> String {
    let (base, names) = if binary {
        (1024.0, ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"])
    } else {
        (1000.0, ["kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"])
    };
    if bytes < base {
        let is_one = (bytes - 1.0).abs() < f64::EPSILON;
        return if is_one { "1 Byte".to_owned() } else { format!("{:.0} Bytes", bytes.trunc()) };
    }
    let (mut left, mut reported) = (bytes / base, names[0]);
    for name in &names[1..] {
        if left < base {
            break;
        }
        (left, reported) = (left / base, name);
    }
    format!("{left:.1} {reported}")
}

/// `int(default=0, base=10)`: never fails.
fn int(value: JinjaValue, args: Args) -> Result<JinjaValue, Error> {
    let options = Options::new(&args)?;
    let base = options.get(1, "base").and_then(|base| base.as_i64()).and_then(|base| u32::try_from(base).ok());
    let base = base.filter(|base| (2..=36).contains(base)).unwrap_or(10);
    let number = match defined(&value)? {
        Value::Str(text) => {
            let text = text.trim().replace('_', "");
            let digits = match base {
                16 => text.trim_start_matches("0x"),
                8 => text.trim_start_matches("0o"),
                2 => text.trim_start_matches("0b"),
                _ => &text,
            };
            let float = || digits.parse::<f64>().ok().filter(|float| float.is_finite()).map(|float| float as i64);
            i64::from_str_radix(digits, base).ok().or_else(float)
        }
        Value::Bool(b) => Some(i64::from(b)),
        Value::Float(float) => Some(float as i64).filter(|_| float.is_finite()),
        Value::Int(n) => Some(n),
        Value::UInt(_) | Value::Big(_) => return Ok(value),
        _ => None,
    };
    Ok(number.map_or_else(
        || options.get(0, "default").map_or_else(|| JinjaValue::from(0), |default| to_jinja(&default)),
        JinjaValue::from,
    ))
}

pub(super) fn number(text: &str) -> Option<JinjaValue> {
    let text = text.trim();
    text.parse::<i64>().map(JinjaValue::from).or_else(|_| text.parse::<f64>().map(JinjaValue::from)).ok()
}

//! Python's operator `%` on strings.

use brine_value::python;
use minijinja::Error;
use minijinja::formatting::FormatStyle;
use minijinja::value::{Value as JinjaValue, ValueKind};

use super::super::data::{from_jinja, raise, type_name};
use super::format;

/// `'%s' % value`.
pub(crate) fn percent(pattern: &JinjaValue, value: &JinjaValue) -> Result<JinjaValue, Error> {
    let Some(pattern) = pattern.as_str() else { return Err(raise("only strings are formatted with %")) };
    let mut args: Vec<JinjaValue> = if value.is_tuple() { value.try_iter()?.collect() } else { vec![value.clone()] };
    let conversion_count = conversions(pattern);
    if conversion_count.is_some_and(|count| count < args.len()) && (value.is_tuple() || value.kind() != ValueKind::Map)
    {
        return Err(raise("not all arguments converted during string formatting"));
    }
    let pattern = by_position(pattern, value, &mut args)?;
    let pattern = converted(&pattern, &mut args)?;
    format(FormatStyle::Printf, &pattern, &args).map(JinjaValue::from)
}

/// Converts named conversions to positional ones if the pattern has non-ASCII letters, which minijinja does not
/// support.
fn by_position<'p>(
    pattern: &'p str,
    value: &JinjaValue,
    args: &mut Vec<JinjaValue>,
) -> Result<std::borrow::Cow<'p, str>, Error> {
    if pattern.is_ascii() {
        return Ok(pattern.into());
    }
    let (mut out, mut rest, mut named) = (String::new(), pattern, Vec::new());
    while let Some((before, after)) = rest.split_once('%') {
        out += before;
        out.push('%');
        if let Some(after) = after.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let after = match after.strip_prefix('(') {
            None => after,
            Some(inner) => {
                let (name, behind) = inner.split_once(')').ok_or_else(|| raise("incomplete format key"))?;
                let item = value.get_attr(name).ok().filter(|item| !item.is_undefined());
                named.push(item.ok_or_else(|| raise(format!("'{name}'")))?);
                behind
            }
        };
        let end = after.find(|c: char| !c.is_ascii_digit() && !"#- +*.hlL".contains(c));
        let Some((end, c)) = end.zip(end.and_then(|end| after[end..].chars().next())) else {
            return Err(raise("incomplete format"));
        };
        if !c.is_ascii() {
            let at = pattern[..pattern.len() - after.len() + end].chars().count();
            return Err(raise(format!("unsupported format character '{c}' ({:#x}) at index {at}", c as u32)));
        }
        out += &after[..=end];
        rest = &after[end + 1..];
    }
    if !named.is_empty() {
        *args = named;
    }
    Ok((out + rest).into())
}

/// Returns the number of values that a pattern takes; `None` if its conversions are named, or if a value is a width.
fn conversions(pattern: &str) -> Option<usize> {
    let mut count = 0;
    let mut rest = pattern;
    while let Some((_, after)) = rest.split_once('%') {
        if after.starts_with('(') {
            return None;
        }
        let end = after.find(|c: char| c.is_alphabetic() || c == '%')?;
        if after[..end].contains('*') {
            return None;
        }
        count += usize::from(!after[end..].starts_with('%'));
        rest = after[end..].strip_prefix(|_: char| true).unwrap_or_default();
    }
    Some(count)
}

/// Converts `%r` to `%s` of the value's `repr`, and the values of `%d` to integers.
fn converted(pattern: &str, args: &mut [JinjaValue]) -> Result<String, Error> {
    let (mut out, mut chars, mut index) = (String::new(), pattern.chars(), 0);
    while let Some(c) = chars.next() {
        out.push(c);
        if c != '%' {
            continue;
        }
        while let Some(c) = chars.next() {
            if c == 'r' {
                out.push('s');
                if let Some(arg) = args.get_mut(index) {
                    *arg = JinjaValue::from(python::repr(&from_jinja(arg)));
                }
            } else {
                out.push(c);
            }
            if matches!(c, 'd' | 'i' | 'u')
                && let Some(arg) = args.get_mut(index)
                && !arg.is_undefined()
                && (arg.kind() != ValueKind::Map || type_name(arg) != "dict")
            {
                *arg = whole(arg, c)?;
            }
            if c == '(' {
                // Copies the name and the conversion after it.
                out.extend(chars.by_ref().take_while(|c| *c != ')'));
                out.push(')');
            } else if c.is_alphabetic() || c == '%' {
                index += usize::from(c != '%');
                break;
            }
        }
    }
    Ok(out)
}

/// Returns the integer that `%d` shows.
fn whole(value: &JinjaValue, letter: char) -> Result<JinjaValue, Error> {
    match value.kind() {
        ValueKind::Bool => Ok(JinjaValue::from(i64::from(value.is_true()))),
        ValueKind::Number if value.is_integer() => Ok(value.clone()),
        ValueKind::Number => match f64::try_from(value.clone()) {
            #[allow(clippy::cast_possible_truncation, reason = "as in Python")]
            Ok(float) if float.is_finite() => Ok(JinjaValue::from(float.trunc() as i128)),
            _ => Err(raise("cannot convert float infinity or NaN to integer")),
        },
        _ => Err(raise(format_args!("%{letter} format: a real number is required, not {}", type_name(value)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_may_have_any_letters() {
        let named = JinjaValue::from_pairs([("ключ", JinjaValue::from(5)), ("b", "ü".into())]);
        let one = JinjaValue::from(7);
        for (pattern, value, reported) in [
            ("%(ключ)d и %(b)s 100%%", &named, "5 и ü 100%"),
            ("ß%03d", &one, "ß007"),
            ("%(нет)s", &named, "'нет'"),
            ("%(ключ", &named, "incomplete format key"),
            ("é%0", &one, "incomplete format"),
            ("%é", &one, "unsupported format character 'é' (0xe9) at index 1"),
        ] {
            let actual = percent(&pattern.into(), value);
            let actual =
                actual.map_or_else(|error| error.detail().unwrap_or_default().to_owned(), |text| text.to_string());
            assert_eq!(actual, reported, "{pattern}");
        }
    }
}

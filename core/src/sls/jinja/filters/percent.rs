//! Python's operator `%` on a text.

use minijinja::Error;
use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Value as JinjaValue, ValueKind};

use super::super::value::from_jinja;
use super::failed;
use crate::value::python;

/// `'%s' % value`.
pub(in crate::sls::jinja) fn percent(pattern: &JinjaValue, value: &JinjaValue) -> Result<JinjaValue, Error> {
    let Some(pattern) = pattern.as_str() else { return Err(failed("only texts are formatted with %")) };
    let mut args: Vec<JinjaValue> = if value.is_tuple() { value.try_iter()?.collect() } else { vec![value.clone()] };
    let wanted = conversions(pattern);
    if wanted.is_some_and(|wanted| wanted < args.len()) && (value.is_tuple() || value.kind() != ValueKind::Map) {
        return Err(failed("not all arguments converted during string formatting"));
    }
    let pattern = reprs(pattern, &mut args);
    format(FormatStyle::Printf, &pattern, &args).map(JinjaValue::from)
}

/// How many values a pattern takes; nothing if it names them, or if a width comes from them.
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

/// `%r` as `%s` of the text that Python's `repr` gives.
fn reprs(pattern: &str, args: &mut [JinjaValue]) -> String {
    let (mut out, mut chars, mut place) = (String::new(), pattern.chars(), 0);
    while let Some(c) = chars.next() {
        out.push(c);
        if c != '%' {
            continue;
        }
        while let Some(c) = chars.next() {
            if c == 'r' {
                out.push('s');
                if let Some(arg) = args.get_mut(place) {
                    *arg = JinjaValue::from(python::repr(&from_jinja(arg)));
                }
            } else {
                out.push(c);
            }
            if c == '(' {
                // A name, and the conversion after it.
                out.extend(chars.by_ref().take_while(|c| *c != ')'));
                out.push(')');
            } else if c.is_alphabetic() || c == '%' {
                place += usize::from(c != '%');
                break;
            }
        }
    }
    out
}

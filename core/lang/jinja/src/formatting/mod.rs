//! Python's string formatting by minijinja, which refuses undefined values as Jinja does. `percent` owns the operator
//! `%`.

mod percent;

use std::fmt;
use std::sync::{Arc, OnceLock};

use minijinja::formatting::FormatStyle;
use minijinja::value::{Kwargs, Object, ObjectRepr, Value as JinjaValue};
use minijinja::{Error, ErrorKind};

use super::data::split_kwargs;
pub(super) use percent::percent;

use super::limits;

/// The prefix of an error that names the undefined argument of a call by its number.
const ITEM: &str = "undefined item ";

/// Formats values by a pattern.
pub(super) fn format(style: FormatStyle, pattern: &str, args: &[JinjaValue]) -> Result<String, Error> {
    if matches!(style, FormatStyle::StrFormat)
        && let Some(conversion) = conversion(pattern)
    {
        let message = format!("the conversion '!{conversion}' is not supported: use '%{conversion}' % value");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    let (mut positional, named) = split_kwargs(args)?;
    reserve(style, pattern, positional.iter().chain(named.iter().map(|(_, value)| value)))?;
    let undefined_index = Arc::new(OnceLock::new());
    let stand_in = |index: usize, value: JinjaValue| {
        let of = || JinjaValue::from_object(Undefined { index, shown: Arc::clone(&undefined_index) });
        if value.is_undefined() { of() } else { value }
    };
    positional = positional.into_iter().enumerate().map(|(index, value)| stand_in(index, value)).collect();
    if !named.is_empty() {
        let first = positional.len();
        let named = named.into_iter().enumerate();
        let named: Kwargs = named.map(|(index, (name, value))| (name, stand_in(first + index, value))).collect();
        positional.push(named.into());
    }
    let text = minijinja::formatting::format(style, pattern, &positional)?;
    match undefined_index.get() {
        Some(index) => Err(Error::new(ErrorKind::UndefinedError, format!("{ITEM}{index}"))),
        None => Ok(text),
    }
}

/// Returns the letter of the first conversion in a pattern, such as that of `{name!r}`.
fn conversion(pattern: &str) -> Option<char> {
    let mut rest = pattern;
    while let Some((_, field)) = rest.split_once('{') {
        let end = field.find(['{', '!', ':', '}']).unwrap_or(field.len());
        match field.get(end..)?.strip_prefix('!') {
            Some(conversion) => return conversion.chars().next(),
            // Also behind the second of two brackets, which are text.
            None => rest = field.get(end..)?.strip_prefix('{').filter(|_| end == 0).unwrap_or(&field[end..]),
        }
    }
    None
}

/// Reserves the memory of a formatted pattern: each conversion is at most as long as its width or the longest value.
fn reserve<'v>(style: FormatStyle, pattern: &str, values: impl Iterator<Item = &'v JinjaValue>) -> Result<(), Error> {
    let is_printf = matches!(style, FormatStyle::Printf);
    let (mut longest, mut given_width) = (0, 0);
    for value in values {
        longest = longest.max(value.as_str().map_or(0, str::len));
        given_width = given_width.max(value.as_usize().unwrap_or(0));
    }
    let mut size = pattern.len();
    for conversion in pattern.split(if is_printf { '%' } else { '{' }).skip(1) {
        // `%(name)05d`, `{name:05d}`, and a width that is one of the values: `%*d`, `{name:{width}}`.
        let (specification, takes_width) = if is_printf {
            let named = conversion.strip_prefix('(').and_then(|named| named.split_once(')'));
            let specification = named.map_or(conversion, |(_, specification)| specification);
            let end = specification.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(specification.len());
            let specification = &specification[..end];
            (specification, specification.contains('*'))
        } else {
            let end = conversion.find('}');
            let field = &conversion[..end.unwrap_or(conversion.len())];
            (field.split_once(':').map_or("", |(_, specification)| specification), field.contains(':') && end.is_none())
        };
        let numbers = specification.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
        let width = numbers.map(|digits| digits.parse().unwrap_or(usize::MAX)).max().unwrap_or(0);
        let width = if takes_width { width.max(given_width) } else { width };
        size = size.saturating_add(width.max(longest));
    }
    limits::reserve(size)
}

/// An undefined value, which records that it was printed.
#[derive(Debug)]
struct Undefined {
    index: usize,
    shown: Arc<OnceLock<usize>>,
}

impl Object for Undefined {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only the first one is reported.
        _ = self.shown.set(self.index);
        Ok(())
    }
}

/// Returns the failed expression of `format`: an item in the last brackets.
pub(super) fn culprit<'a>(error: &Error, expression: &'a str) -> Option<&'a str> {
    let index: usize = error.detail()?.strip_prefix(ITEM)?.parse().ok()?;
    // `%` is rewritten to a function of the pattern and the values.
    let values = expression.strip_prefix("__mod__").map_or(Some(expression), |operands| items(operands).pop())?;
    let item = *items(values).get(index)?;
    let is_name = |text: &str| text.trim().chars().all(|c| c == '_' || c.is_alphanumeric());
    let named = item.split_once('=').filter(|(name, _)| is_name(name));
    Some(named.map_or(item, |(_, value)| value.trim()))
}

/// Returns the items in the last brackets of an expression.
pub(super) fn items(expression: &str) -> Vec<&str> {
    let (mut open, mut quote, mut start, mut items) = (0_usize, None, 0, Vec::new());
    for (at, c) in expression.char_indices() {
        if let Some(begun) = quote {
            quote = quote.filter(|_| c != begun);
            continue;
        }
        match c {
            '\'' | '"' => quote = Some(c),
            '(' | '[' | '{' => {
                open += 1;
                if open == 1 {
                    (start, items) = (at + 1, Vec::new());
                }
            }
            ',' | ')' | ']' | '}' => {
                if open == 1 {
                    items.extend(expression.get(start..at).map(str::trim));
                    start = at + 1;
                }
                open -= usize::from(c != ',' && open > 0);
            }
            _ => {}
        }
    }
    items
}

//! Python's formatting of texts, as minijinja has it, but that it refuses what is undefined, as Jinja does.

use std::fmt;
use std::sync::{Arc, OnceLock};

use minijinja::formatting::FormatStyle;
use minijinja::value::{Kwargs, Object, ObjectRepr, Value as JinjaValue};
use minijinja::{Error, ErrorKind};

use super::value::split_kwargs;

/// How an error begins that tells which item of a call's brackets was undefined.
const ITEM: &str = "undefined item ";

/// The pattern with these values in it.
pub(super) fn format(style: FormatStyle, pattern: &str, args: &[JinjaValue]) -> Result<String, Error> {
    let (mut places, named) = split_kwargs(args)?;
    let shown = Arc::new(OnceLock::new());
    let stand_in = |place: usize, value: JinjaValue| {
        let of = || JinjaValue::from_object(Undefined { place, shown: Arc::clone(&shown) });
        if value.is_undefined() { of() } else { value }
    };
    places = places.into_iter().enumerate().map(|(place, value)| stand_in(place, value)).collect();
    if !named.is_empty() {
        let first = places.len();
        let named = named.into_iter().enumerate();
        let named: Kwargs = named.map(|(place, (name, value))| (name, stand_in(first + place, value))).collect();
        places.push(named.into());
    }
    let text = minijinja::formatting::format(style, pattern, &places)?;
    match shown.get() {
        Some(place) => Err(Error::new(ErrorKind::UndefinedError, format!("{ITEM}{place}"))),
        None => Ok(text),
    }
}

/// What is undefined among the values: remembers that it was shown.
#[derive(Debug)]
struct Undefined {
    place: usize,
    shown: Arc<OnceLock<usize>>,
}

impl Object for Undefined {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only the first one is told of.
        _ = self.shown.set(self.place);
        Ok(())
    }
}

/// The expression that an error of `format` is about: an item in the last brackets of this expression.
pub(super) fn culprit<'a>(error: &Error, expression: &'a str) -> Option<&'a str> {
    let place: usize = error.detail()?.strip_prefix(ITEM)?.parse().ok()?;
    // What `%` was rewritten to: the text, and its values in brackets.
    let values = expression.strip_prefix("__mod__").map_or(Some(expression), |operands| items(operands).pop())?;
    let item = *items(values).get(place)?;
    let is_name = |text: &str| text.trim().chars().all(|c| c == '_' || c.is_alphanumeric());
    let named = item.split_once('=').filter(|(name, _)| is_name(name));
    Some(named.map_or(item, |(_, value)| value.trim()))
}

/// What stands between the commas in the last brackets of an expression.
pub(super) fn items(expression: &str) -> Vec<&str> {
    let (mut open, mut quote, mut start, mut found) = (0_usize, None, 0, Vec::new());
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
                    (start, found) = (at + 1, Vec::new());
                }
            }
            ',' | ')' | ']' | '}' => {
                if open == 1 {
                    found.extend(expression.get(start..at).map(str::trim));
                    start = at + 1;
                }
                open -= usize::from(c != ',' && open > 0);
            }
            _ => {}
        }
    }
    found
}

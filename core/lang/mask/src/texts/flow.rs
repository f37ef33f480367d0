//! Secrets in texts in the flow style of YAML, of which JSON is a part.

use std::borrow::Cow;

/// A secret value in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// The key.
    pub name: &'a str,
    /// The value as it is written, without its quotes; empty for a mapping or list.
    pub value: &'a str,
    /// The quotes of the value.
    pub quote: Option<char>,
}

impl<'a> Entry<'a> {
    /// Returns the value as minions read it.
    pub fn decoded(&self) -> Cow<'a, str> {
        decoded(self.value, self.quote)
    }

    /// Whether the value is a boolean or null: an option, not a secret.
    pub fn is_option(&self) -> bool {
        self.quote.is_none() && is_option(self.value)
    }
}

/// Whether a plain scalar is a boolean or null.
pub(super) fn is_option(value: &str) -> bool {
    ["true", "false", "null", "none", "~"].iter().any(|option| value.eq_ignore_ascii_case(option))
}

/// Whether a text is a mapping or a list in this style.
pub(super) fn is_flow(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// Returns the secret entries of a text in this style; none for other texts. Nested mappings are found, because each
/// colon counts. The time is linear in the text, and no part of it is in two values.
pub(super) fn entries(text: &str, is_secret: impl Fn(&str) -> bool) -> impl Iterator<Item = Entry<'_>> {
    let mut rest = if is_flow(text) { text } else { "" };
    std::iter::from_fn(move || {
        while let Some((before, after)) = rest.split_once(':') {
            rest = after;
            let name = last_word(before);
            if !name.is_empty() && is_secret(name) {
                let (value, quote, behind) = first_value(after);
                rest = behind;
                return Some(Entry { name, value, quote });
            }
        }
        None
    })
}

/// Returns the key that ends here.
fn last_word(before: &str) -> &str {
    let before = before.trim_end();
    match before.strip_suffix(['"', '\'']) {
        Some(inner) => inner.rsplit(&before[inner.len()..]).next().unwrap_or_default(),
        None => before.rsplit(['{', '[', ',', '\n']).next().unwrap_or_default().trim_start(),
    }
}

/// Returns the value that begins here with its quotes, and the text behind it.
fn first_value(after: &str) -> (&str, Option<char>, &str) {
    let after = after.trim_start();
    match after.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let inner = &after[1..];
            let end = end_of_quotes(inner, quote);
            let (value, behind) = inner.split_at(end.unwrap_or(inner.len()));
            (value, Some(quote), behind.get(1..).unwrap_or_default())
        }
        Some('{' | '[') | None => ("", None, after),
        Some(_) => {
            let (value, behind) = after.split_at(after.find([',', '}', ']', '\n']).unwrap_or(after.len()));
            (value.trim_end(), None, behind)
        }
    }
}

/// Returns the position of the quote that ends a quoted text, which begins behind its first quote.
pub(super) fn end_of_quotes(inner: &str, quote: char) -> Option<usize> {
    let mut quotes = inner.match_indices(['\\', quote]).map(|(at, _)| at).peekable();
    while let Some(at) = quotes.next() {
        let is_quote = inner[at..].starts_with(quote);
        let is_followed = quotes.peek() == Some(&(at + 1));
        if quote == '"' {
            match (is_quote, is_followed) {
                (true, _) => return Some(at),
                // A backslash escapes what follows.
                (false, true) => _ = quotes.next(),
                (false, false) => {}
            }
        } else if is_quote && is_followed && inner[at + 1..].starts_with(quote) {
            _ = quotes.next();
        } else if is_quote {
            // Python escapes by a backslash, where YAML has two quotes.
            let is_escaped = at > 0 && inner[..at].ends_with('\\');
            if !is_escaped || is_end(&inner[at + 1..]) {
                return Some(at);
            }
        }
    }
    None
}

/// Whether a value has ended before this text.
fn is_end(behind: &str) -> bool {
    let behind = behind.trim_start_matches([' ', '\t']);
    behind.is_empty() || behind.starts_with([',', '}', ']', '\n', '\r', '#'])
}

/// Returns the content of a quoted value without its escapes.
pub(super) fn decoded(value: &str, quote: Option<char>) -> Cow<'_, str> {
    match quote {
        Some('"') if value.contains('\\') => unescaped(value).into(),
        Some('\'') if value.contains("''") => value.replace("''", "'").into(),
        Some('\'') if value.contains("\\'") => value.replace("\\'", "'").into(),
        _ => value.into(),
    }
}

/// Resolves the escapes of JSON and YAML. Unknown ones stay.
fn unescaped(value: &str) -> String {
    let mut plain = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let mut behind = after.chars();
        let escape = behind.next();
        rest = behind.as_str();
        match escape {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some('b') => plain.push('\u{8}'),
            Some('f') => plain.push('\u{c}'),
            Some('e') => plain.push('\u{1b}'),
            Some('0') => plain.push('\0'),
            Some(digits @ ('x' | 'u' | 'U')) => {
                let length = match digits {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let code = rest.get(..length).and_then(|code| u32::from_str_radix(code, 16).ok());
                let low = code.filter(|code| (0xD800..0xDC00).contains(code)).and_then(|high| {
                    let low = rest.get(length..length + 6)?.strip_prefix("\\u")?;
                    let low = u32::from_str_radix(low, 16).ok().filter(|low| (0xDC00..0xE000).contains(low))?;
                    Some(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))
                });
                match low.or(code).and_then(char::from_u32) {
                    Some(c) => {
                        plain.push(c);
                        rest = &rest[length + if low.is_some() { 6 } else { 0 }..];
                    }
                    None => plain.extend(['\\', digits]),
                }
            }
            Some(c) => plain.push(c),
            None => plain.push('\\'),
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_of_the_mapping() {
        for (text, expected) in [
            ("", &[][..]),
            ("password: x", &[]),
            ("{}", &[]),
            (r#"{"a": "x", "b": 1}"#, &[("a", "x"), ("b", "1")]),
            ("{a: x y, 'b c': 'z'}", &[("a", "x y"), ("b c", "z")]),
            (r#"[{"a": {"b": "c"}}]"#, &[("a", ""), ("b", "c")]),
            (r#"{"a": "x\"y"}"#, &[("a", "x\"y")]),
            (r#"{"a": "x\\", "b": "\u00e4\n\x41\ud83d\ude00\/"}"#, &[("a", r"x\"), ("b", "\u{e4}\nA\u{1f600}/")]),
            (r#"{"a": "\ud83d \u12 \q\"}"#, &[("a", r#"\ud83d \u12 q"}"#)]),
            ("{a: 'it''s', b: 'x'}", &[("a", "it's"), ("b", "x")]),
            (r"{'a': 'it\'s', b: 'x\'}", &[("a", "it's"), ("b", r"x\")]),
            (" {a: [1, 2]}", &[("a", "")]),
            ("{a: \u{e4}", &[("a", "\u{e4}")]),
            ("{\u{df}: '", &[("\u{df}", "")]),
        ] {
            let actual: Vec<(&str, Cow<'_, str>)> =
                entries(text, |_| true).map(|entry| (entry.name, entry.decoded())).collect();
            let expected: Vec<(&str, Cow<'_, str>)> =
                expected.iter().map(|(name, value)| (*name, (*value).into())).collect();
            assert_eq!(actual, expected, "{text}");
        }
    }

    #[test]
    fn long_texts_are_read_once() {
        for part in [":", "a:", "a:'\\", "'a': ", "a: [", "\"'a': ", "a:'\\' ", "a:''"] {
            let text = format!("{{{}", part.repeat(30_000));
            for is_secret in [true, false] {
                let length: usize = entries(&text, |_| is_secret).map(|one| one.name.len() + one.value.len()).sum();
                assert!(length <= text.len(), "{part}");
            }
        }
    }
}

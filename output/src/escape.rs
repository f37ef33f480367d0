//! Escapes untrusted text for terminals and logs: control characters, line separators and bidirectional overrides.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Returns whether a character must not reach a terminal or a log: control characters (C0, DEL, C1), the line and
/// paragraph separators, and bidirectional overrides and isolates.
fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes text of several lines: line feeds, tabs and Windows line endings are kept. ESC becomes `?` as in Salt, other
/// characters become Python's escapes (`\x07`, `\u202e`).
///
/// # Examples
/// ```
/// assert_eq!(brine_output::escape::escape_control("one\n\ttwo\u{7}\u{1b}[2J"), "one\n\ttwo\\x07?[2J");
/// ```
pub fn escape_control(text: &str) -> Cow<'_, str> {
    let is_kept = |c, next| matches!(c, '\n' | '\t') || (c == '\r' && next == Some('\n'));
    escape(text, is_kept, |c, out| if c == '\x1b' { out.write_char('?') } else { write_escaped(c, out) })
}

/// Escapes text for a single line, such as a tag, an id or a log message.
///
/// # Examples
/// ```
/// assert_eq!(brine_output::escape::escape_line("web1\nweb2\u{1b}[2J"), "web1\\nweb2\\x1b[2J");
/// ```
pub fn escape_line(text: &str) -> Cow<'_, str> {
    escape(text, |_, _| false, write_escaped)
}

/// Escapes unsafe characters of a JSON document with JSON's own escapes (`\u009b`), which preserves its value.
///
/// # Examples
/// ```
/// assert_eq!(brine_output::escape::escape_json("{\n  \"a\": \"\u{9b}2J\"\n}"), "{\n  \"a\": \"\\u009b2J\"\n}");
/// ```
pub fn escape_json(text: &str) -> Cow<'_, str> {
    escape(text, |c, _| c == '\n', |c, out| write!(out, "\\u{:04x}", u32::from(c)))
}

/// Writes a character, escaped if it is unsafe on one line of a log or terminal.
pub fn write_safe(c: char, out: &mut impl Write) -> fmt::Result {
    if is_unsafe(c) { write_escaped(c, out) } else { out.write_char(c) }
}

/// Writes Python's escape of a character.
fn write_escaped(c: char, out: &mut impl Write) -> fmt::Result {
    match c {
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        c if u32::from(c) < 0x100 => write!(out, "\\x{:02x}", u32::from(c)),
        c => write!(out, "\\u{:04x}", u32::from(c)),
    }
}

fn escape(
    text: &str,
    is_kept: impl Fn(char, Option<char>) -> bool,
    write: impl Fn(char, &mut String) -> fmt::Result,
) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if !is_unsafe(c) || is_kept(c, chars.peek().copied()) {
            out.push(c);
        } else {
            // Writing to a `String` cannot fail.
            _ = write(c, &mut out);
        }
    }
    Cow::Owned(out)
}

/// Characters that no output may contain, for tests.
#[doc(hidden)]
pub const HOSTILE: &str = "\u{7}\u{8}\u{b}\u{c}\u{e}\u{1b}[2J\u{7f}\u{80}\u{85}\u{9b}2J\u{9f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unsafe_characters_are_escaped() {
        for (text, several, line, json) in [
            ("plain ü 漢 \u{a0}", "plain ü 漢 \u{a0}", "plain ü 漢 \u{a0}", "plain ü 漢 \u{a0}"),
            ("a\nb\tc", "a\nb\tc", "a\\nb\\tc", "a\nb\\u0009c"),
            ("a\r\nb\rc", "a\r\nb\\rc", "a\\r\\nb\\rc", "a\\u000d\nb\\u000dc"),
            ("\u{1b}[1m", "?[1m", "\\x1b[1m", "\\u001b[1m"),
            (
                "\0\u{7}\u{8}\u{e}\u{7f}",
                "\\x00\\x07\\x08\\x0e\\x7f",
                "\\x00\\x07\\x08\\x0e\\x7f",
                "\\u0000\\u0007\\u0008\\u000e\\u007f",
            ),
            ("\u{80}\u{9b}\u{9f}", "\\x80\\x9b\\x9f", "\\x80\\x9b\\x9f", "\\u0080\\u009b\\u009f"),
            ("\u{202e}\u{2069}\u{2028}", "\\u202e\\u2069\\u2028", "\\u202e\\u2069\\u2028", "\\u202e\\u2069\\u2028"),
        ] {
            assert_eq!(
                (&*escape_control(text), &*escape_line(text), &*escape_json(text)),
                (several, line, json),
                "{text:?}"
            );
        }
        for escaped in [escape_control(HOSTILE), escape_line(HOSTILE), escape_json(HOSTILE)] {
            assert!(!escaped.contains(is_unsafe), "{escaped:?}");
        }
    }
}

//! Shared helpers of the outputters: Python's splitting of lines, indentation, sorted keys.

use brine_value::Value;

/// Splits a text as Python's `splitlines` does, also at form feeds and Unicode's line separators.
pub fn lines(text: &str) -> Vec<&str> {
    lines_with_ends(text).into_iter().map(|line| line.trim_end_matches(is_line_end)).collect()
}

/// Splits a text as [`lines`] does, and keeps the line separators.
pub fn lines_with_ends(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if !is_line_end(c) || (c == '\r' && chars.peek().is_some_and(|(_, next)| *next == '\n')) {
            continue;
        }
        let end = at + c.len_utf8();
        lines.push(&text[start..end]);
        start = end;
    }
    if start < text.len() {
        lines.push(&text[start..]);
    }
    lines
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Indents every line but the first.
pub fn hang(text: &str, blanks: usize) -> String {
    text.replace('\n', &format!("\n{}", " ".repeat(blanks)))
}

/// Returns the items of a mapping in the order of Python's `sorted`; keys that do not compare are sorted as strings.
pub fn sorted_items(map: &brine_value::Map) -> Vec<(&Value, &Value)> {
    let mut items: Vec<_> = map.iter().collect();
    if map.keys().all(|key| key.as_f64().is_some()) {
        items.sort_by(|(a, _), (b, _)| a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)));
    } else {
        items.sort_by_cached_key(|(key, _)| key.to_string());
    }
    items
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn lines_are_split_as_by_python() {
        for (text, expected) in [
            ("", vec![]),
            ("a", vec!["a"]),
            ("a\n", vec!["a"]),
            ("a\n\nb", vec!["a", "", "b"]),
            ("a\r\nb\rc", vec!["a", "b", "c"]),
            ("a\x0bb\x0cc\u{85}d\u{2028}e\x1cf", vec!["a", "b", "c", "d", "e", "f"]),
            ("\n", vec![""]),
        ] {
            assert_eq!(lines(text), expected, "{text:?}");
        }
        assert_eq!(lines_with_ends("a\r\nb\n"), ["a\r\n", "b\n"]);
    }

    #[test]
    fn numbers_sort_numerically_and_mixed_keys_as_strings() {
        let keys =
            |map: brine_value::Map| sorted_items(&map).into_iter().map(|(k, _)| k.to_string()).collect::<Vec<_>>();
        assert_eq!(keys(map! {10 => 0, 9 => 0, 100 => 0}), ["9", "10", "100"]);
        assert_eq!(keys(map! {10 => 0, 9 => 0, "8" => 0, true => 0}), ["10", "8", "9", "True"]);
    }
}

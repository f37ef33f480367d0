//! Secrets in texts that hold a mapping in JSON or in the flow style of YAML: minions read the texts of command lines
//! and of some clients so.

/// Returns the keys and values in a text that is a mapping or a list; none for other texts. Nested mappings are found,
/// because each colon counts. Values are without their quotes.
pub(crate) fn entries(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_data = text.trim_start().starts_with(['{', '[']);
    let colons = text.match_indices(':').filter(move |_| is_data);
    colons.map(|(at, _)| (last_word(&text[..at]), first_value(&text[at + 1..])))
}

/// Returns the key that ends here.
fn last_word(before: &str) -> &str {
    let before = before.trim_end();
    if let Some(quote) = before.chars().next_back().filter(|c| matches!(c, '"' | '\'')) {
        let inner = &before[..before.len() - 1];
        return inner.rsplit(quote).next().unwrap_or_default();
    }
    before.rsplit(['{', '[', ',', '\n']).next().unwrap_or_default().trim_start()
}

/// Returns the value that begins here; nothing for a mapping or list, whose entries follow.
fn first_value(after: &str) -> &str {
    let after = after.trim_start();
    match after.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let inner = &after[1..];
            let end = inner.match_indices(quote).map(|(at, _)| at).find(|at| !inner[..*at].ends_with('\\'));
            &inner[..end.unwrap_or(inner.len())]
        }
        Some('{' | '[') | None => "",
        Some(_) => after.split([',', '}', ']', '\n']).next().unwrap_or_default().trim_end(),
    }
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
            (r#"{"a": "x\"y"}"#, &[("a", r#"x\"y"#)]),
            (" {a: [1, 2]}", &[("a", "")]),
            ("{a: \u{e4}", &[("a", "\u{e4}")]),
            ("{\u{df}: '", &[("\u{df}", "")]),
        ] {
            assert_eq!(entries(text).collect::<Vec<_>>(), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[{\\[]?.*") {
            entries(&text).for_each(drop);
        }
    }
}

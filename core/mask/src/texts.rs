//! Secrets in texts that hold a mapping in JSON or in the flow style of YAML: minions read the texts of command lines
//! and of some clients so.

/// Returns the secret keys and their values in a text that is a mapping or a list; none for other texts. Nested mappings
/// are found, because each colon counts. Values are without their quotes. The time is linear in the text, and no part of
/// it is in two values.
pub(crate) fn secrets(text: &str, is_secret: impl Fn(&str) -> bool) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = if text.trim_start().starts_with(['{', '[']) { text } else { "" };
    std::iter::from_fn(move || {
        while let Some((before, after)) = rest.split_once(':') {
            rest = after;
            let name = last_word(before);
            if !name.is_empty() && is_secret(name) {
                let (value, behind) = first_value(after);
                rest = behind;
                return Some((name, value));
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

/// Returns the value that begins here, which is empty for a mapping or list, and the text behind it.
fn first_value(after: &str) -> (&str, &str) {
    let after = after.trim_start();
    match after.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let inner = &after[1..];
            let end = inner.match_indices(quote).map(|(at, _)| at).find(|at| !inner[..*at].ends_with('\\'));
            end.map_or((inner, ""), |end| (&inner[..end], &inner[end + 1..]))
        }
        Some('{' | '[') | None => ("", after),
        Some(_) => {
            let (value, behind) = after.split_at(after.find([',', '}', ']', '\n']).unwrap_or(after.len()));
            (value.trim_end(), behind)
        }
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
            assert_eq!(secrets(text, |_| true).collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn long_texts_are_read_once() {
        for part in [":", "a:", "a:'\\", "'a': ", "a: [", "\"'a': "] {
            let text = format!("{{{}", part.repeat(300_000));
            for is_secret in [true, false] {
                let length: usize = secrets(&text, |_| is_secret).map(|(name, value)| name.len() + value.len()).sum();
                assert!(length <= text.len(), "{part}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[{\\[]?.*") {
            secrets(&text, |name| name.contains('a')).for_each(drop);
        }
    }
}

//! Splits command lines into words.

/// Splits into words as a shell does, without expansions; as in Python's `shlex`, inside `"` a `\` only escapes `"` and
/// `\`. Returns `None` if a quote is not closed.
pub fn split(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut chars) = (Vec::new(), None::<String>, text.chars());
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => match chars.next()? {
                            c @ ('"' | '\\') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_by_a_shell() {
        for (text, words) in [
            ("a b  c", Some(vec!["a", "b", "c"])),
            ("a 'b c' \"d \\\" e\" f\\ g", Some(vec!["a", "b c", "d \" e", "f g"])),
            (r#"awk "{print \$1}""#, Some(vec!["awk", r"{print \$1}"])),
            ("''", Some(vec![""])),
            ("", Some(vec![])),
            ("a 'b", None),
            ("a \"b", None),
        ] {
            let words = words.map(|words| words.into_iter().map(String::from).collect::<Vec<_>>());
            assert_eq!(split(text), words, "{text}");
        }
    }
}

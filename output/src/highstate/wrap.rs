//! Wraps text as Python's `textwrap` does.

use brine_text::tabs::expand;

/// Wraps a text into lines of at most `width` columns.
///
/// Words are split after hyphens, and at any character if they exceed the width.
pub fn fill(text: &str, width: usize) -> Vec<String> {
    let text: String = expand(text, 8).chars().map(|c| if c.is_ascii_whitespace() { ' ' } else { c }).collect();
    let mut chunks: Vec<String> = chunks(&text);
    chunks.reverse();
    let mut lines = Vec::new();
    while let Some(first) = chunks.last() {
        if is_blank(first) && !lines.is_empty() {
            chunks.pop();
            continue;
        }
        let mut line: Vec<String> = Vec::new();
        let mut used = 0;
        while let Some(chunk) = chunks.pop() {
            let length = chunk.chars().count();
            if used + length <= width {
                used += length;
                line.push(chunk);
            } else if length > width && used < width {
                let (head, tail) = cut(&chunk, width - used);
                line.push(head);
                chunks.push(tail);
                break;
            } else {
                chunks.push(chunk);
                break;
            }
        }
        if line.last().is_some_and(|chunk| is_blank(chunk)) {
            line.pop();
        }
        if !line.is_empty() {
            lines.push(line.concat());
        }
    }
    lines
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Splits a text into runs of spaces and words; words with hyphens between letters are several chunks.
fn chunks(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut chunks = Vec::new();
    let mut current = String::new();
    for (at, c) in chars.iter().copied().enumerate() {
        if at > 0 && ((chars[at - 1] == ' ') != (c == ' ') || breaks_before(&chars, at)) {
            chunks.push(std::mem::take(&mut current));
        }
        current.push(c);
    }
    if !current.is_empty() {
        chunks.push(current);
    }
    chunks
}

/// Returns whether a word may be split here: after a hyphen between letters.
fn breaks_before(chars: &[char], at: usize) -> bool {
    let letter = |at: usize| chars.get(at).is_some_and(|c| c.is_alphabetic() || *c == '_');
    let hyphen = |at: usize| chars.get(at) == Some(&'-');
    if at < 3 || !hyphen(at - 1) {
        return false;
    }
    let before = letter(at - 2) && (letter(at - 3) || (at >= 4 && hyphen(at - 3) && letter(at - 4)));
    let after = letter(at) && (letter(at + 1) || (hyphen(at + 1) && letter(at + 2)));
    before && after
}

/// Splits a chunk that exceeds the line: after the last hyphen that fits, otherwise at `room` characters.
fn cut(chunk: &str, room: usize) -> (String, String) {
    let chars: Vec<char> = chunk.chars().collect();
    let end = match chars[..room].iter().rposition(|c| *c == '-') {
        Some(hyphen) if chars[..hyphen].iter().any(|c| *c != '-') => hyphen + 1,
        _ => room,
    };
    (chars[..end].iter().collect(), chars[end..].iter().collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_wrapped_as_python_wraps_them() {
        for (text, lines) in [
            ("one two three four", vec!["one two", "three four"]),
            ("a\nb  c", vec!["a b  c"]),
            ("", vec![]),
            ("   ", vec![]),
            ("well-known words", vec!["well-known", "words"]),
            ("a well-known", vec!["a well-", "known"]),
            ("abcdefghijklm n", vec!["abcdefghij", "klm n"]),
            ("a\tb", vec!["a       b"]),
        ] {
            assert_eq!(fill(text, 10), lines, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn lines_fit_and_keep_every_letter(text in "[a-c \\-\t\n]{0,60}", width in 1usize..20) {
            let lines = fill(&text, width);
            prop_assert!(lines.iter().all(|line| line.chars().count() <= width));
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }
}

//! Python's `str.expandtabs`.

/// Replaces tabs by blanks up to the next multiple of `width` columns; with a width of 0 tabs are removed.
pub fn expand(text: &str, width: usize) -> String {
    let (mut out, mut column) = (String::new(), 0);
    for c in text.chars() {
        match c {
            '\t' if width > 0 => {
                let blanks = width - column % width;
                out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            '\t' => {}
            '\n' | '\r' => {
                out.push(c);
                column = 0;
            }
            c => {
                out.push(c);
                column += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_reach_the_next_stop() {
        for (text, width, expected) in [
            ("a\tb", 8, "a       b"),
            ("a\tb", 0, "ab"),
            ("abcd\te", 4, "abcd    e"),
            ("a\n\tb", 2, "a\n  b"),
            ("a\r\tb", 2, "a\r  b"),
            ("ü\tb", 4, "ü   b"),
        ] {
            assert_eq!(expand(text, width), expected, "{text:?} {width}");
        }
    }
}

//! Short excerpts of texts from events, for messages.

/// The maximum number of characters of an excerpt.
const LENGTH: usize = 120;

/// Returns the beginning of a text on one line, without control characters.
pub fn excerpt(text: &str) -> String {
    let mut cut: String = text.chars().take(LENGTH).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(LENGTH).is_some() {
        cut.push_str("...");
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_short_and_on_one_line() {
        assert_eq!((excerpt("web1"), excerpt("a\n\x1b[31mb")), ("web1".to_owned(), "a  [31mb".to_owned()));
        assert_eq!(excerpt(&"é".repeat(1000)), format!("{}...", "é".repeat(LENGTH)));
    }
}

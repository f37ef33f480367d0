//! Text in XML.

/// Returns text for an attribute or an element; characters that XML does not have become spaces.
///
/// ```
/// assert_eq!(brine_text::xml::escape("a < \"b\"\n\u{1}"), "a &lt; &quot;b&quot;&#10; ");
/// ```
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' => out += "&#10;",
            '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

//! Decides whether YAML parses untrusted text only as a part of its scalar.

/// The style of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    /// A literal or folded block scalar.
    Block,
}

/// The style and position of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScalarContext {
    pub style: Style,
    /// Whether it is in a flow collection.
    pub in_flow: bool,
    /// Whether it spans several lines.
    pub several_lines: bool,
}

/// A part of a scalar: text of the template, or the text of a placeholder.
pub(super) struct Part<'t> {
    pub text: &'t str,
    pub word: Option<usize>,
}

/// Returns the number of the first placeholder whose text does not fit, and the cause.
pub(super) fn find_misfit(parts: &[Part<'_>], context: ScalarContext) -> Option<(usize, &'static str)> {
    for (at, part) in parts.iter().enumerate() {
        let Some(number) = part.word else { continue };
        let before = parts[..at].iter().rev().find_map(|part| part.text.chars().next_back());
        let after = parts[at + 1..].iter().find_map(|part| part.text.chars().next());
        if let Some(cause) = cause(part.text, before, after, context) {
            return Some((number, cause));
        }
    }
    None
}

/// Whether a character is a line end, or one that YAML refuses or treats as a line end.
fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

/// Returns the reason why a text does not fit between these characters, if any. `None` is the edge of the scalar.
fn cause(text: &str, before: Option<char>, after: Option<char>, context: ScalarContext) -> Option<&'static str> {
    if text.contains(is_control) {
        return Some("a line break or a control character");
    }
    let (starts_blank, ends_blank) = (text.starts_with(is_blank), text.ends_with(is_blank));
    match context.style {
        Style::SingleQuoted if text.contains('\'') => return Some("a quote"),
        Style::DoubleQuoted if text.contains(['"', '\\']) => return Some("a quote or a backslash"),
        Style::Block if starts_blank && matches!(before, None | Some('\n')) => return Some("a blank in front"),
        Style::Plain => return plain(text, before, after, context),
        _ => {}
    }
    // Line folding in quoted scalars removes the blanks around a line end.
    let folds = context.several_lines && context.style != Style::Block;
    (folds && (starts_blank || ends_blank)).then_some("a blank at its edge")
}

fn plain(text: &str, before: Option<char>, after: Option<char>, context: ScalarContext) -> Option<&'static str> {
    let at_start = before.is_none_or(|c| c == '\n');
    let at_end = after.is_none_or(|c| c == '\n');
    let blanks = (text.starts_with(is_blank), text.ends_with(is_blank));
    if blanks.0 && (at_start || context.several_lines || before == Some(':'))
        || blanks.1 && (at_end || context.several_lines || after == Some('#'))
    {
        return Some("a blank at its edge");
    }
    if context.in_flow && text.contains([',', '[', ']', '{', '}']) {
        return Some("a comma, a bracket or a brace");
    }
    if at_start {
        let second = text.chars().nth(1).or(after);
        match text.chars().next() {
            Some('&' | '*') => return Some("the sign of an anchor or an alias in front"),
            Some('\'' | '"') => return Some("a quote in front"),
            Some('#') => return Some("the sign of a comment in front"),
            Some(',' | '[' | ']' | '{' | '}' | '!' | '|' | '>' | '%' | '@' | '`' | '?' | ':') => {
                return Some("a sign in front that YAML knows");
            }
            Some('-') if second.is_none_or(|c| is_blank(c) || ",[]{}\n".contains(c)) => {
                return Some("the sign of a list in front");
            }
            _ => {}
        }
        if text.starts_with("---") || text.starts_with("...") {
            return Some("the mark of a document in front");
        }
    }
    let chars: Vec<char> = before.into_iter().chain(text.chars()).chain(after).collect();
    let own = usize::from(before.is_some());
    for at in own..own + text.chars().count() {
        let next = chars.get(at + 1).copied();
        match chars[at] {
            ':' if next.is_none_or(|c| is_blank(c) || c == '\n' || context.in_flow && "?,[]{}".contains(c)) => {
                return Some("a colon that ends a key");
            }
            '#' if at == 0 || is_blank(chars[at - 1]) || chars[at - 1] == '\n' => return Some("a comment"),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;

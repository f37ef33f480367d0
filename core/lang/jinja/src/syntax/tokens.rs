//! The tokens of one tag.

/// A range of bytes in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// Returns the range from one position to another.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Span { start, end }
    }

    /// Returns the text of the range.
    pub(crate) fn of(self, source: &str) -> &str {
        source.get(self.start..self.end).unwrap_or_default()
    }
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or keyword.
    Name,
    /// A number.
    Number,
    /// A quoted string.
    String,
    /// An operator or bracket.
    Operator,
}

/// A token by its position in the source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub kind: Kind,
    pub span: Span,
}

/// The end of a tag's tokens.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The closing delimiter, which ends at this position.
    Closed(usize),
    /// The end of the template.
    Unfinished,
    /// A character that cannot start a token.
    Bad {
        /// Jinja's message.
        message: String,
        /// The position of the character.
        at: usize,
    },
}

/// Reads the tokens of the tag at `start` that ends with the `closing` delimiter.
pub(crate) fn tokenize(source: &str, start: usize, closing: &str) -> (Vec<Token>, Ending) {
    let bytes = source.as_bytes();
    let mut tokens = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    // Behind the opening delimiter and its whitespace control.
    let mut at = start + 2;
    at += usize::from(matches!(bytes.get(at), Some(b'-' | b'+')));
    loop {
        let Some(first) = source.get(at..).and_then(|rest| rest.chars().next()) else {
            return (tokens, Ending::Unfinished);
        };
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let rest = &source[at..];
        let bare = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        if open.is_empty() && bare.starts_with(closing) {
            return (tokens, Ending::Closed(source.len() - bare.len() + closing.len()));
        }
        let unexpected = || {
            let quoted = brine_value::python::repr(&first.to_string().into());
            let characters = source.get(..at).unwrap_or_default().chars().count();
            Ending::Bad { message: format!("unexpected char {quoted} at {characters}"), at }
        };
        let (kind, length) = match first {
            '"' | '\'' => match quoted(rest) {
                Some(length) => (Kind::String, length),
                None => return (tokens, unexpected()),
            },
            '0'..='9' => (Kind::Number, number(rest)),
            c if c == '_' || c.is_alphabetic() => (Kind::Name, length_while(rest, |c| c == '_' || c.is_alphanumeric())),
            _ if rest.starts_with("!=") || "+-*/%~[](){}=<>.:|,;".contains(first) => {
                (Kind::Operator, operator(rest, first))
            }
            _ => return (tokens, unexpected()),
        };
        let token = Token { kind, span: Span::new(at, at + length) };
        match &rest[..length] {
            "(" => open.push(")"),
            "[" => open.push("]"),
            "{" => open.push("}"),
            bracket @ (")" | "]" | "}") => match open.pop() {
                Some(expected) if expected == bracket => {}
                Some(expected) => {
                    let message = format!("unexpected '{bracket}', expected '{expected}'");
                    return (tokens, Ending::Bad { message, at });
                }
                None => return (tokens, Ending::Bad { message: format!("unexpected '{bracket}'"), at }),
            },
            _ => {}
        }
        at = token.span.end;
        tokens.push(token);
    }
}

fn operator(rest: &str, first: char) -> usize {
    let double = ["**", "//", "==", "!=", "<=", ">="];
    if double.iter().any(|sign| rest.starts_with(sign)) { 2 } else { first.len_utf8() }
}

fn length_while(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// Returns the length of the number at the start, with its fraction and exponent.
fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut end = 1;
    while let Some(byte) = bytes.get(end) {
        let continues = match byte {
            b'.' => is_digit(end + 1),
            b'+' | b'-' => matches!(bytes[end - 1], b'e' | b'E') && is_digit(end + 1) && !text.starts_with("0x"),
            byte => byte.is_ascii_alphanumeric() || *byte == b'_',
        };
        if !continues {
            break;
        }
        end += 1;
    }
    // Leading zeros are a token of their own: `0600` is two numbers.
    let zeros = text.find(|c| c != '0').unwrap_or(end);
    let is_whole = text[..end].bytes().all(|byte| byte.is_ascii_digit());
    if is_whole && (1..end).contains(&zeros) { zeros } else { end }
}

/// Returns the length of the quoted string at the start.
fn quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    None
}

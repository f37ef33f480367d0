//! The words and signs inside of one tag.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a word of the language.
    Name,
    /// A number.
    Number,
    /// A text in quotes.
    Text,
    /// A sign, one character long, but for `**`, `//` and the like.
    Operator,
}

/// One token, by its place in the text of the tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
    pub text: &'a str,
}

impl Token<'_> {
    /// Whether it is this word.
    pub(super) fn is_name(&self, word: &str) -> bool {
        self.kind == Kind::Name && self.text == word
    }

    /// Whether it is this sign.
    pub(super) fn is_operator(&self, sign: &str) -> bool {
        self.kind == Kind::Operator && self.text == sign
    }
}

/// The tokens of the tag at the start of `text`, and where the tag ends, after its `closing` sign.
/// Nothing if it does not end.
pub(super) fn tokenize<'a>(text: &'a str, closing: &str) -> Option<(Vec<Token<'a>>, usize)> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut depth = 0usize;
    // After the two signs that open a tag, and one that strips blanks.
    let mut at = 2 + usize::from(matches!(bytes.get(2), Some(b'-' | b'+')));
    loop {
        let first = text.get(at..)?.chars().next()?;
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let rest = &text[at..];
        let bare = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        if depth == 0 && bare.starts_with(closing) {
            return Some((tokens, text.len() - bare.len() + closing.len()));
        }
        let (kind, length) = match first {
            '"' | '\'' => (Kind::Text, quoted(rest)?),
            '0'..='9' => (Kind::Number, number(rest)),
            c if c == '_' || c.is_alphabetic() => (Kind::Name, span(rest, |c| c == '_' || c.is_alphanumeric())),
            _ => (Kind::Operator, operator(rest, first)),
        };
        let token = Token { kind, start: at, end: at + length, text: &rest[..length] };
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        at = token.end;
        tokens.push(token);
    }
}

fn operator(rest: &str, first: char) -> usize {
    let double = ["**", "//", "==", "!=", "<=", ">="];
    if double.iter().any(|sign| rest.starts_with(sign)) { 2 } else { first.len_utf8() }
}

fn span(text: &str, inside: impl Fn(char) -> bool) -> usize {
    text.find(|c| !inside(c)).unwrap_or(text.len())
}

/// How long the number at the start is, with its fraction and exponent.
fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut end = 1;
    while let Some(byte) = bytes.get(end) {
        let goes_on = match byte {
            b'.' => is_digit(end + 1),
            b'+' | b'-' => matches!(bytes[end - 1], b'e' | b'E') && is_digit(end + 1) && !text.starts_with("0x"),
            byte => byte.is_ascii_alphanumeric() || *byte == b'_',
        };
        if !goes_on {
            break;
        }
        end += 1;
    }
    end
}

/// How long the quoted text at the start is.
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

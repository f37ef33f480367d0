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

/// How the tokens of a tag end.
#[derive(Debug)]
pub(super) enum Ending {
    /// With the sign that closes the tag: what comes after it is here.
    Closed(usize),
    /// With the template.
    Unfinished,
    /// With what is no token.
    Bad {
        /// What Jinja says of it; where it stands is `PLACE`.
        message: String,
        /// Where it stands.
        at: usize,
    },
}

/// What stands in a message for a place that only who has the whole template knows.
pub(super) const PLACE: &str = "\0";

/// The tokens of the tag at the start of `text`, which has this `closing` sign, and how they end.
pub(super) fn tokenize<'a>(text: &'a str, closing: &str) -> (Vec<Token<'a>>, Ending) {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    // After the two signs that open a tag, and one that strips blanks.
    let mut at = 2 + usize::from(matches!(bytes.get(2), Some(b'-' | b'+')));
    loop {
        let Some(first) = text.get(at..).and_then(|rest| rest.chars().next()) else {
            return (tokens, Ending::Unfinished);
        };
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let rest = &text[at..];
        let bare = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        if open.is_empty() && bare.starts_with(closing) {
            return (tokens, Ending::Closed(text.len() - bare.len() + closing.len()));
        }
        let unexpected = || {
            let quoted = brine_value::python::repr(&first.to_string().into());
            Ending::Bad { message: format!("unexpected char {quoted} at {PLACE}"), at }
        };
        let (kind, length) = match first {
            '"' | '\'' => match quoted(rest) {
                Some(length) => (Kind::Text, length),
                None => return (tokens, unexpected()),
            },
            '0'..='9' => (Kind::Number, number(rest)),
            c if c == '_' || c.is_alphabetic() => (Kind::Name, span(rest, |c| c == '_' || c.is_alphanumeric())),
            _ if rest.starts_with("!=") || "+-*/%~[](){}=<>.:|,;".contains(first) => {
                (Kind::Operator, operator(rest, first))
            }
            _ => return (tokens, unexpected()),
        };
        let token = Token { kind, start: at, end: at + length, text: &rest[..length] };
        match token.text {
            "(" => open.push(")"),
            "[" => open.push("]"),
            "{" => open.push("}"),
            sign @ (")" | "]" | "}") => match open.pop() {
                Some(expected) if expected == sign => {}
                Some(expected) => {
                    let message = format!("unexpected '{sign}', expected '{expected}'");
                    return (tokens, Ending::Bad { message, at });
                }
                None => return (tokens, Ending::Bad { message: format!("unexpected '{sign}'"), at }),
            },
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
    // Zeros in front are a number of their own: `0600` is two.
    let zeros = text.find(|c| c != '0').unwrap_or(end);
    let is_whole = text[..end].bytes().all(|byte| byte.is_ascii_digit());
    if is_whole && (1..end).contains(&zeros) { zeros } else { end }
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

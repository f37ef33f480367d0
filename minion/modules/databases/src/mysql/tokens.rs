//! Splits a statement into tokens: words, quoted names and strings, and punctuation.

/// A token of SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    /// A quoted name or string: without its quotes, and as written.
    Quoted {
        text: String,
        raw: String,
    },
    Symbol(char),
}

impl Token {
    /// Returns whether this is a keyword.
    pub fn is_word(&self, word: &str) -> bool {
        matches!(self, Token::Word(own) if own.eq_ignore_ascii_case(word))
    }

    /// Returns whether this is punctuation.
    pub fn is_symbol(&self, symbol: char) -> bool {
        *self == Token::Symbol(symbol)
    }

    /// Returns the text of a word or of a quoted name or string.
    pub fn text(&self) -> Option<&str> {
        match self {
            Token::Word(text) | Token::Quoted { text, .. } => Some(text),
            Token::Symbol(_) => None,
        }
    }

    /// Returns the token as written in the statement.
    pub fn raw(&self) -> String {
        match self {
            Token::Word(text) => text.clone(),
            Token::Quoted { raw, .. } => raw.clone(),
            Token::Symbol(symbol) => symbol.to_string(),
        }
    }
}

/// Splits a statement into tokens. An unclosed quote extends to the end.
pub(super) fn tokens(statement: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = statement;
    while let Some(letter) = rest.chars().next() {
        let (token, length) = match letter {
            '\'' | '"' | '`' => quoted(rest, letter),
            letter if is_word(letter) => {
                let length = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
                (Some(Token::Word(rest[..length].to_owned())), length)
            }
            letter if letter.is_whitespace() => (None, letter.len_utf8()),
            letter => (Some(Token::Symbol(letter)), letter.len_utf8()),
        };
        tokens.extend(token);
        rest = &rest[length..];
    }
    tokens
}

/// Whether a character is part of a word. Unquoted names of databases and hosts in arguments may contain more
/// characters than SQL allows.
fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || "_$%-\\".contains(letter)
}

fn quoted(rest: &str, quote: char) -> (Option<Token>, usize) {
    let mut text = String::new();
    let mut letters = rest.char_indices().skip(1).peekable();
    let mut end = rest.len();
    while let Some((index, letter)) = letters.next() {
        if letter == '\\' && quote != '`' {
            text.extend(letters.next().map(|(_, escaped)| escaped));
        } else if letter != quote {
            text.push(letter);
        } else if letters.next_if(|(_, next)| *next == quote).is_some() {
            text.push(quote);
        } else {
            end = index + quote.len_utf8();
            break;
        }
    }
    (Some(Token::Quoted { text, raw: rest[..end].to_owned() }), end)
}

//! What is inside of a tag, read as Jinja reads it. From it follow the changes that expressions need, and Jinja's own
//! words for what is wrong.

mod expressions;
mod statements;

use super::tokens::{Ending, Kind, Token};
use super::{Edit, Look};

/// What is wrong in a tag, and where in its text.
#[derive(Debug)]
pub(super) struct Wrong {
    pub message: String,
    pub at: usize,
}

/// An expression.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub start: usize,
    pub end: usize,
    /// The place whose line Jinja tells when the expression fails.
    pub at: usize,
    pub is: Is,
}

/// What an expression is, as far as it matters to who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Is {
    Name,
    Text,
    Number,
    Constant,
    Call,
    /// Several with commas between them, in no brackets.
    Tuple,
    Other,
}

/// The token that is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next<'a> {
    Name(&'a str),
    Integer,
    Float,
    Text,
    Sign(&'a str),
    /// The sign that closes the tag.
    Close,
    /// The end of the template.
    End,
}

type Parsed<T = Node> = Result<T, Wrong>;

/// Reads the tokens of one tag.
pub(super) struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    ending: &'t Ending,
    is_block: bool,
    look: Look,
    depth: usize,
    /// What the expressions that were read need.
    pub edits: Vec<Edit>,
}

impl<'t, 'a> Parser<'t, 'a> {
    pub(super) fn new(tokens: &'t [Token<'a>], ending: &'t Ending, is_block: bool, look: Look) -> Self {
        Parser { tokens, at: 0, ending, is_block, look, depth: 0, edits: Vec::new() }
    }

    fn ahead(&self, by: usize) -> Parsed<Next<'a>> {
        let Some(token) = self.tokens.get(self.at + by) else {
            return match self.ending {
                Ending::Closed(_) => Ok(Next::Close),
                Ending::Unfinished => Ok(Next::End),
                Ending::Bad { message, at } => Err(Wrong { message: message.clone(), at: *at }),
            };
        };
        Ok(match token.kind {
            Kind::Name => Next::Name(token.text),
            Kind::Text => Next::Text,
            Kind::Number if token.text.contains('.') => Next::Float,
            Kind::Number => Next::Integer,
            Kind::Operator => Next::Sign(token.text),
        })
    }

    fn next(&self) -> Parsed<Next<'a>> {
        self.ahead(0)
    }

    /// Where the next token begins.
    fn place(&self) -> usize {
        match self.tokens.get(self.at) {
            Some(token) => token.start,
            None => self.tokens.last().map_or(0, |token| token.end),
        }
    }

    /// Where the last token that was taken ended.
    fn behind(&self) -> usize {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0, |token| token.end)
    }

    fn describe(&self, next: Next<'a>) -> &'a str {
        match next {
            Next::Name(text) | Next::Sign(text) => text,
            Next::Integer => "integer",
            Next::Float => "float",
            Next::Text => "string",
            Next::Close if self.is_block => "end of statement block",
            Next::Close => "end of print statement",
            Next::End => "end of template",
        }
    }

    fn wrong<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(Wrong { message: message.into(), at: self.place() })
    }

    fn expected<T>(&self, what: &str) -> Parsed<T> {
        match self.next()? {
            Next::End => self.wrong(format!("unexpected end of template, expected '{what}'.")),
            next => self.wrong(format!("expected token '{what}', got '{}'", self.describe(next))),
        }
    }

    fn skip(&mut self, by: usize) {
        self.at += by;
    }

    fn is_sign(&self, sign: &str) -> Parsed<bool> {
        Ok(self.next()? == Next::Sign(sign))
    }

    fn is_word(&self, word: &str) -> Parsed<bool> {
        Ok(self.next()? == Next::Name(word))
    }

    fn take_sign(&mut self, sign: &str) -> Parsed<bool> {
        let is = self.is_sign(sign)?;
        self.skip(usize::from(is));
        Ok(is)
    }

    fn take_word(&mut self, word: &str) -> Parsed<bool> {
        let is = self.is_word(word)?;
        self.skip(usize::from(is));
        Ok(is)
    }

    fn expect_sign(&mut self, sign: &str) -> Parsed<()> {
        if self.take_sign(sign)? { Ok(()) } else { self.expected(sign) }
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.take_word(word)? { Ok(()) } else { self.expected(word) }
    }

    fn expect_name(&mut self) -> Parsed<&'a str> {
        match self.next()? {
            Next::Name(name) => {
                self.skip(1);
                Ok(name)
            }
            _ => self.expected("name"),
        }
    }

    /// That the tag ends here.
    pub(super) fn close(&self) -> Parsed<()> {
        let name = self.describe(Next::Close);
        if self.next()? == Next::Close { Ok(()) } else { self.expected(name) }
    }
}

//! Parses the tokens of a tag as Jinja does, with Jinja's error messages.

mod expressions;
mod statements;

pub(super) use statements::Closing;

use super::nodes::{Expr, Form};
use super::tokens::{Ending, Kind, Span, Token};

/// A syntax error and its position in the source.
#[derive(Debug, Clone)]
pub(super) struct SyntaxError {
    pub message: String,
    pub at: usize,
}

/// The next token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next<'a> {
    Name(&'a str),
    Integer,
    Float,
    String,
    Sign(&'a str),
    /// The closing delimiter of the tag.
    Close,
    /// The end of the template.
    End,
}

type Parsed<T = Expr> = Result<T, SyntaxError>;

/// The name of a filter or a test in a tag.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    pub kind: Called,
    pub name: Span,
    /// Whether it is in a condition or a branch of `a if b else c`: then Jinja looks it up at the render.
    pub is_late: bool,
}

/// A filter or a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Called {
    Filter,
    Test,
}

/// A parser of one tag.
pub(super) struct Parser<'t, 's> {
    source: &'s str,
    tokens: &'t [Token],
    at: usize,
    ending: &'t Ending,
    is_block: bool,
    depth: usize,
    /// The filters and tests so far.
    pub used: Vec<Used>,
}

impl<'t, 's> Parser<'t, 's> {
    pub(super) fn new(source: &'s str, tokens: &'t [Token], ending: &'t Ending, is_block: bool) -> Self {
        Parser { source, tokens, at: 0, ending, is_block, depth: 0, used: Vec::new() }
    }

    fn ahead(&self, by: usize) -> Parsed<Next<'s>> {
        let Some(token) = self.tokens.get(self.at + by) else {
            return match self.ending {
                Ending::Closed(_) => Ok(Next::Close),
                Ending::Unfinished => Ok(Next::End),
                Ending::Bad { message, at } => Err(SyntaxError { message: message.clone(), at: *at }),
            };
        };
        let text = token.span.of(self.source);
        Ok(match token.kind {
            Kind::Name => Next::Name(text),
            Kind::String => Next::String,
            Kind::Number if text.contains('.') => Next::Float,
            Kind::Number => Next::Integer,
            Kind::Operator => Next::Sign(text),
        })
    }

    fn next(&self) -> Parsed<Next<'s>> {
        self.ahead(0)
    }

    /// Returns the position of the next token.
    fn position(&self) -> usize {
        match self.tokens.get(self.at) {
            Some(token) => token.span.start,
            None => self.tokens.last().map_or(0, |token| token.span.end),
        }
    }

    /// Returns the end of the last token that was taken.
    fn behind(&self) -> usize {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0, |token| token.span.end)
    }

    /// Returns the range from a position to the last token that was taken.
    fn since(&self, start: usize) -> Span {
        Span::new(start, self.behind().max(start))
    }

    fn describe(&self, next: Next<'s>) -> &'s str {
        match next {
            Next::Name(text) | Next::Sign(text) => text,
            Next::Integer => "integer",
            Next::Float => "float",
            Next::String => "string",
            Next::Close if self.is_block => "end of statement block",
            Next::Close => "end of print statement",
            Next::End => "end of template",
        }
    }

    fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(SyntaxError { message: message.into(), at: self.position() })
    }

    fn expected<T>(&self, what: &str) -> Parsed<T> {
        match self.next()? {
            Next::End => self.fail(format!("unexpected end of template, expected '{what}'.")),
            next => self.fail(format!("expected token '{what}', got '{}'", self.describe(next))),
        }
    }

    fn skip(&mut self, by: usize) {
        self.at += by;
    }

    /// Takes the next token, whatever it is, and returns its range.
    fn take(&mut self) -> Span {
        let start = self.position();
        self.skip(1);
        self.since(start)
    }

    fn is_sign(&self, sign: &str) -> Parsed<bool> {
        Ok(self.next()? == Next::Sign(sign))
    }

    fn is_word(&self, word: &str) -> Parsed<bool> {
        Ok(self.next()? == Next::Name(word))
    }

    fn take_sign(&mut self, sign: &str) -> Parsed<Option<Span>> {
        Ok(if self.is_sign(sign)? { Some(self.take()) } else { None })
    }

    fn take_word(&mut self, word: &str) -> Parsed<Option<Span>> {
        Ok(if self.is_word(word)? { Some(self.take()) } else { None })
    }

    fn expect_sign(&mut self, sign: &str) -> Parsed<Span> {
        self.take_sign(sign)?.map_or_else(|| self.expected(sign), Ok)
    }

    fn expect_word(&mut self, word: &str) -> Parsed<Span> {
        self.take_word(word)?.map_or_else(|| self.expected(word), Ok)
    }

    fn expect_name(&mut self) -> Parsed<Span> {
        match self.next()? {
            Next::Name(_) => Ok(self.take()),
            _ => self.expected("name"),
        }
    }

    /// Expects the end of the tag.
    fn close(&self) -> Parsed<()> {
        let name = self.describe(Next::Close);
        if self.next()? == Next::Close { Ok(()) } else { self.expected(name) }
    }

    /// Returns an expression from a position to the last token that was taken.
    fn node(&self, start: usize, at: usize, form: Form, parts: Vec<Expr>) -> Expr {
        Expr { span: self.since(start), at, form, parts }
    }
}

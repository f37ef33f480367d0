//! From the parser's events to a tree of nodes in which aliases share what they name.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::error::{Context, Origin, YamlError};
use super::{MAX_DEPTH, NODE_COST};

/// A place in the text, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mark {
    pub line: usize,
    pub column: usize,
}

#[derive(Debug)]
pub(super) struct Node<'a> {
    pub at: Mark,
    /// The tag in full, such as `tag:yaml.org,2002:str`, if one was written.
    pub tag: Option<String>,
    pub content: Content<'a>,
}

pub(super) type Pair<'a> = (Rc<Node<'a>>, Rc<Node<'a>>);

#[derive(Debug)]
pub(super) enum Content<'a> {
    Scalar { text: Cow<'a, str>, plain: bool },
    List(Vec<Rc<Node<'a>>>),
    Map(Vec<Pair<'a>>),
}

/// Builds errors that carry their line of the text.
#[derive(Clone, Copy)]
pub(super) struct Source<'a>(pub &'a str);

impl Source<'_> {
    pub fn error(self, origin: Origin, at: Mark, message: impl Into<String>) -> YamlError {
        let source = self.0.lines().nth(at.line.saturating_sub(1)).unwrap_or_default().to_owned();
        YamlError { message: message.into(), line: at.line, column: at.column, context: None, origin, source }
    }
}

impl YamlError {
    pub(super) fn within(mut self, what: &str, at: Mark) -> Self {
        self.context = Some(Context { what: what.to_owned(), line: at.line, column: at.column });
        self
    }
}

pub(super) struct Composer<'a> {
    source: Source<'a>,
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Rc<Node<'a>>>,
    /// Where the collections begin that are open, innermost last.
    open: Vec<Mark>,
    /// What all nodes written out in the text cost.
    pub cost: usize,
}

impl<'a> Composer<'a> {
    pub fn new(text: &'a str) -> Self {
        Composer {
            source: Source(text),
            parser: Parser::new_from_str(text),
            anchors: HashMap::new(),
            open: Vec::new(),
            cost: 0,
        }
    }

    /// The one document of the text, or nothing if it has none.
    pub fn document(&mut self) -> Result<Option<Rc<Node<'a>>>, YamlError> {
        let mut root: Option<Rc<Node<'a>>> = None;
        while let Some((event, span)) = self.next()? {
            match event {
                Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
                Event::StreamEnd => break,
                Event::DocumentStart(_) if root.is_some() => {
                    let first = root.map(|node| node.at).unwrap_or_default();
                    return Err(self
                        .source
                        .error(Origin::Parser, mark(span), "but found another document")
                        .within("expected a single document in the stream", first));
                }
                Event::DocumentStart(_) => {}
                event => root = Some(self.node(event, span)?),
            }
        }
        Ok(root)
    }

    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, YamlError> {
        self.parser.next_event().transpose().map_err(|error| self.scan_error(&error))
    }

    fn following(&mut self) -> Result<(Event<'a>, Span), YamlError> {
        self.next()?.ok_or_else(|| self.source.error(Origin::Parser, Mark::default(), "found unexpected end of stream"))
    }

    fn node(&mut self, event: Event<'a>, span: Span) -> Result<Rc<Node<'a>>, YamlError> {
        let at = mark(span);
        if self.open.len() >= MAX_DEPTH {
            let message = format!("found more than {MAX_DEPTH} collections inside each other");
            return Err(self.source.error(Origin::Parser, at, message));
        }
        self.cost = self.cost.saturating_add(NODE_COST);
        let (anchor, tag, content) = match event {
            Event::Alias(id) => {
                let undefined = || self.source.error(Origin::Parser, at, "found undefined alias");
                return self.anchors.get(&id).cloned().ok_or_else(undefined);
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.cost = self.cost.saturating_add(text.len());
                (anchor, tag, Content::Scalar { text, plain: style == ScalarStyle::Plain })
            }
            Event::SequenceStart(anchor, tag) => {
                self.open.push(at);
                let mut items = Vec::new();
                loop {
                    match self.following()? {
                        (Event::SequenceEnd, _) => break,
                        (event, span) => items.push(self.node(event, span)?),
                    }
                }
                self.open.pop();
                (anchor, tag, Content::List(items))
            }
            Event::MappingStart(anchor, tag) => {
                self.open.push(at);
                let mut pairs = Vec::new();
                loop {
                    let key = match self.following()? {
                        (Event::MappingEnd, _) => break,
                        (event, span) => self.node(event, span)?,
                    };
                    let (event, span) = self.following()?;
                    pairs.push((key, self.node(event, span)?));
                }
                self.open.pop();
                (anchor, tag, Content::Map(pairs))
            }
            _ => return Err(self.source.error(Origin::Parser, at, "did not find expected node content")),
        };
        let node = Rc::new(Node { at, tag: full_tag(tag), content });
        if anchor > 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        Ok(node)
    }

    /// Puts the parser's words into those that Salt shows.
    fn scan_error(&self, error: &ScanError) -> YamlError {
        let at = Mark { line: error.marker().line(), column: error.marker().col() + 1 };
        let info = error.info();
        let (context, problem) = match info.split_once(", ") {
            Some((context, problem)) if context.starts_with("while ") => (Some(context), problem),
            _ => (None, info),
        };
        let message = match problem {
            _ if problem.starts_with("unexpected character") => "found character that cannot start any token",
            "tabs disallowed within this context (block indentation)"
            | "tabs disallowed in this context"
            | "tab cannot be used as indentation" => "found character that cannot start any token",
            "found a tab" => "found a tab character that violates indentation",
            "a block scalar content cannot start with a tab" => {
                "found a tab character where an indentation space is expected"
            }
            "simple key expected" | "simple key expect ':'" => "could not find expected ':'",
            "found unknown anchor" => "found undefined alias",
            "expected ',' or ']'" => "did not find expected ',' or ']'",
            "misplaced bracket" => "did not find expected node content",
            other => other,
        };
        // The parser knows where it failed, not where the collection began: the open ones are known here.
        let origin = if message.starts_with("did not find expected")
            && context != Some("while scanning an anchor or alias")
            || message == "found undefined alias"
        {
            Origin::Parser
        } else {
            Origin::Scanner
        };
        let error = self.source.error(origin, at, message);
        match (context, self.open.last()) {
            (Some(what), Some(begin)) if message != "found undefined alias" => error.within(what, *begin),
            _ => error,
        }
    }
}

fn mark(span: Span) -> Mark {
    Mark { line: span.start.line(), column: span.start.col() + 1 }
}

/// The tag in full; the lone `!` says nothing.
fn full_tag(tag: Option<Cow<'_, Tag>>) -> Option<String> {
    tag.map(|tag| format!("{}{}", tag.handle, tag.suffix)).filter(|tag| tag != "!")
}

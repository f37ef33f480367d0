//! Composes the parser's events into a tree of nodes; aliases share the anchored node.

use std::collections::HashMap;
use std::rc::Rc;

use brine_value::Value;
use libyaml_safer::{Encoding, ErrorKind, EventData, MappingStyle, Parser, ScalarStyle, SequenceStyle};

use super::error::{ErrorContext, Origin, YamlError};
use super::{COMPOSED_COST, MAX_DEPTH, NODE_COST, text_cost};
use crate::untrusted::{Placeholders, Scalar, ScalarContext, Style, UntrustedError};

/// A position in the text, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Mark {
    pub line: usize,
    pub column: usize,
}

#[derive(Debug)]
pub(super) struct Node {
    pub at: Mark,
    /// The end of a scalar; that of a collection is the end of its last event.
    pub end: Mark,
    /// The resolved tag, such as `tag:yaml.org,2002:str`, if the node has one.
    pub tag: Option<String>,
    pub content: Content,
}

pub(super) type Pair = (Rc<Node>, Rc<Node>);

#[derive(Debug)]
pub(super) enum Content {
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Rc<Node>>),
    Map(Vec<Pair>),
    /// A decoded value that an encoder printed in a guarded template.
    Given(Box<Value>),
}

/// Builds errors that carry the source line.
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
        self.context = Some(ErrorContext { what: what.to_owned(), line: at.line, column: at.column });
        self
    }
}

pub(super) struct Composer<'a> {
    source: Source<'a>,
    parser: Parser<&'a [u8]>,
    anchors: HashMap<String, Rc<Node>>,
    /// The positions of all anchors, including those of unfinished nodes.
    anchored: HashMap<String, Mark>,
    depth: usize,
    /// Whether a final line end was added to the text. A block scalar at the end must not contain it.
    ended: bool,
    /// The end of the original text.
    end: Mark,
    /// The memory of the composed nodes.
    pub cost: usize,
    /// The memory of the value of all nodes written in the text, without aliases.
    pub constructed: usize,
    /// The maximum of both together.
    memory: usize,
    /// The placeholders for untrusted text, if a guarded template rendered the text.
    placeholders: Option<&'a Placeholders>,
    /// The number of open flow collections.
    flows: usize,
    /// The error, if untrusted text was refused.
    pub untrusted: Option<UntrustedError>,
}

impl<'a> Composer<'a> {
    /// Creates a composer. `written` is the text before its end was normalised for the parser. `ended` is set if a line
    /// end was added.
    pub fn new(
        text: &'a str,
        written: &str,
        ended: bool,
        placeholders: Option<&'a Placeholders>,
        memory: usize,
    ) -> Self {
        let last = written.rsplit('\n').next().unwrap_or_default();
        let end = Mark { line: written.matches('\n').count() + 1, column: last.chars().count() + 1 };
        let mut parser = Parser::new();
        parser.set_encoding(Encoding::Utf8);
        parser.set_input(text.as_bytes());
        Composer {
            source: Source(text),
            parser,
            anchors: HashMap::new(),
            anchored: HashMap::new(),
            depth: 0,
            ended,
            end,
            cost: 0,
            constructed: 0,
            memory,
            placeholders,
            flows: 0,
            untrusted: None,
        }
    }

    /// Composes the single document of the text; `None` if it has none.
    pub fn document(&mut self) -> Result<Option<Rc<Node>>, YamlError> {
        let mut root: Option<Rc<Node>> = None;
        loop {
            match (self.next()?, &root) {
                ((EventData::StreamStart { .. } | EventData::DocumentEnd { .. }, _), _)
                | ((EventData::DocumentStart { .. }, _), None) => {}
                ((EventData::StreamEnd, _), _) => return Ok(root),
                ((EventData::DocumentStart { .. }, span), Some(first)) => {
                    return Err(self
                        .source
                        .error(Origin::Composer, span.at, "but found another document")
                        .within("expected a single document in the stream", first.at));
                }
                ((event, span), _) => root = Some(self.node(event, span)?),
            }
        }
    }

    fn next(&mut self) -> Result<(EventData, Span), YamlError> {
        let mut event = self.parser.parse().map_err(|error| self.refused(&error))?;
        if let EventData::Scalar { value, style: ScalarStyle::Literal | ScalarStyle::Folded, .. } = &mut event.data
            && self.ended
            && event.end_mark.index as usize >= self.source.0.len()
        {
            value.truncate(value.strip_suffix('\n').unwrap_or(value).len());
        }
        let several_lines = event.start_mark.line != event.end_mark.line;
        Ok((event.data, Span { at: event.start_mark.into(), end: event.end_mark.into(), several_lines }))
    }

    /// Composes a scalar and resolves its placeholders if their text fits.
    fn scalar(
        &mut self,
        text: String,
        plain: bool,
        context: ScalarContext,
        tagged: bool,
        at: Mark,
    ) -> Result<Content, YamlError> {
        let Some(placeholders) = self.placeholders.filter(|placeholders| placeholders.touches(&text)) else {
            return Ok(Content::Scalar { text, plain });
        };
        match placeholders.scalar(&text, context, tagged) {
            Ok(Scalar::Text) => Ok(Content::Scalar { text, plain: false }),
            Ok(Scalar::Resolved(text)) => Ok(Content::Scalar { text, plain }),
            Ok(Scalar::Node(value)) => Ok(Content::Given(Box::new(value))),
            Err(error) => Err(self.refuse(error, at)),
        }
    }

    fn refuse(&mut self, error: UntrustedError, at: Mark) -> YamlError {
        let refused = self.source.error(Origin::Constructor, at, error.message.clone());
        self.untrusted = Some(error);
        refused
    }

    /// Rejects untrusted text in the name of an anchor, an alias or a tag.
    fn refuse_names(&mut self, event: &EventData, at: Mark) -> Result<(), YamlError> {
        let Some(placeholders) = self.placeholders else { return Ok(()) };
        let names = match event {
            EventData::Alias { anchor } => [Some(anchor), None],
            EventData::Scalar { anchor, tag, .. }
            | EventData::SequenceStart { anchor, tag, .. }
            | EventData::MappingStart { anchor, tag, .. } => [anchor.as_ref(), tag.as_ref()],
            _ => [None, None],
        };
        match names.into_iter().flatten().find_map(|name| placeholders.no_content(name)) {
            Some(error) => Err(self.refuse(error, at)),
            None => Ok(()),
        }
    }

    /// Counts the memory of a node before it is composed.
    fn count(&mut self, event: &EventData, at: Mark) -> Result<(), YamlError> {
        let (own, names) = match event {
            // An alias is a pointer; what it repeats counts when it is constructed.
            EventData::Alias { .. } => (2 * size_of::<Rc<Node>>(), 0),
            EventData::Scalar { anchor, tag, value, .. } => {
                self.constructed = self.constructed.saturating_add(NODE_COST + text_cost(value.len()));
                (COMPOSED_COST + text_cost(value.capacity()), names_cost(anchor.as_deref(), tag.as_deref()))
            }
            EventData::SequenceStart { anchor, tag, .. } | EventData::MappingStart { anchor, tag, .. } => {
                self.constructed = self.constructed.saturating_add(NODE_COST);
                (COMPOSED_COST, names_cost(anchor.as_deref(), tag.as_deref()))
            }
            _ => (0, 0),
        };
        self.cost = self.cost.saturating_add(own).saturating_add(names);
        if self.cost.saturating_add(self.constructed) <= self.memory {
            return Ok(());
        }
        let message = format!("the document takes too much memory: {} bytes are allowed", self.memory);
        Err(self.source.error(Origin::Limit, at, message))
    }

    fn node(&mut self, event: EventData, span: Span) -> Result<Rc<Node>, YamlError> {
        let Span { at, mut end, several_lines } = span;
        self.refuse_names(&event, at)?;
        if self.depth >= MAX_DEPTH {
            let message = format!("found more than {MAX_DEPTH} collections inside each other");
            return Err(self.source.error(Origin::Parser, at, message));
        }
        if let EventData::Scalar { anchor: Some(anchor), .. }
        | EventData::SequenceStart { anchor: Some(anchor), .. }
        | EventData::MappingStart { anchor: Some(anchor), .. } = &event
            && let Some(first) = self.anchored.insert(anchor.clone(), at)
        {
            let error = self.source.error(Origin::Composer, at, "second occurrence");
            return Err(error.within("found duplicate anchor; first occurrence", first));
        }
        self.count(&event, at)?;
        self.depth += 1;
        let (anchor, tag, content) = match event {
            EventData::Alias { anchor } => {
                self.depth -= 1;
                let undefined = || self.source.error(Origin::Composer, at, "found undefined alias");
                return self.anchors.get(&anchor).cloned().ok_or_else(undefined);
            }
            EventData::Scalar { anchor, tag, value: text, style, plain_implicit, .. } => {
                // The lone tag `!` makes a quoted scalar plain, as in PyYAML.
                let plain = if tag.is_none() { style == ScalarStyle::Plain } else { plain_implicit };
                let context = ScalarContext { style: style.into(), in_flow: self.flows > 0, several_lines };
                let content = self.scalar(text, plain, context, tag.is_some(), at)?;
                (anchor, tag, content)
            }
            EventData::SequenceStart { anchor, tag, style, .. } => {
                let flow = usize::from(style == SequenceStyle::Flow);
                self.flows += flow;
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (EventData::SequenceEnd, span) => {
                            end = span.end;
                            break;
                        }
                        (event, span) => items.push(self.node(event, span)?),
                    }
                }
                self.flows -= flow;
                (anchor, tag, Content::List(items))
            }
            EventData::MappingStart { anchor, tag, style, .. } => {
                let flow = usize::from(style == MappingStyle::Flow);
                self.flows += flow;
                let mut pairs = Vec::new();
                loop {
                    let key = match self.next()? {
                        (EventData::MappingEnd, span) => {
                            end = span.end;
                            break;
                        }
                        (event, span) => self.node(event, span)?,
                    };
                    let (event, span) = self.next()?;
                    pairs.push((key, self.node(event, span)?));
                }
                self.flows -= flow;
                (anchor, tag, Content::Map(pairs))
            }
            _ => return Err(self.source.error(Origin::Parser, at, "did not find expected node content")),
        };
        self.depth -= 1;
        // The lone `!` has no effect.
        let node = Rc::new(Node { at, end, tag: tag.filter(|tag| tag != "!"), content });
        if let Some(anchor) = anchor {
            // The anchor becomes visible after its node is complete, so no node can contain itself.
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        Ok(node)
    }

    fn refused(&self, error: &libyaml_safer::Error) -> YamlError {
        let origin = if error.kind() == ErrorKind::Parser { Origin::Parser } else { Origin::Scanner };
        let position = |mark: libyaml_safer::Mark| {
            let at_end = mark.index as usize >= self.source.0.len();
            if at_end { self.end_for(origin, error.problem()) } else { Mark::from(mark) }
        };
        let at = error.problem_mark().map(position).unwrap_or_default();
        let refused = self.source.error(origin, at, error.problem());
        match (error.context(), error.context_mark()) {
            (Some(what), Some(begin)) => refused.within(what, position(begin)),
            _ => refused,
        }
    }

    /// Returns the position of the end of the text, for an error of this origin. If the last line has no line end, the
    /// parser reports the position after that line, as does the scanner when it expects the end of a key.
    fn end_for(&self, origin: Origin, problem: &str) -> Mark {
        let Mark { line, column } = self.end;
        let behind = origin == Origin::Parser || self.ended && problem == "could not find expected ':'";
        if behind && column > 1 { Mark { line: line + 1, column: 1 } } else { self.end }
    }
}

/// Returns the memory of the names of a node: its tag, and its anchor in two tables.
fn names_cost(anchor: Option<&str>, tag: Option<&str>) -> usize {
    let of_anchor = anchor.map_or(0, |anchor| 2 * (text_cost(anchor.len()) + 2 * size_of::<(String, Mark)>()));
    of_anchor + tag.map_or(0, |tag| text_cost(tag.len()))
}

/// The start and end of an event, and whether it spans several lines.
#[derive(Clone, Copy)]
struct Span {
    at: Mark,
    end: Mark,
    several_lines: bool,
}

impl From<ScalarStyle> for Style {
    fn from(style: ScalarStyle) -> Self {
        match style {
            ScalarStyle::SingleQuoted => Style::SingleQuoted,
            ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
            ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
            _ => Style::Plain,
        }
    }
}

impl From<libyaml_safer::Mark> for Mark {
    fn from(mark: libyaml_safer::Mark) -> Self {
        Mark { line: mark.line as usize + 1, column: mark.column as usize + 1 }
    }
}

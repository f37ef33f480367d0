//! Writes a parsed template in the engine's language. Only tokens with a different meaning are replaced, and line
//! numbers do not change.

mod expressions;
mod statements;

use super::document::Document;
use super::nodes::{Body, Expr, Form, Tag};
use super::source_map::SourceMap;
use super::tokens::{Kind, Span};

/// The purpose of a rewritten template.
#[derive(Clone, Copy)]
pub(crate) enum Purpose<'p> {
    /// To be rendered.
    Render,
    /// To be rendered once more after an error: each lookup goes through a function that records it.
    Diagnose,
    /// To be rendered with untrusted variables: printed and captured text goes through the guard.
    Guard {
        /// The id of the template's facts.
        id: u64,
        /// Whether a printing tag may print untrusted text.
        is_guarded: &'p dyn Fn(usize) -> bool,
    },
}

/// A template in the engine's language.
#[derive(Debug)]
pub(crate) struct Emitted {
    pub(crate) text: String,
    pub(crate) map: SourceMap,
}

/// Rewrites a template.
pub(crate) fn emit(document: &Document, purpose: Purpose<'_>) -> Emitted {
    if document.has_unknown_name {
        // The engine refuses this tag, and the error is that of the document.
        return Emitted { text: "{% unknown %}".to_owned(), map: SourceMap::default() };
    }
    let out = String::with_capacity(document.source.len() + document.source.len() / 8);
    let mut emitter =
        Emitter { document, purpose, out, map: SourceMap::default(), at: 0, tag: None, macros: Vec::new(), printed: 0 };
    for (index, tag) in document.tags.iter().enumerate() {
        emitter.text(tag.span.start);
        emitter.tag(index, tag);
    }
    emitter.text(document.source.len());
    Emitted { text: emitter.out, map: emitter.map }
}

struct Emitter<'d> {
    document: &'d Document,
    purpose: Purpose<'d>,
    out: String,
    map: SourceMap,
    /// The position up to which the source is written.
    at: usize,
    /// The tag that is being written, if its tokens have to be copied one by one.
    tag: Option<&'d Tag>,
    /// The open macros, and whether they take more arguments than they name.
    macros: Vec<(Span, bool)>,
    /// The number of printing tags so far.
    printed: usize,
}

impl<'d> Emitter<'d> {
    /// Copies text outside of tags up to a position.
    fn text(&mut self, to: usize) {
        if let Some(line) = self.document.options.filter(|line| self.at <= line.start && line.end <= to) {
            self.verbatim(line.start);
            self.at = line.end;
        }
        self.verbatim(to);
    }

    fn verbatim(&mut self, to: usize) {
        if let Some(text) = self.document.source.get(self.at..to).filter(|text| !text.is_empty()) {
            self.map.copied(self.out.len(), self.at, text.len());
            self.out.push_str(text);
        }
        self.at = self.at.max(to);
    }

    /// Copies the source up to a position.
    fn to(&mut self, to: usize) {
        let Some(tag) = self.tag else { return self.verbatim(to) };
        let first = tag.tokens.partition_point(|token| token.span.start < self.at);
        let mut number_ended = None;
        for token in tag.tokens.get(first..).unwrap_or_default().iter().take_while(|token| token.span.end <= to) {
            self.blanks(token.span.start);
            if token.kind == Kind::Number {
                // `0600` is two numbers to Jinja, which is an error. The engine would parse one number without a space
                // between them.
                if number_ended == Some(token.span.start) {
                    self.put(" ");
                }
                number_ended = Some(token.span.end);
            }
            self.verbatim(token.span.end);
        }
        self.blanks(to);
    }

    /// Copies the whitespace between tokens; non-ASCII whitespace, such as a no-break space, becomes a space.
    fn blanks(&mut self, to: usize) {
        let text = self.document.source.get(self.at..to).unwrap_or_default();
        let start = self.at;
        for (at, c) in text.char_indices().filter(|(_, c)| c.is_whitespace() && !c.is_ascii()) {
            self.verbatim(start + at);
            self.put(" ");
            self.at = start + at + c.len_utf8();
        }
        self.verbatim(to);
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn replace(&mut self, span: Span, text: &str) {
        self.to(span.start);
        self.put(text);
        self.at = span.end;
    }

    fn guards(&self) -> bool {
        matches!(self.purpose, Purpose::Guard { .. })
    }

    /// Returns the arguments of the guard for a printing tag that may print untrusted text.
    fn guard_arguments(&self) -> Option<String> {
        match self.purpose {
            Purpose::Guard { id, is_guarded } if is_guarded(self.printed) => Some(format!("{id}, {})", self.printed)),
            _ => None,
        }
    }

    fn tag(&mut self, index: usize, tag: &'d Tag) {
        let is_parsed = matches!(&tag.body, Body::Print(Some(_)) | Body::Block(Some(_)));
        let needs_care = !is_parsed || !tag.span.of(&self.document.source).is_ascii();
        self.tag = (needs_care && matches!(tag.body, Body::Print(_) | Body::Block(_))).then_some(tag);
        match &tag.body {
            Body::Print(printed) => self.print(tag, printed.as_ref()),
            Body::Block(Some(statement)) => self.statement(index, tag, statement),
            Body::Block(None) | Body::Raw | Body::Unfinished => {}
        }
        self.printed += usize::from(self.document.prints(tag));
        self.to(tag.span.end);
        self.tag = None;
    }

    fn print(&mut self, tag: &Tag, printed: Option<&Expr>) {
        let ([first, ..], [.., last]) = (&tag.tokens[..], &tag.tokens[..]) else { return };
        let arguments = self.guard_arguments();
        self.to(first.span.start);
        if arguments.is_some() {
            self.put("__guard__((");
        }
        match printed {
            Some(printed) if matches!(printed.form, Form::Tuple) => self.around(printed, "("),
            Some(printed) => self.expr(printed),
            None => {}
        }
        self.to(last.span.end);
        if let Some(arguments) = arguments {
            self.put("), ");
            self.put(&arguments);
        }
    }
}

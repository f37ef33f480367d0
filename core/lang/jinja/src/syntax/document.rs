//! A parsed template: its tags in order, its macros, and the first syntax error.

use std::sync::Arc;

use super::nodes::{Body, Parameter, Statement, Tag};
use super::parser::{Called, Closing, Parser, SyntaxError, Used};
use super::tokens::{Ending, Span, Token, tokenize};

/// A template, tokenized and parsed once. Rewriting, guarding and error messages read its nodes.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) source: Arc<str>,
    /// The options line, which the engine does not see.
    pub(crate) options: Option<Span>,
    pub(crate) tags: Vec<Tag>,
    /// The first error that Jinja reports. The engine may accept the template nevertheless.
    error: Option<SyntaxError>,
    /// Whether the error is an unknown filter or test, which the engine would accept.
    pub(crate) has_unknown_name: bool,
    /// The filters and tests, for tools.
    pub(crate) used: Vec<Used>,
}

/// Returns whether there is a filter or a test of this name.
pub(crate) type Known<'k> = &'k dyn Fn(Called, &str) -> bool;

/// An open block: its tag, and the possible closing tags.
type Block<'s> = (&'s str, Closing);

impl Document {
    /// Parses a template. The engine does not see `options`, a line of the source.
    pub(crate) fn parse(source: &str, options: Option<(usize, usize)>, is_known: Known<'_>) -> Self {
        let options = options.map(|(start, end)| Span::new(start, end));
        let mut scan = Scan {
            source,
            known: is_known,
            blocks: Vec::new(),
            tags: Vec::new(),
            error: None,
            unknown: None,
            used: Vec::new(),
        };
        let (before, after) = options.map_or((0, 0), |line| (line.start, line.end));
        let mut at = 0;
        while let Some(start) = next_tag(source, at) {
            // The text of the options line is not a tag.
            if start >= before && start < after {
                at = after;
                continue;
            }
            at = scan.tag(start);
        }
        if let Some(looking) = looking(&scan.blocks) {
            let at = scan.tags.last().map_or(0, |tag| tag.span.end);
            scan.fail(SyntaxError { message: format!("Unexpected end of template.{looking}"), at });
        }
        let Scan { tags, error, unknown, used, .. } = scan;
        // As in Jinja, a syntax error anywhere comes first.
        let has_unknown_name = error.is_none() && unknown.is_some();
        Document { source: source.into(), options, tags, error: error.or(unknown), has_unknown_name, used }
    }

    /// Returns the template's text.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Returns whether the template reads other templates.
    pub(crate) fn imports(&self) -> bool {
        self.statements()
            .any(|(_, statement)| matches!(statement, Statement::Import { .. } | Statement::ImportData { .. }))
    }

    /// Returns whether all tags that print or capture text are parsed.
    pub(crate) fn is_understood(&self) -> bool {
        self.tags.iter().all(|tag| match &tag.body {
            Body::Print(printed) => printed.is_some(),
            Body::Block(None) => !matches!(
                self.word(tag),
                "set" | "filter" | "call" | "macro" | "endmacro" | "load_yaml" | "load_json" | "load_text"
            ),
            Body::Block(Some(_)) | Body::Raw => true,
            Body::Unfinished => false,
        })
    }

    /// Returns Jinja's message for a template that cannot be parsed, and its line.
    pub(crate) fn error(&self) -> Option<(&str, usize)> {
        let error = self.error.as_ref()?;
        Some((&error.message, self.line(error.at)))
    }

    /// Returns Jinja's message for a template that cannot be parsed, and its position. An unknown filter or test is no
    /// such error here.
    pub(crate) fn syntax_error(&self) -> Option<(&str, usize)> {
        let error = self.error.as_ref().filter(|_| !self.has_unknown_name)?;
        Some((&error.message, error.at))
    }

    /// Returns the line of a position, counted from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.source.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
    }

    /// Returns the line that Jinja reports for an error at a position: in a tag of several lines, the line of its first
    /// word, or of the last operation of a printed expression.
    pub(crate) fn reported_line(&self, at: usize) -> usize {
        let behind = self.tags.partition_point(|tag| tag.span.end <= at);
        match self.tags.get(behind).filter(|tag| tag.span.start <= at) {
            Some(tag) => self.line(anchor(tag).unwrap_or(at)),
            None => self.line(at),
        }
    }

    /// Returns the line that Jinja reports, like [`Document::reported_line`], for an error of which only the line is
    /// known.
    pub(crate) fn reported_line_of(&self, failed: usize) -> usize {
        let several = |tag: &&Tag| {
            let (first, last) = (self.line(tag.span.start), self.line(tag.span.end));
            first < last && (first..=last).contains(&failed)
        };
        let anchor = self.tags.iter().find(several).and_then(anchor);
        anchor.map_or(failed, |at| self.line(at))
    }

    /// Returns the template, named by a literal, that a name is imported from, and the line of the tag.
    pub(crate) fn imported(&self, name: &str) -> Option<(&str, usize)> {
        self.statements().find_map(|(tag, statement)| match statement {
            Statement::Import { file, names, .. } if names.iter().any(|bound| bound.of(&self.source) == name) => {
                let path = file.span.of(&self.source);
                let path = path.get(1..path.len().checked_sub(1)?).filter(|_| file.is_string_literal())?;
                Some((path, self.line(anchor(tag)?)))
            }
            _ => None,
        })
    }

    /// Returns Jinja's message for an undefined name on a line that is a parameter of a macro or call block there, or
    /// the `caller` of a macro that no call block called.
    pub(crate) fn parameter(&self, name: &str, line: usize) -> Option<String> {
        let mut open: Vec<(bool, Vec<&str>)> = Vec::new();
        for tag in self.tags.iter().take_while(|tag| self.line(tag.span.start) <= line) {
            let Body::Block(statement) = &tag.body else { continue };
            let named = |parameters: &[Parameter]| {
                parameters.iter().map(|parameter| parameter.name.of(&self.source)).collect::<Vec<_>>()
            };
            match statement {
                Some(Statement::Macro(declared)) => open.push((true, named(&declared.parameters))),
                Some(Statement::Call { parameters, .. }) => open.push((false, named(parameters))),
                _ if matches!(self.word(tag), "endmacro" | "endcall") && self.line(tag.span.start) < line => {
                    open.pop();
                }
                _ => {}
            }
        }
        if name == "caller" && open.iter().any(|(is_macro, _)| *is_macro) {
            return Some("No caller defined".to_owned());
        }
        let is_parameter = open.iter().any(|(_, parameters)| parameters.contains(&name));
        is_parameter.then(|| format!("parameter '{name}' was not provided"))
    }

    /// Returns the tags that print, and the filter blocks, each with its line and text.
    pub(crate) fn printing(&self) -> Vec<(usize, &str)> {
        let (mut line, mut counted) = (1, 0);
        let mut expressions = Vec::new();
        for tag in self.tags.iter().filter(|tag| self.prints(tag)) {
            line += self.source[counted..tag.span.start].matches('\n').count();
            counted = tag.span.start;
            expressions.push((line, tag.span.of(&self.source)));
        }
        expressions
    }

    pub(crate) fn prints(&self, tag: &Tag) -> bool {
        match &tag.body {
            Body::Print(_) => true,
            Body::Block(_) => self.word(tag) == "filter",
            Body::Raw | Body::Unfinished => false,
        }
    }

    /// Returns the first word of a tag.
    pub(crate) fn word(&self, tag: &Tag) -> &str {
        tag.tokens.first().map_or("", |token| token.span.of(&self.source))
    }

    fn statements(&self) -> impl Iterator<Item = (&Tag, &Statement)> {
        self.tags.iter().filter_map(|tag| match &tag.body {
            Body::Block(Some(statement)) => Some((tag, statement)),
            _ => None,
        })
    }
}

/// Returns the position whose line Jinja reports for an error in a tag.
fn anchor(tag: &Tag) -> Option<usize> {
    match &tag.body {
        Body::Print(Some(printed)) => Some(printed.at),
        Body::Print(None) => Some(tag.span.start),
        Body::Block(_) => Some(tag.tokens.first().map_or(tag.span.start, |token| token.span.start)),
        Body::Raw | Body::Unfinished => None,
    }
}

/// Returns the position of the next tag or comment.
fn next_tag(source: &str, from: usize) -> Option<usize> {
    let rest = source.get(from..)?;
    let offset = rest.match_indices('{').map(|(at, _)| at).find(|at| rest[at + 1..].starts_with(['{', '%', '#']));
    offset.map(|at| from + at)
}

/// The state of parsing: the open blocks, and the result.
struct Scan<'s> {
    source: &'s str,
    known: Known<'s>,
    blocks: Vec<Block<'s>>,
    tags: Vec<Tag>,
    error: Option<SyntaxError>,
    /// The first unknown filter or test that Jinja looks up when it compiles the template.
    unknown: Option<SyntaxError>,
    /// All filters and tests.
    used: Vec<Used>,
}

impl<'s> Scan<'s> {
    fn fail(&mut self, error: SyntaxError) {
        self.error.get_or_insert(error);
    }

    fn unfinished(&mut self, start: usize, what: &str) -> usize {
        self.fail(SyntaxError { message: format!("Missing end of {what}"), at: start });
        self.push(start, self.source.len(), Vec::new(), Body::Unfinished)
    }

    fn push(&mut self, start: usize, end: usize, tokens: Vec<Token>, body: Body) -> usize {
        self.tags.push(Tag { span: Span::new(start, end), tokens, body });
        end
    }

    /// Parses the tag or comment at a position, and returns its end.
    fn tag(&mut self, start: usize) -> usize {
        let text = &self.source[start..];
        if let Some(comment) = text.strip_prefix("{#") {
            return match comment.find("#}") {
                Some(length) => start + length + 4,
                None => self.unfinished(start, "comment tag"),
            };
        }
        let is_block = text.starts_with("{%");
        let (tokens, ending) = tokenize(self.source, start, if is_block { "%}" } else { "}}" });
        if is_block
            && let ([token], Ending::Closed(closed)) = (&tokens[..], &ending)
            && token.span.of(self.source) == "raw"
        {
            return match raw_end(self.source, *closed) {
                Some(end) => self.push(start, end, tokens, Body::Raw),
                None => self.unfinished(start, "raw directive"),
            };
        }
        let mut parser = Parser::new(self.source, &tokens, &ending, is_block);
        // As in Jinja: not in a loop or another block within the branch.
        let in_branch = self.blocks.last().is_some_and(|(opened, _)| *opened == "if");
        let parsed = if is_block {
            let tag = tokens.first().map_or("", |token| token.span.of(self.source));
            self.block(&mut parser, tag, tokens.first().map_or(start, |token| token.span.start)).map(Body::Block)
        } else {
            parser.print().map(|printed| Body::Print(Some(printed)))
        };
        let unparsed = if is_block { Body::Block(None) } else { Body::Print(None) };
        let body = parsed.unwrap_or_else(|error| {
            self.fail(error);
            unparsed
        });
        let used = std::mem::take(&mut parser.used);
        let is_condition =
            is_block && tokens.first().is_some_and(|tag| matches!(tag.span.of(self.source), "if" | "elif"));
        let is_early = matches!(
            body,
            Body::Block(Some(Statement::Capture { .. } | Statement::Filter { .. } | Statement::Macro(_)))
        );
        self.look_up(&used, is_condition || in_branch && !is_early);
        self.used.extend(used);
        match ending {
            Ending::Closed(end) => self.push(start, end, tokens, body),
            Ending::Unfinished | Ending::Bad { .. } => self.push(start, self.source.len(), tokens, Body::Unfinished),
        }
    }

    /// Keeps the first unknown name of a tag. Jinja looks up the names of conditions and of tags in their branches late,
    /// at the render.
    fn look_up(&mut self, used: &[Used], is_late: bool) {
        let mut early = used.iter().filter(|used| !used.is_late && !is_late);
        let Some(unknown) = early.find(|used| !(self.known)(used.kind, used.name.of(self.source))) else { return };
        let kind = match unknown.kind {
            Called::Filter => "filter",
            Called::Test => "test",
        };
        let message = format!("No {kind} named '{}'.", unknown.name.of(self.source));
        self.unknown.get_or_insert(SyntaxError { message, at: unknown.name.start });
    }

    /// Parses a statement, and opens or closes the block that it begins or ends.
    fn block(
        &mut self,
        parser: &mut Parser<'_, 's>,
        tag: &'s str,
        at: usize,
    ) -> Result<Option<Statement>, SyntaxError> {
        let is_continuation = matches!(tag, "elif" | "else") || tag.starts_with("end");
        if let Some((opened, closing)) = self.blocks.last_mut()
            && closing.contains(&tag)
        {
            match (tag, *opened) {
                ("else", "for") => *closing = &["endfor"],
                ("else", _) => *closing = &["endif"],
                ("elif", _) => {}
                _ => _ = self.blocks.pop(),
            }
            return parser.continuation().map(Some);
        }
        if !is_continuation && let Some((statement, closing)) = parser.statement()? {
            if !closing.is_empty() {
                self.blocks.push((tag, closing));
            }
            return Ok(Some(statement));
        }
        let nested = self.blocks.iter().any(|(_, closing)| closing.contains(&tag));
        let hint = match looking(&self.blocks) {
            Some(_) if nested => format!(
                " You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for {}.{}",
                expected_tags(&self.blocks),
                innermost(&self.blocks)
            ),
            Some(looking) => looking,
            None => String::new(),
        };
        self.fail(SyntaxError { message: format!("Encountered unknown tag '{tag}'.{hint}"), at });
        if is_continuation { parser.continuation().map(Some) } else { Ok(None) }
    }
}

/// Returns the end of the `endraw` tag of a raw block.
fn raw_end(source: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += source[at..].find("{%")?;
        let inside = source[at + 2..].trim_start_matches(['-', '+']).trim_start();
        if let Some(after) = inside.strip_prefix("endraw") {
            let close = after.trim_start().trim_start_matches(['-', '+']);
            if let Some(rest) = close.strip_prefix("%}") {
                return Some(source.len() - rest.len());
            }
        }
        at += 2;
    }
}

/// Returns Jinja's hint about the innermost open block, if there is one.
fn looking(blocks: &[Block<'_>]) -> Option<String> {
    blocks.last()?;
    Some(format!(" Jinja was looking for the following tags: {}.{}", expected_tags(blocks), innermost(blocks)))
}

fn expected_tags(blocks: &[Block<'_>]) -> String {
    let tags = blocks.last().map_or(&[][..], |(_, closing)| closing);
    tags.iter().map(|tag| format!("'{tag}'")).collect::<Vec<_>>().join(" or ")
}

fn innermost(blocks: &[Block<'_>]) -> String {
    let tag = |(tag, _): &Block<'_>| format!(" The innermost block that needs to be closed is '{tag}'.");
    blocks.last().map(tag).unwrap_or_default()
}

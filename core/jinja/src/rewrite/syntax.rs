//! A whole template as Jinja reads it: what is wrong in it first, and which line Jinja tells when something in a tag of
//! several lines fails.

use super::grammar::{Parser, Wrong};
use super::tokens::{Ending, Kind, PLACE, Token, tokenize};
use super::{Look, next_tag, raw_end};

/// What Jinja says of a template that cannot be read, and on which line.
pub(crate) fn wrong(source: &str) -> Option<(String, usize)> {
    let mut blocks = Vec::new();
    let mut after = 0;
    for tag in Tags::new(source) {
        let checked = match &tag.inside {
            Inside::Unfinished(what) => Err(Wrong { message: format!("Missing end of {what}"), at: 0 }),
            Inside::Raw => Ok(()),
            Inside::Print(tokens, ending) => Parser::new(tokens, ending, false, Look::First).print().map(|_| ()),
            Inside::Block(tokens, ending) => block(tokens, ending, &mut blocks),
        };
        if let Err(Wrong { message, at }) = checked {
            let at = tag.start + at;
            let place = source.get(..at).unwrap_or_default().chars().count();
            return Some((message.replace(PLACE, &place.to_string()), line(source, at)));
        }
        after = tag.end;
    }
    let message = format!("Unexpected end of template.{}", looking(&blocks)?);
    Some((message, line(source, after)))
}

/// The line that Jinja tells when this line, in a tag of several, fails: that of the tag's word, or of what comes last
/// in what is printed. `before` is what the line has before the place that fails.
pub(crate) fn told_line(source: &str, failed: usize, before: &str) -> usize {
    let has_ended = before.contains("%}") || before.contains("}}");
    let several = |tag: &Tag<'_>| {
        let (first, last) = (line(source, tag.start), line(source, tag.end));
        first <= failed && first < last && (failed < last || (failed == last && !has_ended))
    };
    let Some(tag) = Tags::new(source).find(several) else { return failed };
    let at = match &tag.inside {
        Inside::Block(tokens, _) => tokens.first().map_or(0, |token| token.start),
        Inside::Print(tokens, ending) => {
            Parser::new(tokens, ending, false, Look::First).print().map_or(0, |printed| printed.at)
        }
        Inside::Raw | Inside::Unfinished(_) => return failed,
    };
    line(source, tag.start + at)
}

/// From which template a name is imported, where that is said by a literal, and on which line.
pub(crate) fn imported<'a>(source: &'a str, name: &str) -> Option<(&'a str, usize)> {
    Tags::new(source).find_map(|tag| match &tag.inside {
        Inside::Block(tokens, _) => match &tokens[..] {
            [from, template, import, names @ ..]
                if from.is_name("from")
                    && import.is_name("import")
                    && template.kind == Kind::Text
                    && exports(names, name) =>
            {
                let path = template.text.get(1..template.text.len().checked_sub(1)?)?;
                Some((path, line(source, tag.start + from.start)))
            }
            _ => None,
        },
        _ => None,
    })
}

/// Whether a name is among those that are imported, and under no other name.
fn exports(names: &[Token<'_>], name: &str) -> bool {
    let behind = names.iter().skip(1).map(Some).chain([None]);
    names.iter().zip(behind).any(|(token, next)| token.is_name(name) && !next.is_some_and(|next| next.is_name("as")))
}

/// What Jinja says of a name that is undefined on this line, if it is a parameter of a macro or of a call block there, or
/// the `caller` of a macro that was called by none.
pub(crate) fn parameter(source: &str, name: &str, at: usize) -> Option<String> {
    let mut open: Vec<(bool, Vec<&str>)> = Vec::new();
    for tag in Tags::new(source) {
        if line(source, tag.start) > at {
            break;
        }
        let Inside::Block(tokens, _) = &tag.inside else { continue };
        match &tokens[..] {
            [word, rest @ ..] if word.is_name("macro") || word.is_name("call") => {
                let is_macro = word.is_name("macro");
                let rest = if is_macro { rest.get(1..).unwrap_or_default() } else { rest };
                let parameters = rest.iter().take_while(|token| !token.is_operator(")"));
                let parameters = parameters.filter(|token| token.kind == Kind::Name).map(|token| token.text).collect();
                let has_parameters = rest.first().is_some_and(|token| token.is_operator("("));
                open.push((is_macro, if has_parameters { parameters } else { Vec::new() }));
            }
            [word, ..] if (word.is_name("endmacro") || word.is_name("endcall")) && line(source, tag.start) < at => {
                open.pop();
            }
            _ => {}
        }
    }
    if name == "caller" && open.iter().any(|(is_macro, _)| *is_macro) {
        return Some("No caller defined".to_owned());
    }
    let is_one = open.iter().any(|(_, parameters)| parameters.contains(&name));
    is_one.then(|| format!("parameter '{name}' was not provided"))
}

fn line(source: &str, at: usize) -> usize {
    source.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// A block that is open: its tag, and the tags that it waits for.
type Block<'a> = (&'a str, &'static [&'static str]);

fn block<'a>(tokens: &[Token<'a>], ending: &Ending, blocks: &mut Vec<Block<'a>>) -> Result<(), Wrong> {
    let mut parser = Parser::new(tokens, ending, true, Look::First);
    let tag = tokens.first().map_or("", |token| token.text);
    if let Some((opened, closing)) = blocks.last_mut()
        && closing.contains(&tag)
    {
        parser.goes_on()?;
        match (tag, *opened) {
            ("else", "for") => *closing = &["endfor"],
            ("else", _) => *closing = &["endif"],
            ("elif", _) => {}
            _ => _ = blocks.pop(),
        }
        return Ok(());
    }
    match parser.statement()? {
        Some(statement) if statement.closing.is_empty() => Ok(()),
        Some(statement) => {
            blocks.push((tag, statement.closing));
            Ok(())
        }
        None => {
            let nested = blocks.iter().any(|(_, closing)| closing.contains(&tag));
            let told = match looking(blocks) {
                Some(_) if nested => format!(
                    " You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for {}.{}",
                    wanted(blocks),
                    innermost(blocks)
                ),
                Some(looking) => looking,
                None => String::new(),
            };
            let at = tokens.first().map_or(0, |token| token.start);
            Err(Wrong { message: format!("Encountered unknown tag '{tag}'.{told}"), at })
        }
    }
}

/// What Jinja looks for in the innermost block that is open, if one is.
fn looking(blocks: &[Block<'_>]) -> Option<String> {
    blocks.last()?;
    Some(format!(" Jinja was looking for the following tags: {}.{}", wanted(blocks), innermost(blocks)))
}

fn wanted(blocks: &[Block<'_>]) -> String {
    let tags = blocks.last().map_or(&[][..], |(_, closing)| closing);
    tags.iter().map(|tag| format!("'{tag}'")).collect::<Vec<_>>().join(" or ")
}

fn innermost(blocks: &[Block<'_>]) -> String {
    let tag = |(tag, _): &Block<'_>| format!(" The innermost block that needs to be closed is '{tag}'.");
    blocks.last().map(tag).unwrap_or_default()
}

/// A tag, by its place in the source.
pub(super) struct Tag<'a> {
    pub start: usize,
    pub end: usize,
    pub inside: Inside<'a>,
}

pub(super) enum Inside<'a> {
    Print(Vec<Token<'a>>, Ending),
    Block(Vec<Token<'a>>, Ending),
    /// All up to the tag that ends it.
    Raw,
    /// A comment or raw text without an end.
    Unfinished(&'static str),
}

/// The tags of a template but for its comments, one after the other.
pub(super) struct Tags<'a> {
    source: &'a str,
    at: usize,
}

impl<'a> Tags<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Tags { source, at: 0 }
    }
}

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        loop {
            let start = self.at + next_tag(&self.source[self.at..])?;
            let text = &self.source[start..];
            if let Some(comment) = text.strip_prefix("{#") {
                if let Some(length) = comment.find("#}") {
                    self.at = start + length + 4;
                    continue;
                }
                self.at = self.source.len();
                return Some(Tag { start, end: self.at, inside: Inside::Unfinished("comment tag") });
            }
            let is_block = text.starts_with("{%");
            let (tokens, ending) = tokenize(text, if is_block { "%}" } else { "}}" });
            let mut end = match ending {
                Ending::Closed(end) => start + end,
                Ending::Unfinished | Ending::Bad { .. } => self.source.len(),
            };
            let is_raw = is_block && matches!(&tokens[..], [token] if token.text == "raw");
            let inside = match ending {
                Ending::Closed(closed) if is_raw => {
                    let raw = raw_end(text, closed);
                    end = raw.map_or(self.source.len(), |length| start + length);
                    if raw.is_some() { Inside::Raw } else { Inside::Unfinished("raw directive") }
                }
                ending if is_block => Inside::Block(tokens, ending),
                ending => Inside::Print(tokens, ending),
            };
            self.at = end;
            return Some(Tag { start, end, inside });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_as_by_jinja() {
        for (source, message, at) in [
            (
                "{% if true %}",
                "Unexpected end of template. Jinja was looking for the following tags: 'elif' or 'else' or 'endif'. The innermost block that needs to be closed is 'if'.",
                1,
            ),
            ("\n{% endif %}", "Encountered unknown tag 'endif'.", 2),
            ("{{ a b }}", "expected token 'end of print statement', got 'b'", 1),
            ("{{ a", "unexpected end of template, expected 'end of print statement'.", 1),
            ("é{{ 'abc }}", "unexpected char \"'\" at 4", 1),
            ("{{ [1, 2 }}", "unexpected '}', expected ']'", 1),
            ("{{ (1, 2 }}", "unexpected '}', expected ')'", 1),
            ("{{ 1 +  }}", "unexpected 'end of print statement'", 1),
            ("{{ a. }}", "expected name or number", 1),
            ("{{ a | }}", "expected token 'name', got 'end of print statement'", 1),
            ("{% set %}", "Expected an expression, got 'end of statement block'", 1),
            ("{% for in y %}{% endfor %}", "expected token 'in', got 'y'", 1),
            ("{% call foo %}{% endcall %}", "expected call", 1),
            ("a\n{{ a ? b }}", "unexpected char '?' at 7", 2),
            ("{# a\n", "Missing end of comment tag", 1),
            ("{% raw %}\n", "Missing end of raw directive", 1),
            (
                "{% for x in y %}{% if x %}{% endfor %}{% endif %}",
                "Encountered unknown tag 'endfor'. You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for 'elif' or 'else' or 'endif'. The innermost block that needs to be closed is 'if'.",
                1,
            ),
        ] {
            assert_eq!(wrong(source), Some((message.to_owned(), at)), "{source}");
        }
    }

    #[test]
    fn what_jinja_reads_is_not_wrong() {
        for source in [
            "{{ a if b }}{{ a if b else c, d }}{{ () }}{{ (1,) }}{{ {'a': 1,}['a'][::2, 1:] }}{{ 'a' 'b' }}",
            "{% if not a is defined and b is divisibleby 3 or c is not none %}{% elif d %}{% else %}{% endif %}",
            "{% for a, (b, c) in d if e recursive %}{% break %}{% else %}{% endfor %}{{ - a ** 2 | f(1, *b, c=2, **d) }}",
            "{% set a, b = 1, 2 %}{% set a.b = 1 %}{% set a | upper %}{% endset %}{% macro m(a, b=1) %}{% endmacro %}",
            "{% call(x) m(1) %}{% endcall %}{% with a = 1, b = 2 %}{% endwith %}{% filter upper | e %}{% endfilter %}",
            "{% from 'a' import b, c as d with context %}{% import 'a' as b without context %}{% extends 'a' %}",
            "{% include ['a', 'b'] ignore missing with context %}{% block a scoped %}{% endblock a %}{% do a.b(1) %}",
            "{% import_yaml 'a' as b %}{% load_yaml as a %}{% endload %}{% profile as 'a' %}{% endprofile %}",
        ] {
            assert_eq!(wrong(source), None, "{source}");
        }
    }

    #[test]
    fn lines_are_those_that_jinja_tells() {
        for (source, failed, before, told) in [
            ("{% set x = {\n 'a': b,\n} %}", 2, " 'a': ", 1),
            ("{{ f(\n a\n) }}", 2, " ", 1),
            ("{{ a\n | upper }}\n{{ b }}", 1, "{{ ", 2),
            ("{{ a }}\n{{ b }}", 2, "{{ ", 2),
            ("{% set a = [\n1] %}{{ b }}", 2, "1] %}{{ ", 2),
        ] {
            assert_eq!(told_line(source, failed, before), told, "{source}");
        }
    }
}

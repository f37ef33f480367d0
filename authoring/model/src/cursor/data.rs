//! The place of a position in the data.

use brine_jinja::view::View;
use brine_yaml::nodes::Content;
use brine_yaml::{SourceNode, nodes};

use super::{Cursor, Step};

/// The mark of the position: a character of a private area.
const MARK: char = '\u{F8FF}';
/// The largest text that is read as a whole.
const MAX_WHOLE: usize = 1 << 16;
/// The largest part of a text that is read.
const MAX_PART: usize = 1 << 15;

/// Returns the place of a position in the data.
pub(super) fn at(text: &str, at: usize) -> Option<Cursor> {
    let line_start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line_end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    let before = &text[line_start..at];
    if before.trim_start().starts_with('#') || before.contains(" #") {
        return None;
    }
    let is_end = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '[' | '{' | ',' | '}');
    let start = before
        .rfind(is_end)
        .map_or(line_start, |end| line_start + end + before[end..].chars().next().map_or(1, char::len_utf8));
    // The word goes on behind the position.
    let after = &text[at..line_end];
    let end = at + after.find(|c: char| is_end(c) || matches!(c, ':' | ']')).unwrap_or(after.len());
    let rest = &text[end..line_end];
    let quote = before.chars().rev().find(|c| matches!(c, '\'' | '"'));
    let is_quoted = quote.is_some_and(|quote| before.matches(quote).count() % 2 == 1);
    let top = top_of_block(text, line_start);
    let (whole, below) = if text.len() > MAX_WHOLE { (top, "") } else { (0, &text[line_end..]) };
    for (from, below) in [(whole, below), (whole, ""), (top, "")] {
        let head = &text[from..at];
        if head.len() > MAX_PART && from == top && text.len() > MAX_WHOLE {
            return None;
        }
        let closed = quote.filter(|_| is_quoted).map(|quote| format!("{quote}"));
        let tails = [Some(rest.trim_end().to_owned()), Some(":".to_owned()), Some(String::new()), closed];
        for tail in tails.into_iter().flatten() {
            let tried = format!("{head}{MARK}{tail}{below}");
            if let Some((path, is_key)) = read(&tried) {
                let is_followed = !rest.trim().is_empty();
                return Some(Cursor::Data { path, is_key, is_followed, is_quoted, word: start..end });
            }
        }
    }
    None
}

/// Returns the start of the line above that begins a block of the outermost level.
fn top_of_block(text: &str, line_start: usize) -> usize {
    let mut start = line_start;
    loop {
        let line = &text[start..];
        let begins = line.chars().next().is_some_and(|c| !c.is_whitespace() && !matches!(c, '#' | '{' | '-' | '}'));
        if begins || start == 0 {
            return start;
        }
        start = text[..start - 1].rfind('\n').map_or(0, |end| end + 1);
    }
}

/// Reads a text with a mark in each choice of branches, and returns the way to it.
fn read(text: &str) -> Option<(Vec<Step>, bool)> {
    if !text.contains("{{") && !text.contains("{%") && !text.contains("{#") {
        return way(&nodes(text).ok()??);
    }
    let view = View::of(text);
    for variant in 0..view.variants() {
        for without_structure in [false, true] {
            let skeleton = view.skeleton(variant, without_structure);
            if let Some(result) = Some(&skeleton.text)
                .filter(|text| text.contains(MARK))
                .and_then(|text| nodes(text).ok()?)
                .and_then(|root| way(&root))
            {
                return Some(result);
            }
        }
    }
    None
}

/// Returns the way from a node to the mark, and whether a key has it.
fn way(node: &SourceNode) -> Option<(Vec<Step>, bool)> {
    let with = |step: Step, (mut path, is_key): (Vec<Step>, bool)| {
        path.insert(0, step);
        (path, is_key)
    };
    match &node.content {
        Content::Scalar { text, .. } => text.contains(MARK).then(|| (Vec::new(), false)),
        Content::List(items) => items.iter().find_map(way).map(|rest| with(Step::Item, rest)),
        Content::Map(entries) => entries.iter().find_map(|(key, value)| {
            if key.text().is_some_and(|text| text.contains(MARK)) {
                return Some((Vec::new(), true));
            }
            way(value).map(|rest| with(Step::Key(key.text().unwrap_or_default().to_owned()), rest))
        }),
    }
}

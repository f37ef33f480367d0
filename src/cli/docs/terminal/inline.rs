//! The text of a paragraph: its words with their colours, and lines of them.

use crate::ui::{Colour, Colours};

use super::{CODE, EMPHASIS, Style};

/// A word, or a part of one that has a colour of its own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub text: String,
    pub colour: Option<Colour>,
    /// Whether a blank or the end of a line is before it.
    pub is_apart: bool,
    /// Whether it is the first or last part of code; marked by backticks where there are no colours.
    pub code: (bool, bool),
}

/// Returns the words of a text, and the drawings that it shows. The targets of its links are added to a list.
pub(super) fn words(text: &str, links: &mut Vec<String>) -> (Vec<Word>, Vec<String>) {
    let mut reader = Found::default();
    reader.read(text, links);
    (reader.words, reader.drawings)
}

/// What is found so far.
#[derive(Default)]
struct Found {
    words: Vec<Word>,
    drawings: Vec<String>,
    /// Whether the next word does not continue the last one.
    is_apart: bool,
    /// The colour of the next word.
    colour: Option<Colour>,
}

impl Found {
    fn read(&mut self, text: &str, links: &mut Vec<String>) {
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let after = &rest[first.len_utf8()..];
            rest = match first {
                '\\' => {
                    let escaped = after.chars().next().filter(char::is_ascii_punctuation);
                    self.push(escaped.unwrap_or('\\'));
                    escaped.map_or(after, |c| &after[c.len_utf8()..])
                }
                '`' if after.contains('`') => {
                    let (code, after) = after.split_once('`').unwrap_or((after, ""));
                    self.code(code);
                    after
                }
                '!' if link(after).is_some() => {
                    let (about, target, after) = link(after).unwrap_or_default();
                    self.drawings.push(target.to_owned());
                    let colour = self.colour.replace(EMPHASIS);
                    self.text(about);
                    self.colour = colour;
                    after
                }
                '[' if link(rest).is_some() => {
                    let (about, target, after) = link(rest).unwrap_or_default();
                    links.push(target.to_owned());
                    self.read(about, links);
                    if target.contains("://") && !about.contains(target) {
                        self.text(&format!(" ({target})"));
                    }
                    after
                }
                '*' if after.starts_with('*') => {
                    self.colour = if self.colour.is_some() { None } else { Some(EMPHASIS) };
                    &after[1..]
                }
                '*' if self.colour.is_some() && !after.starts_with(char::is_alphanumeric) => {
                    self.colour = None;
                    after
                }
                '*' if self.colour.is_none() && is_emphasis(after) => {
                    self.colour = Some(EMPHASIS);
                    after
                }
                c => {
                    self.push(c);
                    after
                }
            };
        }
    }

    fn text(&mut self, text: &str) {
        text.chars().for_each(|c| self.push(c));
    }

    fn push(&mut self, c: char) {
        if c.is_whitespace() {
            self.is_apart = true;
            return;
        }
        match self.words.last_mut() {
            Some(last) if !self.is_apart && last.colour == self.colour && last.code == (false, false) => {
                last.text.push(c);
            }
            _ => {
                let (colour, is_apart) = (self.colour, self.is_apart);
                self.words.push(Word { text: c.into(), colour, is_apart, code: (false, false) });
            }
        }
        self.is_apart = false;
    }

    fn code(&mut self, code: &str) {
        let parts: Vec<&str> = code.split_whitespace().collect();
        for (index, part) in parts.iter().enumerate() {
            let ends = (index == 0, index + 1 == parts.len());
            let is_apart = index > 0 || self.is_apart;
            self.words.push(Word { text: (*part).to_owned(), colour: Some(CODE), is_apart, code: ends });
        }
        self.is_apart = false;
    }
}

/// Returns the text, the target and what follows of a link at the start of a text.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let mut depth = 0;
    let close = text.char_indices().find(|(_, c)| {
        depth += match c {
            '[' => 1,
            ']' => -1,
            _ => 0,
        };
        depth == 0
    });
    let (about, rest) = (text.get(1..close?.0)?, text.get(close?.0 + 1..)?);
    let (target, after) = rest.strip_prefix('(')?.split_once(')')?;
    (!target.contains('\n')).then_some((about, target, after))
}

/// Whether an asterisk begins emphasised words: another one ends them.
fn is_emphasis(after: &str) -> bool {
    after.starts_with(char::is_alphabetic) && after.split("\n\n").next().is_some_and(|text| text.contains('*'))
}

/// Returns a text without marks.
pub(super) fn plain(text: &str) -> String {
    let (words, _) = words(text, &mut Vec::new());
    let mut plain = String::new();
    for word in words {
        if word.is_apart && !plain.is_empty() {
            plain.push(' ');
        }
        plain.push_str(&word.text);
    }
    plain
}

/// Returns lines of words that fit beside a margin.
pub(super) fn lines(words: &[Word], style: Style<'_>, margin: usize) -> Vec<String> {
    let width = style.width.saturating_sub(margin).max(20);
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), 0);
    let mut at = 0;
    while at < words.len() {
        // Parts of one word stay together.
        let count = 1 + words[at + 1..].iter().take_while(|word| !word.is_apart).count();
        let parts: Vec<(String, usize)> = words[at..at + count].iter().map(|word| painted(word, style)).collect();
        let length: usize = parts.iter().map(|(_, length)| length).sum();
        if used > 0 && used + 1 + length > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.extend(parts.into_iter().map(|(text, _)| text));
        used += length;
        at += count;
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Returns a word with its colour, and the number of its columns.
fn painted(word: &Word, style: Style<'_>) -> (String, usize) {
    let length = word.text.chars().count();
    let Some(colour) = word.colour else { return (word.text.clone(), length) };
    if style.colours != Colours::OFF {
        return (style.colours.paint(colour, &word.text), length);
    }
    let mark = |is_shown: bool| if is_shown { "`" } else { "" };
    let text = format!("{}{}{}", mark(word.code.0), word.text, mark(word.code.1));
    let length = text.chars().count();
    (text, length)
}

//! Shows Markdown on a terminal, or as plain text: headings, paragraphs, lists, tables, code and drawings. It knows the
//! forms that the pages of this documentation use.

mod inline;
mod tables;

use crate::ui::{Colour, Colours};

use self::inline::{lines, words};

/// The colour of headings.
const HEADING: Colour = Colour::LightGreen;
/// The colour of code.
const CODE: Colour = Colour::Cyan;
/// The colour of emphasised text.
const EMPHASIS: Colour = Colour::Magenta;
/// The indentation of code.
const INDENT: &str = "    ";

/// How text is shown.
#[derive(Clone, Copy)]
pub struct Style<'a> {
    /// The colours.
    pub colours: Colours,
    /// The number of columns.
    pub width: usize,
    /// Returns the drawing in text that stands for an image.
    pub drawing: &'a dyn Fn(&str) -> Option<String>,
}

/// Returns a text in Markdown as it is shown. The links that it has are added to a list.
pub fn show(text: &str, style: Style<'_>, links: &mut Vec<String>) -> String {
    let all: Vec<&str> = text.lines().collect();
    let mut renderer = Shown { style, text: String::new(), links };
    renderer.blocks(&all, 0);
    renderer.text.trim_end().to_owned()
}

/// What is shown so far.
struct Shown<'a> {
    style: Style<'a>,
    text: String,
    links: &'a mut Vec<String>,
}

impl Shown<'_> {
    /// Shows lines, indented by a number of columns.
    fn blocks(&mut self, all: &[&str], indent: usize) {
        let mut at = 0;
        while let Some(line) = all.get(at) {
            let (text, own) = (line.trim_start(), line.len() - line.trim_start().len());
            let rest = &all[at..];
            at += if text.is_empty() {
                self.blank();
                1
            } else if text.starts_with("```") {
                self.fence(rest, indent)
            } else if own >= INDENT.len() {
                let is_code = |line: &&&str| line.starts_with(INDENT) || line.trim().is_empty();
                let count = rest.iter().take_while(is_code).count();
                self.code(rest[..count].iter().map(|line| line.strip_prefix(INDENT).unwrap_or("")), indent);
                count
            } else if let Some(heading) = heading(line) {
                self.heading(heading);
                1
            } else if text.starts_with('|') {
                let count = rest.iter().take_while(|line| line.trim_start().starts_with('|')).count();
                let table = tables::show(&rest[..count], self.style, indent, self.links);
                self.text.push_str(&table);
                count
            } else if let Some(kind) = text.strip_prefix("!!! ") {
                self.line(indent, &self.style.colours.paint(EMPHASIS, &format!("{}:", capitalised(kind))));
                1 + self.item(&rest[1..], INDENT.len(), indent + 2)
            } else if let Some(marker) = marker(text) {
                self.list_item(rest, own, marker, indent)
            } else {
                let is_same = |line: &&&str| !begins_block(line);
                let count = 1 + rest[1..].iter().take_while(is_same).count();
                self.paragraph(&rest[..count].join("\n"), indent, "");
                count
            };
        }
    }

    /// Ends a block by an empty line.
    fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    fn line(&mut self, indent: usize, text: &str) {
        self.text.push_str(format!("{}{text}", " ".repeat(indent)).trim_end());
        self.text.push('\n');
    }

    /// Shows a heading. Without colours it is underlined.
    fn heading(&mut self, (level, text): (usize, &str)) {
        self.blank();
        let colours = self.style.colours;
        let text = inline::plain(text);
        self.line(0, &colours.paint(HEADING, &text));
        let rule = if level == 1 { "=" } else { "-" };
        if colours == Colours::OFF && level < 3 {
            self.line(0, &rule.repeat(text.chars().count()));
        }
    }

    /// Shows a block between fences. Returns the number of its lines.
    fn fence(&mut self, rest: &[&str], indent: usize) -> usize {
        let own = rest[0].len() - rest[0].trim_start().len();
        let inner = rest[1..].iter().take_while(|line| !line.trim_start().starts_with("```")).count();
        if let Some(title) = rest[0].split_once("title=\"").and_then(|(_, title)| title.split('"').next()) {
            self.line(indent, &self.style.colours.paint(EMPHASIS, &format!("{title}:")));
        }
        self.code(rest[1..=inner].iter().map(|line| line.get(own..).unwrap_or("")), indent);
        (inner + 2).min(rest.len())
    }

    fn code<'a>(&mut self, lines: impl Iterator<Item = &'a str>, indent: usize) {
        for line in lines {
            if line.trim().is_empty() {
                self.blank();
            } else {
                let line = self.style.colours.paint(CODE, line);
                self.line(indent + INDENT.len(), &line);
            }
        }
    }

    /// Shows a paragraph; its first line begins with a marker.
    fn paragraph(&mut self, text: &str, indent: usize, marker: &str) {
        let (words, drawings) = words(text, self.links);
        let margin = indent + marker.chars().count();
        for (index, line) in lines(&words, self.style, margin).into_iter().enumerate() {
            let start = if index == 0 { format!("{}{marker}", " ".repeat(indent)) } else { " ".repeat(margin) };
            self.line(0, &format!("{start}{line}"));
        }
        for drawing in drawings {
            if let Some(drawing) = (self.style.drawing)(&drawing) {
                self.code(drawing.lines(), 0);
            }
        }
    }

    /// Shows an item of a list with what belongs to it. Returns the number of its lines.
    fn list_item(&mut self, rest: &[&str], own: usize, marker: &str, indent: usize) -> usize {
        let first = rest[0].trim_start().get(marker.len()..).unwrap_or("").to_owned();
        let more = rest[1..].iter().take_while(|line| !begins_block(line)).count();
        let text: Vec<&str> = std::iter::once(first.as_str()).chain(rest[1..=more].iter().copied()).collect();
        let bullet = if marker.starts_with(['-', '*']) { "- " } else { marker };
        self.paragraph(&text.join("\n"), indent + 2, bullet);
        let inner = own + marker.len();
        1 + more + self.item(&rest[1 + more..], inner, indent + 2 + marker.len())
    }

    /// Shows the lines that are indented at least this much. Returns their number.
    fn item(&mut self, rest: &[&str], own: usize, indent: usize) -> usize {
        let belongs = |line: &&&str| line.trim().is_empty() || line.len() - line.trim_start().len() >= own;
        let mut count = rest.iter().take_while(belongs).count();
        while count > 0 && rest[count - 1].trim().is_empty() {
            count -= 1;
        }
        let inner: Vec<&str> = rest[..count].iter().map(|line| line.get(own..).unwrap_or("")).collect();
        self.blocks(&inner, indent);
        count
    }
}

/// Returns the level and text of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.chars().take_while(|c| *c == '#').count();
    let text = line[level..].strip_prefix(' ')?;
    (level > 0).then(|| (level, text.trim()))
}

/// Returns the marker of an item of a list.
fn marker(text: &str) -> Option<&str> {
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let length = match text.get(digits..)? {
        rest if digits > 0 && rest.starts_with(". ") => digits + 2,
        rest if digits == 0 && (rest.starts_with("- ") || rest.starts_with("* ")) => 2,
        _ => return None,
    };
    text.get(..length)
}

/// Whether a line cannot continue a paragraph.
fn begins_block(line: &str) -> bool {
    let text = line.trim_start();
    text.is_empty()
        || text.starts_with("```")
        || text.starts_with('|')
        || text.starts_with("!!! ")
        || marker(text).is_some()
        || heading(line).is_some()
}

fn capitalised(word: &str) -> String {
    word.get(..1).map_or_else(String::new, |first| first.to_uppercase() + &word[1..])
}

#[cfg(test)]
mod tests;

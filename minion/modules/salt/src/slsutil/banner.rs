//! A comment box for the top of managed files.

/// Default title.
pub(super) const TITLE: &str = "THIS FILE IS MANAGED BY SALT - DO NOT EDIT";

/// Default text.
pub(super) const TEXT: &str = "The contents of this file are managed by Salt. Any changes to this file may be \
                               overwritten automatically and without warning.";

/// Maximum width in characters, which bounds the memory used.
const MAX_WIDTH: usize = 1_000;

/// Style of a box.
pub(super) struct Banner<'a> {
    /// Width in characters.
    pub width: usize,
    /// Text that starts a comment line.
    pub comment: &'a str,
    /// Character of the border.
    pub border: Option<char>,
}

impl Banner<'_> {
    /// Returns the lines of a box with a title and a text; `None` if it is too narrow for them, or too wide.
    pub(super) fn lines(&self, title: &str, text: &str) -> Option<Vec<String>> {
        let (left, right) = (self.comment.trim_end(), self.comment.trim());
        let length = |text: &str| text.chars().count();
        let width = Some(self.width).filter(|width| *width <= MAX_WIDTH)?;
        let inside = width.checked_sub(length(left) + length(right) + 2).filter(|inside| *inside > 0)?;
        let border: String = self.border.map(|c| std::iter::repeat_n(c, inside + 2).collect()).unwrap_or_default();
        let border = format!("{}{border}{right}", self.comment);
        let blanks = self.width.saturating_sub(2 * length(self.comment));
        let blank = format!("{}{}{}", self.comment, " ".repeat(blanks), self.comment);
        let mut lines = vec![border.clone(), blank.clone()];
        lines.extend(wrapped(title, inside).iter().map(|line| format!("{left} {} {right}", centered(line, inside))));
        lines.push(blank);
        lines.extend(wrapped(text, inside).iter().map(|line| format!("{left} {line:inside$} {right}")));
        lines.push(border);
        Some(lines)
    }
}

/// Centers a line in a width, with Python's rounding.
fn centered(line: &str, width: usize) -> String {
    let missing = width.saturating_sub(line.chars().count());
    let left = missing / 2 + (missing & width & 1);
    format!("{}{line}{}", " ".repeat(left), " ".repeat(missing - left))
}

/// Wraps a text to a width. Longer words are split.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let blank = usize::from(used > 0);
            if used + blank + word.len() <= width {
                put(&mut lines, blank, &word);
                used += blank + word.len();
                break;
            }
            let room = width.saturating_sub(used + blank);
            if word.len() > width && room > 0 {
                let rest = word.split_off(room);
                put(&mut lines, blank, &word);
                word = rest;
            }
            lines.push(String::new());
            used = 0;
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// Appends a word to the last line.
fn put(lines: &mut [String], blanks: usize, word: &[char]) {
    if let Some(line) = lines.last_mut() {
        line.extend(std::iter::repeat_n(' ', blanks));
        line.extend(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_drawn() {
        let lines = |width, comment, border, title, text| {
            let banner = Banner { width, comment, border };
            banner.lines(title, text).map(|lines| lines.join("\n")).unwrap_or_default()
        };
        assert_eq!(lines(70_000, "#", None, "t", "text"), "");
        insta::assert_snapshot!(lines(30, "//", Some('*'), "Hello there my good world it is fine", "a bb"), @r"
        //**************************//
        //                          //
        //   Hello there my good    //
        //     world it is fine     //
        //                          //
        // a bb                     //
        //**************************//
        ");
        insta::assert_snapshot!(lines(12, "#", Some('#'), "t", "abcdefghijkl mn"), @r"
        ############
        #          #
        #    t     #
        #          #
        # abcdefgh #
        # ijkl mn  #
        ############
        ");
        assert_eq!(lines(3, "#", Some('#'), "t", ""), "");
    }
}

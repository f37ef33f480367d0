//! `B6`: style.

use brine_authoring_model::FileKind;
use brine_yaml::nodes::Content;

use crate::{Check, Finding};

/// The largest number of characters of a line.
const WIDTH: usize = 160;

impl Check<'_> {
    pub(crate) fn style(&mut self) {
        if self.file.kind == FileKind::Python || self.file.kind == FileKind::Other {
            return;
        }
        // Templates write files of any form.
        if self.file.kind.is_sls() {
            self.lines();
        }
        self.braces();
        self.modes();
    }

    fn lines(&mut self) {
        let file = self.file;
        let mut start = 0;
        for line in file.text.split_inclusive('\n') {
            let text = line.trim_end_matches(['\n', '\r']);
            let bare = text.trim_end_matches([' ', '\t']);
            let span = start + bare.len()..start + text.len();
            if !span.is_empty() {
                let finding = Finding::new("B601", &file.path, span.clone(), "whitespace at the end of the line");
                self.add(finding.fix("remove it", span, "", true));
            }
            if let Some(at) = bare.find('\t').filter(|at| bare[..*at].trim().is_empty()) {
                self.report("B602", start + at..start + at + 1, "a tab: YAML is indented with spaces");
            }
            if let Some((at, space)) = text.char_indices().find(|(_, c)| is_odd_space(*c)) {
                let message = format!("the character U+{:04X} looks like a blank", u32::from(space));
                let place = start + at..start + at + space.len_utf8();
                let finding = Finding::new("B607", &file.path, place.clone(), message);
                self.add(finding.fix("write a blank", place, " ", false));
            }
            let count = text.chars().count();
            if count > WIDTH {
                let from = text.char_indices().nth(WIDTH).map_or(text.len(), |(at, _)| at);
                let message = format!("the line has {count} characters, more than {WIDTH}");
                self.report("B603", start + from..start + text.len(), message);
            }
            start += line.len();
        }
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            let end = file.text.len();
            let finding = Finding::new("B606", &file.path, end..end, "no line end at the end of the file");
            self.add(finding.fix("add it", end..end, "\n", true));
        }
    }

    fn braces(&mut self) {
        let Some(view) = &self.file.view else { return };
        for span in view.tags() {
            let text = &self.file.text[span.clone()];
            // A raw block is a tag with all its text.
            if text.len() < 5 || text.starts_with("{%") && text.matches("{%").count() > 1 {
                continue;
            }
            let opening = 2 + usize::from(matches!(text.as_bytes().get(2), Some(b'-' | b'+')));
            let closing =
                text.len() - 2 - usize::from(matches!(text.as_bytes().get(text.len() - 3), Some(b'-' | b'+')));
            let Some(inside) = text.get(opening..closing) else { continue };
            if inside.trim().is_empty() {
                continue;
            }
            let mut edits = Vec::new();
            if !inside.starts_with(char::is_whitespace) {
                edits.push((span.start + opening..span.start + opening, " ".to_owned()));
            }
            if !inside.ends_with(char::is_whitespace) {
                edits.push((span.start + closing..span.start + closing, " ".to_owned()));
            }
            if !edits.is_empty() {
                let first = text.lines().next().map_or(0, str::len);
                let place = span.start..span.start + first;
                let mut finding = Finding::new("B604", &self.file.path, place, "no spaces inside of the braces");
                finding.fix = Some(crate::Fix { title: "add spaces".to_owned(), edits, is_safe: true });
                self.add(finding);
            }
        }
    }

    fn modes(&mut self) {
        for state in self.file.states.iter().filter(|state| state.module == "file") {
            for argument in &state.arguments {
                let is_mode = matches!(argument.name.as_str(), "mode" | "dir_mode" | "file_mode");
                if let Content::Scalar { plain: true, text, .. } = &argument.value.content
                    && is_mode
                    && !argument.value.is_repeated
                    && !text.is_empty()
                    && text.chars().all(|c| c.is_ascii_digit())
                {
                    let span = argument.value.span.clone();
                    let message = format!("the mode {text} is a number: quote it");
                    let finding = Finding::new("B605", &self.file.path, span.clone(), message);
                    self.add(finding.fix("quote it", span, format!("'{text}'"), true));
                }
            }
        }
    }
}

/// Whether a character looks like a blank.
fn is_odd_space(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{180e}' | '\u{2000}'
            ..='\u{200b}' | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{feff}'
    )
}

//! What people usually meant by text that is not valid YAML, and the lines around an error.

use crate::{Origin, YamlError};

impl YamlError {
    /// Returns the lines around the error in the parsed text, with their numbers, and an arrow below the last one;
    /// `None` if the error has no line of the text.
    ///
    /// ```
    /// let text = "a:\n  file.managed\n    - name: x\n";
    /// let error = brine_yaml::load(text).unwrap_err();
    /// let excerpt = " 2 |   file.managed\n 3 |     - name: x\n   |           ^";
    /// assert_eq!(error.excerpt(text).as_deref(), Some(excerpt));
    /// ```
    pub fn excerpt(&self, text: &str) -> Option<String> {
        let lines: Vec<&str> = text.lines().collect();
        // An error at the end of the text is behind its last line.
        let (line, column) = match lines.get(self.line - 1) {
            Some(_) => (self.line, self.column),
            None => (lines.len(), lines.last().map_or(1, |last| last.chars().count() + 1)),
        };
        let wrong = *lines.get(line.checked_sub(1)?)?;
        let width = line.to_string().len();
        let above = above(&lines, line).map(|(number, text)| format!(" {number:width$} | {text}\n"));
        let margin: String = wrong.chars().take(column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        Some(format!("{} {line:width$} | {wrong}\n {:width$} | {margin}^", above.unwrap_or_default(), ""))
    }

    /// Returns the usual cause of the error, and what to do. It quotes no text of the file, whose values may be secret.
    pub fn hint(&self, text: &str) -> Option<String> {
        if matches!(self.origin, Origin::Reader { .. } | Origin::Limit) {
            return None;
        }
        let lines: Vec<&str> = text.lines().collect();
        let of = |number: usize| lines.get(number.wrapping_sub(1)).copied().unwrap_or_default();
        let (wrong, message) = (of(self.line), self.message.as_str());
        let started = self.context.as_ref().map_or(self.line, |context| context.line);
        let here = wrong.chars().nth(self.column - 1);
        if let Some(number) = [self.line, started].into_iter().find(|number| indentation(of(*number)).contains('\t')) {
            return Some(format!("line {number} is indented with a tab: YAML is indented with spaces"));
        }
        let is = |part: &str| message.contains(part);
        if is("cannot start any token") {
            return Some(match here {
                Some('\t') => "a tab stands where YAML expects spaces".to_owned(),
                Some('%') => "text that begins with '%' must be quoted; a tag '{%' needs the renderer jinja".to_owned(),
                Some(c) => format!("text that begins with '{c}' must be quoted"),
                None => return None,
            });
        }
        if is("alphabetic or numeric") || is("undefined alias") {
            let sign =
                if self.context.as_ref().is_some_and(|context| context.what.contains("anchor")) { '&' } else { '*' };
            return Some(format!("text that begins with '{sign}' must be quoted, as in '*':"));
        }
        if is("found conflicting ID") {
            return Some("a mapping has this key twice: remove one, or merge what is below them".to_owned());
        }
        if is("mapping values are not allowed") {
            return Some(self.no_mapping(&lines));
        }
        if is("could not find expected ':'") {
            return Some(no_colon(started, of(started)));
        }
        if is("determine a constructor") {
            return Some("text that begins with '!' must be quoted".to_owned());
        }
        if is("unexpected end of stream") {
            return Some(format!("the quote that opens in line {started} is not closed"));
        }
        if is("escape character") || is("hexdecimal") {
            return Some("a backslash in double quotes begins an escape: use single quotes".to_owned());
        }
        if is("',' or") || is("unhashable") || is("unacceptable key") || is("node content") {
            return Some(if [wrong, of(started)].iter().any(|line| line.contains("{{")) {
                "a value that begins with '{{' must be quoted".to_owned()
            } else {
                format!(
                    "the bracket that opens in line {started} is not closed, or a comma is missing; text that begins \
                     with a bracket must be quoted"
                )
            });
        }
        if is("another document") || is("document start") {
            return Some(
                "a file is one document: its lines have one indentation, and '---' is at most its first".to_owned(),
            );
        }
        if is("expected key") || is("'-' indicator") || is("block end") || is("block sequence entries") {
            return Some(self.block(&lines));
        }
        None
    }

    /// The cause of a colon where none is expected.
    fn no_mapping(&self, lines: &[&str]) -> String {
        let wrong = lines.get(self.line - 1).copied().unwrap_or_default();
        match above(lines, self.line) {
            Some((number, above)) if indentation(above).len() < indentation(wrong).len() => {
                let written = above.split(" #").next().unwrap_or_default().trim_end();
                if written.ends_with(':') {
                    "a value that contains a colon and a space must be quoted".to_owned()
                } else if written.contains(": ") {
                    format!("line {number} has a value: nothing can be indented below it")
                } else {
                    no_colon(number, written)
                }
            }
            _ => "a value that contains a colon and a space must be quoted".to_owned(),
        }
    }

    /// The cause of a line that does not continue the block in which it is.
    fn block(&self, lines: &[&str]) -> String {
        let wrong = lines.get(self.line - 1).copied().unwrap_or_default();
        let previous = above(lines, self.line);
        for (number, line) in [Some((self.line, wrong)), previous].into_iter().flatten() {
            if has_text_behind_quote(line) {
                return format!(
                    "in line {number}, text follows a closing quote: quote all of it, and double a quote inside"
                );
            }
        }
        if let Some((number, line)) = previous
            && !line.contains(':')
            && !line.trim_start().starts_with('-')
        {
            return no_colon(number, line);
        }
        let column = indentation(wrong).chars().count() + 1;
        match &self.context {
            Some(context) if context.column != column => format!(
                "line {} begins in column {column}, and the block that it is in, in column {} (line {}): the keys of a \
                 mapping, or the dashes of a list, stand in one column",
                self.line, context.column, context.line
            ),
            _ if self.message.contains("block sequence entries") => {
                "a list begins on a line of its own, below its key".to_owned()
            }
            _ => "the arguments of a state are a list: each begins with a dash, in one column".to_owned(),
        }
    }
}

/// A line without a key.
fn no_colon(number: usize, line: &str) -> String {
    let glued = line.trim_end().trim_end_matches(':').contains(':');
    if glued {
        format!("line {number} lacks a space after its colon")
    } else {
        format!("line {number} lacks a colon at its end")
    }
}

fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// Returns the nearest line above this one that is neither empty nor a comment, and its number.
fn above<'a>(lines: &[&'a str], line: usize) -> Option<(usize, &'a str)> {
    let before = lines.get(..line.checked_sub(1)?)?.iter().enumerate().rev();
    let mut written = before.filter(|(_, text)| !text.trim().is_empty() && !text.trim_start().starts_with('#'));
    written.next().map(|(index, text)| (index + 1, *text))
}

/// Whether a quoted value ends before its line does.
fn has_text_behind_quote(line: &str) -> bool {
    let value = line.split_once(": ").map_or(line, |(_, value)| value).trim().trim_start_matches("- ");
    ['\'', '"'].into_iter().any(|quote| {
        value.strip_prefix(quote).is_some_and(|rest| {
            rest.split_once(quote).is_some_and(|(_, after)| {
                let after = after.trim();
                !after.is_empty() && !after.starts_with([':', '#', ',', ']', '}'])
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use crate::load;

    #[test]
    fn usual_causes_are_named() {
        let mut wrong = Vec::new();
        for (text, hint) in [
            ("a:\n\tb: c\n", "line 2 is indented with a tab: YAML is indented with spaces"),
            ("a:\n  test.nop:\n    - name: @foo\n", "text that begins with '@' must be quoted"),
            ("a: `x`\n", "text that begins with '`' must be quoted"),
            ("a: %x\n", "text that begins with '%' must be quoted; a tag '{%' needs the renderer jinja"),
            ("base:\n  *:\n    - web\n", "text that begins with '*' must be quoted, as in '*':"),
            ("base:\n  *web:\n    - web\n", "text that begins with '*' must be quoted, as in '*':"),
            ("a:\n  file.managed\n    - name: x\n", "line 2 lacks a colon at its end"),
            ("a:\n  file.managed:\n    - name: b: c\n", "a value that contains a colon and a space must be quoted"),
            ("a:\n  b: c\n    d: e\n", "line 2 has a value: nothing can be indented below it"),
            ("a:\n  b: 1\n  c:2\n  d: 3\n", "line 3 lacks a space after its colon"),
            ("a:\n  b: 1\n  c\n  d: 3\n", "line 3 lacks a colon at its end"),
            ("a: 'b\nc: d\n", "the quote that opens in line 1 is not closed"),
            ("a: \"C:\\Windows\"\n", "a backslash in double quotes begins an escape: use single quotes"),
            ("a: !foo x\n", "text that begins with '!' must be quoted"),
            ("a: {{ b }}\n", "a value that begins with '{{' must be quoted"),
            (
                "a: [1, 2\nb: 3\n",
                "the bracket that opens in line 1 is not closed, or a comma is missing; text that begins with a bracket \
                 must be quoted",
            ),
            (
                "a:\n  test.nop:\n    - name: b\n   - order: 1\n",
                "line 4 begins in column 4, and the block that it is in, in column 3 (line 2): the keys of a mapping, or \
                 the dashes of a list, stand in one column",
            ),
            (
                "a:\n  test.nop:\n    - name: b\n     order: 1\n",
                "line 4 begins in column 6, and the block that it is in, in column 5 (line 3): the keys of a mapping, or \
                 the dashes of a list, stand in one column",
            ),
            (
                "a:\n  - b: 'c' d\n",
                "in line 2, text follows a closing quote: quote all of it, and double a quote inside",
            ),
            ("a: - b\n", "a list begins on a line of its own, below its key"),
            (
                "a: 1\n---\nb: 2\n",
                "a file is one document: its lines have one indentation, and '---' is at most its first",
            ),
        ] {
            let error = load(text).unwrap_err();
            if error.hint(text).as_deref() != Some(hint) {
                wrong.push(format!("{text}{:?} for {error:?}", error.hint(text)));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn an_excerpt_ends_with_an_arrow_below_the_error() {
        for (text, excerpt) in [
            ("a: @b\n", " 1 | a: @b\n   |    ^"),
            ("a:\n\n  # c\n\tb: c", " 1 | a:\n 4 | \tb: c\n   | ^"),
            ("a: 'b\n", " 1 | a: 'b\n   |      ^"),
        ] {
            let error = load(text).unwrap_err();
            assert_eq!(error.excerpt(text).as_deref(), Some(excerpt), "{error:?}");
        }
    }
}

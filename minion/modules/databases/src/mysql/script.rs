//! Splits SQL scripts into statements as the client program does, with quotes, comments and `DELIMITER` lines.

/// Returns the statements of a script, without those that are only comments.
pub(super) fn statements(script: &str) -> Vec<String> {
    Splitter { rest: script, delimiter: ";".into(), statement: String::new(), has_code: false }.split()
}

struct Splitter<'a> {
    rest: &'a str,
    delimiter: String,
    statement: String,
    /// Whether the statement has anything but comments and white space.
    has_code: bool,
}

impl Splitter<'_> {
    fn split(mut self) -> Vec<String> {
        let mut statements = Vec::new();
        let mut at_line_start = true;
        while let Some(letter) = self.rest.chars().next() {
            if at_line_start && !self.has_code && self.take_delimiter_line() {
                continue;
            }
            at_line_start = letter == '\n';
            if self.rest.starts_with(&self.delimiter) {
                self.rest = &self.rest[self.delimiter.len()..];
                statements.extend(self.finish());
                continue;
            }
            match letter {
                '\'' | '"' | '`' => self.push_quoted(letter),
                '#' => self.skip_line(),
                '-' if is_line_comment(self.rest) => self.skip_line(),
                '/' if is_block_comment(self.rest) => {
                    let end = self.rest.find("*/").map_or(self.rest.len(), |end| end + 2);
                    self.rest = &self.rest[end..];
                    self.statement.push(' ');
                }
                letter => {
                    self.has_code |= !letter.is_whitespace();
                    self.push(letter.len_utf8());
                }
            }
        }
        statements.extend(self.finish());
        statements
    }

    fn push(&mut self, length: usize) {
        let (text, rest) = self.rest.split_at(length);
        self.statement.push_str(text);
        self.rest = rest;
    }

    fn finish(&mut self) -> Option<String> {
        let statement = std::mem::take(&mut self.statement).trim().to_owned();
        std::mem::take(&mut self.has_code).then_some(statement)
    }

    fn skip_line(&mut self) {
        self.rest = &self.rest[self.rest.find('\n').unwrap_or(self.rest.len())..];
    }

    /// Consumes the current line and changes the delimiter, if the line is a `DELIMITER` command.
    fn take_delimiter_line(&mut self) -> bool {
        let line = self.rest.lines().next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(new) = words.next().filter(|word| word.eq_ignore_ascii_case("delimiter")).and(words.next()) else {
            return false;
        };
        self.delimiter = new.to_owned();
        self.skip_line();
        true
    }

    fn push_quoted(&mut self, quote: char) {
        self.has_code = true;
        let mut is_escaped = false;
        let end = self.rest.char_indices().skip(1).find(|(_, letter)| {
            let ends = *letter == quote && !is_escaped;
            is_escaped = *letter == '\\' && quote != '`' && !is_escaped;
            ends
        });
        self.push(end.map_or(self.rest.len(), |(index, letter)| index + letter.len_utf8()));
    }
}

/// Whether a line comment starts here: `--` counts only before white space or at the end.
fn is_line_comment(rest: &str) -> bool {
    rest.strip_prefix("--").is_some_and(|after| after.chars().next().is_none_or(char::is_whitespace))
}

/// Whether a comment to skip starts here: `/*!` and `/*M!` contain code, and `/*+` contains optimizer hints.
fn is_block_comment(rest: &str) -> bool {
    rest.strip_prefix("/*").is_some_and(|after| !after.starts_with(['!', '+']) && !after.starts_with("M!"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_within_quotes_and_comments_do_not_end_statements() {
        let cases: [(&str, &[&str]); 8] = [
            ("SELECT 1; SELECT 2", &["SELECT 1", "SELECT 2"]),
            ("SELECT 'a;''b\\';', \";\", `;\\`;", &["SELECT 'a;''b\\';', \";\", `;\\`"]),
            ("-- a; b\nSELECT 1 # c;\n;\n/* d; */;", &["SELECT 1"]),
            ("SELECT 5--3;", &["SELECT 5--3"]),
            ("/*!40101 SET x=1 */;", &["/*!40101 SET x=1 */"]),
            ("DELIMITER //\nBEGIN a; b; END//\ndelimiter ;\nSELECT 1;", &["BEGIN a; b; END", "SELECT 1"]),
            ("SELECT 'é;\n--x", &["SELECT 'é;\n--x"]),
            (" ;\n; -- \n", &[]),
        ];
        for (script, expected) in cases {
            assert_eq!(statements(script), expected, "{script}");
        }
    }
}

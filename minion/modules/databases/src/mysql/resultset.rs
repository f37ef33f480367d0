//! Parses the result sets that the client program prints with `--xml`.
//!
//! This is not an XML parser: the program escapes only `&`, `<`, `>` and `"`, so fields may contain control characters,
//! which are invalid in XML. The format is used because no other one distinguishes NULL from the string `NULL`.

use brine_value::{Map, Value};

/// A result set of a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ResultSet {
    /// The names of the columns; empty without rows, because the program then does not print them.
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Option<String>>>,
}

/// The error for output of the client program that is not a sequence of result sets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the output of the mysql client is invalid at byte {position}: expected {expected}")]
pub(super) struct InvalidOutput {
    position: usize,
    expected: &'static str,
}

impl ResultSet {
    /// Parses the output of the client program.
    ///
    /// # Errors
    /// The output is not a sequence of result sets, or is truncated.
    pub fn parse(output: &str) -> Result<Vec<ResultSet>, InvalidOutput> {
        let mut parser = Parser { text: output, position: 0 };
        let mut sets = Vec::new();
        loop {
            parser.skip_space();
            if parser.rest().is_empty() {
                return Ok(sets);
            }
            if parser.take("<?xml version=\"1.0\"?>") {
                continue;
            }
            sets.push(parser.result_set()?);
        }
    }

    /// Returns the rows as mappings of column to value.
    pub fn maps(&self) -> Vec<Map> {
        let row = |row: &Vec<Option<String>>| {
            let fields = self.columns.iter().zip(row);
            fields.map(|(name, value)| (Value::from(name.as_str()), field(value.as_deref()))).collect()
        };
        self.rows.iter().map(row).collect()
    }

    /// Returns the values of the first column, without NULLs.
    pub fn first_column(&self) -> Vec<String> {
        self.rows.iter().filter_map(|row| row.first().cloned().flatten()).collect()
    }
}

/// Converts a field to a value: a string, or nil for NULL.
pub(super) fn field(value: Option<&str>) -> Value {
    value.map(Value::from).unwrap_or_default()
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.position += rest.len() - rest.trim_start().len();
    }

    fn take(&mut self, token: &str) -> bool {
        let is_match = self.rest().starts_with(token);
        self.position += if is_match { token.len() } else { 0 };
        is_match
    }

    fn expect(&mut self, token: &'static str) -> Result<(), InvalidOutput> {
        if self.take(token) { Ok(()) } else { Err(InvalidOutput { position: self.position, expected: token }) }
    }

    /// Returns the text before a token, and skips both.
    fn until(&mut self, token: &'static str) -> Result<&'a str, InvalidOutput> {
        let rest = self.rest();
        let end = rest.find(token).ok_or(InvalidOutput { position: self.text.len(), expected: token })?;
        self.position += end + token.len();
        Ok(&rest[..end])
    }

    fn result_set(&mut self) -> Result<ResultSet, InvalidOutput> {
        self.expect("<resultset")?;
        self.until(">")?;
        let mut set = ResultSet::default();
        loop {
            self.skip_space();
            if self.take("</resultset>") {
                return Ok(set);
            }
            self.expect("<row>")?;
            let row = self.row(&mut set)?;
            set.rows.push(row);
        }
    }

    fn row(&mut self, set: &mut ResultSet) -> Result<Vec<Option<String>>, InvalidOutput> {
        let is_first = set.rows.is_empty();
        let mut row = Vec::with_capacity(set.columns.len());
        loop {
            self.skip_space();
            if self.take("</row>") {
                return Ok(row);
            }
            self.expect("<field name=\"")?;
            let name = self.until("\"")?;
            if is_first {
                set.columns.push(decode(name));
            }
            row.push(if self.take(" xsi:nil=\"true\" />") {
                None
            } else {
                self.expect(">")?;
                Some(decode(self.until("</field>")?))
            });
        }
    }
}

fn decode(text: &str) -> String {
    // The ampersand is last: `&amp;lt;` is the text `&lt;`.
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_characters() {
        let output = "<?xml version=\"1.0\"?>\n\n<resultset statement=\"SELECT 1 &lt; 2 \" xmlns:xsi=\"x\">\n  <row>\n\t\
                      <field name=\"a&quot;b\">NULL</field>\n\t<field name=\"n\" xsi:nil=\"true\" />\n\t\
                      <field name=\"t\">  tab\tline\n&amp;lt;&lt;/row&gt;é😀\u{1}</field>\n\t<field name=\"e\"></field>\n  \
                      </row>\n</resultset>\n<?xml version=\"1.0\"?>\n\n<resultset statement=\"x\"></resultset>\n";
        let sets = ResultSet::parse(output).unwrap();
        assert_eq!(sets.len(), 2);
        assert_eq!(sets[0].columns, ["a\"b", "n", "t", "e"]);
        let row = [Some("NULL"), None, Some("  tab\tline\n&lt;</row>é😀\u{1}"), Some("")];
        assert_eq!(sets[0].rows, [row.map(|field| field.map(str::to_owned)).to_vec()]);
        assert_eq!(sets[1], ResultSet::default());
        // Every prefix of the output parses to an error or to the first set, and never panics.
        for (end, _) in output.trim_end().char_indices() {
            let parsed = ResultSet::parse(&output[..end]);
            assert!(parsed.is_err() || parsed.is_ok_and(|rows| rows.len() < 2), "{end}");
        }
    }
}

//! What can be wrong with a YAML text, and where.

use std::fmt;

/// A text is not YAML, or not YAML that Salt takes.
///
/// Displays as one sentence, such as `line 3, column 10: mapping values are not allowed in this context`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlError {
    /// What is wrong, in the words that Salt's users know.
    pub message: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1 in characters.
    pub column: usize,
    /// What was being read, and where that began.
    pub context: Option<Context>,
    /// Who found it.
    pub origin: Origin,
    /// The text of the line.
    pub source: String,
}

/// What was being read when an error was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Such as `while constructing a mapping`.
    pub what: String,
    /// The line where it began, counted from 1.
    pub line: usize,
    /// The column where it began, counted from 1 in characters.
    pub column: usize,
}

/// Which part of reading found an error. Salt tells no places of what the scanner found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The text into characters.
    Reader {
        /// How many characters come before.
        position: usize,
    },
    /// Characters into tokens.
    Scanner,
    /// Tokens into nodes.
    Parser,
    /// Nodes into values.
    Constructor,
}

impl YamlError {
    /// The line of the source, and below it a caret at the column.
    pub fn snippet(&self) -> String {
        // Tabs stay, so that the caret is under its character however wide they are shown.
        let blank = |c| if c == '\t' { '\t' } else { ' ' };
        let margin: String = self.source.chars().take(self.column.saturating_sub(1)).map(blank).collect();
        format!("{}\n{margin}^", self.source)
    }

    /// The text that Salt shows, over several lines: the message alone for an error of the scanner,
    /// with places for all others.
    pub fn salt_text(&self) -> String {
        if self.origin == Origin::Scanner { self.message.clone() } else { self.python_text() }
    }

    /// The text that Python's YAML shows: with places for all errors, and none twice.
    pub fn python_text(&self) -> String {
        if let Origin::Reader { position } = self.origin {
            return format!("{}\n  in \"<unicode string>\", position {position}", self.message);
        }
        let place = |line, column| format!("  in \"<unicode string>\", line {line}, column {column}");
        let problem = format!("{}\n{}", self.message, place(self.line, self.column));
        match &self.context {
            Some(context) if (context.line, context.column) == (self.line, self.column) => {
                format!("{}\n{problem}", context.what)
            }
            Some(context) => format!("{}\n{}\n{problem}", context.what, place(context.line, context.column)),
            None => problem,
        }
    }
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for YamlError {}

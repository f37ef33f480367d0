//! Errors of reading YAML, with their position.

use std::fmt;

/// The error of a text that is not valid YAML, or that uses YAML that Salt refuses.
///
/// Displays as one sentence, such as `line 3, column 10: mapping values are not allowed in this context`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlError {
    /// The error in PyYAML's wording.
    pub message: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1 in characters.
    pub column: usize,
    /// The construct that was being read, and its start.
    pub context: Option<ErrorContext>,
    /// The stage that found the error.
    pub origin: Origin,
    /// The text of the line.
    pub source: String,
}

/// The construct that was being read when an error was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorContext {
    /// A description, such as `while constructing a mapping`.
    pub what: String,
    /// The line of its start, counted from 1.
    pub line: usize,
    /// The column of its start, counted from 1 in characters.
    pub column: usize,
}

/// The stage of reading that found an error. Salt shows no positions for scanner errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Decoding the text into characters.
    Reader {
        /// The number of preceding characters.
        position: usize,
    },
    /// Splitting characters into tokens.
    Scanner,
    /// Parsing tokens into nodes.
    Parser,
    /// Composing the single document from nodes: anchors and aliases.
    Composer,
    /// Constructing values from nodes.
    Constructor,
    /// Counting memory: the text or its aliases exceed the limits of a parse.
    Limit,
}

impl YamlError {
    /// Returns the source line, and below it a caret at the column.
    pub fn snippet(&self) -> String {
        // Tabs are kept, so that the caret aligns at any tab width.
        let blank = |c| if c == '\t' { '\t' } else { ' ' };
        let margin: String = self.source.chars().take(self.column.saturating_sub(1)).map(blank).collect();
        format!("{}\n{margin}^", self.source)
    }

    /// Returns Salt's multi-line error text: the message alone for scanner errors, with positions for all others.
    pub fn salt_text(&self) -> String {
        if self.origin == Origin::Scanner { self.message.clone() } else { self.python_text() }
    }

    /// Returns the error text of Python's YAML library, with the positions of all errors, without duplicates.
    pub fn python_text(&self) -> String {
        if let Origin::Reader { position } = self.origin {
            return format!("{}\n  in \"<unicode string>\", position {position}", self.message);
        }
        let position = |line, column| format!("  in \"<unicode string>\", line {line}, column {column}");
        let problem = format!("{}\n{}", self.message, position(self.line, self.column));
        match &self.context {
            Some(context) if (context.line, context.column) == (self.line, self.column) => {
                format!("{}\n{problem}", context.what)
            }
            Some(context) => format!("{}\n{}\n{problem}", context.what, position(context.line, context.column)),
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

//! Regular expressions with the semantics of Python's `re.match`.

use brine_text::glob::fnmatch;
use brine_text::python_regex::{Regex, RegexError};

use super::TargetError;

/// The maximum size of a compiled expression and of its state while matching, in bytes.
const COMPILED: usize = 1 << 20;

/// A regular expression anchored at the start, but not at the end.
#[derive(Debug, Clone)]
pub struct Pcre(Regex);

impl Pcre {
    /// Compiles an expression.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        Self::of(text, Regex::bounded(text, 0, COMPILED))
    }

    /// Compiles an expression that has to match a text as a whole.
    pub fn parse_whole(text: &str) -> Result<Self, TargetError> {
        Self::of(text, Regex::full_bounded(text, COMPILED))
    }

    fn of(text: &str, compiled: Result<Regex, RegexError>) -> Result<Self, TargetError> {
        compiled.map(Pcre).map_err(|error| TargetError::Pattern { pattern: text.to_owned(), reason: error.to_string() })
    }

    /// Whether the expression matches at the start of the text.
    pub fn is_match(&self, text: &str) -> bool {
        // Exceeding the limits counts as no match.
        self.0.is_match_at_start(text).unwrap_or(false)
    }
}

/// Whether an expression equals a text, or matches all of it as a glob or a regular expression: Salt's `expr_match`.
pub fn matches_expression(expression: &str, text: &str) -> bool {
    expression == text
        || fnmatch(expression, text)
        || Pcre::parse_whole(expression).is_ok_and(|pattern| pattern.is_match(text))
}

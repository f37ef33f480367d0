//! Regular expressions with the semantics of Python's `re.match`.

use brine_text::glob::fnmatch;

use super::TargetError;

/// The maximum size of a compiled expression and of its state while matching, in bytes.
const COMPILED: usize = 1 << 20;

/// A regular expression anchored at the start, but not at the end.
#[derive(Debug, Clone)]
pub struct Pcre(fancy_regex::Regex);

impl Pcre {
    /// Compiles an expression.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        fancy_regex::RegexBuilder::new(text)
            .delegate_size_limit(COMPILED)
            .delegate_dfa_size_limit(COMPILED)
            .build()
            .map(Pcre)
            .map_err(|error| TargetError::Pattern { pattern: text.to_owned(), reason: error.to_string() })
    }

    /// Whether the expression matches at the start of the text.
    pub fn is_match(&self, text: &str) -> bool {
        // The leftmost match is found, so a match at the start is found first. Exceeding the limits counts as no match.
        matches!(self.0.find(text), Ok(Some(found)) if found.start() == 0)
    }
}

/// Whether an expression equals a text, or matches all of it as a glob or a regular expression: Salt's `expr_match`.
pub fn matches_expression(expression: &str, text: &str) -> bool {
    expression == text
        || fnmatch(expression, text)
        || Pcre::parse(&format!("^(?:{expression})$")).is_ok_and(|pattern| pattern.is_match(text))
}

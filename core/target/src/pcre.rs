//! Regular expressions as Python's `re.match` takes them.

use super::TargetError;

/// How large a compiled expression may be, in bytes, and what it remembers while it matches.
const COMPILED: usize = 1 << 20;

/// A regular expression that must match from the start, not to the end.
#[derive(Debug, Clone)]
pub struct Pcre(fancy_regex::Regex);

impl Pcre {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        fancy_regex::RegexBuilder::new(text)
            .delegate_size_limit(COMPILED)
            .delegate_dfa_size_limit(COMPILED)
            .build()
            .map(Pcre)
            .map_err(|error| TargetError::Pattern { pattern: text.to_owned(), reason: error.to_string() })
    }

    /// Whether it matches at the start of the text.
    pub fn is_match(&self, text: &str) -> bool {
        // The leftmost match is found, so one at the start wins. A search that gives up is no match.
        matches!(self.0.find(text), Ok(Some(found)) if found.start() == 0)
    }
}

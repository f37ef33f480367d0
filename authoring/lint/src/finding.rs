//! Findings: a code, a place, one sentence and perhaps a fix.

use std::ops::Range;

use brine_authoring_model::Place;

use crate::rules::{RULES, Rule, Severity};

/// A change of a file that mends a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// What it does, as an imperative.
    pub title: String,
    /// The bytes that are replaced, and their new text, in order.
    pub edits: Vec<(Range<usize>, String)>,
    /// Whether `--fix` applies it: the meaning of the file does not change.
    pub is_safe: bool,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The code, such as `B301`.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence without a full stop.
    pub message: String,
    /// The file.
    pub path: String,
    /// The bytes in the file.
    pub span: Range<usize>,
    /// Other places that belong to it, each with a few words.
    pub related: Vec<(Place, String)>,
    /// A change that mends it.
    pub fix: Option<Fix>,
}

impl Finding {
    /// Creates a finding with the severity of its rule.
    pub fn new(code: &'static str, path: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        let severity = rule(code).map_or(Severity::Warning, |rule| rule.severity);
        Finding { code, severity, message: message.into(), path: path.to_owned(), span, related: Vec::new(), fix: None }
    }

    /// Adds another place.
    #[must_use]
    pub fn related(mut self, place: Place, words: &str) -> Self {
        self.related.push((place, words.to_owned()));
        self
    }

    /// Adds a fix that replaces some bytes.
    #[must_use]
    pub fn fix(mut self, title: impl Into<String>, span: Range<usize>, text: impl Into<String>, is_safe: bool) -> Self {
        self.fix = Some(Fix { title: title.into(), edits: vec![(span, text.into())], is_safe });
        self
    }
}

/// Returns the rule of a code.
pub fn rule(code: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.code == code)
}

//! Selection of paths: `include_pat` and `exclude_pat`.

use brine_text::glob::fnmatch;
use brine_text::python_regex::Regex;
use brine_value::Value;

/// A glob over the whole path below the directory, or a regular expression prefixed with `E@`.
pub(crate) enum Pattern {
    Glob(String),
    Regex(Regex),
}

impl Pattern {
    pub fn is_match(&self, path: &str) -> bool {
        match self {
            Pattern::Glob(glob) => fnmatch(glob, path),
            Pattern::Regex(regex) => regex.is_match(path).unwrap_or(false),
        }
    }
}

/// Parses one pattern or a list of them. An invalid regular expression matches nothing.
pub(crate) fn patterns(value: &Value) -> Vec<Pattern> {
    let single = [value.clone()];
    let texts = value.as_list().unwrap_or(&single).iter().filter(|value| value.is_truthy()).map(ToString::to_string);
    texts
        .filter_map(|text| match text.strip_prefix("E@") {
            Some(regex) => Regex::new(regex).ok().map(Pattern::Regex),
            None => Some(Pattern::Glob(text)),
        })
        .collect()
}

/// Selection of paths: all, or those that match an inclusion, minus those that match an exclusion.
pub(crate) struct Selection {
    include: Vec<Pattern>,
    pub(super) exclude: Vec<Pattern>,
}

impl Selection {
    /// Parses `include_pat` and `exclude_pat`.
    pub fn new(include: &Value, exclude: &Value) -> Self {
        Selection { include: patterns(include), exclude: patterns(exclude) }
    }

    /// Whether a path is selected.
    pub fn selects(&self, path: &str) -> bool {
        (self.include.is_empty() || self.include.iter().any(|pattern| pattern.is_match(path)))
            && !self.exclude.iter().any(|pattern| pattern.is_match(path))
    }
}

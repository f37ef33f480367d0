//! Matches `key:sub:pattern` against grains or pillar.
//!
//! The end of the path and the start of the pattern are ambiguous: all splits are tried, the longest path first. Case
//! is ignored, as in Salt.

use brine_text::glob::Glob;
use brine_value::{Map, Value};
use brine_yaml::follow;

use super::TargetError;
use super::pcre::Pcre;

/// How the value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Glob,
    Pcre,
    Exact,
}

/// A parsed lookup.
#[derive(Debug, Clone)]
pub(super) struct Lookup {
    words: Vec<String>,
    /// For each word: the text from it to the end, as a possible key or pattern.
    ends: Vec<End>,
}

#[derive(Debug, Clone)]
struct End {
    text: String,
    pattern: Pattern,
}

#[derive(Debug, Clone)]
enum Pattern {
    Text(String),
    Glob(Glob),
    Regex(Pcre),
    /// Matches nothing: the text is a fragment of a regular expression that is complete only with a shorter path.
    Never,
}

impl Lookup {
    pub fn parse(text: &str, delimiter: &str, comparison: Comparison) -> Result<Self, TargetError> {
        let words: Vec<String> = match delimiter {
            "" => vec![text.to_owned()],
            _ => text.split(delimiter).map(str::to_owned).collect(),
        };
        if words.len() > MAX_WORDS {
            return Err(TargetError::TooLarge(text.to_owned()));
        }
        let mut wrong = None;
        let end = |from: usize| {
            let text = words[from..].join(delimiter);
            // The whole text contains at least one key, so it is not a pattern as a whole.
            let pattern = if from == 0 { Ok(Pattern::Never) } else { Pattern::new(&text.to_lowercase(), comparison) };
            let pattern = pattern.unwrap_or_else(|error| {
                wrong.get_or_insert(error);
                Pattern::Never
            });
            End { text, pattern }
        };
        let ends: Vec<End> = (0..words.len()).map(end).collect();
        match wrong {
            Some(error) if ends.iter().all(|end| matches!(end.pattern, Pattern::Never)) => Err(error),
            _ => Ok(Lookup { words, ends }),
        }
    }

    /// Returns the text if it has no value: then it matches nothing.
    pub fn without_value(&self) -> Option<&str> {
        match &self.words[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Disables wildcards in the value.
    pub fn compare_exactly(&mut self) {
        for end in self.ends.iter_mut().skip(1) {
            end.pattern = Pattern::Text(end.text.to_lowercase());
        }
    }

    pub fn is_match(&self, data: &Map) -> bool {
        self.walk(data, 0)
    }

    /// Whether the words from `from` on are a path in this mapping to a value that the remaining words match.
    fn walk(&self, data: &Map, from: usize) -> bool {
        (from + 1..self.words.len()).rev().any(|end| {
            if end == from + 1 && self.words[from] == "*" {
                return self.in_map(data, from);
            }
            match follow(data, &self.words[from..end]) {
                None => false,
                Some(Value::Map(map)) => !map.is_empty() && self.in_map(map, end),
                Some(Value::List(items)) => items
                    .iter()
                    .any(|item| matches!(item, Value::Map(map) if self.in_map(map, end)) || self.compare(item, end)),
                Some(value) => self.compare(value, end),
            }
        })
    }

    /// Whether a mapping on the path matches the words from `from` on: they match one of its keys, or lead to a match
    /// in it. A leading `*` matches any key.
    fn in_map(&self, data: &Map, from: usize) -> bool {
        let any_key = self.words[from] == "*" && from + 1 < self.words.len();
        let from = if any_key { from + 1 } else { from };
        let rest = &self.ends[from].text;
        rest == "*"
            || data.contains_key(rest.as_str())
            || data.keys().any(|key| self.compare(key, from))
            || self.walk(data, from)
            || any_key
                && data.values().any(|value| match value {
                    Value::Map(inner) => self.in_map(inner, from),
                    Value::List(items) => items.iter().any(|item| self.compare(item, from)),
                    other => self.compare(other, from),
                })
    }

    fn compare(&self, value: &Value, from: usize) -> bool {
        let text = value.to_string().to_lowercase();
        match &self.ends[from].pattern {
            Pattern::Text(expected) => *expected == text,
            Pattern::Glob(glob) => glob.is_match(&text),
            Pattern::Regex(regex) => regex.is_match(&text),
            Pattern::Never => false,
        }
    }
}

/// The maximum number of words, far above the depth of real data. Each `*` doubles the number of paths.
const MAX_WORDS: usize = 32;

impl Pattern {
    fn new(text: &str, comparison: Comparison) -> Result<Self, TargetError> {
        match comparison {
            Comparison::Exact => Ok(Pattern::Text(text.to_owned())),
            Comparison::Glob => Ok(Glob::new(text).map_or_else(|_| Pattern::Text(text.to_owned()), Pattern::Glob)),
            // `*` only requires that the key exists.
            Comparison::Pcre if text == "*" => Ok(Pattern::Never),
            Comparison::Pcre => Pcre::parse(text).map(Pattern::Regex),
        }
    }
}

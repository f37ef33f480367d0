//! Matches one glob against a text, without the tables of a regular expression.

use super::Part;

/// A glob, split at its `*`.
#[derive(Debug, Clone)]
pub(super) struct Matcher {
    /// What the text begins with; the whole text without any `*`.
    first: Run,
    rest: Option<Rest>,
}

#[derive(Debug, Clone)]
struct Rest {
    /// What follows in this order.
    middle: Vec<Run>,
    /// What the text ends with.
    last: Run,
}

/// Parts without `*`: each matches one character.
#[derive(Debug, Clone)]
enum Run {
    Text(String),
    Parts(Vec<Part>),
}

impl Matcher {
    pub(super) fn new(parts: &[Part]) -> Self {
        let mut runs = parts.split(|part| matches!(part, Part::Any)).map(Run::new);
        let first = runs.next().unwrap_or_else(|| Run::Text(String::new()));
        let rest = runs.next_back().map(|last| Rest { middle: runs.collect(), last });
        Matcher { first, rest }
    }

    /// Whether the whole text matches.
    pub(super) fn is_match(&self, text: &str) -> bool {
        let Some(behind) = self.first.strip_prefix(text) else { return false };
        let Some(rest) = &self.rest else { return behind.is_empty() };
        let Some(mut between) = rest.last.strip_suffix(behind) else { return false };
        // The leftmost match of each run leaves most text to the next ones.
        for run in &rest.middle {
            let Some(behind) = run.find(between) else { return false };
            between = behind;
        }
        true
    }
}

impl Run {
    fn new(parts: &[Part]) -> Self {
        let text = parts.iter().map(|part| if let Part::Plain(c) = part { Some(*c) } else { None });
        text.collect::<Option<String>>().map_or_else(|| Run::Parts(parts.to_vec()), Run::Text)
    }

    /// Returns the text behind a match at its start.
    fn strip_prefix<'a>(&self, text: &'a str) -> Option<&'a str> {
        match self {
            Run::Text(literal) => text.strip_prefix(literal.as_str()),
            Run::Parts(parts) => {
                let mut chars = text.chars();
                parts.iter().all(|part| chars.next().is_some_and(|c| part.is_match(c))).then_some(chars.as_str())
            }
        }
    }

    /// Returns the text before a match at its end.
    fn strip_suffix<'a>(&self, text: &'a str) -> Option<&'a str> {
        match self {
            Run::Text(literal) => text.strip_suffix(literal.as_str()),
            Run::Parts(parts) => {
                let mut chars = text.chars();
                parts
                    .iter()
                    .rev()
                    .all(|part| chars.next_back().is_some_and(|c| part.is_match(c)))
                    .then_some(chars.as_str())
            }
        }
    }

    /// Returns the text behind the leftmost match.
    fn find<'a>(&self, text: &'a str) -> Option<&'a str> {
        match self {
            Run::Text(literal) => text.split_once(literal.as_str()).map(|(_, behind)| behind),
            Run::Parts(_) => text.char_indices().find_map(|(at, _)| self.strip_prefix(&text[at..])),
        }
    }
}

impl Part {
    /// Whether the part, which is no `*`, matches a character.
    fn is_match(&self, c: char) -> bool {
        match self {
            Part::Any => false,
            Part::One => true,
            Part::Plain(own) => *own == c,
            Part::Class { negated, ranges } => ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated,
        }
    }
}

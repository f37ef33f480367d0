//! Shell globs with the semantics of Python's `fnmatch`: matched against the whole text; `*` matches `/`, `[!x]`
//! negates, a lone `[` is literal, as are braces and backslashes.

mod matcher;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSetBuilder};
use regex::{RegexSet, RegexSetBuilder};

use matcher::Matcher;

/// A compiled glob. It takes as much memory as its pattern: daemons hold hundreds.
#[derive(Debug, Clone)]
pub struct Glob {
    text: String,
    matcher: Matcher,
}

/// The maximum length of a pattern, in bytes. The time of a match grows with the lengths of the pattern and of the text.
const PATTERN_SIZE: usize = 64 << 10;

/// A glob that fails to compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pattern '{pattern}' is invalid: {reason}")]
pub struct GlobError {
    /// The pattern.
    pub pattern: String,
    /// The error.
    pub reason: String,
}

impl GlobError {
    fn of(pattern: &str, reason: &impl ToString) -> Self {
        GlobError { pattern: pattern.to_owned(), reason: reason.to_string() }
    }
}

impl Glob {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// A pattern of more than 64 KiB.
    pub fn new(pattern: &str) -> Result<Self, GlobError> {
        if pattern.len() > PATTERN_SIZE {
            return Err(GlobError::of(pattern, &format!("it is longer than {PATTERN_SIZE} bytes")));
        }
        Ok(Glob { text: pattern.to_owned(), matcher: Matcher::new(&parts(pattern)) })
    }

    /// Whether the whole text matches.
    pub fn is_match(&self, text: &str) -> bool {
        self.matcher.is_match(text)
    }

    /// Returns the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Whether the pattern contains wildcards.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Whether the whole text matches the pattern. For patterns that are used once. A pattern that fails to compile matches
/// only itself.
pub fn fnmatch(pattern: &str, text: &str) -> bool {
    if !is_pattern(pattern) {
        return pattern == text;
    }
    Glob::new(pattern).map_or(pattern == text, |glob| glob.is_match(text))
}

/// Many globs compiled into one matcher: the cost of a match does not grow with the number of globs that do not match.
#[derive(Debug, Clone, Default)]
pub struct GlobSet {
    /// Globs of literals and `*`, which are the most common ones: matched by lookup.
    plain: globset::GlobSet,
    plain_indices: Vec<usize>,
    /// Globs with `?` and classes, which match characters where `globset` matches bytes.
    others: Option<RegexSet>,
    other_indices: Vec<usize>,
}

/// The maximum memory of the compiled patterns of a set, in bytes.
const SET_SIZE: usize = 256 << 20;

impl GlobSet {
    /// Compiles all patterns; matches are reported by the pattern's index.
    pub fn new<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Result<Self, GlobError> {
        let (mut plain, mut others) = (GlobSetBuilder::new(), Vec::new());
        let (mut plain_indices, mut other_indices) = (Vec::new(), Vec::new());
        for (index, pattern) in patterns.into_iter().enumerate() {
            let pattern = pattern.as_ref();
            let parts = parts(pattern);
            if let Some(translated) = plain_glob(&parts) {
                let mut builder = GlobBuilder::new(&translated);
                let glob = builder.literal_separator(false).backslash_escape(true).build();
                plain.add(glob.map_err(|error| GlobError::of(pattern, error.kind()))?);
                plain_indices.push(index);
            } else {
                others.push(regex(&parts));
                other_indices.push(index);
            }
        }
        let plain = plain.build().map_err(|error| GlobError::of("(all)", error.kind()))?;
        // Even an empty set takes memory.
        let others = (!others.is_empty())
            .then(|| RegexSetBuilder::new(others).dot_matches_new_line(true).size_limit(SET_SIZE).build())
            .transpose();
        let others = others.map_err(|error| GlobError::of("(all)", &error))?;
        Ok(GlobSet { plain, plain_indices, others, other_indices })
    }

    /// Whether any pattern matches the whole text.
    pub fn is_match(&self, text: &str) -> bool {
        self.plain.is_match(text) || self.others.as_ref().is_some_and(|others| others.is_match(text))
    }

    /// Returns the indexes of all patterns that match the whole text, ascending.
    pub fn matches(&self, text: &str) -> Vec<usize> {
        let mut indices: Vec<usize> = self.plain.matches(text).into_iter().map(|i| self.plain_indices[i]).collect();
        if let Some(others) = &self.others {
            indices.extend(others.matches(text).into_iter().map(|i| self.other_indices[i]));
            indices.sort_unstable();
        }
        indices
    }
}

/// What a part of a pattern matches, for comparisons of patterns with each other and with similar texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// This character.
    Char(char),
    /// One character: `?`, or a class.
    One,
    /// Any text: `*`
    Any,
}

/// Returns the tokens of a pattern.
pub fn tokens(pattern: &str) -> impl Iterator<Item = Token> {
    parts(pattern).into_iter().map(|part| match part {
        Part::Any => Token::Any,
        Part::One | Part::Class { .. } => Token::One,
        Part::Plain(c) => Token::Char(c),
    })
}

/// A part of a pattern.
#[derive(Debug, Clone)]
enum Part {
    /// `*`
    Any,
    /// `?`
    One,
    Plain(char),
    /// `[a-c]` or `[!a-c]`
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

fn parts(pattern: &str) -> Vec<Part> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut parts = Vec::new();
    // If one class is not closed, no later class is closed either.
    let mut may_close = true;
    let mut i = 0;
    while i < chars.len() {
        match chars[i] {
            '*' if matches!(parts.last(), Some(Part::Any)) => {}
            '*' => parts.push(Part::Any),
            '?' => parts.push(Part::One),
            '[' if may_close => {
                if let Some(end) = class_end(&chars, i) {
                    parts.push(class(&chars[i + 1..end]));
                    i = end;
                } else {
                    may_close = false;
                    parts.push(Part::Plain('['));
                }
            }
            c => parts.push(Part::Plain(c)),
        }
        i += 1;
    }
    parts
}

/// Returns the end of the class that starts at `start`: the first `]` that is not its first character.
fn class_end(chars: &[char], start: usize) -> Option<usize> {
    let mut at = start + 1;
    if chars.get(at) == Some(&'!') {
        at += 1;
    }
    if chars.get(at) == Some(&']') {
        at += 1;
    }
    chars[at.min(chars.len())..].iter().position(|c| *c == ']').map(|offset| at + offset)
}

/// Parses the content of a class. A reversed range is empty.
fn class(text: &[char]) -> Part {
    let (negated, mut text) = match text {
        ['!', rest @ ..] => (true, rest),
        all => (false, all),
    };
    let mut ranges = Vec::new();
    loop {
        text = match text {
            [] => return Part::Class { negated, ranges },
            [from, '-', to, rest @ ..] => {
                ranges.extend((from <= to).then_some((*from, *to)));
                rest
            }
            [one, rest @ ..] => {
                ranges.push((*one, *one));
                rest
            }
        }
    }
}

/// Converts to a `globset` pattern, if matching bytes is equivalent to matching characters.
fn plain_glob(parts: &[Part]) -> Option<String> {
    let mut out = String::new();
    for part in parts {
        match part {
            Part::Any => out.push('*'),
            Part::Plain(c @ ('[' | ']' | '{' | '}' | '\\')) => out.extend(['\\', *c]),
            Part::Plain(c) => out.push(*c),
            Part::One | Part::Class { .. } => return None,
        }
    }
    Some(out)
}

/// Converts to a regular expression.
fn regex(parts: &[Part]) -> String {
    let mut out = String::from("\\A");
    for part in parts {
        match part {
            Part::Any => out.push_str(".*"),
            Part::One => out.push('.'),
            Part::Plain(c) => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            Part::Class { negated, ranges } => match (negated, ranges.as_slice()) {
                (true, []) => out.push('.'),
                // Regular expressions have no empty class.
                (false, []) => out.push_str("[^\\x{0}-\\x{10FFFF}]"),
                (negated, ranges) => {
                    out.push_str(if *negated { "[^" } else { "[" });
                    for (from, to) in ranges {
                        out.push_str(&format!("\\x{{{:X}}}-\\x{{{:X}}}", u32::from(*from), u32::from(*to)));
                    }
                    out.push(']');
                }
            },
        }
    }
    out.push_str("\\z");
    out
}

/// Returns the existing paths that match a glob, sorted. A relative glob is resolved below `directory`. As in a shell,
/// and other than in [`Glob`], `*` does not match `/`, and only patterns that start with a dot match hidden files.
pub fn paths(directory: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut paths = vec![if pattern.starts_with('/') { PathBuf::from("/") } else { directory.to_owned() }];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        if !is_pattern(part) {
            for path in &mut paths {
                path.push(part);
            }
            continue;
        }
        let mut next = Vec::new();
        for directory in &paths {
            let here = Path::new(".");
            let listed = std::fs::read_dir(if directory.as_os_str().is_empty() { here } else { directory });
            let names = listed.into_iter().flatten().filter_map(Result::ok).map(|entry| entry.file_name());
            let matching = names.filter(|name| {
                let name = name.to_string_lossy();
                fnmatch(part, &name) && (!name.starts_with('.') || part.starts_with('.'))
            });
            next.extend(matching.map(|name| directory.join(name)));
        }
        next.sort();
        paths = next;
    }
    paths.retain(|path| path.exists());
    paths
}

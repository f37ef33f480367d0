//! Regular expressions with the syntax and the meaning of Python's `re`.
//!
//! The expressions of users are written for Python. The engine has another syntax, in which many of them mean something
//! else: so they are parsed here, refused for the reasons for which Python refuses them, and written for the engine.

mod class;
mod escape;
mod group;
mod template;
mod translate;

use std::sync::{Arc, OnceLock};

use fancy_regex::{RegexBuilder, RegexInput};

pub use fancy_regex::Captures;
pub use template::Template;
use translate::translate;

/// Python's `re.IGNORECASE`: letters match both cases.
pub const IGNORECASE: u32 = 2;

/// Python's `re.MULTILINE`: `^` and `$` match at each line.
pub const MULTILINE: u32 = 8;

/// Python's `re.DOTALL`: `.` matches a newline, too.
pub const DOTALL: u32 = 16;

/// Python's `re.VERBOSE`: blanks and comments are ignored.
pub const VERBOSE: u32 = 64;

/// Python's `re.ASCII`: `\w`, `\d`, `\s` and `\b` know ASCII alone.
pub const ASCII: u32 = 256;

/// The reason why an expression or a replacement is refused, in the words of Python, or why a search failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RegexError(String);

impl RegexError {
    /// Returns the error at a character of an expression.
    fn at(reason: impl std::fmt::Display, text: &[char], position: usize) -> Self {
        let mut message = format!("{reason} at position {position}");
        let before = &text[..position.min(text.len())];
        if text.contains(&'\n') {
            let line = before.iter().filter(|c| **c == '\n').count() + 1;
            let column = before.iter().rev().take_while(|c| **c != '\n').count() + 1;
            message += &format!(" (line {line}, column {column})");
        }
        RegexError(message)
    }
}

impl From<fancy_regex::Error> for RegexError {
    fn from(error: fancy_regex::Error) -> Self {
        RegexError(error.to_string())
    }
}

/// How a `$` without [`MULTILINE`] is written: for texts without a newline at their end, and for those with one, before
/// which Python lets it match. The first is quicker.
const ENDS: [&str; 2] = [r"\z", r"(?=\n?\z)"];

/// What the engine compiles, for an ending of [`ENDS`] and for any matches or those alone that are not empty.
type Variants = [OnceLock<Result<fancy_regex::Regex, RegexError>>; 4];

/// A compiled regular expression of Python.
#[derive(Debug, Clone)]
pub struct Regex {
    pattern: String,
    flags: u32,
    limit: Option<usize>,
    /// Whether the whole text must match.
    is_full: bool,
    names: Vec<(String, usize)>,
    groups: usize,
    has_end: bool,
    has_choice: bool,
    variants: Arc<Variants>,
}

impl Regex {
    /// Compiles an expression without flags.
    pub fn new(pattern: &str) -> Result<Self, RegexError> {
        Self::build(pattern, 0, None, false)
    }

    /// Compiles an expression with flags such as [`MULTILINE`].
    pub fn with_flags(pattern: &str, flags: u32) -> Result<Self, RegexError> {
        Self::build(pattern, flags, None, false)
    }

    /// Compiles an expression with flags, and limits its size and that of its cache, in bytes each.
    pub fn bounded(pattern: &str, flags: u32, limit: usize) -> Result<Self, RegexError> {
        Self::build(pattern, flags, Some(limit), false)
    }

    /// Compiles an expression that has to match a text up to its very end: each alternative of it.
    pub fn full(pattern: &str) -> Result<Self, RegexError> {
        Self::build(pattern, 0, None, true)
    }

    /// Compiles an expression as [`Regex::full`], with the limit of [`Regex::bounded`].
    pub fn full_bounded(pattern: &str, limit: usize) -> Result<Self, RegexError> {
        Self::build(pattern, 0, Some(limit), true)
    }

    fn build(pattern: &str, flags: u32, limit: Option<usize>, is_full: bool) -> Result<Self, RegexError> {
        let translated = translate(pattern, flags, ENDS[0])?;
        let regex = Regex {
            pattern: pattern.to_owned(),
            flags,
            limit,
            is_full,
            names: translated.names,
            groups: translated.groups,
            has_end: translated.has_end,
            has_choice: translated.has_choice,
            variants: Arc::default(),
        };
        let compiled = regex.compiled(&translated.pattern, false)?;
        _ = regex.variants[0].set(Ok(compiled));
        Ok(regex)
    }

    fn compiled(&self, translated: &str, is_not_empty: bool) -> Result<fancy_regex::Regex, RegexError> {
        let whole = if self.is_full { format!(r"(?:{translated})\z") } else { translated.to_owned() };
        let mut builder = RegexBuilder::new(&whole);
        if let Some(limit) = self.limit {
            builder.delegate_size_limit(limit).delegate_dfa_size_limit(limit);
        }
        Ok(builder.find_not_empty(is_not_empty).build()?)
    }

    /// Returns the expression of the engine for a text.
    fn engine(&self, text: &str, is_not_empty: bool) -> Result<&fancy_regex::Regex, RegexError> {
        let end = usize::from(self.has_end && text.ends_with('\n'));
        let variant = self.variants[end * 2 + usize::from(is_not_empty)].get_or_init(|| {
            let translated = translate(&self.pattern, self.flags, ENDS[end])?;
            self.compiled(&translated.pattern, is_not_empty)
        });
        variant.as_ref().map_err(Clone::clone)
    }

    /// Returns the expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Returns the number of the group with a name.
    pub fn group(&self, name: &str) -> Option<usize> {
        self.names.iter().find(|(group_name, _)| group_name == name).map(|(_, number)| *number)
    }

    /// Whether the expression matches anywhere in a text, as `re.search`.
    pub fn is_match(&self, text: &str) -> Result<bool, RegexError> {
        Ok(self.engine(text, false)?.is_match(text)?)
    }

    /// Whether the expression matches at the start of a text, as `re.match`.
    pub fn is_match_at_start(&self, text: &str) -> Result<bool, RegexError> {
        // `is_match_input` of the engine searches behind the start, too.
        Ok(self.engine(text, false)?.find_input(RegexInput::new(text).anchored(true))?.is_some())
    }

    /// Returns the first match and its groups, as `re.search`.
    pub fn captures<'t>(&self, text: &'t str) -> Result<Option<Captures<'t, str>>, RegexError> {
        Ok(self.engine(text, false)?.captures(text)?)
    }

    /// Returns the match at the start of a text and its groups, as `re.match`.
    pub fn captures_at_start<'t>(&self, text: &'t str) -> Result<Option<Captures<'t, str>>, RegexError> {
        Ok(self.engine(text, false)?.captures_input(RegexInput::new(text).anchored(true))?)
    }

    /// Returns all matches, as `re.finditer`: an empty match may follow another match at its end.
    pub fn captures_iter<'r, 't>(&'r self, text: &'t str) -> CapturesIter<'r, 't> {
        CapturesIter { regex: self, text, at: Some(0), after_empty: false }
    }

    /// Replaces the first `count` matches, or all if it is 0, as `re.sub`.
    pub fn replace(&self, text: &str, with: &Template, count: usize) -> Result<String, RegexError> {
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        for captures in self.captures_iter(text).take(if count == 0 { usize::MAX } else { count }) {
            let captures = captures?;
            let Some(whole) = captures.get(0) else { continue };
            out.push_str(text.get(at..whole.start()).unwrap_or_default());
            with.expand(&captures, &mut out);
            at = whole.end();
        }
        out.push_str(text.get(at..).unwrap_or_default());
        Ok(out)
    }
}

/// The matches of an expression in a text, one after the other.
pub struct CapturesIter<'r, 't> {
    regex: &'r Regex,
    text: &'t str,
    at: Option<usize>,
    after_empty: bool,
}

impl<'t> CapturesIter<'_, 't> {
    fn captures_at(&self, at: usize) -> Result<Option<Captures<'t, str>>, RegexError> {
        if !self.after_empty {
            return Ok(self.regex.engine(self.text, false)?.captures_from_pos(self.text, at)?);
        }
        // After an empty match, one that is not empty may begin at the same place. It had been found first unless the
        // expression prefers the empty one.
        if self.regex.has_choice
            && let Ok(engine) = self.regex.engine(self.text, true)
            && let Some(captures) = engine.captures_input(RegexInput::new(self.text).from_pos(at).anchored(true))?
        {
            return Ok(Some(captures));
        }
        let Some(next) = self.text.get(at..).and_then(|rest| rest.chars().next()) else { return Ok(None) };
        Ok(self.regex.engine(self.text, false)?.captures_from_pos(self.text, at + next.len_utf8())?)
    }
}

impl<'t> Iterator for CapturesIter<'_, 't> {
    type Item = Result<Captures<'t, str>, RegexError>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at.take()?;
        let captures = match self.captures_at(at) {
            Ok(captures) => captures?,
            Err(error) => return Some(Err(error)),
        };
        let whole = captures.get(0)?;
        self.at = Some(whole.end());
        self.after_empty = whole.start() == whole.end();
        Some(Ok(captures))
    }
}

/// Escapes a text as Python's `re.escape`: the special characters alone.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "()[]{}?*+-|^$\\.&~# \t\n\r\u{b}\u{c}".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests;

//! YAML as Salt reads and writes it: YAML 1.1 by way of PyYAML, with Salt's own rules on top.
//!
//! [`load`] turns text into a [`Value`], [`load_located`] remembers lines too. What a plain word
//! means is told by [`plain`]. [`untrusted`] keeps text of others from becoming YAML; [`traverse`] walks along a path.
//! Nothing here knows of Jinja or of states.

mod compose;
mod construct;
mod dump;
mod error;
mod scalar;
#[cfg(test)]
mod tests;
mod traverse;
pub mod untrusted;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use brine_value::Value;

use compose::{Composer, Mark, Source};
use construct::Constructor;
pub use dump::{Style, dump};
pub use error::{Context, Origin, YamlError};
pub use scalar::plain;
pub use traverse::{entry_at, follow, traverse};

use crate::untrusted::{UntrustedError, Words};

/// Collections inside each other. What is deeper was made by a program to do harm.
const MAX_DEPTH: usize = 200;

/// What one node costs beside its text, about its size in memory.
const NODE_COST: usize = 64;

/// How much aliases may repeat, in bytes.
const ALIAS_BUDGET: usize = 64 << 20;

/// Reads one YAML document. A text without one is nothing.
///
/// # Examples
/// ```
/// use brine_yaml::load;
/// use brine_value::{map, list};
///
/// let value = load("mode: 0644\nhosts: [a, b]\n").unwrap();
/// assert_eq!(value, map! {"mode" => 644, "hosts" => list!["a", "b"]}.into());
/// assert_eq!(load("a: 1\na: 2").unwrap_err().to_string(), "line 2, column 1: found conflicting ID 'a'");
/// ```
pub fn load(text: &str) -> Result<Value, YamlError> {
    load_located(text).map(|located| located.value)
}

/// Reads one YAML document, and keeps where everything stands.
pub fn load_located(text: &str) -> Result<Located, YamlError> {
    read(text, None, &mut None)
}

/// Reads one YAML document in which these words stand for untrusted text. They stay in it.
///
/// # Errors
/// What is wrong with the YAML, or text that YAML would have read as more than its scalar.
pub fn load_guarded(text: &str, words: &Words) -> Result<Located, GuardedError> {
    let mut untrusted = None;
    read(text, Some(words), &mut untrusted).map_err(|error| match untrusted {
        Some(untrusted) => GuardedError::Untrusted(untrusted),
        None => GuardedError::Yaml(Box::new(YamlError {
            message: words.reveal(&error.message),
            source: words.reveal(&error.source),
            ..error
        })),
    })
}

/// Why the output of a guarded template cannot be read.
#[derive(Debug)]
pub enum GuardedError {
    /// It is not YAML.
    Yaml(Box<YamlError>),
    /// Untrusted text is refused.
    Untrusted(UntrustedError),
}

/// `untrusted` becomes why untrusted text was refused, where an error is about that.
fn read(text: &str, words: Option<&Words>, untrusted: &mut Option<UntrustedError>) -> Result<Located, YamlError> {
    refuse_control_characters(text, Source(text))?;
    // What some editors write at the start to say that it is Unicode.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let written = text;
    // The parser cannot read a last line that does not end.
    let spaces_cut = text.trim_end_matches(' ');
    let (text, ended) = match spaces_cut {
        "" => (Cow::Borrowed("\n"), false),
        whole if whole.ends_with('\n') => (Cow::Borrowed(whole), false),
        _ => (Cow::Owned(format!("{text}\n")), true),
    };
    let source = Source(&text);
    let mut composer = Composer::new(&text, written, ended, words);
    // The parser panics on a tag that a comma follows at once inside of brackets, `[!a,b]`.
    let document = catch_unwind(AssertUnwindSafe(|| composer.document()));
    let odd_tag =
        |_| Err(source.error(Origin::Scanner, Mark { line: 1, column: 1 }, "found a tag right before a comma"));
    *untrusted = composer.untrusted.take();
    match document.unwrap_or_else(odd_tag)? {
        None => Ok(Located { value: Value::Nil, place: Place::default() }),
        Some(root) => {
            let (value, place) = Constructor::new(source, composer.cost).value(&root, 0)?;
            Ok(Located { value, place })
        }
    }
}

/// A value, and where in the text its parts stand.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    /// The value.
    pub value: Value,
    place: Place,
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1 in characters.
    pub column: usize,
}

/// Where a node stands (a mapping's entry: where its key stands), and its members in order.
#[derive(Debug, Clone, PartialEq, Default)]
struct Place {
    at: Mark,
    inside: Vec<Place>,
}

impl Located {
    /// A value that comes from elsewhere: nothing in it has a place.
    pub fn without_places(value: Value) -> Self {
        Located { value, place: Place::default() }
    }

    /// Where the key or item at the end of a path of mapping keys and list indexes stands. The
    /// empty path is the whole document.
    ///
    /// ```
    /// use brine_yaml::load_located;
    ///
    /// let located = load_located("reactor:\n  - 'salt/*':\n    - a.sls\n").unwrap();
    /// let position = located.position(&["reactor".into(), 0.into(), "salt/*".into()]).unwrap();
    /// assert_eq!((position.line, position.column), (2, 5));
    /// ```
    pub fn position(&self, path: &[Value]) -> Option<Position> {
        let (mut value, mut place) = (&self.value, &self.place);
        for step in path {
            let (index, next) = match value {
                Value::Map(map) => map.get_full(step).map(|(index, _, value)| (index, value))?,
                Value::List(items) => {
                    let index = usize::try_from(step.as_i64()?).ok()?;
                    (index, items.get(index)?)
                }
                _ => return None,
            };
            (value, place) = (next, place.inside.get(index)?);
        }
        Some(Position { line: place.at.line, column: place.at.column })
    }
}

/// YAML has no control characters but tab and line ends; the parser would take a zero for the end.
fn refuse_control_characters(text: &str, source: Source<'_>) -> Result<(), YamlError> {
    let forbidden = |c: char| {
        matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\x7f'..='\u{84}' | '\u{86}'..='\u{9f}')
            || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    let Some(at) = text.find(forbidden) else { return Ok(()) };
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let at_mark = Mark { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 };
    let code = text[at..].chars().next().map_or(0, u32::from);
    let message = format!("unacceptable character #x{code:04x}: control characters are not allowed");
    let position = before.chars().count();
    Err(source.error(Origin::Reader { position }, at_mark, message))
}

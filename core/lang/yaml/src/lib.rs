//! Reads and writes YAML as Salt does: YAML 1.1 with PyYAML's behaviour and Salt's own rules.
//!
//! [`load`] parses a [`Value`], [`load_data`] a file of data, [`load_located`] also records positions, [`load_extended`] parses `yamlex`, and
//! [`load_untrusted`] bounds the memory of a parse. [`plain`] resolves a plain scalar,
//! and [`nodes()`](nodes::nodes) keeps the ranges of all nodes. [`untrusted`] keeps untrusted text from being parsed as YAML; [`traverse`] looks up a path.
//! This crate is independent of Jinja and states.

mod compose;
mod construct;
mod data;
mod dump;
mod error;
mod extended;
mod hint;
pub mod nodes;
mod scalar;
#[cfg(test)]
mod tests;
mod traverse;
pub mod untrusted;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use brine_value::Value;

use compose::{Composer, Mark, Node, Source};
use construct::Constructor;
pub use data::{Data, Dates, load_data};
pub use dump::{Style, dump, dump_data};
pub use error::{ErrorContext, Origin, YamlError};
pub use extended::load_extended;
pub use nodes::{Node as SourceNode, nodes};
pub use scalar::plain;
pub use traverse::{entry_at, follow, traverse};

use crate::untrusted::{Placeholders, UntrustedError};

/// The maximum depth of nested collections. Deeper input is refused as hostile.
const MAX_DEPTH: usize = 200;

/// The memory of a constructed node without its text, in bytes: its value and its position, each in the allocation of
/// its collection.
const NODE_COST: usize = 144;

/// The memory of a composed node without its text, in bytes.
const COMPOSED_COST: usize = 192;

/// The maximum memory of expanded aliases, in bytes.
const ALIAS_BUDGET: usize = 64 << 20;

/// The maximum memory of expanded aliases in an untrusted text: this much, and a multiple of the text's size.
const UNTRUSTED_ALIASES: usize = 16 << 10;
const UNTRUSTED_ALIASES_FACTOR: usize = 10;

/// Returns the memory of a string of this length, in bytes: the allocator rounds its size up by at most a quarter.
const fn text_cost(length: usize) -> usize {
    length.saturating_add(length / 4).saturating_add(16)
}

/// The limits on the memory of one parse, in bytes.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// The memory of expanded aliases.
    aliases: usize,
    /// The memory of everything: the composed nodes and the value.
    whole: usize,
}

impl Limits {
    /// The limits of a text of this installation: what it contains is in proportion to its size, except for aliases.
    const TRUSTED: Limits = Limits { aliases: ALIAS_BUDGET, whole: usize::MAX };
}

/// Parses one YAML document as an SLS file. An empty stream is [`Value::Nil`]. For files of data there is [`load_data`].
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

/// Parses one YAML document of an untrusted sender. The parse takes at most `memory` bytes, from which the size of the
/// value is subtracted, and what aliases repeat takes at most 16 kB and ten times the size of the
/// text. If that does not suffice, `memory` becomes 0.
///
/// # Examples
/// ```
/// use brine_yaml::load_untrusted;
///
/// let mut memory = 10_000;
/// assert!(load_untrusted("[a, b, c]", &mut memory).is_ok());
/// assert!(memory < 10_000);
/// let error = load_untrusted(&format!("[{}]", "a,".repeat(1000)), &mut memory).unwrap_err();
/// assert!(error.message.starts_with("the document takes too much memory"));
/// ```
pub fn load_untrusted(text: &str, memory: &mut usize) -> Result<Value, YamlError> {
    let aliases = UNTRUSTED_ALIASES.saturating_add(text.len().saturating_mul(UNTRUSTED_ALIASES_FACTOR));
    let limits = Limits { aliases, whole: *memory };
    let construct = |constructor: &mut Constructor<'_>, root: &Node| {
        let (value, _) = constructor.value(root, 0)?;
        Ok((value, constructor.spent))
    };
    let read = document(text, None, &mut None, limits, construct).inspect_err(|error| {
        if error.origin == Origin::Limit {
            *memory = 0;
        }
    });
    let Some((value, spent)) = read? else { return Ok(Value::Nil) };
    *memory = memory.saturating_sub(spent);
    Ok(value)
}

/// Parses one YAML document and records the position of each node.
pub fn load_located(text: &str) -> Result<Located, YamlError> {
    read(text, None, &mut None)
}

/// Parses one YAML document with placeholders for untrusted text, which stay in the result.
///
/// # Errors
/// The YAML error, or untrusted text that YAML would parse as more than its scalar.
pub fn load_guarded(text: &str, placeholders: &Placeholders) -> Result<Located, GuardedError> {
    let mut untrusted = None;
    read(text, Some(placeholders), &mut untrusted).map_err(|error| match untrusted {
        Some(untrusted) => GuardedError::Untrusted(untrusted),
        None => GuardedError::Yaml(Box::new(YamlError {
            message: placeholders.reveal(&error.message),
            source: placeholders.reveal(&error.source),
            ..error
        })),
    })
}

/// The errors of parsing the output of a guarded template.
#[derive(Debug)]
pub enum GuardedError {
    /// The output is not valid YAML.
    Yaml(Box<YamlError>),
    /// Untrusted text was refused.
    Untrusted(UntrustedError),
}

/// Parses a document. Sets `untrusted` to the cause if untrusted text was refused.
fn read(
    text: &str,
    placeholders: Option<&Placeholders>,
    untrusted: &mut Option<UntrustedError>,
) -> Result<Located, YamlError> {
    let construct = |constructor: &mut Constructor<'_>, root: &Node| constructor.value(root, 0);
    Ok(match document(text, placeholders, untrusted, Limits::TRUSTED, construct)? {
        None => Located { value: Value::Nil, position: NodePosition::default() },
        Some((value, position)) => Located { value, position },
    })
}

/// Composes the document of a text, and constructs a result from its root; `None` for an empty text.
fn document<T>(
    text: &str,
    placeholders: Option<&Placeholders>,
    untrusted: &mut Option<UntrustedError>,
    limits: Limits,
    construct: impl FnOnce(&mut Constructor<'_>, &Node) -> Result<T, YamlError>,
) -> Result<Option<T>, YamlError> {
    refuse_control_characters(text, Source(text))?;
    // Some editors write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let written = text;
    // The parser requires a line end after the last line.
    let spaces_cut = text.trim_end_matches(' ');
    let (text, ended) = match spaces_cut {
        "" => (Cow::Borrowed("\n"), false),
        whole if whole.ends_with('\n') => (Cow::Borrowed(whole), false),
        _ => (Cow::Owned(format!("{text}\n")), true),
    };
    let source = Source(&text);
    let mut composer = Composer::new(&text, written, ended, placeholders, limits.whole);
    // The parser panics on a tag that is directly followed by a comma in a flow collection: `[!a,b]`.
    let document = catch_unwind(AssertUnwindSafe(|| composer.document()));
    let odd_tag =
        |_| Err(source.error(Origin::Scanner, Mark { line: 1, column: 1 }, "found a tag right before a comma"));
    *untrusted = composer.untrusted.take();
    match document.unwrap_or_else(odd_tag)? {
        None => Ok(None),
        Some(root) => {
            let whole = limits.whole.saturating_sub(composer.cost);
            let budget = composer.constructed.saturating_add(limits.aliases).min(whole);
            construct(&mut Constructor::new(source, budget), &root).map(Some)
        }
    }
}

/// A value with the positions of its nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    /// The value.
    pub value: Value,
    position: NodePosition,
}

/// A position in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1 in characters.
    pub column: usize,
}

/// The position of a node (for an entry of a mapping, of its key), and the positions of its members in order.
#[derive(Debug, Clone, PartialEq, Default)]
struct NodePosition {
    at: Mark,
    inside: Vec<NodePosition>,
}

impl Located {
    /// Wraps a value from another source, without positions.
    pub fn without_places(value: Value) -> Self {
        Located { value, position: NodePosition::default() }
    }

    /// Returns the position of the key or item at the end of a path of mapping keys and list indexes. The empty path is
    /// the whole document.
    ///
    /// ```
    /// use brine_yaml::load_located;
    ///
    /// let located = load_located("reactor:\n  - 'salt/*':\n    - a.sls\n").unwrap();
    /// let position = located.position(&["reactor".into(), 0.into(), "salt/*".into()]).unwrap();
    /// assert_eq!((position.line, position.column), (2, 5));
    /// ```
    pub fn position(&self, path: &[Value]) -> Option<Position> {
        let (mut value, mut position) = (&self.value, &self.position);
        for step in path {
            let (index, next) = match value {
                Value::Map(map) => map.get_full(step).map(|(index, _, value)| (index, value))?,
                Value::List(items) => {
                    let index = usize::try_from(step.as_i64()?).ok()?;
                    (index, items.get(index)?)
                }
                _ => return None,
            };
            (value, position) = (next, position.inside.get(index)?);
        }
        Some(Position { line: position.at.line, column: position.at.column })
    }
}

/// Rejects control characters other than tab and line ends, as YAML does. The parser would take a zero byte for the
/// end.
fn refuse_control_characters(text: &str, source: Source<'_>) -> Result<(), YamlError> {
    // Most texts are such, and this is quick.
    if text.bytes().all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')) {
        return Ok(());
    }
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

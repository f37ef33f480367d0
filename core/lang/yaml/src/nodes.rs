//! The nodes of a document with their ranges in the text, repeated keys included: for tools that show places in files.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use brine_value::Value;

use super::compose::{Content as Composed, Mark, Node as ComposedNode};
use super::construct::{Constructor, is_merge};
use super::error::YamlError;
use super::{Limits, MAX_DEPTH, document};

/// The maximum number of nodes, those that aliases repeat included.
const MAX_NODES: usize = 500_000;

/// A node of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The bytes of the text; those of a collection in block style begin at its first member.
    pub span: Range<usize>,
    /// The content.
    pub content: Content,
    /// Whether the node stands at another place, and an alias or a merge key repeats it.
    pub is_repeated: bool,
}

/// The content of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A scalar.
    Scalar {
        /// The value that it is resolved to.
        value: Value,
        /// The text without quotes.
        text: String,
        /// Whether it is written without quotes.
        plain: bool,
    },
    /// A sequence.
    List(Vec<Node>),
    /// A mapping in the order of the text, keys that are repeated included. Merge keys are resolved.
    Map(Vec<(Node, Node)>),
}

impl Node {
    /// Returns the text of a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } => Some(text),
            Content::List(_) | Content::Map(_) => None,
        }
    }

    /// Returns the value of a scalar.
    pub fn scalar(&self) -> Option<&Value> {
        match &self.content {
            Content::Scalar { value, .. } => Some(value),
            Content::List(_) | Content::Map(_) => None,
        }
    }

    /// Returns the items of a sequence.
    pub fn list(&self) -> Option<&[Node]> {
        match &self.content {
            Content::List(items) => Some(items),
            Content::Scalar { .. } | Content::Map(_) => None,
        }
    }

    /// Returns the entries of a mapping.
    pub fn map(&self) -> Option<&[(Node, Node)]> {
        match &self.content {
            Content::Map(entries) => Some(entries),
            Content::Scalar { .. } | Content::List(_) => None,
        }
    }

    /// Returns the entry of a mapping with this key.
    pub fn entry(&self, key: &str) -> Option<&(Node, Node)> {
        self.map()?.iter().find(|(name, _)| name.text() == Some(key))
    }

    /// Returns the value below a key of a mapping.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, value)| value)
    }

    /// Whether it is a scalar without a value.
    pub fn is_nil(&self) -> bool {
        self.scalar().is_some_and(|value| *value == Value::Nil)
    }
}

/// Parses one YAML document to nodes. A key may be repeated; everything else that [`load`](super::load) refuses is an
/// error. `None` is an empty text.
///
/// # Examples
/// ```
/// let text = "web:\n  pkg.installed:\n    - name: nginx\n";
/// let root = brine_yaml::nodes(text).unwrap().unwrap();
/// let (id, body) = &root.map().unwrap()[0];
/// assert_eq!(&text[id.span.clone()], "web");
/// let name = body.get("pkg.installed").and_then(|list| list.list()?[0].get("name")).unwrap();
/// assert_eq!(&text[name.span.clone()], "nginx");
/// ```
///
/// # Errors
/// The first YAML error.
pub fn nodes(text: &str) -> Result<Option<Node>, YamlError> {
    let lines = Lines::of(text);
    document(text, None, &mut None, Limits::TRUSTED, |constructor, root| {
        Reader { constructor, lines: &lines, left: MAX_NODES }.node(root, 0, false)
    })
}

/// Returns the byte of a position of an error, counted from 1 in lines and in characters.
pub fn offset(text: &str, line: usize, column: usize) -> usize {
    let start = line
        .checked_sub(2)
        .map_or(0, |before| text.match_indices('\n').nth(before).map_or(text.len(), |(end, _)| end + 1));
    let rest = &text[start..];
    rest.char_indices().nth(column.saturating_sub(1)).map_or(text.len(), |(at, _)| start + at)
}

/// The starts of the lines of a text.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
    /// The length of a byte order mark, which the parser does not see.
    mark: usize,
    is_ascii: bool,
    /// The byte of each character in `STEP`, of lines that were asked for: a line may be the whole text.
    marks: RefCell<HashMap<usize, Vec<usize>>>,
}

/// The characters between two marks in a line.
const STEP: usize = 64;

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(end, _)| end + 1)).collect();
        let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Lines { text, starts, mark, is_ascii: text.is_ascii(), marks: RefCell::default() }
    }

    fn offset(&self, at: Mark) -> usize {
        let Some(start) = self.starts.get(at.line.saturating_sub(1)) else { return self.text.len() };
        let start = if *start == 0 { self.mark } else { *start };
        let end = self.starts.get(at.line).copied().unwrap_or(self.text.len());
        let column = at.column.saturating_sub(1);
        if self.is_ascii {
            return (start + column).min(end);
        }
        let line = &self.text[start..end];
        let mut marks = self.marks.borrow_mut();
        let marks =
            marks.entry(at.line).or_insert_with(|| line.char_indices().step_by(STEP).map(|(at, _)| at).collect());
        let inside = marks.get(column / STEP).and_then(|before| {
            let (after, _) = line[*before..].char_indices().nth(column % STEP)?;
            Some(start + before + after)
        });
        inside.unwrap_or(end)
    }
}

struct Reader<'r, 'c, 'l> {
    constructor: &'r mut Constructor<'c>,
    lines: &'r Lines<'l>,
    left: usize,
}

impl Reader<'_, '_, '_> {
    fn node(&mut self, node: &ComposedNode, depth: usize, is_repeated: bool) -> Result<Node, YamlError> {
        if depth > MAX_DEPTH {
            let message = format!("found more than {MAX_DEPTH} collections inside each other");
            return Err(self.constructor.error(node, message));
        }
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| self.constructor.error(node, "aliases repeat too much of the text"))?;
        let start = self.lines.offset(node.at);
        // The end of a block is the start of what follows it.
        let trimmed = |end: usize| start + self.lines.text.get(start..end).map_or(0, |inside| inside.trim_end().len());
        let span = start..trimmed(self.lines.offset(node.end)).max(start);
        let content = match &node.content {
            Composed::Scalar { text, plain } => {
                let (value, _) = self.constructor.value(node, depth)?;
                Content::Scalar { value, text: text.clone(), plain: *plain }
            }
            Composed::Given(value) => {
                Content::Scalar { value: (**value).clone(), text: value.to_string(), plain: false }
            }
            Composed::List(items) => Content::List(self.items(items, depth, &span, is_repeated)?),
            Composed::Map(pairs) => {
                let flat;
                let pairs = if pairs.iter().any(|(key, _)| is_merge(key)) {
                    flat = self.constructor.flatten(node, pairs, depth)?;
                    &flat[..]
                } else {
                    pairs
                };
                let mut entries = Vec::with_capacity(pairs.len());
                for (key, value) in pairs {
                    if !matches!(key.content, Composed::Scalar { .. } | Composed::Given(_)) {
                        self.constructor.key(node, key, depth)?;
                    }
                    let outside = is_repeated || !span.contains(&self.lines.offset(key.at));
                    let name = self.node(key, depth + 1, outside)?;
                    let outside = outside || self.lines.offset(value.at) < name.span.start;
                    entries.push((name, self.node(value, depth + 1, outside)?));
                }
                Content::Map(entries)
            }
        };
        Ok(Node { span, content, is_repeated })
    }

    fn items(
        &mut self,
        items: &[Rc<ComposedNode>],
        depth: usize,
        within: &Range<usize>,
        is_repeated: bool,
    ) -> Result<Vec<Node>, YamlError> {
        let outside = |reader: &Self, item: &ComposedNode| reader.lines.offset(item.at) < within.start;
        items.iter().map(|item| self.node(item, depth + 1, is_repeated || outside(self, item))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(text: &str, node: &Node, out: &mut Vec<String>) {
        match &node.content {
            Content::Scalar { .. } => out.push(text[node.span.clone()].to_owned()),
            Content::List(items) => items.iter().for_each(|item| describe(text, item, out)),
            Content::Map(entries) => entries.iter().for_each(|(key, value)| {
                describe(text, key, out);
                describe(text, value, out);
            }),
        }
    }

    #[test]
    fn scalars_have_their_bytes_and_repeated_keys_stay() {
        for (text, expected) in [
            ("a: 1\na: 'x y'\n", vec!["a", "1", "a", "'x y'"]),
            ("é: [ü, {b: c}]\nd: |\n  one\n  two\n\ne: f", vec!["é", "ü", "b", "c", "d", "|\n  one\n  two", "e", "f"]),
            ("a:\n  - b: \u{F0000}\n    c:\n", vec!["a", "b", "\u{F0000}", "c", ""]),
            ("\u{feff}a: b\n", vec!["a", "b"]),
        ] {
            let mut actual = Vec::new();
            describe(text, &nodes(text).unwrap().unwrap(), &mut actual);
            assert_eq!(actual, expected, "{text}");
        }
        assert_eq!(nodes("").unwrap(), None);
        assert!(nodes("a: b: c").is_err());
        assert_eq!(offset("a\nbü c\n", 2, 4), 6);
    }

    #[test]
    fn aliases_and_merge_keys_are_marked() {
        let root = nodes("a: &x\n  b: 1\nc:\n  <<: *x\n  d: 2\ne: *x\n").unwrap().unwrap();
        let c = root.get("c").unwrap();
        assert!(c.entry("b").unwrap().0.is_repeated && !c.entry("d").unwrap().0.is_repeated);
        assert!(root.get("e").unwrap().is_repeated && !root.get("a").unwrap().is_repeated);
    }

    #[test]
    fn nodes_of_wide_lines_have_their_bytes() {
        for item in ["a", "ü", "\u{1F600}b"] {
            let text = format!("x: [{}]\n", vec![item; 300].join(", "));
            let root = nodes(&text).unwrap().unwrap();
            let items = root.get("x").and_then(|list| list.list()).unwrap();
            assert!(items.len() == 300 && items.iter().all(|node| &text[node.span.clone()] == item), "{item}");
        }
    }
}

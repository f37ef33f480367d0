//! The format `yamlex`: YAML in which a mapping may have a key several times. Tags determine how the values of a key
//! are joined.
//!
//! `!aggregate` marks a value that is joined with the other values of its key; `!reset` at a key drops the previous
//! values. The document itself is an aggregate. As in Salt, the values of a repeated key are joined by these rules:
//!
//! | first | second | result |
//! |---|---|---|
//! | mapping | mapping | the keys of the second, and those of the first if both are aggregates; values of common keys are joined |
//! | aggregated list | aggregated list | the first, and the members of the second that it lacks |
//! | anything | anything else | the second |

use std::rc::Rc;

use brine_value::{Map, Value};
use indexmap::IndexMap;
use indexmap::map::Entry;

use super::compose::{Content, Node, Pair};
use super::construct::{Constructor, is_merge};
use super::error::YamlError;
use super::{Limits, MAX_DEPTH, NODE_COST, document, text_cost};

/// Parses one document of `yamlex`. An empty stream is an empty mapping.
///
/// # Examples
/// ```
/// use brine_value::{list, map};
/// use brine_yaml::load_extended;
///
/// let value = load_extended("hosts: !aggregate a\nhosts: !aggregate b\n").unwrap();
/// assert_eq!(value, map! {"hosts" => list!["a", "b"]}.into());
/// ```
///
/// # Errors
/// Invalid YAML, or a tag that is not one of YAML's, `!aggregate` or `!reset`.
pub fn load_extended(text: &str) -> Result<Value, YamlError> {
    let root = |constructor: &mut Constructor<'_>, root: &Node| {
        let part = Builder(constructor).part(root, 0)?;
        // The document is an aggregate, regardless of its tag.
        Ok(part.aggregated().value())
    };
    Ok(document(text, None, &mut None, Limits::TRUSTED, root)?.unwrap_or_else(|| Map::new().into()))
}

type Entries = IndexMap<Value, Part>;

/// A value that may still be joined with others.
#[derive(Debug)]
enum Part {
    Plain(Value),
    Map {
        entries: Entries,
        is_aggregate: bool,
    },
    /// A list that was marked `!aggregate`.
    Aggregate(Vec<Value>),
}

impl Part {
    /// Marks the value as an aggregate; a scalar becomes a list of one.
    fn aggregated(self) -> Self {
        match self {
            Part::Map { entries, .. } => Part::Map { entries, is_aggregate: true },
            Part::Plain(Value::List(items)) => Part::Aggregate(items),
            Part::Plain(Value::Nil) => Part::Aggregate(Vec::new()),
            Part::Plain(value) => Part::Aggregate(vec![value]),
            aggregate @ Part::Aggregate(_) => aggregate,
        }
    }

    /// Joins the values of a key that occurs twice.
    fn joined(self, later: Part) -> Part {
        match (self, later) {
            (
                Part::Map { entries: mut first, is_aggregate: one },
                Part::Map { entries: second, is_aggregate: other },
            ) if one && other => {
                for (key, value) in second {
                    add(&mut first, key, value);
                }
                Part::Map { entries: first, is_aggregate: true }
            }
            (Part::Map { entries: mut first, .. }, Part::Map { entries: second, is_aggregate }) => {
                let entries = second.into_iter().map(|(key, value)| match first.swap_remove(&key) {
                    Some(before) => (key, before.joined(value)),
                    None => (key, value),
                });
                Part::Map { entries: entries.collect(), is_aggregate }
            }
            (Part::Aggregate(mut first), Part::Aggregate(second)) => {
                let own = first.len();
                for value in second {
                    if !first.iter().take(own).any(|other| *other == value) {
                        first.push(value);
                    }
                }
                Part::Aggregate(first)
            }
            (_, later) => later,
        }
    }

    fn value(self) -> Value {
        match self {
            Part::Plain(value) => value,
            Part::Aggregate(items) => items.into(),
            Part::Map { entries, .. } => {
                entries.into_iter().map(|(key, part)| (key, part.value())).collect::<Map>().into()
            }
        }
    }
}

/// Adds an entry. If the key exists, its value is joined with the new one.
fn add(entries: &mut Entries, key: Value, value: Part) {
    match entries.entry(key) {
        Entry::Occupied(mut entry) => {
            let before = std::mem::replace(entry.get_mut(), Part::Plain(Value::Nil));
            entry.insert(before.joined(value));
        }
        Entry::Vacant(new) => _ = new.insert(value),
    }
}

/// Constructs parts from nodes.
struct Builder<'c, 'a>(&'c mut Constructor<'a>);

impl Builder<'_, '_> {
    fn part(&mut self, node: &Node, depth: usize) -> Result<Part, YamlError> {
        match node.tag.as_deref() {
            Some("!aggregate") => Ok(self.content(node, depth)?.aggregated()),
            Some("!reset") | None => self.content(node, depth),
            Some(_) => Ok(Part::Plain(self.0.value(node, depth)?.0)),
        }
    }

    /// Constructs the content of a node as if it had no tag.
    fn content(&mut self, node: &Node, depth: usize) -> Result<Part, YamlError> {
        if depth > MAX_DEPTH {
            let message = format!("found more than {MAX_DEPTH} collections inside each other");
            return Err(self.0.error(node, message));
        }
        match &node.content {
            Content::Scalar { text, plain } => {
                self.0.spend(node, NODE_COST.saturating_add(text_cost(text.len())))?;
                // As in Salt, quotes do not affect the type of a value with a tag.
                self.0.untagged(node, text, *plain || node.tag.is_some()).map(Part::Plain)
            }
            Content::Given(value) => Ok(Part::Plain(Value::clone(value))),
            Content::List(items) => {
                self.0.spend(node, NODE_COST)?;
                let items: Result<Vec<Value>, YamlError> =
                    items.iter().map(|item| self.part(item, depth + 1).map(Part::value)).collect();
                Ok(Part::Plain(items?.into()))
            }
            Content::Map(pairs) => {
                self.0.spend(node, NODE_COST)?;
                self.map(node, pairs, depth)
            }
        }
    }

    fn map(&mut self, node: &Node, pairs: &[Pair], depth: usize) -> Result<Part, YamlError> {
        let flat;
        let pairs = if pairs.iter().any(|(key, _)| is_merge(key)) {
            flat = self.0.flatten(node, pairs, depth)?;
            &flat[..]
        } else {
            pairs
        };
        let mut entries = Entries::with_capacity(pairs.len());
        for (key_node, value_node) in pairs {
            let mark = key_node.tag.as_deref();
            let plain_key;
            let plain = match mark {
                // The key itself has no tag: these tags are about its value.
                Some("!aggregate" | "!reset") => {
                    plain_key = untagged(key_node);
                    &plain_key
                }
                _ => key_node,
            };
            let key = self.0.key(node, plain, depth)?;
            let mut value = self.part(value_node, depth + 1)?;
            if mark == Some("!aggregate") {
                value = value.aggregated();
            }
            if mark == Some("!reset") {
                entries.insert(key, value);
            } else {
                add(&mut entries, key, value);
            }
        }
        Ok(Part::Map { entries, is_aggregate: false })
    }
}

fn untagged(node: &Rc<Node>) -> Rc<Node> {
    let content = match &node.content {
        Content::Scalar { text, .. } => Content::Scalar { text: text.clone(), plain: true },
        Content::List(items) => Content::List(items.clone()),
        Content::Map(pairs) => Content::Map(pairs.clone()),
        Content::Given(value) => Content::Given(value.clone()),
    };
    Rc::new(Node { at: node.at, end: node.end, tag: None, content })
}

#[cfg(test)]
mod tests;

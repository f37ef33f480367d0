//! Constructs values from nodes: tags, merge keys, duplicate keys, bounded aliases.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::rc::Rc;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use brine_value::{Map, Value, python};

use super::compose::{Content, Mark, Node, Pair, Source};
use super::data::{self, DateMarks};
use super::error::{Origin, YamlError};
use super::scalar::{self, Kind};
use super::{MAX_DEPTH, NODE_COST, NodePosition, text_cost};

const CORE: &str = "tag:yaml.org,2002:";
const IN_MAPPING: &str = "while constructing a mapping";

pub(super) struct Constructor<'a> {
    source: Source<'a>,
    /// The memory that the value may still take, which bounds the expansion of aliases.
    budget: usize,
    /// The memory that the value takes.
    pub spent: usize,
    /// For data, where the dates are; `None` for what Salt reads by its own loader, such as SLS files.
    pub dates: Option<DateMarks>,
}

type Constructed = Result<(Value, NodePosition), YamlError>;

impl<'a> Constructor<'a> {
    /// Creates a constructor of values of at most `budget` bytes.
    pub fn new(source: Source<'a>, budget: usize) -> Self {
        Constructor { source, budget, spent: 0, dates: None }
    }

    pub fn value(&mut self, node: &Node, depth: usize) -> Constructed {
        if depth > MAX_DEPTH {
            let message = format!("found more than {MAX_DEPTH} collections inside each other");
            return Err(self.error(node, message));
        }
        let tag = node.tag.as_deref().map(|tag| (tag, tag.strip_prefix(CORE).unwrap_or_default()));
        match &node.content {
            Content::Scalar { text, plain } => {
                self.spend(node, NODE_COST.saturating_add(text_cost(text.len())))?;
                let value = match tag {
                    None => self.untagged(node, text, *plain)?,
                    Some((tag, name)) => self.tagged(node, text, tag, name)?,
                };
                Ok((value, NodePosition::new(node.at)))
            }
            Content::Given(value) => {
                self.spend(node, cost(value))?;
                match tag {
                    None => Ok((Value::clone(value), NodePosition::new(node.at))),
                    Some((tag, name)) => Err(self.wrong_tag(node, tag, name)),
                }
            }
            Content::List(items) => {
                self.spend(node, NODE_COST)?;
                match tag {
                    None | Some((_, "seq")) => self.list(node, items, depth),
                    Some((_, "pairs")) => self.pairs(node, items, depth),
                    Some((_, "omap")) if self.dates.is_some() => self.pairs(node, items, depth),
                    Some((tag, name)) => Err(self.wrong_tag(node, tag, name)),
                }
            }
            Content::Map(pairs) => {
                self.spend(node, NODE_COST)?;
                match tag {
                    None | Some((_, "map")) => self.map(node, pairs, depth),
                    Some((_, "omap")) if self.dates.is_none() => self.map(node, pairs, depth),
                    // The wire formats have no sets: a set becomes an ordered list of its members.
                    Some((_, "set")) => match self.map(node, pairs, depth)? {
                        (Value::Map(map), position) => Ok((Value::List(map.into_keys().collect()), position)),
                        other => Ok(other),
                    },
                    Some((tag, name)) => Err(self.wrong_tag(node, tag, name)),
                }
            }
        }
    }

    fn list(&mut self, node: &Node, items: &[Rc<Node>], depth: usize) -> Constructed {
        let (mut values, mut position) = (Vec::with_capacity(items.len()), NodePosition::of(node.at, items.len()));
        for item in items {
            let (value, inside) = self.value(item, depth + 1)?;
            if let Some(dates) = &mut self.dates {
                dates.note_value(item.at, item);
            }
            values.push(value);
            position.inside.push(inside);
        }
        Ok((Value::List(values), position))
    }

    /// Constructs `!!pairs`: a list of one-key mappings becomes a list of two-item lists.
    fn pairs(&mut self, node: &Node, items: &[Rc<Node>], depth: usize) -> Constructed {
        let (value, position) = self.list(node, items, depth)?;
        let Value::List(items) = value else { return Ok((value, position)) };
        let pair = |item: Value| match item {
            Value::Map(map) if map.len() == 1 => {
                Ok(map.into_iter().map(|(k, v)| Value::List(vec![k, v])).collect::<Vec<_>>())
            }
            _ => Err(self.error(node, "expected a mapping of length 1")),
        };
        let pairs: Result<Vec<_>, _> = items.into_iter().map(pair).collect();
        Ok((Value::List(pairs?.into_iter().flatten().collect()), position))
    }

    fn map(&mut self, node: &Node, pairs: &[Pair], depth: usize) -> Constructed {
        let flat;
        let pairs = if pairs.iter().any(|(key, _)| is_merge(key)) {
            flat = self.flatten(node, pairs, depth)?;
            &flat[..]
        } else {
            pairs
        };
        let (mut map, mut position) = (Map::with_capacity(pairs.len()), NodePosition::of(node.at, pairs.len()));
        // Python treats `1`, `1.0` and `True` as equal keys.
        let mut numbers = HashMap::new();
        for (key_node, value_node) in pairs {
            let mut key = self.key(node, key_node, depth)?;
            let number = match &key {
                Value::Bool(b) => Some(i64::from(*b)),
                Value::Float(f) if f.fract() == 0.0 && f.abs() < 9e18 => Some(*f as i64),
                Value::Int(n) => Some(*n),
                _ => None,
            };
            // PyYAML constructs the members of a collection later.
            let early = match &value_node.content {
                Content::Scalar { .. } => Some(self.value(value_node, depth + 1)?),
                _ => None,
            };
            let before = match number {
                Some(number) => numbers.insert(number, key.clone()),
                None => map.contains_key(&key).then(|| key.clone()),
            };
            match before {
                Some(before) if self.dates.is_some() => key = before,
                Some(_) => {
                    let message = format!("found conflicting ID '{key}'");
                    return Err(self.error(key_node, message).within(IN_MAPPING, node.at));
                }
                None => {}
            }
            let (value, inside) = match early {
                Some(scalar) => scalar,
                None => self.value(value_node, depth + 1)?,
            };
            if let Some(dates) = &mut self.dates {
                dates.note_key(key_node);
                dates.note_value(key_node.at, value_node);
            }
            let place = NodePosition { at: key_node.at, inside: inside.inside };
            let (index, replaced) = map.insert_full(key, value);
            match replaced {
                Some(_) => position.inside[index] = place,
                None => position.inside.push(place),
            }
        }
        Ok((Value::Map(map), position))
    }

    pub fn key(&mut self, map: &Node, node: &Node, depth: usize) -> Result<Value, YamlError> {
        let is_default = match (&node.tag, &node.content) {
            (Some(tag), Content::Scalar { .. }) => tag == "tag:yaml.org,2002:value",
            (None, Content::Scalar { text, plain }) => *plain && scalar::kind(text) == Kind::Default,
            _ => false,
        };
        if let (true, Some(text)) = (is_default, node.text()) {
            return Ok(Value::from(text));
        }
        match &node.content {
            // The key is not constructed first, because the error must show `{{ x }}` as written.
            Content::Given(value) if matches!(**value, Value::List(_) | Value::Map(_)) => {
                let message = "found unacceptable key: a list or mapping from the event";
                Err(self.error(node, message).within(IN_MAPPING, map.at))
            }
            Content::List(_) | Content::Map(_) if node.tag.as_deref() != Some("tag:yaml.org,2002:str") => {
                let mut text = String::new();
                describe_content(node, &mut text);
                Err(self.error(node, format!("found unacceptable key {text}")).within(IN_MAPPING, map.at))
            }
            _ => Ok(self.value(node, depth + 1)?.0),
        }
    }

    /// Resolves merge keys: returns the merged pairs, then the mapping's own, which take precedence.
    pub fn flatten(&mut self, node: &Node, pairs: &[Pair], depth: usize) -> Result<Vec<Pair>, YamlError> {
        if depth > MAX_DEPTH {
            let message = format!("found more than {MAX_DEPTH} collections inside each other");
            return Err(self.error(node, message));
        }
        let (mut merged, mut own) = (Vec::new(), Vec::new());
        for (key, value) in pairs {
            if !is_merge(key) {
                own.push((Rc::clone(key), Rc::clone(value)));
                continue;
            }
            match &value.content {
                Content::Map(pairs) => merged.extend(self.flatten(value, pairs, depth + 1)?),
                Content::List(items) => {
                    let mut each = Vec::with_capacity(items.len());
                    for item in items {
                        let Content::Map(pairs) = &item.content else {
                            let message = format!("expected a mapping for merging, but found {}", item.name());
                            return Err(self.error(item, message).within(IN_MAPPING, node.at));
                        };
                        each.push(self.flatten(item, pairs, depth + 1)?);
                    }
                    // PyYAML iterates in reverse here, which determines the order of the keys.
                    merged.extend(each.into_iter().rev().flatten());
                }
                Content::Scalar { .. } | Content::Given(_) => {
                    let message = "expected a mapping or list of mappings for merging, but found scalar";
                    return Err(self.error(value, message).within(IN_MAPPING, node.at));
                }
            }
            self.spend(node, (2 * size_of::<Pair>()).saturating_mul(merged.len()))?;
        }
        if self.dates.is_some() {
            // The last of equal keys has their value.
            merged.extend(own);
            return Ok(merged);
        }
        // Salt compares the source text of keys here, so `yes` does not override `true`, but conflicts with it.
        let names: HashSet<String> = own.iter().filter_map(|(key, _)| key.text().map(str::to_owned)).collect();
        merged.retain(|(key, _)| key.text().is_none_or(|name| !names.contains(name)));
        merged.extend(own);
        Ok(merged)
    }

    pub fn untagged(&self, node: &Node, text: &str, plain: bool) -> Result<Value, YamlError> {
        if !plain {
            return Ok(Value::from(text));
        }
        match scalar::kind(text) {
            Kind::Merge => Err(self.no_constructor(node, "tag:yaml.org,2002:merge")),
            Kind::Default => Err(self.no_constructor(node, "tag:yaml.org,2002:value")),
            Kind::Int => self.int(node, text),
            Kind::Timestamp if self.dates.is_some() => self.date(node, text),
            _ => Ok(scalar::plain(text)),
        }
    }

    fn int(&self, node: &Node, text: &str) -> Result<Value, YamlError> {
        let parse = if self.dates.is_some() { scalar::int_of_data } else { scalar::int };
        parse(text).ok_or_else(|| self.unreadable(node, text, "a whole number"))
    }

    fn date(&self, node: &Node, text: &str) -> Result<Value, YamlError> {
        data::date(text).map(Value::from).ok_or_else(|| self.unreadable(node, text, "a date"))
    }

    fn unreadable(&self, node: &Node, text: &str, what: &str) -> YamlError {
        self.error(node, format!("could not read {} as {what}", python::repr(&text.into())))
    }

    fn tagged(&self, node: &Node, text: &str, tag: &str, name: &str) -> Result<Value, YamlError> {
        let unreadable = |what| self.unreadable(node, text, what);
        match name {
            "timestamp" if self.dates.is_some() => self.date(node, text),
            "str" | "timestamp" | "python/unicode" => Ok(Value::from(text)),
            "null" => Ok(Value::Nil),
            "bool" => scalar::boolean(text).map(Value::Bool).ok_or_else(|| unreadable("a truth value")),
            "int" => self.int(node, text),
            "float" => scalar::float(text).map(Value::Float).ok_or_else(|| unreadable("a number")),
            "binary" => bytes(text).map(Value::Bytes).ok_or_else(|| unreadable("base64")),
            _ => Err(self.wrong_tag(node, tag, name)),
        }
    }

    fn wrong_tag(&self, node: &Node, tag: &str, name: &str) -> YamlError {
        let expected = match name {
            "str" | "int" | "float" | "bool" | "null" | "binary" | "timestamp" | "python/unicode" => "scalar",
            "pairs" => {
                let message = format!("expected a sequence, but found {}", node.name());
                return self.error(node, message).within("while constructing pairs", node.at);
            }
            "omap" if matches!(node.content, Content::Scalar { .. }) => {
                let message = "expected a sequence, but found scalar";
                return self.error(node, message).within("while constructing an ordered map", node.at);
            }
            "seq" => "sequence",
            "map" | "omap" | "set" => "mapping",
            _ => return self.no_constructor(node, tag),
        };
        self.error(node, format!("expected a {expected} node, but found {}", node.name()))
    }

    fn no_constructor(&self, node: &Node, tag: &str) -> YamlError {
        self.error(node, format!("could not determine a constructor for the tag '{tag}'"))
    }

    pub fn spend(&mut self, node: &Node, cost: usize) -> Result<(), YamlError> {
        match self.budget.checked_sub(cost) {
            Some(rest) => {
                self.budget = rest;
                self.spent += cost;
                Ok(())
            }
            None => Err(self.source.error(Origin::Limit, node.at, "aliases repeat too much of the text")),
        }
    }

    pub fn error(&self, node: &Node, message: impl Into<String>) -> YamlError {
        self.source.error(Origin::Constructor, node.at, message)
    }
}

/// Returns the memory of a value.
fn cost(value: &Value) -> usize {
    let inside = match value {
        Value::Str(text) => text_cost(text.len()),
        Value::Bytes(bytes) => text_cost(bytes.len()),
        Value::List(items) => items.iter().map(cost).fold(0, usize::saturating_add),
        Value::Map(map) => map.iter().map(|(k, v)| cost(k).saturating_add(cost(v))).fold(0, usize::saturating_add),
        _ => 0,
    };
    inside.saturating_add(NODE_COST)
}

impl Node {
    fn name(&self) -> &'static str {
        match self.content {
            Content::Scalar { .. } | Content::Given(_) => "scalar",
            Content::List(_) => "sequence",
            Content::Map(_) => "mapping",
        }
    }

    fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }
}

pub(super) fn is_merge(key: &Node) -> bool {
    match (&key.tag, &key.content) {
        (Some(tag), Content::Scalar { .. }) => tag == "tag:yaml.org,2002:merge",
        (None, Content::Scalar { text, plain: true }) => text == "<<",
        _ => false,
    }
}

/// Decodes Base64 as Python does: ignores other characters and missing padding.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let lenient = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let digits: String = text.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '/')).collect();
    GeneralPurpose::new(&STANDARD, lenient).decode(digits).ok().filter(|_| text.is_ascii())
}

/// The maximum length of a node's description in an error. Aliases could make it unbounded.
const DESCRIPTION: usize = 2000;

/// Writes a node's content as Salt shows it for an unacceptable key.
fn describe_content(node: &Node, out: &mut String) {
    if out.len() > DESCRIPTION {
        out.push_str("...");
        return;
    }
    match &node.content {
        Content::Scalar { text, .. } => _ = python::write_repr(&Value::from(text.as_str()), out),
        Content::Given(_) => out.push_str("'...'"),
        Content::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                describe(item, out);
            }
            out.push(']');
        }
        Content::Map(pairs) => {
            out.push('[');
            for (i, (key, value)) in pairs.iter().enumerate() {
                out.push_str(if i > 0 { ", (" } else { "(" });
                describe(key, out);
                out.push_str(", ");
                describe(value, out);
                out.push(')');
            }
            out.push(']');
        }
    }
}

fn describe(node: &Node, out: &mut String) {
    if out.len() > DESCRIPTION {
        return;
    }
    let (class, default) = match &node.content {
        Content::Scalar { text, plain } => ("ScalarNode", scalar_tag(text, *plain)),
        Content::Given(_) => ("ScalarNode", "str"),
        Content::List(_) => ("SequenceNode", "seq"),
        Content::Map(_) => ("MappingNode", "map"),
    };
    let tag = node.tag.clone().unwrap_or_else(|| format!("{CORE}{default}"));
    _ = write!(out, "{class}(tag='{tag}', value=");
    describe_content(node, out);
    out.push(')');
}

fn scalar_tag(text: &str, plain: bool) -> &'static str {
    if plain { scalar::kind(text).tag() } else { Kind::Text.tag() }
}

impl NodePosition {
    fn new(at: Mark) -> Self {
        NodePosition { at, inside: Vec::new() }
    }

    /// Returns the position of a collection with room for those of its members.
    fn of(at: Mark, members: usize) -> Self {
        NodePosition { at, inside: Vec::with_capacity(members) }
    }
}

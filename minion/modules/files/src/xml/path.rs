//! The XPath expressions of Python's ElementTree, which `xml` functions take to find an element.

use std::collections::{HashMap, HashSet};

use super::document::Document;

/// The error of a path.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{path}' is not a path to an element: {message}")]
pub struct PathError {
    path: String,
    message: &'static str,
}

/// A pattern of names.
#[derive(Debug, Clone, PartialEq)]
enum Tag {
    /// `*`
    Any,
    /// `{namespace}*`; the namespace may be empty.
    In(String),
    /// `{*}name`
    Local(String),
    Name(String),
}

impl Tag {
    fn new(word: &str) -> Self {
        match word.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            Some(("*", "*")) => Tag::Any,
            Some(("*", name)) => Tag::Local(name.to_owned()),
            Some((namespace, "*")) => Tag::In(namespace.to_owned()),
            Some(("", name)) => Tag::Name(name.to_owned()),
            None if word == "*" => Tag::Any,
            Some(_) | None => Tag::Name(word.to_owned()),
        }
    }

    fn matches(&self, name: &str) -> bool {
        let parts = name.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        match self {
            Tag::Any => true,
            Tag::Name(expected) => expected == name,
            Tag::Local(expected) => parts.map_or(name, |(_, local)| local) == expected,
            Tag::In(expected) => parts.map_or("", |(namespace, _)| namespace) == expected,
        }
    }
}

/// A part of a path.
#[derive(Debug, PartialEq)]
enum Step {
    Child(Tag),
    Descendant(Tag),
    Itself,
    Parent,
    /// `[@name]`, `[@name='value']`, `[@name!='value']`
    Attribute(String, Option<(bool, String)>),
    /// `[name]`
    Has(Tag),
    /// `[name='text']`, and with `.` as the name; the boolean is false for `!=`.
    Text(Option<Tag>, bool, String),
    /// `[1]`: from 0.
    First(usize),
    /// `[last()]`, `[last()-1]`: from 0.
    Last(usize),
}

/// A parsed path.
#[derive(Debug, PartialEq)]
pub struct Path(Vec<Step>);

impl Path {
    /// Parses a path. One that begins with `/` is relative to the root element, too.
    pub fn parse(path: &str) -> Result<Self, PathError> {
        let wrong = |message| PathError { path: path.to_owned(), message };
        let mut full = if path.starts_with('/') { format!(".{path}") } else { path.to_owned() };
        if full.ends_with('/') {
            full.push('*');
        }
        let tokens = tokens(&full).map_err(wrong)?;
        let (mut steps, mut rest) = (Vec::new(), tokens.as_slice());
        while let Some((token, after)) = rest.split_first() {
            rest = after;
            steps.push(match token {
                Token::Word(word) => Step::Child(tag(word).map_err(wrong)?),
                Token::Sign("*") => Step::Child(Tag::Any),
                Token::Sign(".") => Step::Itself,
                Token::Sign("..") => Step::Parent,
                Token::Sign("//") => {
                    let tag = match rest.split_first() {
                        Some((Token::Word(word), after)) => {
                            rest = after;
                            tag(word).map_err(wrong)?
                        }
                        Some((Token::Sign("*"), after)) => {
                            rest = after;
                            Tag::Any
                        }
                        _ => return Err(wrong("expected a name or '*' after '//'")),
                    };
                    Step::Descendant(tag)
                }
                Token::Sign("[") => {
                    let end = rest.iter().position(|token| *token == Token::Sign("]"));
                    let end = end.ok_or_else(|| wrong("a '[' is not closed"))?;
                    let condition = &rest[..end];
                    rest = &rest[end + 1..];
                    predicate(condition).map_err(wrong)?
                }
                Token::Sign(_) | Token::Quoted(_) | Token::Space => return Err(wrong("unexpected character")),
            });
            if let Some((Token::Sign("/"), after)) = rest.split_first() {
                if after.is_empty() {
                    return Err(wrong("it ends with '/'"));
                }
                rest = after;
            }
        }
        if steps.is_empty() { Err(wrong("it is empty")) } else { Ok(Path(steps)) }
    }

    /// Returns the first matching element in the order of the document.
    pub fn find(&self, document: &Document) -> Option<usize> {
        let mut nodes = vec![0];
        for step in &self.0 {
            nodes = step.select(document, nodes);
        }
        nodes.first().copied()
    }
}

impl Step {
    /// Applies the step to all elements found so far.
    fn select(&self, document: &Document, nodes: Vec<usize>) -> Vec<usize> {
        let element = |index: usize| document.element(index);
        let children = |index: usize, tag: &Tag| -> Vec<usize> {
            element(index).children.iter().copied().filter(|child| tag.matches(&element(*child).name)).collect()
        };
        let keep = |test: &dyn Fn(usize) -> bool| nodes.iter().copied().filter(|index| test(*index)).collect();
        match self {
            Step::Itself => nodes,
            Step::Child(tag) => nodes.into_iter().flat_map(|index| children(index, tag)).collect(),
            Step::Descendant(tag) => {
                let (mut seen, mut all) = (HashSet::new(), Vec::new());
                for index in nodes {
                    // All below an element that was reached before are known.
                    if seen.contains(&index) {
                        continue;
                    }
                    let fresh = document.descendants(index).filter(|index| seen.insert(*index));
                    all.extend(fresh.filter(|index| tag.matches(&element(*index).name)));
                }
                all
            }
            Step::Parent => {
                let mut seen = HashSet::new();
                nodes
                    .into_iter()
                    .filter_map(|index| element(index).parent)
                    .filter(|index| seen.insert(*index))
                    .collect()
            }
            Step::Attribute(name, condition) => keep(&|index| {
                let value = document.attributes(index).find(|(key, _)| key == name).map(|(_, value)| value);
                value.is_some_and(|value| condition.as_ref().is_none_or(|(equal, text)| (value == text) == *equal))
            }),
            Step::Has(tag) => keep(&|index| !children(index, tag).is_empty()),
            Step::Text(None, equal, text) => keep(&|index| (document.inner_text(index) == text) == *equal),
            Step::Text(Some(tag), equal, text) => keep(&|index| {
                children(index, tag).into_iter().any(|child| (document.inner_text(child) == text) == *equal)
            }),
            Step::First(place) => at_place(document, nodes, |all| all.get(*place).copied()),
            Step::Last(place) => at_place(document, nodes, |all| all.iter().rev().nth(*place).copied()),
        }
    }
}

/// Keeps the elements with this place among the children of the same name.
fn at_place(document: &Document, nodes: Vec<usize>, place: impl Fn(&[usize]) -> Option<usize>) -> Vec<usize> {
    let mut siblings: HashMap<usize, HashMap<&str, Vec<usize>>> = HashMap::new();
    let mut is_at_place = |index: usize| {
        let element = document.element(index);
        let Some(parent) = element.parent else { return false };
        let names = siblings.entry(parent).or_insert_with(|| {
            let mut names: HashMap<&str, Vec<usize>> = HashMap::new();
            for child in &document.element(parent).children {
                names.entry(&document.element(*child).name).or_default().push(*child);
            }
            names
        });
        names.get(&*element.name).and_then(|all| place(all)) == Some(index)
    };
    nodes.into_iter().filter(|index| is_at_place(*index)).collect()
}

#[derive(Debug, PartialEq)]
enum Token<'p> {
    Quoted(&'p str),
    Sign(&'static str),
    Word(&'p str),
    Space,
}

const SIGNS: [&str; 13] = ["//", "/", "..", "()", "!=", ".", "*", "[", "]", "(", ")", "@", "="];

fn tokens(path: &str) -> Result<Vec<Token<'_>>, &'static str> {
    let (mut tokens, mut rest) = (Vec::new(), path);
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix(['\'', '"']) {
            let (text, after) = quoted.split_once(first).ok_or("a quote is not closed")?;
            tokens.push(Token::Quoted(text));
            rest = after;
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else if first.is_whitespace() {
            tokens.push(Token::Space);
            rest = rest.trim_start();
        } else {
            // A namespace may contain any character.
            let namespace = rest.strip_prefix('{').and_then(|inner| inner.find('}')).map_or(0, |end| end + 2);
            let ends = |c: char| "/[]()@!=".contains(c) || c.is_whitespace();
            let end = rest[namespace..].find(ends).map_or(rest.len(), |end| namespace + end);
            if end == namespace {
                return Err("unexpected character");
            }
            tokens.push(Token::Word(&rest[..end]));
            rest = &rest[end..];
        }
    }
    Ok(tokens)
}

fn tag(word: &str) -> Result<Tag, &'static str> {
    if !word.starts_with('{') && word.contains(':') {
        return Err("prefixes are unknown: write {namespace}name, or {*}name for any namespace");
    }
    Ok(Tag::new(word))
}

fn predicate(tokens: &[Token<'_>]) -> Result<Step, &'static str> {
    let tokens: Vec<&Token<'_>> = tokens.iter().filter(|token| **token != Token::Space).collect();
    let number = |word: &str| word.parse::<i64>().ok();
    let equality = |sign: &str| match sign {
        "=" => Some(true),
        "!=" => Some(false),
        _ => None,
    };
    let step = match tokens[..] {
        [Token::Sign("@"), Token::Word(name)] => Step::Attribute((*name).to_owned(), None),
        [Token::Sign("@"), Token::Word(name), Token::Sign(sign), Token::Quoted(text)] => {
            let equal = equality(sign).ok_or("expected '=' or '!='")?;
            Step::Attribute((*name).to_owned(), Some((equal, (*text).to_owned())))
        }
        [Token::Sign("."), Token::Sign(sign), Token::Quoted(text)] => {
            Step::Text(None, equality(sign).ok_or("expected '=' or '!='")?, (*text).to_owned())
        }
        [Token::Word(name), Token::Sign(sign), Token::Quoted(text)] if number(name).is_none() => {
            Step::Text(Some(tag(name)?), equality(sign).ok_or("expected '=' or '!='")?, (*text).to_owned())
        }
        [Token::Word("last"), Token::Sign("()")] => Step::Last(0),
        [Token::Word("last"), Token::Sign("()"), Token::Word(offset)] => {
            let offset =
                number(offset).filter(|offset| *offset < 0).ok_or("the offset from last() must be negative")?;
            Step::Last(usize::try_from(offset.unsigned_abs()).map_err(|_| "the offset is too large")?)
        }
        [Token::Word(word)] => match number(word) {
            Some(place) => {
                let place = place.checked_sub(1).and_then(|place| usize::try_from(place).ok());
                Step::First(place.ok_or("positions begin with 1")?)
            }
            None => Step::Has(tag(word)?),
        },
        _ => return Err("the condition in brackets is not supported"),
    };
    Ok(step)
}

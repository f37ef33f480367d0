//! Paths into events, and conditions on the values there.

use std::fmt;

use brine_text::glob::fnmatch;
use brine_value::{FromValue, Map, Value};

use crate::excerpt;

/// The tag and data of an event.
#[derive(Clone, Copy)]
pub(crate) struct EventView<'a> {
    pub tag: &'a str,
    pub data: &'a Map,
}

/// The path of a value: names in the data separated by colons, or `tag:N` for a segment of the tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Path {
    Data(Vec<String>),
    Tag(usize),
}

impl Path {
    pub fn new(text: &str) -> Self {
        match text.strip_prefix("tag:").and_then(|part| part.parse().ok()) {
            Some(part) => Path::Tag(part),
            None => Path::Data(text.split(':').map(str::to_owned).collect()),
        }
    }

    pub fn find(&self, view: EventView<'_>) -> Option<Value> {
        match self {
            Path::Tag(part) => view.tag.split('/').nth(*part).map(Value::from),
            Path::Data(names) => {
                let (first, rest) = names.split_first()?;
                let mut at = view.data.get(first.as_str())?;
                for name in rest {
                    at = match at {
                        Value::List(items) => items.get(name.parse::<usize>().ok()?)?,
                        value => value.get(name)?,
                    };
                }
                Some(at.clone())
            }
        }
    }
}

/// The paths whose values form the key of an event. Without paths all events share one key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GroupBy(pub Vec<Path>);

impl GroupBy {
    /// Returns the key of an event; `None` if it lacks one of the values.
    pub fn key(&self, view: EventView<'_>) -> Option<String> {
        let values: Option<Vec<String>> = self
            .0
            .iter()
            .map(|path| path.find(view).filter(|value| !value.is_nil()).map(|value| value.to_string()))
            .collect();
        Some(values?.join("/"))
    }
}

/// Conditions on the data of an event, all of which must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Conditions(Vec<(Path, Expected)>);

#[derive(Debug, Clone, PartialEq)]
enum Expected {
    Value(Value),
    Any(Vec<Expected>),
    Not(Box<Expected>),
    Above(f64),
    Below(f64),
    Exists(bool),
}

impl Conditions {
    /// Parses `where:`, a mapping of path to expected value.
    pub fn read(value: &Value) -> Result<Self, String> {
        let map = value.as_map().ok_or("expected a mapping of path to value, such as {fun: state.*}")?;
        let mut conditions = Vec::new();
        for (path, expected) in map {
            let path = Path::new(&path.to_string());
            match expected {
                Value::Map(operators) => {
                    for (name, value) in operators {
                        conditions.push((path.clone(), Expected::operator(&name.to_string(), value)?));
                    }
                }
                plain => conditions.push((path, Expected::plain(plain))),
            }
        }
        Ok(Conditions(conditions))
    }

    pub fn hold(&self, view: EventView<'_>) -> bool {
        self.first_unmet(view).is_none()
    }

    /// Returns the first condition that does not hold, as a message.
    pub fn unmet(&self, view: EventView<'_>) -> Option<String> {
        let (path, expected) = self.first_unmet(view)?;
        let actual = path.find(view).map_or_else(|| "missing".to_owned(), |value| excerpt(&value.to_string()));
        Some(format!("'{path}' is {actual}, expected {expected}"))
    }

    fn first_unmet(&self, view: EventView<'_>) -> Option<&(Path, Expected)> {
        self.0.iter().find(|(path, expected)| !expected.holds(path.find(view).as_ref()))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Data(names) => f.write_str(&names.join(":")),
            Path::Tag(part) => write!(f, "tag:{part}"),
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Value(value) => write!(f, "{value}"),
            Expected::Any(any) => {
                let any: Vec<_> = any.iter().map(ToString::to_string).collect();
                write!(f, "one of {}", any.join(", "))
            }
            Expected::Not(expected) => write!(f, "not {expected}"),
            Expected::Above(limit) => write!(f, "a number above {limit}"),
            Expected::Below(limit) => write!(f, "a number below {limit}"),
            Expected::Exists(true) => f.write_str("any value"),
            Expected::Exists(false) => f.write_str("no value"),
        }
    }
}

impl Expected {
    fn plain(value: &Value) -> Self {
        match value {
            Value::List(any) => Expected::Any(any.iter().map(Expected::plain).collect()),
            one => Expected::Value(one.clone()),
        }
    }

    fn operator(name: &str, value: &Value) -> Result<Self, String> {
        let number =
            || f64::from_value(value).ok_or_else(|| format!("'{name}' is invalid: expected a number, got {value}"));
        Ok(match name {
            "above" => Expected::Above(number()?),
            "below" => Expected::Below(number()?),
            "not" => Expected::Not(Box::new(Expected::plain(value))),
            "exists" => Expected::Exists(value.is_truthy()),
            other => return Err(format!("condition '{other}' is invalid: expected above, below, not or exists")),
        })
    }

    fn holds(&self, value: Option<&Value>) -> bool {
        let number = || value.and_then(f64::from_value);
        match self {
            Expected::Exists(expected) => value.is_some() == *expected,
            Expected::Not(expected) => !expected.holds(value),
            Expected::Any(any) => any.iter().any(|expected| expected.holds(value)),
            Expected::Above(limit) => number().is_some_and(|number| number > *limit),
            Expected::Below(limit) => number().is_some_and(|number| number < *limit),
            Expected::Value(expected) => match (expected, value) {
                (Value::Str(pattern), Some(value)) => fnmatch(pattern, &value.to_string()),
                (expected, Some(value)) => expected == value || number().is_some_and(|n| expected.as_f64() == Some(n)),
                (expected, None) => expected.is_nil(),
            },
        }
    }
}

#[cfg(test)]
mod tests;

//! Values of a test file with their lines; errors are collected.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use brine_text::nearest::nearest;
use brine_value::{Map, Value};
use brine_yaml::Located;

use super::FormatError;

/// The errors of a file.
pub(super) struct Errors {
    path: PathBuf,
    found: RefCell<Vec<FormatError>>,
}

impl Errors {
    pub fn new(path: &Path) -> Self {
        Errors { path: path.to_owned(), found: RefCell::default() }
    }

    /// Returns the errors, each once, by line.
    pub fn take(&self) -> Vec<FormatError> {
        let mut errors = self.found.take();
        errors.sort_by_key(|error| error.line);
        errors.dedup();
        errors
    }
}

/// A value of a file, with its path in the data.
pub(super) struct Node<'f> {
    located: &'f Located,
    errors: &'f Errors,
    path: Vec<Value>,
    pub value: &'f Value,
}

impl<'f> Node<'f> {
    /// Returns the whole file.
    pub fn root(located: &'f Located, errors: &'f Errors) -> Self {
        Node { located, errors, path: Vec::new(), value: &located.value }
    }

    fn at(&self, step: Value, value: &'f Value) -> Node<'f> {
        let path = self.path.iter().cloned().chain([step]).collect();
        Node { located: self.located, errors: self.errors, path, value }
    }

    /// Returns the line.
    pub fn line(&self) -> usize {
        self.located.position(&self.path).map_or(1, |position| position.line)
    }

    /// Returns the key of this value, in messages.
    fn name(&self) -> String {
        self.path.last().map_or_else(|| "the file".to_owned(), |key| format!("'{key}'"))
    }

    /// Adds an error.
    pub fn error(&self, message: impl Into<String>) {
        let error = FormatError { path: self.errors.path.clone(), line: self.line(), message: message.into() };
        self.errors.found.borrow_mut().push(error);
    }

    fn wrong(&self, expected: &str) {
        self.error(format!("{} is invalid: expected {expected}, got {}", self.name(), self.value.type_name()));
    }

    /// Returns the mapping; anything else is an error.
    pub fn mapping(&self, expected: &str) -> Option<&'f Map> {
        let map = self.value.as_map();
        if map.is_none() {
            self.wrong(expected);
        }
        map
    }

    /// Reports keys that are not known, with the nearest one.
    pub fn known(&self, keys: &[&str]) {
        for key in self.value.as_map().into_iter().flat_map(Map::keys) {
            let name = key.to_string();
            if !keys.contains(&name.as_str()) {
                let advice = match nearest(&name, keys) {
                    Some(near) => format!("did you mean '{near}'?"),
                    None => format!("expected one of {}", keys.join(", ")),
                };
                self.at(key.clone(), self.value).error(format!("the key '{name}' is unknown: {advice}"));
            }
        }
    }

    /// Returns the value of a key.
    pub fn child(&self, name: &str) -> Option<Node<'f>> {
        let key = Value::from(name);
        Some(self.at(key, self.value.get(name)?))
    }

    /// Returns the entries of a mapping.
    pub fn children(&self, expected: &str) -> Vec<(String, Node<'f>)> {
        let map = self.mapping(expected);
        map.into_iter().flatten().map(|(key, value)| (key.to_string(), self.at(key.clone(), value))).collect()
    }

    /// Returns the items of a list; anything else is the only item.
    pub fn items(&self) -> Vec<Node<'f>> {
        match self.value {
            Value::List(items) => {
                items.iter().enumerate().map(|(index, item)| self.at((index as u64).into(), item)).collect()
            }
            Value::Nil => Vec::new(),
            value => vec![Node { located: self.located, errors: self.errors, path: self.path.clone(), value }],
        }
    }

    /// Returns the items of a list; anything else is an error.
    pub fn list(&self) -> Vec<Node<'f>> {
        if self.value.as_list().is_none() {
            self.wrong("a list");
            return Vec::new();
        }
        self.items()
    }

    /// Returns a string or number as text.
    pub fn text(&self) -> Option<String> {
        match self.value {
            Value::Nil | Value::List(_) | Value::Map(_) | Value::Bytes(_) => {
                self.wrong("a string");
                None
            }
            other => Some(other.to_string()),
        }
    }

    /// Returns the strings of a list, or one with commas.
    pub fn names(&self) -> Vec<String> {
        let split = |text: String| text.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>();
        self.items().iter().filter_map(Node::text).flat_map(split).collect()
    }

    /// Returns the strings of a list, or one.
    pub fn texts(&self) -> Vec<String> {
        self.items().iter().filter_map(Node::text).collect()
    }

    /// Returns a boolean.
    pub fn flag(&self) -> bool {
        if let Value::Bool(flag) = self.value {
            *flag
        } else {
            self.wrong("True or False");
            false
        }
    }

    /// Returns the directory of the file.
    pub fn directory(&self) -> PathBuf {
        self.errors.path.parent().map(Path::to_owned).unwrap_or_default()
    }
}

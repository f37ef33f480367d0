//! What a test gives: the data of the minion, mocks of functions, files, results of states.

use std::path::PathBuf;

use brine_value::{Map, Value, merge};
use indexmap::IndexMap;

use super::reader::Node;

/// Directories by environment.
type Roots = IndexMap<String, Vec<PathBuf>>;

/// What a test gives. The defaults of its file are merged in.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// The id of the minion.
    pub id: Option<String>,
    /// The environment of the SLS files.
    pub saltenv: Option<String>,
    /// The grains, beside `id`.
    pub grains: Map,
    /// The pillar, or what is merged over that of `pillar_roots`.
    pub pillar: Map,
    /// The directories of the pillar tree.
    pub pillar_roots: Option<Roots>,
    /// The directories of the state tree; those of the command by default.
    pub file_roots: Option<Roots>,
    /// Options of the minion.
    pub opts: Map,
    /// The mocked functions by name.
    pub mocks: IndexMap<String, Mock>,
    /// The files of the host by path.
    pub files: IndexMap<String, FileOnHost>,
    /// The results of states that are not examined, by id or function.
    pub states: IndexMap<String, Map>,
    /// `reactor` of the master.
    pub reactor: Value,
}

/// A mocked function.
#[derive(Debug, Clone, Default)]
pub struct Mock {
    /// The line in the file.
    pub line: usize,
    /// The calls; the first that fits is used.
    pub calls: Vec<Call>,
}

/// A call of a mocked function.
#[derive(Debug, Clone)]
pub struct Call {
    /// The positional arguments; any if unset.
    pub args: Option<Vec<Value>>,
    /// Keyword arguments that the call has; it may have others if this is unset.
    pub kwargs: Option<Map>,
    /// The result, or the error.
    pub answer: Result<Value, String>,
    /// The expected number of calls.
    pub times: Option<u64>,
}

/// A file of the host.
#[derive(Debug, Clone, Default)]
pub struct FileOnHost {
    /// The text; `None` for a directory.
    pub text: Option<String>,
    /// The mode.
    pub mode: Option<u32>,
}

impl Default for Call {
    fn default() -> Self {
        Call { args: None, kwargs: None, answer: Ok(Value::Nil), times: None }
    }
}

impl Given {
    /// Adds the keys of a test, or of the defaults before it.
    pub(super) fn add(&mut self, node: &Node<'_>) {
        let text = |name: &str| node.child(name).and_then(|node| node.text());
        self.id = text("id").or(self.id.take());
        self.saltenv = text("saltenv").or(self.saltenv.take());
        for (name, into) in [("grains", &mut self.grains), ("pillar", &mut self.pillar), ("opts", &mut self.opts)] {
            if let Some(more) = node.child(name) {
                add_data(into, &more);
            }
        }
        for (name, into) in [("pillar_roots", &mut self.pillar_roots), ("file_roots", &mut self.file_roots)] {
            if let Some(roots) = node.child(name) {
                *into = Some(roots_of(&roots));
            }
        }
        for (name, mock) in node.child("mocks").iter().flat_map(|mocks| mocks.children("functions and their results")) {
            if name.split('.').count() == 2 {
                self.mocks.insert(name, mock_of(&mock));
            } else {
                mock.error(format!("the mock '{name}' is invalid: expected the name of a function, such as cmd.run"));
            }
        }
        for (path, file) in node.child("files").iter().flat_map(|files| files.children("paths and texts")) {
            match file_of(&file) {
                Some(content) if path.starts_with('/') && !path.split('/').any(|part| part == "..") => {
                    _ = self.files.insert(path, content);
                }
                Some(_) => file.error(format!("the path '{path}' is invalid: expected an absolute path without '..'")),
                None => {}
            }
        }
        for (name, result) in node.child("states").iter().flat_map(|states| states.children("states and results")) {
            if let Some(fields) = result.mapping("a mapping of `result`, `changes` and `comment`") {
                result.known(&["result", "changes", "comment"]);
                self.states.insert(name, fields.clone());
            }
        }
        if let Some(reactor) = node.child("reactor") {
            self.reactor = beside(reactor.value, &node.directory());
        }
    }
}

/// Merges a mapping, or YAML files by paths relative to the test file.
fn add_data(into: &mut Map, node: &Node<'_>) {
    for item in node.items() {
        let more = match item.value {
            Value::Map(map) => map.clone(),
            Value::Str(path) => {
                let path = item.directory().join(path);
                let read = std::fs::read_to_string(&path).map_err(|error| error.to_string());
                let loaded = read.and_then(|text| brine_yaml::load(&text).map_err(|error| error.message));
                match loaded {
                    Ok(Value::Map(map)) => map,
                    Ok(other) => {
                        let got = other.type_name();
                        item.error(format!("{} is invalid: expected a mapping, got {got}", path.display()));
                        continue;
                    }
                    Err(error) => {
                        item.error(format!("reading {} failed: {error}", path.display()));
                        continue;
                    }
                }
            }
            _ => {
                _ = item.mapping("a mapping, or the path of a YAML file with one");
                continue;
            }
        };
        merge(into, &more);
    }
}

fn roots_of(node: &Node<'_>) -> Roots {
    let directory = node.directory();
    let below = |node: &Node<'_>| node.texts().iter().map(|path| directory.join(path)).collect::<Vec<_>>();
    match node.value {
        Value::Map(_) => node.children("").iter().map(|(name, node)| (name.clone(), below(node))).collect(),
        _ => [("base".to_owned(), below(node))].into_iter().collect(),
    }
}

/// Returns the entries of a reactor with relative paths below the directory of the test file.
fn beside(reactor: &Value, directory: &std::path::Path) -> Value {
    match reactor {
        Value::Str(path) if path.starts_with("salt://") || path.starts_with('/') => reactor.clone(),
        Value::Str(path) => std::path::absolute(directory.join(path)).unwrap_or_default().into(),
        Value::List(items) => items.iter().map(|item| beside(item, directory)).collect(),
        Value::Map(map) => {
            map.iter().map(|(key, value)| (key.clone(), beside(value, directory))).collect::<Map>().into()
        }
        other => other.clone(),
    }
}

/// Reads a mock: a value, one call, or a list of calls.
fn mock_of(node: &Node<'_>) -> Mock {
    let is_call = |value: &Value| {
        value.as_map().is_some_and(|map| ["returns", "raises"].iter().any(|key| map.contains_key(*key)))
    };
    let calls = match node.value {
        Value::List(items) if !items.is_empty() && items.iter().all(is_call) => {
            node.items().iter().map(call_of).collect()
        }
        value if is_call(value) => vec![call_of(node)],
        value => vec![Call { answer: Ok(value.clone()), ..Call::default() }],
    };
    Mock { line: node.line(), calls }
}

fn call_of(node: &Node<'_>) -> Call {
    node.known(&["args", "kwargs", "returns", "raises", "times"]);
    let args = node.child("args").map(|args| args.items().iter().map(|item| item.value.clone()).collect());
    let kwargs = node.child("kwargs").and_then(|kwargs| kwargs.mapping("a mapping").cloned());
    let answer = match (node.child("returns"), node.child("raises")) {
        (Some(_), Some(_)) => {
            node.error("only one of 'returns' and 'raises' can be given");
            Ok(Value::Nil)
        }
        (Some(value), None) => Ok(value.value.clone()),
        (None, raises) => Err(raises.and_then(|node| node.text()).unwrap_or_default()),
    };
    let times = node.child("times").and_then(|times| {
        let count = times.value.as_i64().and_then(|count| u64::try_from(count).ok());
        if count.is_none() {
            times.error("'times' is invalid: expected a number of calls");
        }
        count
    });
    Call { args, kwargs, answer, times }
}

fn file_of(node: &Node<'_>) -> Option<FileOnHost> {
    match node.value {
        Value::Map(_) => {
            node.known(&["text", "mode", "directory"]);
            let mode = node.child("mode").and_then(|node| node.text());
            let mode = mode.and_then(|mode| u32::from_str_radix(mode.trim_start_matches("0o"), 8).ok());
            let is_directory = node.child("directory").is_some_and(|node| node.flag());
            let text = node.child("text").and_then(|node| node.text()).unwrap_or_default();
            Some(FileOnHost { text: (!is_directory).then_some(text), mode })
        }
        Value::Nil => Some(FileOnHost { text: Some(String::new()), mode: None }),
        _ => node.text().map(|text| FileOnHost { text: Some(text), mode: None }),
    }
}

//! The format of test files.
//!
//! `reader.rs` reads keys with their lines, `given.rs` what a test gives, `wanted.rs` what it expects.

mod given;
mod reader;
#[cfg(test)]
mod tests;
mod wanted;

use std::path::{Path, PathBuf};

use brine_value::Map;

pub use given::{Call, FileOnHost, Given, Mock};
use reader::Node;
pub use wanted::{Content, Expect, Failure, StateResult};

/// What is wrong in a test file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {message}", path.display())]
pub struct FormatError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The message.
    pub message: String,
}

/// What a test examines.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// SLS files by name.
    Sls(Vec<String>),
    /// The SLS files that the top file assigns.
    Highstate,
    /// Orchestrations by name.
    Orchestrate(Vec<String>),
    /// The reactions to an event.
    Event {
        /// Its tag.
        tag: String,
        /// Its data.
        data: Map,
    },
}

/// One test.
#[derive(Debug, Clone)]
pub struct Test {
    /// The name.
    pub name: String,
    /// The line of the name in the file.
    pub line: usize,
    /// What is examined; `None` for the SLS file with the name of the test file.
    pub subject: Option<Subject>,
    /// The data of the minion.
    pub given: Given,
    /// The expected results.
    pub expect: Expect,
    /// Why the test is not run.
    pub skip: Option<String>,
}

/// A test file.
#[derive(Debug, Clone)]
pub struct TestFile {
    /// The path.
    pub path: PathBuf,
    /// The tests in order.
    pub tests: Vec<Test>,
}

/// The keys of a test that `defaults` may have, too.
const COMMON: [&str; 16] = [
    "sls",
    "highstate",
    "orchestrate",
    "event",
    "id",
    "saltenv",
    "grains",
    "pillar",
    "pillar_roots",
    "file_roots",
    "opts",
    "mocks",
    "files",
    "states",
    "reactor",
    "skip",
];

impl TestFile {
    /// Reads a test file. All errors are returned at once.
    ///
    /// # Errors
    /// The file cannot be read, is not YAML, or has unknown keys or values of wrong types.
    pub fn read(path: &Path) -> Result<Self, Vec<FormatError>> {
        let failed = |line, message| vec![FormatError { path: path.to_owned(), line, message }];
        let text = std::fs::read_to_string(path).map_err(|error| failed(1, format!("reading failed: {error}")))?;
        Self::parse(path, &text)
    }

    /// Parses the text of a test file.
    ///
    /// # Errors
    /// As for [`TestFile::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, Vec<FormatError>> {
        let failed = |line, message| vec![FormatError { path: path.to_owned(), line, message }];
        let located = brine_yaml::load_located(text).map_err(|error| {
            let hint = error.hint(text).map(|hint| format!("; {hint}")).unwrap_or_default();
            failed(error.line, format!("the YAML is invalid: {}{hint}", error.message))
        })?;
        let errors = reader::Errors::new(path);
        let file = Node::root(&located, &errors);
        let mut tests = Vec::new();
        if let Some(keys) = file.mapping("a mapping of `defaults` and `tests`") {
            file.known(&["defaults", "tests"]);
            let defaults = file.child("defaults");
            if let Some(defaults) = defaults.as_ref().filter(|node| node.mapping("a mapping").is_some()) {
                defaults.known(&COMMON);
            }
            if !keys.contains_key("tests") {
                file.error("the key 'tests' is missing: expected a mapping of names and tests");
            }
            let listed = file.child("tests");
            for (name, node) in listed.iter().flat_map(|tests| tests.children("a mapping of names and tests")) {
                tests.extend(test(name, &node, defaults.as_ref()));
            }
        }
        match errors.take() {
            errors if errors.is_empty() => Ok(TestFile { path: path.to_owned(), tests }),
            errors => Err(errors),
        }
    }
}

fn test(name: String, node: &Node<'_>, defaults: Option<&Node<'_>>) -> Option<Test> {
    node.mapping("a mapping of what is given and `expect`")?;
    let keys: Vec<&str> = COMMON.iter().copied().chain(["expect"]).collect();
    node.known(&keys);
    let mut given = Given::default();
    let mut subjects = Vec::new();
    for part in defaults.into_iter().chain([node]) {
        given.add(part);
        let own = subjects_of(part);
        if own.len() > 1 {
            part.error("only one of 'sls', 'highstate', 'orchestrate' and 'event' can be given");
        }
        if !own.is_empty() {
            subjects = own;
        }
    }
    let skip = node.child("skip").or_else(|| defaults.and_then(|node| node.child("skip")));
    let skip = skip.filter(|node| node.value.is_truthy()).map(|node| match node.value.as_str() {
        Some(reason) => reason.to_owned(),
        None => "skip".to_owned(),
    });
    let subject = subjects.pop();
    let expect = if let Some(expect) = node.child("expect") {
        Expect::read(&expect, subject.as_ref())
    } else {
        node.error("the key 'expect' is missing: it says what the test expects, such as `contains` or `snapshot`");
        Expect::default()
    };
    Some(Test { name, line: node.line(), subject, given, expect, skip })
}

fn subjects_of(node: &Node<'_>) -> Vec<Subject> {
    let mut subjects = Vec::new();
    if let Some(sls) = node.child("sls") {
        subjects.push(Subject::Sls(sls.names()));
    }
    if node.child("highstate").is_some_and(|node| node.flag()) {
        subjects.push(Subject::Highstate);
    }
    if let Some(names) = node.child("orchestrate") {
        subjects.push(Subject::Orchestrate(names.names()));
    }
    if let Some(event) = node.child("event")
        && event.mapping("a mapping of `tag` and `data`").is_some()
    {
        event.known(&["tag", "data"]);
        let tag = event.child("tag").and_then(|node| node.text());
        if tag.is_none() {
            event.error("the key 'tag' is missing");
        }
        let data = event.child("data").and_then(|node| node.mapping("a mapping").cloned()).unwrap_or_default();
        subjects.push(Subject::Event { tag: tag.unwrap_or_default(), data });
    }
    subjects
}

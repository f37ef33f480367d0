//! What a test expects.

use brine_value::{Map, Value};
use indexmap::IndexMap;

use super::Subject;
use super::reader::Node;

/// What a test expects. Without [`Expect::failure`], any error fails the test.
#[derive(Debug, Clone, Default)]
pub struct Expect {
    /// All states in the order in which they run.
    pub low: Option<Vec<Value>>,
    /// States that are among them.
    pub contains: Vec<Value>,
    /// Ids without a state.
    pub absent: Vec<String>,
    /// Ids, or `state: id`, in the order in which they run.
    pub order: Vec<Value>,
    /// The content of files by path or id.
    pub content: IndexMap<String, Content>,
    /// The expected error.
    pub failure: Option<Failure>,
    /// Results in test mode, by id.
    pub results: IndexMap<String, StateResult>,
    /// Keys and values that the pillar has.
    pub pillar: Option<Map>,
    /// The reactions in order.
    pub reactions: Option<Vec<Value>>,
    /// Whether the results are those of the stored snapshot.
    pub snapshot: bool,
}

/// The expected content of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// The whole text.
    Whole(String),
    /// Texts that it has, and texts that it has not.
    Parts {
        /// The texts that it has.
        contains: Vec<String>,
        /// The texts that it has not.
        absent: Vec<String>,
    },
}

/// An expected error: it has this text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A part of the message.
    pub text: String,
}

/// The expected result of a state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StateResult {
    /// True, False, or None.
    pub result: Option<Value>,
    /// The changes.
    pub changes: Option<Value>,
    /// A part of the comment.
    pub comment: Option<String>,
}

const OF_STATES: [&str; 9] =
    ["low", "contains", "absent", "order", "content", "error", "results", "pillar", "snapshot"];
const OF_STEPS: [&str; 7] = ["steps", "contains", "absent", "order", "error", "pillar", "snapshot"];
const OF_EVENTS: [&str; 3] = ["reactions", "error", "snapshot"];

impl Expect {
    pub(super) fn read(node: &Node<'_>, subject: Option<&Subject>) -> Self {
        let mut expect = Expect::default();
        if node.value.as_str() == Some("snapshot") {
            expect.snapshot = true;
            return expect;
        }
        if node.mapping("a mapping of expectations, or the word 'snapshot'").is_none() {
            return expect;
        }
        node.known(match subject {
            Some(Subject::Event { .. }) => &OF_EVENTS,
            Some(Subject::Orchestrate(_)) => &OF_STEPS,
            _ => &OF_STATES,
        });
        if node.value.as_map().is_some_and(Map::is_empty) {
            node.error("'expect' is empty: `error: False` expects that everything renders");
        }
        expect.low = node.child("low").or_else(|| node.child("steps")).map(|low| states(&low));
        expect.contains = node.child("contains").map(|part| states(&part)).unwrap_or_default();
        expect.absent = node.child("absent").map(|node| node.texts()).unwrap_or_default();
        expect.order = node.child("order").map(|order| values(&order.list())).unwrap_or_default();
        for (path, child) in node.child("content").iter().flat_map(|files| files.children("paths and texts")) {
            expect.content.insert(path, content(&child));
        }
        expect.failure = node.child("error").filter(|error| *error.value != Value::Bool(false)).map(|error| {
            let is_any = *error.value == Value::Bool(true);
            Failure { text: if is_any { String::new() } else { error.text().unwrap_or_default() } }
        });
        for (id, child) in node.child("results").iter().flat_map(|results| results.children("ids and results")) {
            expect.results.insert(id, result(&child));
        }
        expect.pillar = node.child("pillar").and_then(|pillar| pillar.mapping("a mapping").cloned());
        expect.reactions = node.child("reactions").map(|reactions| values(&reactions.list()));
        expect.snapshot = node.child("snapshot").is_some_and(|node| node.flag());
        expect
    }
}

fn values(nodes: &[Node<'_>]) -> Vec<Value> {
    nodes.iter().map(|node| node.value.clone()).collect()
}

/// Reads states as an SLS file has them: a mapping of ids, or a list of such mappings.
fn states(node: &Node<'_>) -> Vec<Value> {
    let mut states = Vec::new();
    for item in node.items() {
        for (id, body) in item.children("states as in an SLS file") {
            if body.value.as_map().is_none() && body.value.as_str().is_none() {
                body.error(format!("the state '{id}' is invalid: expected `module.function: [arguments]`"));
            }
            states.push(Value::Map([(Value::from(id), body.value.clone())].into_iter().collect()));
        }
    }
    states
}

fn content(node: &Node<'_>) -> Content {
    if node.value.as_map().is_some() {
        node.known(&["contains", "absent"]);
        let texts = |name: &str| node.child(name).map(|node| node.texts()).unwrap_or_default();
        return Content::Parts { contains: texts("contains"), absent: texts("absent") };
    }
    match node.value {
        Value::Nil => Content::Whole(String::new()),
        _ => Content::Whole(node.text().unwrap_or_default()),
    }
}

fn result(node: &Node<'_>) -> StateResult {
    if node.mapping("a mapping of `result`, `changes` and `comment`").is_none() {
        return StateResult::default();
    }
    node.known(&["result", "changes", "comment"]);
    let value = |name: &str| node.child(name).map(|node| node.value.clone());
    StateResult {
        result: value("result"),
        changes: value("changes"),
        comment: node.child("comment").and_then(|node| node.text()),
    }
}

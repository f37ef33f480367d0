//! The context and the result of state functions.
//!
//! A state function compares the host with the desired state, makes the changes unless in test mode, and reports them
//! in a [`StateReturn`].

use std::sync::Arc;

use brine_function::{Args, CallResult, Function};
use brine_value::{Map, Value};

use crate::Context;

/// The context of state functions.
#[derive(Clone)]
pub struct StateContext {
    /// The context for execution functions.
    pub call: Context,
    /// Whether the state only reports what it would change.
    pub test: bool,
    /// The environment of the state's SLS.
    pub saltenv: String,
    /// The state's SLS.
    pub sls: String,
    /// The id of the state.
    pub id: String,
    /// The arguments of the low chunk, for functions that read arguments other than their own. For `mod_watch`,
    /// `__reqs__` contains the triggering states by kind of requisite: `state`, `__id__`, `name` and `changes` of each.
    pub chunk: Arc<Map>,
    /// The states that this one requires, by module and name: `clean` preserves their files.
    pub required: Vec<(String, String)>,
}

impl StateContext {
    /// Calls a state function for this state. It sees its own arguments only: an argument of this state that has the
    /// name of one of its arguments is not passed on.
    ///
    /// # Errors
    /// The function does not exist, its arguments are invalid, or it fails.
    pub fn call_state(&self, function: &str, args: Args) -> CallResult {
        let params = self.call.minion.states.get(function).map(Function::params).unwrap_or_default();
        let mut chunk = args.keyword.clone();
        for (param, value) in params.iter().zip(&args.positional) {
            chunk.insert(param.name.into(), value.clone());
        }
        let context = StateContext { chunk: Arc::new(chunk), ..self.clone() };
        self.call.minion.states.call(&context, function, args)
    }
}

/// The result of a state function.
#[derive(Debug, Clone, PartialEq)]
pub struct StateReturn {
    /// The name of the state.
    pub name: String,
    /// `Some(true)`: success; `Some(false)`: failure; `None`: would change (test mode).
    pub result: Option<bool>,
    /// The comment.
    pub comment: String,
    /// The changes.
    pub changes: Map,
    /// Further fields that some states return: `pchanges`, `warnings`, `skip_watch`, ...
    pub more: Map,
}

impl StateReturn {
    /// Creates a success.
    pub fn ok(name: &str, comment: impl Into<String>) -> Self {
        StateReturn {
            name: name.to_owned(),
            result: Some(true),
            comment: comment.into(),
            changes: Map::new(),
            more: Map::new(),
        }
    }

    /// Creates a failure.
    pub fn failed(name: &str, comment: impl Into<String>) -> Self {
        StateReturn { result: Some(false), ..Self::ok(name, comment) }
    }

    /// Creates the result of a change in test mode.
    pub fn predicted(name: &str, comment: impl Into<String>) -> Self {
        StateReturn { result: None, ..Self::ok(name, comment) }
    }

    /// Sets the changes.
    #[must_use]
    pub fn with_changes(mut self, changes: Map) -> Self {
        self.changes = changes;
        self
    }

    /// Converts the result to a value with a different order of fields, which outputters preserve.
    pub fn in_order(self, order: [&str; 4]) -> Value {
        let mut report = self.into_map();
        for (place, key) in order.into_iter().enumerate() {
            if let Some(index) = report.get_index_of(key) {
                report.move_index(index, place);
            }
        }
        report.into()
    }

    fn into_map(self) -> Map {
        let mut map = brine_value::map! {
            "name" => self.name,
            "changes" => self.changes,
            "result" => self.result,
            "comment" => self.comment,
        };
        map.extend(self.more);
        map
    }
}

impl From<StateReturn> for Value {
    fn from(state: StateReturn) -> Self {
        Value::Map(state.into_map())
    }
}

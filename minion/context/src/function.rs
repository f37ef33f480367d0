//! What state functions get and return.
//!
//! A state function looks at the host, changes what differs, unless it is only asked what it would do, and reports it in
//! a [`StateReturn`].

use std::sync::Arc;

use brine_value::{Map, Value};

use crate::Context;

/// The context of state functions.
#[derive(Clone)]
pub struct StateContext {
    /// What execution functions see.
    pub call: Context,
    /// Whether the state only says what it would do.
    pub test: bool,
    /// The environment of the SLS that the state is from.
    pub saltenv: String,
    /// The SLS that the state is from.
    pub sls: String,
    /// The id of the state.
    pub id: String,
    /// The low chunk's arguments: for functions that look at other ones than their own. When `mod_watch` is
    /// called, `__reqs__` has by kind of requisite which states it came from: `state`, `__id__`, `name` and
    /// `changes` of each.
    pub chunk: Arc<Map>,
    /// The states that this one requires, by module and name: what `clean` keeps.
    pub required: Vec<(String, String)>,
}

/// What a state function has to say.
#[derive(Debug, Clone, PartialEq)]
pub struct StateReturn {
    /// The name that the state is about.
    pub name: String,
    /// `Some(true)`: as it should be; `Some(false)`: failed; `None`: would change (test mode).
    pub result: Option<bool>,
    /// What was done, in words.
    pub comment: String,
    /// What changed.
    pub changes: Map,
    /// Further keys that some states return: `pchanges`, `warnings`, `skip_watch`, ...
    pub more: Map,
}

impl StateReturn {
    /// All is as it should be.
    pub fn ok(name: &str, comment: impl Into<String>) -> Self {
        StateReturn {
            name: name.to_owned(),
            result: Some(true),
            comment: comment.into(),
            changes: Map::new(),
            more: Map::new(),
        }
    }

    /// The state could not be reached.
    pub fn failed(name: &str, comment: impl Into<String>) -> Self {
        StateReturn { result: Some(false), ..Self::ok(name, comment) }
    }

    /// Something would change if this were no test.
    pub fn would(name: &str, comment: impl Into<String>) -> Self {
        StateReturn { result: None, ..Self::ok(name, comment) }
    }

    /// With these changes.
    #[must_use]
    pub fn with_changes(mut self, changes: Map) -> Self {
        self.changes = changes;
        self
    }

    /// As a value with its entries in another order than most states have: returns are shown in their order.
    pub fn in_order(self, order: [&str; 4]) -> Value {
        let mut told = self.into_map();
        for (place, key) in order.into_iter().enumerate() {
            if let Some(index) = told.get_index_of(key) {
                told.move_index(index, place);
            }
        }
        told.into()
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

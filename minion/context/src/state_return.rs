//! The result of state functions.
//!
//! A state function compares the host with the desired state, makes the changes unless in test mode, and reports them
//! in a [`StateReturn`].

use brine_value::{Map, Value};

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

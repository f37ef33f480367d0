//! Returns of state runs: how many states failed, changed, or would change.

use brine_value::{Map, Value, map};

/// The result of a state run of a minion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateRun {
    /// The job id.
    pub jid: String,
    /// The time of the return, in microseconds since 1970.
    pub time: u64,
    /// Whether it was a run with `test=True`.
    pub is_test: bool,
    /// Whether the run succeeded.
    pub is_good: bool,
    /// The number of states.
    pub states: u32,
    /// The number of states that failed.
    pub failed: u32,
    /// The number of states that changed something.
    pub changed: u32,
    /// The number of states that would change something.
    pub pending: u32,
}

impl StateRun {
    /// Returns the run as the views show it.
    pub fn to_value(&self) -> Map {
        map! {
            "jid" => self.jid.as_str(),
            "time" => self.time,
            "test" => self.is_test,
            "success" => self.is_good,
            "states" => self.states,
            "failed" => self.failed,
            "changed" => self.changed,
            "pending" => self.pending,
        }
    }

    /// Counts the states of a return and calls `failed` with each that failed: its key and its data. A return without
    /// states, such as a list of errors, has none.
    pub(super) fn add(&mut self, value: &Value, mut failed: impl FnMut(&str, &Map)) {
        for (key, state) in value.as_map().into_iter().flatten() {
            let (Some(key), Some(state)) = (key.as_str().filter(|key| key.contains("_|-")), state.as_map()) else {
                continue;
            };
            self.states += 1;
            let has_changes = state.get("changes").is_some_and(Value::is_truthy);
            match state.get("result") {
                Some(Value::Bool(false)) => {
                    self.failed += 1;
                    failed(key, state);
                }
                None | Some(Value::Nil) => self.pending += 1,
                _ if has_changes => self.changed += 1,
                _ => {}
            }
        }
    }
}

/// Returns whether a function with these arguments applies the highstate, and whether it only tests.
pub(super) fn highstate(function: &str, arguments: &[Value]) -> Option<bool> {
    if !matches!(function, "state.apply" | "state.highstate") {
        return None;
    }
    let mut is_test = false;
    for argument in arguments {
        match argument {
            Value::Map(named) if named.contains_key("__kwarg__") => {
                is_test |= named.get("test").is_some_and(Value::is_truthy);
                if named.get("mods").is_some_and(Value::is_truthy) {
                    return None;
                }
            }
            Value::Str(text) if text.starts_with("test=") => is_test |= text.eq_ignore_ascii_case("test=true"),
            Value::Str(text) if text.contains('=') && !text.starts_with("mods=") => {}
            _ if function == "state.apply" => return None,
            _ => {}
        }
    }
    Some(is_test)
}

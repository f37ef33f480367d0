//! Finds the failed states in the return of a state run or orchestration.

use brine_value::{Map, Value};

use brine_rules::excerpt;

/// The maximum number of failed states of one job.
pub(crate) const FAILED_STATES: usize = 20;
/// The depth to which returns are searched: an orchestration has its states below `data` and the master's id.
const DEPTH: usize = 3;

/// A failed state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailedState {
    pub id: String,
    pub comment: String,
}

impl FailedState {
    pub fn text(&self) -> String {
        format!("{}: {}", self.id, self.comment)
    }
}

/// Returns the failed states of a return, in the order of the run.
pub(crate) fn failed_states(returned: &Value) -> Vec<FailedState> {
    let mut states = Vec::new();
    collect(returned, DEPTH, &mut states);
    states.sort_by_key(|(number, _)| *number);
    states.into_iter().map(|(_, state)| state).take(FAILED_STATES).collect()
}

fn collect(value: &Value, depth: usize, states: &mut Vec<(i64, FailedState)>) {
    let Some(map) = value.as_map() else { return };
    for (key, inner) in map {
        let Some(state) = inner.as_map() else { continue };
        if !is_state(state) {
            if depth > 0 {
                collect(inner, depth - 1, states);
            }
        } else if state.get("result").and_then(Value::as_bool) == Some(false) {
            let number = state.get("__run_num__").and_then(Value::as_i64).unwrap_or(i64::MAX);
            states.push((number, failed(&key.to_string(), state)));
        }
    }
}

fn is_state(map: &Map) -> bool {
    ["result", "comment", "changes"].iter().all(|name| map.contains_key(*name))
}

fn failed(key: &str, state: &Map) -> FailedState {
    // `module_|-id_|-name_|-function`
    let id = state.get("__id__").map(ToString::to_string).or_else(|| key.split("_|-").nth(1).map(str::to_owned));
    let comment = state.get("comment").map(ToString::to_string).unwrap_or_default();
    FailedState {
        id: excerpt(&id.unwrap_or_else(|| key.to_owned())),
        comment: excerpt(comment.lines().next().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn failed_states_are_found_in_runs_and_orchestrations() {
        let state = |result: bool, number: i64, comment: &str| {
            map! {"result" => result, "comment" => comment, "changes" => map! {}, "__run_num__" => number}
        };
        let run = map! {
            "file_|-b_|-/b_|-managed" => state(false, 2, "second\nmore"),
            "file_|-a_|-/a_|-managed" => state(false, 0, "first"),
            "file_|-c_|-/c_|-managed" => state(true, 1, "fine"),
        };
        let orchestration =
            map! {"data" => map! {"m_master" => run.clone()}, "outputter" => "highstate", "retcode" => 1};
        for (returned, expected) in [
            (Value::from(run), &["a: first", "b: second"][..]),
            (orchestration.into(), &["a: first", "b: second"]),
            (list!["Rendering SLS failed"], &[]),
            (map! {"x" => map! {"result" => false}}.into(), &[]),
        ] {
            let actual: Vec<_> = failed_states(&returned).iter().map(FailedState::text).collect();
            assert_eq!(actual, expected);
        }
    }
}

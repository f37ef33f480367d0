//! `state_compress_ids`: merges states of one id with the same result.

use std::borrow::Cow;

use brine_value::{Map, Value};
use indexmap::IndexMap;

use super::state::State;

/// Merges each group of states at the position of its first one. A single state is unchanged.
pub fn compress(states: Vec<State<'_>>) -> Vec<State<'_>> {
    let mut groups: IndexMap<_, Vec<State>> = IndexMap::new();
    for state in states {
        let key = (state.module, state.function, state.id.clone(), sls(&state), state.result);
        groups.entry(key).or_default().push(state);
    }
    groups.into_values().filter_map(join).collect()
}

fn sls(state: &State) -> String {
    state.data.get("__sls__").map(Value::to_string).unwrap_or_default()
}

fn join(mut group: Vec<State<'_>>) -> Option<State<'_>> {
    if group.len() < 2 {
        return group.pop();
    }
    let mut changes = Map::new();
    for state in group.iter().filter(|state| state.changes.is_truthy()) {
        changes.insert(Value::from(state.name.as_ref()), state.changes.clone().into_owned());
    }
    let mut joined = group.first()?.clone();
    joined.count = group.len();
    joined.name = Cow::Owned(format!("state_compressed_{}_{}_{}", sls(&joined), joined.id, joined.result));
    joined.id = Cow::Owned(format!("{} ({})", joined.id, joined.count));
    joined.changes = Cow::Owned(if changes.is_empty() {
        Value::map()
    } else {
        Value::Map([(Value::from("compressed changes"), Value::Map(changes))].into_iter().collect())
    });
    joined.duration = Some(Cow::Owned(total_duration(&group)));
    Some(joined)
}

/// Returns the sum of the durations; an integer if all of them are.
fn total_duration(group: &[State]) -> Value {
    let whole: Option<i64> = group.iter().map(|state| state.duration.as_deref().and_then(Value::as_i64)).sum();
    whole.map_or_else(|| Value::Float(group.iter().map(State::milliseconds).sum()), Value::Int)
}

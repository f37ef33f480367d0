//! Merges the results of states that another state has run itself into the results of the run.

use brine_sls::compile::Chunk;
use brine_value::{Map, Value, map};

use crate::result_fields::{Clock, sls_of};

/// The field of a result with the results of the states that the state has run itself.
pub(super) const SUB_STATES: &str = "sub_state_run";

/// Returns the results of the states that a state has run itself, by tag, in the form of the run's own results.
/// `next_number` returns the next run number, and increments it.
pub(super) fn results(chunk: &Chunk, parts: &Value, mut next_number: impl FnMut() -> i64) -> Map {
    let mut results = Map::new();
    for part in parts.as_list().unwrap_or_default().iter().filter_map(Value::as_map) {
        let low = part.get(&Value::from("low")).cloned().unwrap_or_default();
        let word = |key: &str| low.get(key).map(ToString::to_string).unwrap_or_default();
        let tag = [word("state"), word("__id__"), word("name"), word("fun")].join("_|-");
        let field = |key: &str| part.get(&Value::from(key)).cloned().unwrap_or_default();
        let mut result = map! {
            "name" => chunk.written_name(),
            "changes" => field("changes"),
            "result" => field("result"),
            "comment" => field("comment"),
            "__state_ran__" => true,
            // As in Salt, the number of the following state.
            "__run_num__" => next_number() + 1,
            "__sls__" => sls_of(chunk),
            "__id__" => &chunk.id,
        };
        Clock::start().write(&mut result);
        results.insert(tag.into(), result.into());
    }
    results
}

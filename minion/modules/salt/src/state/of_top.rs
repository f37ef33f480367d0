//! The highstate: the states that top files assign to this minion.

use brine_context::Context;
use brine_function::CallError;
use brine_sls::compile::HighData;
use brine_state::{Options, StateRun, Top};
use brine_value::{Map, Value, map};

use super::{dynamic, ran, started_with};

/// The comment on a highstate that nothing assigns states to.
const WITHOUT_TOP: &str = "No Top file or master_tops data matches found. Please see master log for details.\n  hint: no \
                           top file assigns SLS files: write top.sls in file_roots, or name SLS files, as in state.apply webserver";

/// Applies the states of a top file for this minion.
pub(super) fn of_top_file(context: &Context, options: Options) -> Result<Value, CallError> {
    dynamic::autoload(context);
    let run = match started_with(context, options) {
        Ok(run) => run,
        Err(errors) => return brine_state::errors(context, errors),
    };
    match of_top(&run) {
        Ok(TopData::Nothing(reason)) => {
            context.set_retcode(2);
            Ok(no_states(reason.as_deref().unwrap_or(WITHOUT_TOP)).into())
        }
        Ok(TopData::High(high)) if high.states.is_empty() && high.extend.is_empty() && high.exclude.is_empty() => {
            context.set_retcode(2);
            Ok(no_states("No states found for this minion").into())
        }
        Ok(TopData::High(high)) => ran(context, &run, run.compile(high)),
        Err(errors) => brine_state::errors(context, errors),
    }
}

/// What the top files assign to this minion.
pub(super) enum TopData {
    /// The high data of the highstate.
    High(HighData),
    /// No SLS files, and the reason if there is a top file.
    Nothing(Option<String>),
}

/// Returns the high data of the highstate.
pub(super) fn of_top(run: &StateRun) -> Result<TopData, Vec<String>> {
    let Top { matches, errors, nothing, .. } = run.top();
    if errors.is_empty() && matches.is_empty() {
        return Ok(TopData::Nothing(nothing));
    }
    // Report the errors of the top file together with those of its SLS files.
    match (run.high(&matches), errors.is_empty()) {
        (Ok(high), true) => Ok(TopData::High(high)),
        (Ok(_), false) => Err(errors),
        (Err(more), _) => Err(errors.into_iter().chain(more).collect()),
    }
}

/// Returns the result of a highstate without states.
fn no_states(comment: &str) -> Map {
    let entry = map! {
        "result" => false,
        "comment" => comment,
        "name" => "No States",
        "changes" => map! {},
        "__run_num__" => 0,
    };
    map! {"no_|-states_|-states_|-None" => entry}
}

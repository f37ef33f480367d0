//! Suggestions for misspelt names of functions and states, behind Salt's own message.

use brine_function::{CallError, Registry};

use crate::{Minion, StateContext};

/// The message about an execution function that is not available.
pub fn not_available(minion: &Minion, name: &str) -> String {
    let error = CallError::NotAvailable(name.to_owned());
    if minion.functions.get(name).is_none() && minion.states.get(name).is_some() {
        return format!("{error} It is a state: call state.single with {name} and its arguments");
    }
    minion.functions.nearest(name).map_or_else(|| error.to_string(), |near| format!("{error} Did you mean '{near}'?"))
}

/// The message about a state function that is not available.
pub fn no_state(states: &Registry<StateContext>, name: &str) -> String {
    let error = CallError::NotAvailable(name.to_owned());
    states.nearest(name).map_or_else(|| error.to_string(), |near| format!("{error} Did you mean '{near}'?"))
}

/// The message about a state function that `state.single` and its like do not find.
pub fn no_single_state(states: &Registry<StateContext>, name: &str) -> String {
    let hint = states.nearest(name).map(|near| format!(": did you mean '{near}'?")).unwrap_or_default();
    format!("Specified state '{name}' was not found{hint}")
}

//! Suggestions for misspelt names of functions and states, appended to Salt's message.

use brine_function::{CallError, Registry};

use crate::{Minion, StateContext};

/// Returns the message about an unavailable execution function.
pub fn not_available(minion: &Minion, name: &str) -> String {
    let error = CallError::NotAvailable(name.to_owned());
    let module = name.split('.').next().unwrap_or_default();
    if let Some(reason) = minion.custom.failure("modules", module) {
        return reason;
    }
    if minion.functions.get(name).is_none() && minion.states.get(name).is_some() {
        return format!("{error} It is a state: call state.single with {name} and its arguments");
    }
    minion.functions.nearest(name).map_or_else(|| error.to_string(), |near| format!("{error} Did you mean '{near}'?"))
}

/// Returns the message about an unavailable state function.
pub fn no_state(states: &Registry<StateContext>, name: &str) -> String {
    let error = CallError::NotAvailable(name.to_owned());
    states.nearest(name).map_or_else(|| error.to_string(), |near| format!("{error} Did you mean '{near}'?"))
}

/// Returns the message about a state function that `state.single` and similar functions cannot find.
pub fn no_single_state(states: &Registry<StateContext>, name: &str) -> String {
    let hint = states.nearest(name).map(|near| format!(": did you mean '{near}'?")).unwrap_or_default();
    format!("Specified state '{name}' was not found{hint}")
}

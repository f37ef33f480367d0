//! Suggestions for misspelt names of functions and states, behind Salt's own message.

use brine_function::{CallError, Registry};

use crate::context::Minion;
use crate::state::StateContext;

/// The message about an execution function that is not available.
pub fn not_available(minion: &Minion, name: &str) -> String {
    let error = CallError::NotAvailable(name.to_owned());
    if minion.functions.get(name).is_none() && minion.states.get(name).is_some() {
        return format!("{error} It is a state: call state.single with {name} and its arguments");
    }
    minion.functions.nearest(name).map_or_else(|| error.to_string(), |near| format!("{error} Did you mean '{near}'?"))
}

/// The message about a state function that is not available.
pub(crate) fn no_state(states: &Registry<StateContext>, name: &str) -> String {
    let error = CallError::NotAvailable(name.to_owned());
    states.nearest(name).map_or_else(|| error.to_string(), |near| format!("{error} Did you mean '{near}'?"))
}

/// The message about a state function that `state.single` and its like do not find.
pub(crate) fn no_single_state(states: &Registry<StateContext>, name: &str) -> String {
    let hint = states.nearest(name).map(|near| format!(": did you mean '{near}'?")).unwrap_or_default();
    format!("Specified state '{name}' was not found{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn similar_names_are_suggested() {
        let minion = testing::minion(&[]);
        for (name, message) in [
            ("test.pingg", "'test.pingg' is not available. Did you mean 'test.ping'?"),
            ("pkg.instal", "'pkg.instal' is not available. Did you mean 'pkg.install'?"),
            ("no.such", "'no.such' is not available."),
            ("ping", "'ping' is not available."),
            ("", "'' is not available."),
            (
                "file.managed",
                "'file.managed' is not available. It is a state: call state.single with file.managed and its arguments",
            ),
        ] {
            assert_eq!(not_available(&minion, name), message);
        }
        for (name, message) in [
            ("file.managd", "'file.managd' is not available. Did you mean 'file.managed'?"),
            ("file.nosuch", "'file.nosuch' is not available."),
            ("nosuch.thing", "'nosuch.thing' is not available."),
        ] {
            assert_eq!(no_state(&minion.states, name), message);
        }
        let single = |name| no_single_state(&minion.states, name);
        assert_eq!(single("file.managd"), "Specified state 'file.managd' was not found: did you mean 'file.managed'?");
        assert_eq!(single("no.such"), "Specified state 'no.such' was not found");
    }
}

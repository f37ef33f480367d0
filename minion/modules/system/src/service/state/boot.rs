//! Enabling and disabling services at boot.

use brine_context::{StateContext, StateReturn};
use brine_function::CallError;
use brine_value::{Map, map};

use super::Services;
use crate::service::ServiceOptions;

/// Outcome of enabling or disabling a service: `changes`, if present, replace the earlier ones.
pub(super) struct BootOutcome {
    result: Option<bool>,
    comment: String,
    changes: Option<Map>,
}

/// Returns the result of a state, updated by the outcome.
pub(super) fn apply(mut state: StateReturn, toggled: BootOutcome) -> StateReturn {
    state.result = toggled.result;
    state.comment = toggled.comment;
    if let Some(changes) = toggled.changes {
        state.changes = changes;
    }
    state
}

/// Enables or disables a service. `runs` is the state that was ensured before, if any, and `result` whether that
/// succeeded.
pub(super) fn toggle(
    services: &dyn Services,
    context: &StateContext,
    name: &str,
    enable: bool,
    runs: Option<bool>,
    result: bool,
    how: ServiceOptions,
) -> Result<BootOutcome, CallError> {
    let report = |result, comment, changes| BootOutcome { result, comment, changes };
    if !services.is_available(&context.call, name)? {
        return Ok(report(Some(!enable), format!("The named service {name} is not available"), None));
    }
    let word = if enable { "enabled" } else { "disabled" };
    let now = match runs {
        Some(true) => "is running",
        Some(false) => "is dead",
        None => "is in the desired state",
    };
    if services.is_enabled(&context.call, name)? == enable {
        let comment = format!("Service {name} is already {word}, and {now}");
        return Ok(report(Some(result), comment, runs.is_none().then(Map::new)));
    }
    if context.test {
        return Ok(report(None, format!("Service {name} set to be {word}"), None));
    }
    let (acted, problem) = match services.act(&context.call, if enable { "enable" } else { "disable" }, name, how) {
        Ok(acted) => (acted, None),
        Err(CallError::Execution(problem)) if enable => (false, Some(problem)),
        Err(error) => return Err(error),
    };
    if acted {
        let changes = if services.is_enabled(&context.call, name)? == enable {
            map! {name => true}
        } else {
            Map::new()
        };
        return Ok(report(Some(result), format!("Service {name} has been {word}, and {now}"), Some(changes)));
    }
    let boot = if enable { "to start at boot" } else { "to not start at boot" };
    let state = match runs {
        Some(true) if enable => ", but the service is running",
        Some(true) => ", and is running",
        None => ", but the service was already running",
        Some(false) => ", and the service is dead",
    };
    let mut comment = format!("Failed when setting service {name} {boot}{state}");
    if let Some(problem) = problem.filter(|problem| !problem.is_empty()) {
        comment = format!("{comment}. Additional information follows:\n\n{problem}");
    }
    Ok(report(Some(false), comment, None))
}

/// Ensures that a service is enabled or disabled.
pub(super) fn state(
    services: &dyn Services,
    context: &StateContext,
    name: &str,
    enable: bool,
    how: ServiceOptions,
) -> Result<StateReturn, CallError> {
    if enable && context.test && !services.is_available(&context.call, name)? {
        let comment = format!("Service {name} not present; if created in this state run, it would have been enabled");
        return Ok(StateReturn::predicted(name, comment));
    }
    Ok(apply(StateReturn::ok(name, ""), toggle(services, context, name, enable, None, true, how)?))
}

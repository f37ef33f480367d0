//! `supervisord`: states of processes of supervisord.

use std::collections::BTreeSet;

use brine_context::{StateContext, StateReturn};
use brine_function::{CallError, CallResult, Functions, Others, ParamList, function, registry};
use brine_value::{Map, Value, map};

use super::{Control, without_star};

/// State functions of `supervisord`.
pub static FUNCTIONS: Functions<StateContext> = registry!("supervisord", [running, dead, mod_watch]);

/// Ensure that a process or group (`group:`) is running. With `restart`, it is restarted; with `update`, the
/// configuration is reloaded.
///
/// SLS Example:
///
///     app:
///       supervisord.running:
///         - update: True
///         - watch:
///           - file: /etc/supervisor/conf.d/app.conf
#[function]
pub fn running(
    context: &StateContext,
    /// Name of the process, or of a group with a colon at its end.
    name: String,
    /// Whether a running process is restarted.
    #[default(false)]
    restart: bool,
    /// Whether the configuration is reloaded first.
    #[default(false)]
    update: bool,
    #[args] control: Control,
    #[keywords(further_running)] _kwargs: Map,
) -> CallResult {
    Ok(started(context, &control, without_star(&name), restart, update)?.into())
}

/// Ensure that a process or group (`group:`) is not running.
///
/// SLS Example:
///
///     app:
///       supervisord.dead: []
#[function]
pub fn dead(
    context: &StateContext,
    /// Name of the process, or of a group with a colon at its end.
    name: String,
    #[args] control: Control,
    #[keywords(further_running)] _kwargs: Map,
) -> CallResult {
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("Service {name} is set to be stopped")).into());
    }
    let all = Processes::read(&control, context)?;
    let is_stopped = match all.matching(&name)[..] {
        [] => return Ok(StateReturn::ok(&name, format!("Service {name} doesn't exist")).into()),
        ref processes => processes.iter().any(|(_, state)| is_stopped(state)),
    };
    if is_stopped {
        return Ok(StateReturn::ok(&name, format!("Service {name} is not running")).into());
    }
    let comment = format!("Stopping service: {name}");
    let output = control.run(&context.call, &["stop", &name])?;
    let report = checked(&name, &output, &comment);
    Ok(report.with_changes(map! {name.as_str() => comment}).into())
}

/// Restart a process or group whose watched state has changed.
///
/// SLS Example:
///
///     app:
///       supervisord.running:
///         - watch:
///           - file: /etc/supervisor/conf.d/app.conf
#[function]
pub fn mod_watch(
    context: &StateContext,
    /// Name of the process, or of a group with a colon at its end.
    name: String,
    /// Whether the process is restarted.
    #[default(true)]
    restart: bool,
    /// Whether the configuration is reloaded first.
    #[default(false)]
    update: bool,
    #[args] control: Control,
    /// Further arguments of the watching state.
    #[keywords]
    _kwargs: Map,
) -> CallResult {
    Ok(started(context, &control, without_star(&name), restart, update)?.into())
}

/// The processes with their states.
struct Processes(Vec<(String, String)>);

impl Processes {
    fn read(control: &Control, context: &StateContext) -> Result<Self, CallError> {
        let state = |about: &Value| about.get("state").map(ToString::to_string).unwrap_or_default();
        let all = control.processes(&context.call, None)?;
        Ok(Processes(all.into_iter().map(|(name, about)| (name.to_string(), state(&about))).collect()))
    }

    /// Returns the process with this name, or the processes of a group (`group:`).
    fn matching(&self, name: &str) -> Vec<&(String, String)> {
        let exact: Vec<_> = self.0.iter().filter(|(process, _)| process == name).collect();
        let groups: BTreeSet<&str> =
            self.0.iter().filter_map(|(process, _)| Some(&process[..=process.find(':')?])).collect();
        if exact.is_empty() && groups.contains(name) {
            return self.0.iter().filter(|(process, _)| process.starts_with(name)).collect();
        }
        exact
    }
}

fn is_stopped(state: &str) -> bool {
    matches!(state, "STOPPED" | "STOPPING" | "EXITED" | "FATAL" | "BACKOFF")
}

fn started(
    context: &StateContext,
    control: &Control,
    name: &str,
    restart: bool,
    update: bool,
) -> Result<StateReturn, CallError> {
    let all = Processes::read(control, context)?;
    let processes = all.matching(name);
    if context.test {
        return Ok(planned(name, &processes));
    }
    let of = match (&processes[..], name.ends_with(':')) {
        ([], _) => "",
        (_, true) => " group",
        (_, false) => " service",
    };
    let (mut comments, mut report, mut is_updated) = (Vec::new(), StateReturn::ok(name, ""), false);
    if update {
        let output = control.run(&context.call, &["update"])?;
        report = checked(name, &output, "Updating supervisor");
        is_updated = output.contains(&format!("{name}: updated"));
    } else if processes.is_empty() {
        let comment = format!("Adding service: {name}");
        control.run(&context.call, &["reread"])?;
        report = checked(name, &control.run(&context.call, &["add", name.trim_end_matches(':')])?, &comment);
        comments.push(comment);
    }
    let needs_start = processes.is_empty() || processes.iter().any(|(_, state)| is_stopped(state));
    if is_updated {
        report.comment = format!("Not starting updated{of}: {name}");
    } else if !needs_start && !restart {
        report.comment = format!("Not starting already running{of}: {name}");
    } else {
        let (verb, word) = if needs_start { ("Starting", "start") } else { ("Restarting", "restart") };
        let comment = format!("{verb}{of}: {name}");
        report = checked(name, &control.run(&context.call, &[word, name])?, &comment);
        comments.push(comment);
    }
    if report.result == Some(true) && !comments.is_empty() {
        report.changes = map! {name => comments.join(" ")};
    }
    Ok(report)
}

/// Returns the prediction of `supervisord.running` in test mode.
fn planned(name: &str, processes: &[&(String, String)]) -> StateReturn {
    let is_group = name.ends_with(':');
    let waiting: Vec<&str> =
        processes.iter().filter(|(_, state)| state != "RUNNING").map(|(process, _)| process.as_str()).collect();
    match (processes.is_empty(), waiting.is_empty(), is_group) {
        (true, _, true) => StateReturn::predicted(name, format!("Group '{name}' will be added and started")),
        (true, _, false) => StateReturn::predicted(name, format!("Service {name} will be added and started")),
        (_, true, true) => StateReturn::ok(name, format!("All services in group '{name}' are already running")),
        (_, true, false) => StateReturn::ok(name, format!("Service {name} is already running")),
        (_, false, true) if waiting.len() == processes.len() => {
            StateReturn::predicted(name, format!("All services in group '{name}' will be started"))
        }
        (_, false, true) => {
            StateReturn::predicted(name, format!("The following services will be started: {}", waiting.join(" ")))
        }
        (_, false, false) => StateReturn::predicted(name, format!("Service {name} will be started")),
    }
}

/// Returns the result for the output of a command: an error fails the state, unless it means that there was nothing to
/// do.
fn checked(name: &str, output: &str, success: &str) -> StateReturn {
    let is_harmless = ["already started", "already active", "not running"].iter().any(|words| output.contains(words));
    if output.contains("ERROR") && !is_harmless {
        return StateReturn::failed(name, output);
    }
    StateReturn::ok(name, success)
}

/// Describes the further arguments of `supervisord.running`.
pub(crate) fn further_running(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further("runas", "a string", "Without effect: the account is called `user`.");
}

#[cfg(test)]
mod tests;

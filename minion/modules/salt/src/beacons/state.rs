//! `beacon`: states of beacons.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

/// State functions of `beacon`.
pub static FUNCTIONS: Functions<StateContext> = registry!("beacon", [present, absent, enabled, disabled]);

/// Ensure that a beacon is configured with these options; `save` also stores it for the next start.
///
/// SLS Example:
///
///     disk_usage:
///       beacon.present:
///         - beacon_module: diskusage
///         - save: True
///         - interval: 60
///         - /: 80%
#[function]
pub fn present(
    context: &StateContext,
    /// Name of the beacon.
    name: String,
    /// Whether the change is stored for the next start of the minion.
    #[default(false)]
    save: bool,
    /// The options of the beacon, as in the minion's configuration.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let data: Value = kwargs.iter().map(|(key, value)| Value::from(map! {key.to_string() => value.clone()})).collect();
    let mut outcome = Report::new(&name);
    let arguments = || map! {"name" => &name, "beacon_data" => data.clone(), "test" => context.test};
    match current(context)?.get(name.as_str()) {
        Some(current) if *current == data => outcome.add_comment(format!("Job {name} in correct state")),
        Some(_) => {
            let report = call(context, "modify", arguments())?;
            if let Some(Value::Map(changes)) = report.get("changes") {
                outcome.0.changes.clone_from(changes);
            }
            outcome.take(context, &report, format!("Modifying {name} in beacons"));
        }
        None => outcome.take(context, &call(context, "add", arguments())?, format!("Adding {name} to beacons")),
    }
    outcome.saved(context, save)
}

/// Ensure that a beacon is not configured; `save` also removes it from the next start.
///
/// SLS Example:
///
///     disk_usage:
///       beacon.absent:
///         - save: True
#[function]
pub fn absent(
    context: &StateContext,
    /// Name of the beacon.
    name: String,
    /// Whether the change is stored for the next start of the minion.
    #[default(false)]
    save: bool,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    let mut outcome = Report::new(&name);
    if current(context)?.contains_key(name.as_str()) {
        let report = call(context, "delete", map! {"name" => &name, "test" => context.test})?;
        outcome.take(context, &report, format!("Removed {name} from beacons"));
    } else {
        outcome.add_comment(format!("{name} not configured in beacons"));
    }
    outcome.saved(context, save)
}

/// Ensure that a beacon is enabled.
///
/// SLS Example:
///
///     disk_usage:
///       beacon.enabled: []
#[function]
pub fn enabled(
    context: &StateContext,
    /// Name of the beacon.
    name: String,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    let mut outcome = Report::new(&name);
    if current(context)?.contains_key(name.as_str()) {
        let report = call(context, "enable_beacon", map! {"name" => &name, "test" => context.test})?;
        outcome.take(context, &report, format!("Enabled {name} from beacons"));
    } else {
        outcome.add_comment(format!("{name} not a configured beacon"));
    }
    outcome.saved(context, false)
}

/// Ensure that a beacon is disabled.
///
/// SLS Example:
///
///     disk_usage:
///       beacon.disabled: []
#[function]
pub fn disabled(
    context: &StateContext,
    /// Name of the beacon.
    name: String,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    let mut outcome = Report::new(&name);
    if current(context)?.contains_key(name.as_str()) {
        let report = call(context, "disable_beacon", map! {"name" => &name, "test" => context.test})?;
        outcome.take(context, &report, format!("Disabled beacon {name}."));
    } else {
        outcome.add_comment(format!("Job {name} is not configured."));
    }
    outcome.saved(context, false)
}

fn call(context: &StateContext, function: &str, arguments: Map) -> Result<Value, CallError> {
    context.call.call(&format!("beacons.{function}"), Args::keyword(arguments))
}

fn current(context: &StateContext) -> Result<Map, CallError> {
    let listed = call(context, "list", map! {"return_yaml" => false})?;
    Ok(listed.as_map().cloned().unwrap_or_default())
}

/// The result of a state, with a comment of several lines.
struct Report(StateReturn);

impl Report {
    fn new(name: &str) -> Self {
        Report(StateReturn::ok(name, ""))
    }

    fn add_comment(&mut self, comment: impl AsRef<str>) {
        if !self.0.comment.is_empty() {
            self.0.comment.push('\n');
        }
        self.0.comment.push_str(comment.as_ref());
    }

    /// Takes over the result of the execution function: its comment if it failed or this is test mode.
    fn take(&mut self, context: &StateContext, answer: &Value, success: String) {
        let result = answer.get("result").is_some_and(Value::is_truthy);
        self.0.result = Some(result);
        let comment = || answer.get("comment").map(ToString::to_string).unwrap_or_default();
        self.add_comment(if context.test || !result { comment() } else { success });
    }

    fn saved(mut self, context: &StateContext, save: bool) -> Result<Value, CallError> {
        if save && self.0.result == Some(true) {
            let name = self.0.name.clone();
            if context.test {
                self.add_comment(format!("Beacon {name} would be saved"));
            } else {
                let report = call(context, "save", Map::new())?;
                self.take(context, &report, format!("Beacon {name} saved"));
            }
        }
        Ok(self.0.into())
    }
}

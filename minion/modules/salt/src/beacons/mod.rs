//! `beacons`: queries and changes the beacons of a running minion over its local event bus.

pub(crate) mod state;

use std::time::Duration;

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::files;
use brine_system::user_files;
use brine_value::{FromValue, Map, Value, map};
use brine_yaml::Style;

use brine_modules_files::file::unified;

/// Timeout for replies of the running minion, in seconds.
const TIMEOUT: u64 = 60;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `beacons`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "beacons",
    [list, list_available, add, modify, delete, save, enable, disable, enable_beacon, disable_beacon, reset]
);

/// Return the configured beacons, as YAML or as a mapping: those of the pillar and of the configuration, or of one
/// of them.
///
/// CLI Example:
///
///     salt '*' beacons.list
#[function]
pub fn list(
    context: &Context,
    /// Whether the result is YAML text instead of a mapping.
    #[default(true)]
    return_yaml: bool,
    /// Whether beacons of the pillar are listed.
    #[default(true)]
    include_pillar: bool,
    /// Whether beacons of the configuration are listed.
    #[default(true)]
    include_opts: bool,
    /// `timeout`: seconds to wait for the minion's answer; `test`: whether nothing is changed.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let listed = listed(context, include_pillar, include_opts, &kwargs)?;
    Ok(format_beacons(listed.map_or(Value::Nil, Value::Map), return_yaml))
}

/// Return the names of available beacons.
///
/// CLI Example:
///
///     salt '*' beacons.list_available
#[function]
pub fn list_available(
    context: &Context,
    /// Whether the result is YAML text instead of a mapping.
    #[default(true)]
    return_yaml: bool,
    /// `timeout`: seconds to wait for the minion's answer; `test`: whether nothing is changed.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let names = available(context, &kwargs)?;
    if names.is_empty() {
        return Ok(map! {"beacons" => Value::map()}.into());
    }
    Ok(format_beacons(names.into_iter().collect(), return_yaml))
}

/// Add a beacon. It is lost when the minion stops, unless `beacons.save` stores it.
///
/// CLI Example:
///
///     salt '*' beacons.add ps "[{'processes': {'salt-master': 'stopped', 'apache2': 'stopped'}}]"
#[function]
pub fn add(
    context: &Context,
    /// Name of the beacon.
    name: String,
    /// Options of the beacon, as a list of mappings.
    beacon_data: Value,
    /// `timeout`: seconds to wait for the minion's answer; `test`: whether nothing is changed.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    if listed(context, true, true, &kwargs)?.is_some_and(|beacons| beacons.contains_key(name.as_str())) {
        return Ok(outcome(true, format!("Beacon {name} is already configured.")).into());
    }
    let module = options(&beacon_data).get("beacon_module").map_or_else(|| name.clone(), ToString::to_string);
    if !available(context, &kwargs)?.contains(&module) {
        return Ok(outcome(false, format!("Beacon \"{module}\" is not available.")).into());
    }
    if is_test(&kwargs) {
        return Ok(outcome(true, format!("Beacon: {name} would be added.")).into());
    }
    if let Some(error) = validation_error(context, &name, &beacon_data, &kwargs)? {
        return Ok(outcome(false, format!("Beacon {name} configuration invalid, not adding.\n{error}")).into());
    }
    let question = map! {"func" => "add", "name" => &name, "beacon_data" => beacon_data};
    let answer = ask(context, question, "beacon_add", &kwargs)?;
    Ok(done(answer, "add", &kwargs, || format!("Added beacon: {name}.")).into())
}

/// Modify a beacon. The change is lost when the minion stops, unless `beacons.save` stores it.
///
/// CLI Example:
///
///     salt '*' beacons.modify ps "[{'processes': {'salt-master': 'stopped', 'apache2': 'stopped'}}]"
#[function]
pub fn modify(
    context: &Context,
    /// Name of the beacon.
    name: String,
    /// Options of the beacon, as a list of mappings.
    beacon_data: Value,
    /// `timeout`: seconds to wait for the minion's answer; `test`: whether nothing is changed.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let Some(current) = listed(context, true, true, &kwargs)?.and_then(|mut all| all.shift_remove(name.as_str()))
    else {
        return Ok(outcome(true, format!("Beacon {name} is not configured.")).into());
    };
    if is_test(&kwargs) {
        return Ok(outcome(true, format!("Beacon: {name} would be modified.")).into());
    }
    if let Some(error) = validation_error(context, &name, &beacon_data, &kwargs)? {
        return Ok(outcome(false, format!("Beacon {name} configuration invalid, not modifying.\n{error}")).into());
    }
    if current == beacon_data {
        return Ok(outcome(true, format!("Job {name} in correct state")).into());
    }
    let diff = difference(&current, &beacon_data);
    let question = map! {"func" => "modify", "name" => &name, "beacon_data" => beacon_data};
    let answer = ask(context, question, "beacon_modify", &kwargs)?;
    let mut report = done(answer, "modify", &kwargs, || format!("Modified beacon: {name}."));
    report.insert("changes".into(), map! {"diff" => diff}.into());
    Ok(report.into())
}

/// Delete a beacon. The change is lost when the minion stops, unless `beacons.save` stores it.
///
/// CLI Example:
///
///     salt '*' beacons.delete ps
#[function]
pub fn delete(
    context: &Context,
    /// Name of the beacon.
    name: String,
    /// `timeout`: seconds to wait for the minion's answer; `test`: whether nothing is changed.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    if is_test(&kwargs) {
        return Ok(outcome(true, format!("Beacon: {name} would be deleted.")).into());
    }
    let answer = ask(context, map! {"func" => "delete", "name" => &name}, "beacon_delete", &kwargs)?;
    Ok(done(answer, "delete", &kwargs, || format!("Deleted beacon: {name}.")).into())
}

/// Store the beacons for the next start, in `minion.d/beacons.conf`.
///
/// CLI Example:
///
///     salt '*' beacons.save
#[function]
pub fn save(
    context: &Context,
    /// `timeout`: seconds to wait for the minion's answer; `test`: whether nothing is changed.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let beacons = listed(context, false, true, &kwargs)?.unwrap_or_default();
    let path = context.config().config_dir.join("minion.d/beacons.conf");
    let text = if beacons.is_empty() {
        String::new()
    } else {
        brine_yaml::dump(&map! {"beacons" => beacons}.into(), Style::BLOCK)
    };
    let directory = path.parent().unwrap_or(&path);
    let made = user_files::create_dir_all(directory).is_ok();
    match files::write_atomic(&path, text.as_bytes(), 0o600) {
        Ok(()) if made => Ok(outcome(true, format!("Beacons saved to {}.", path.display())).into()),
        _ => {
            let comment = format!("Unable to write to beacons file at {}. Check permissions.", path.display());
            Ok(outcome(false, comment).into())
        }
    }
}

/// Enable all beacons.
///
/// CLI Example:
///
///     salt '*' beacons.enable
#[function]
pub fn enable(
    context: &Context,
    /// `timeout`: seconds to wait for the minion's answer; `test`: whether nothing is changed.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    switch_all(context, true, &kwargs)
}

/// Disable all beacons.
///
/// CLI Example:
///
///     salt '*' beacons.disable
#[function]
pub fn disable(
    context: &Context,
    /// `timeout`: seconds to wait for the minion's answer; `test`: whether nothing is changed.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    switch_all(context, false, &kwargs)
}

/// Enable one beacon.
///
/// CLI Example:
///
///     salt '*' beacons.enable_beacon ps
#[function]
pub fn enable_beacon(
    context: &Context,
    /// Name of the beacon.
    name: String,
    /// `timeout`: seconds to wait for the minion's answer; `test`: whether nothing is changed.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    switch(context, &name, true, &kwargs)
}

/// Disable one beacon.
///
/// CLI Example:
///
///     salt '*' beacons.disable_beacon ps
#[function]
pub fn disable_beacon(
    context: &Context,
    /// Name of the beacon.
    name: String,
    /// `timeout`: seconds to wait for the minion's answer; `test`: whether nothing is changed.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    switch(context, &name, false, &kwargs)
}

/// Remove all beacons except those of the pillar.
///
/// CLI Example:
///
///     salt '*' beacons.reset
#[function]
pub fn reset(
    context: &Context,
    /// `timeout`: seconds to wait for the minion's answer; `test`: whether nothing is changed.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    if is_test(&kwargs) {
        return Ok(outcome(true, "Beacons would be reset.").into());
    }
    let answer = ask(context, map! {"func" => "reset"}, "beacon_reset", &kwargs)?;
    Ok(done(answer, "reset", &kwargs, || "Beacon configuration reset.".into()).into())
}

fn is_test(kwargs: &Map) -> bool {
    kwargs.get("test").is_some_and(Value::is_truthy)
}

fn timeout(kwargs: &Map) -> u64 {
    kwargs.get("timeout").and_then(u64::from_value).unwrap_or(TIMEOUT)
}

fn outcome(result: bool, comment: impl Into<String>) -> Map {
    map! {"comment" => comment.into(), "result" => result}
}

fn format_beacons(beacons: Value, as_yaml: bool) -> Value {
    if as_yaml { brine_yaml::dump(&map! {"beacons" => beacons}.into(), Style::BLOCK).into() } else { beacons }
}

/// Sends a request to the running minion; returns `None` on timeout.
fn ask(context: &Context, question: Map, answer: &str, kwargs: &Map) -> Result<Option<Map>, CallError> {
    let tag = format!("/salt/minion/minion_{answer}_complete");
    let timeout = Duration::from_secs(timeout(kwargs));
    context.minion.local.ask("manage_beacons", question, &tag, timeout).map_err(CallError::execution)
}

/// Returns the result of a change: `comment` on success, or else the error of the reply.
fn done(answer: Option<Map>, verb: &str, kwargs: &Map, comment: impl FnOnce() -> String) -> Map {
    match answer {
        Some(answer) if answer.get("complete").is_some_and(Value::is_truthy) => outcome(true, comment()),
        Some(answer) => outcome(false, answer.get("comment").map(ToString::to_string).unwrap_or_default()),
        None => {
            let seconds = timeout(kwargs);
            outcome(false, format!("Did not receive the beacon {verb} complete event before the timeout of {seconds}s"))
        }
    }
}

fn listed(context: &Context, pillar: bool, opts: bool, kwargs: &Map) -> Result<Option<Map>, CallError> {
    let question = map! {"func" => "list", "include_pillar" => pillar, "include_opts" => opts};
    let answer = ask(context, question, "beacons_list", kwargs)?;
    Ok(answer.and_then(|mut answer| match answer.shift_remove("beacons") {
        Some(Value::Map(beacons)) => Some(beacons),
        _ => None,
    }))
}

fn available(context: &Context, kwargs: &Map) -> Result<Vec<String>, CallError> {
    let answer = ask(context, map! {"func" => "list_available"}, "beacons_list_available", kwargs)?;
    let names = answer.as_ref().and_then(|answer| answer.get("beacons")).and_then(Value::as_list).unwrap_or_default();
    Ok(names.iter().map(ToString::to_string).collect())
}

/// Returns the validation error of a beacon's options; `None` if they are valid, or on timeout.
fn validation_error(context: &Context, name: &str, data: &Value, kwargs: &Map) -> Result<Option<String>, CallError> {
    let question = map! {"func" => "validate_beacon", "name" => name, "beacon_data" => data.clone()};
    let Some(answer) = ask(context, question, "beacon_validation", kwargs)? else { return Ok(None) };
    let is_valid = answer.get("valid").is_some_and(Value::is_truthy);
    Ok((!is_valid).then(|| answer.get("vcomment").map(ToString::to_string).unwrap_or_default()))
}

/// Returns the options of a beacon as one mapping.
fn options(data: &Value) -> Map {
    match data {
        Value::Map(map) => map.clone(),
        Value::List(list) => list.iter().filter_map(Value::as_map).flat_map(Clone::clone).collect(),
        _ => Map::new(),
    }
}

/// Returns the difference of the options, line by line.
fn difference(old: &Value, new: &Value) -> String {
    let lines = |data: &Value| {
        let lines: Vec<String> = options(data).iter().map(|(key, value)| format!("{key}:{value}\n")).collect();
        lines.concat()
    };
    let (old, new) = (lines(old), lines(new));
    unified(&old, &new)
}

fn switch_all(context: &Context, enabled: bool, kwargs: &Map) -> Result<Value, CallError> {
    let (word, func) = if enabled { ("enabled", "enable") } else { ("disabled", "disable") };
    if is_test(kwargs) {
        return Ok(outcome(true, format!("Beacons would be {word}.")).into());
    }
    let answer = ask(context, map! {"func" => func}, &format!("beacons_{word}"), kwargs)?;
    let title = if enabled { "Enabled" } else { "Disabled" };
    Ok(done(answer, word, kwargs, || format!("{title} beacons on minion.")).into())
}

fn switch(context: &Context, name: &str, enabled: bool, kwargs: &Map) -> Result<Value, CallError> {
    let (word, func) = if enabled { ("enabled", "enable_beacon") } else { ("disabled", "disable_beacon") };
    if name.is_empty() {
        return Ok(outcome(false, "Beacon name is required.").into());
    }
    if is_test(kwargs) {
        // As in Salt, the message on disabling one beacon is the same as on disabling all.
        let which = if enabled { format!("Beacon {name}") } else { "Beacons".into() };
        return Ok(outcome(true, format!("{which} would be {word}.")).into());
    }
    if !listed(context, true, true, kwargs)?.is_some_and(|beacons| beacons.contains_key(name)) {
        return Ok(outcome(false, format!("Beacon {name} is not currently configured.")).into());
    }
    let answer = ask(context, map! {"func" => func, "name" => name}, &format!("beacon_{word}"), kwargs)?;
    let title = if enabled { "Enabled" } else { "Disabled" };
    Ok(done(answer, word, kwargs, || format!("{title} beacon {name} on minion.")).into())
}

#[cfg(test)]
mod tests {
    use brine_function::Args;

    use crate::testing;

    #[test]
    fn missing_minion_is_reported() {
        let report = testing::context(&[]).call("beacons.list", Args::default()).unwrap_err().to_string();
        assert!(report.contains("check that salt-minion is running"), "{report}");
    }
}

//! `manage`: connected and disconnected minions, and their versions.

use std::cmp::Ordering;
use std::time::Duration;

use brine_config::SALT_VERSION;
use brine_function::{CallError, CallResult, Function, function, registry};
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;

use super::RunnerContext;

/// Runner functions of `manage`.
pub static FUNCTIONS: &[Function<RunnerContext>] = registry!(
    "manage",
    [
        status,
        up,
        down,
        targets,
        present,
        alived,
        joined,
        allowed,
        list_state,
        not_present,
        not_alived,
        not_joined,
        not_allowed,
        list_not_state,
        versions
    ]
);

/// Return the minions that answer a ping, and those that do not.
///
/// CLI Example:
///
///     salt-run manage.status
#[function]
pub fn status(
    context: &RunnerContext,
    #[default("*".into())] tgt: Value,
    #[default("glob".into())] tgt_type: String,
    #[default] timeout: Option<f64>,
) -> CallResult {
    let (up, down) = ping(context, tgt, tgt_type, timeout)?;
    Ok(map! {"up" => up, "down" => down}.into())
}

/// Return the minions that answer a ping.
///
/// CLI Example:
///
///     salt-run manage.up
#[function]
pub fn up(
    context: &RunnerContext,
    #[default("*".into())] tgt: Value,
    #[default("glob".into())] tgt_type: String,
    #[default] timeout: Option<f64>,
) -> CallResult {
    ping(context, tgt, tgt_type, timeout).map(|(up, _)| up.into())
}

/// Return the minions that do not answer a ping.
///
/// CLI Example:
///
///     salt-run manage.down
#[function]
pub fn down(
    context: &RunnerContext,
    #[default("*".into())] tgt: Value,
    #[default("glob".into())] tgt_type: String,
    #[default] timeout: Option<f64>,
) -> CallResult {
    ping(context, tgt, tgt_type, timeout).map(|(_, down)| down.into())
}

/// Return the minions that match a target, without contacting them.
///
/// CLI Example:
///
///     salt-run manage.targets 'web*'
#[function]
pub fn targets(
    context: &RunnerContext,
    #[default("*".into())] tgt: Value,
    #[default("glob".into())] tgt_type: String,
) -> CallResult {
    let request = PublishRequest { tgt, tgt_type, ..PublishRequest::new("*", "test.ping", &context.caller.user) };
    Ok(context.wait(context.master.facts.targets(&request)).map_err(CallError::execution)?.minions.into())
}

/// Return the minions that are connected to the master. No command is sent to minions.
///
/// subset: only minions of this list.
///
/// CLI Example:
///
///     salt-run manage.present
#[function]
pub fn present(context: &RunnerContext, #[default] subset: Option<Vec<String>>) -> CallResult {
    Ok(connected(context, subset).into())
}

/// Return the minions that are connected to the master. No command is sent to minions.
///
/// subset: only minions of this list.
///
/// CLI Example:
///
///     salt-run manage.alived
#[function]
pub fn alived(context: &RunnerContext, #[default] subset: Option<Vec<String>>) -> CallResult {
    Ok(connected(context, subset).into())
}

/// Return the minions that are connected to the master. No command is sent to minions.
///
/// subset: only minions of this list.
///
/// CLI Example:
///
///     salt-run manage.joined
#[function]
pub fn joined(context: &RunnerContext, #[default] subset: Option<Vec<String>>) -> CallResult {
    Ok(connected(context, subset).into())
}

/// Return the minions that are connected to the master. No command is sent to minions.
///
/// subset: only minions of this list.
///
/// CLI Example:
///
///     salt-run manage.allowed
#[function]
pub fn allowed(context: &RunnerContext, #[default] subset: Option<Vec<String>>) -> CallResult {
    Ok(connected(context, subset).into())
}

/// Return the minions that are connected to the master. No command is sent to minions.
///
/// subset: only minions of this list.
///
/// CLI Example:
///
///     salt-run manage.list_state
#[function]
pub fn list_state(context: &RunnerContext, #[default] subset: Option<Vec<String>>) -> CallResult {
    Ok(connected(context, subset).into())
}

/// Return the accepted minions that are not connected to the master. No command is sent to minions.
///
/// subset: only minions of this list.
///
/// CLI Example:
///
///     salt-run manage.not_present
#[function]
pub fn not_present(context: &RunnerContext, #[default] subset: Option<Vec<String>>) -> CallResult {
    not_connected(context, subset)
}

/// Return the accepted minions that are not connected to the master. No command is sent to minions.
///
/// subset: only minions of this list.
///
/// CLI Example:
///
///     salt-run manage.not_alived
#[function]
pub fn not_alived(context: &RunnerContext, #[default] subset: Option<Vec<String>>) -> CallResult {
    not_connected(context, subset)
}

/// Return the accepted minions that are not connected to the master. No command is sent to minions.
///
/// subset: only minions of this list.
///
/// CLI Example:
///
///     salt-run manage.not_joined
#[function]
pub fn not_joined(context: &RunnerContext, #[default] subset: Option<Vec<String>>) -> CallResult {
    not_connected(context, subset)
}

/// Return the accepted minions that are not connected to the master. No command is sent to minions.
///
/// subset: only minions of this list.
///
/// CLI Example:
///
///     salt-run manage.not_allowed
#[function]
pub fn not_allowed(context: &RunnerContext, #[default] subset: Option<Vec<String>>) -> CallResult {
    not_connected(context, subset)
}

/// Return the accepted minions that are not connected to the master. No command is sent to minions.
///
/// subset: only minions of this list.
///
/// CLI Example:
///
///     salt-run manage.list_not_state
#[function]
pub fn list_not_state(context: &RunnerContext, #[default] subset: Option<Vec<String>>) -> CallResult {
    not_connected(context, subset)
}

/// Return the versions of all minions, grouped by their relation to the master's version.
///
/// CLI Example:
///
///     salt-run manage.versions
#[function]
pub fn versions(context: &RunnerContext) -> CallResult {
    let timeout = Duration::from_secs(context.master.config.timeout);
    let request = PublishRequest::new("*", "test.version", &context.caller.user);
    let answers = context.wait(context.master.jobs.ask(request, timeout)).map_err(CallError::execution)?;
    let returned = answers.returned.into_iter().map(|(id, fields)| {
        let failed = fields.get("retcode").is_some_and(Value::is_truthy);
        let version = fields.get("return").and_then(Value::as_str).filter(|_| !failed).map(str::to_owned);
        (id, version)
    });
    Ok(versions_by_relation(returned.chain(answers.missing.into_iter().map(|id| (id, None)))).into())
}

/// Returns the ids of the connected minions.
fn connected(context: &RunnerContext, subset: Option<Vec<String>>) -> Vec<String> {
    let is_asked = |id: &String| subset.as_ref().is_none_or(|subset| subset.contains(id));
    context.master.facts.present().iter().map(ToString::to_string).filter(is_asked).collect()
}

/// Returns the ids of the accepted minions that are not connected, sorted.
fn not_connected(context: &RunnerContext, subset: Option<Vec<String>>) -> Result<Value, CallError> {
    let connected = connected(context, None);
    let mut accepted = context.storage().accepted().map_err(CallError::execution)?;
    accepted.retain(|id| !connected.contains(id) && subset.as_ref().is_none_or(|subset| subset.contains(id)));
    accepted.sort();
    Ok(accepted.into())
}

/// Groups minions by comparing their versions with the master's.
fn versions_by_relation(minions: impl Iterator<Item = (String, Option<String>)>) -> Map {
    let mut minions: Vec<_> = minions.collect();
    minions.sort();
    let mut groups = map! {"Master" => SALT_VERSION};
    for (id, version) in minions {
        let group = match version.as_deref().map(|version| numbers(version).cmp(&numbers(SALT_VERSION))) {
            None => "Minion offline",
            Some(Ordering::Less) => "Minion requires update",
            Some(Ordering::Equal) => "Up to date",
            Some(Ordering::Greater) => "Minion newer than master",
        };
        if let Value::Map(group) = groups.entry(group.into()).or_insert_with(Value::map) {
            group.insert(id.into(), version.map_or(false.into(), Value::from));
        }
    }
    groups
}

/// Returns the numbers of a version, for comparison.
fn numbers(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

/// Pings minions, and returns those that answered and those that did not, both sorted.
fn ping(
    context: &RunnerContext,
    tgt: Value,
    tgt_type: String,
    timeout: Option<f64>,
) -> Result<(Vec<String>, Vec<String>), CallError> {
    let master = &context.master;
    let timeout = timeout.map_or(Duration::from_secs(master.config.timeout), |seconds| {
        brine_runtime::seconds::within(0.0..=86_400.0, seconds)
    });
    let request = PublishRequest { tgt, tgt_type, ..PublishRequest::new("*", "test.ping", &context.caller.user) };
    let answers = context.wait(master.jobs.ask(request, timeout)).map_err(CallError::execution)?;
    let mut up: Vec<_> = answers.returned.into_iter().map(|(id, _)| id).collect();
    up.sort();
    Ok((up, answers.missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_grouped_by_their_relation_to_the_masters() {
        let minions = [("c", Some("3006.9")), ("b", Some(SALT_VERSION)), ("a", None), ("d", Some("9999.1"))];
        let minions = minions.map(|(id, version)| (id.to_owned(), version.map(str::to_owned)));
        let expected = map! {
            "Master" => SALT_VERSION,
            "Minion offline" => map! {"a" => false},
            "Up to date" => map! {"b" => SALT_VERSION},
            "Minion requires update" => map! {"c" => "3006.9"},
            "Minion newer than master" => map! {"d" => "9999.1"},
        };
        assert_eq!(versions_by_relation(minions.into_iter()), expected);
    }
}

//! `manage`: the state of the fleet: responding minions, their versions and keys. `presence` contains the functions
//! that contact no minions.

pub(super) mod presence;

use std::cmp::Ordering;
use std::io::ErrorKind;

use brine_config::SALT_VERSION;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_ids::MinionId;
use brine_master_store::keys::{Act, Key, KeyError, KeyState};
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;

use super::RunnerContext;
use crate::wheel::WheelContext;

/// The result of `key_regen`.
const KEYS_DELETED: &str = "The keys of the master and of all minions are deleted. Restart the master now: it generates a \
                            new key. Minions that delete theirs connect again, and `salt-key -A` accepts them. On others, \
                            delete minion_master.pub below pki_dir and restart the minion.";

/// Runner functions of `manage`.
pub static FUNCTIONS: Functions<RunnerContext> =
    registry!("manage", [status, up, down, targets, versions, key_regen, safe_accept, bootstrap, bootstrap_psexec]);

/// The minions of a ping, and how long it waits.
#[derive(Args)]
pub struct PingArgs {
    /// Target: which minions.
    #[default("*".into())]
    tgt: Value,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
    /// Seconds to wait; default: the option `timeout`.
    timeout: Option<f64>,
    /// Without effect: silent minions are not asked again.
    #[allow(dead_code, reason = "an argument without effect")]
    gather_job_timeout: Option<f64>,
}

/// Return the minions that answer a ping, and those that do not.
///
/// output: without effect. tgt, tgt_type: the minions (all). timeout: the number of seconds to wait for (the option `timeout`).
/// gather_job_timeout: without effect: silent minions are not asked again.
///
/// CLI Example:
///
///     salt-run manage.status
#[function]
pub fn status(
    context: &RunnerContext,
    /// Name of the outputter.
    #[default(true)]
    output: bool,
    #[args] asked: PingArgs,
) -> CallResult {
    _ = output;
    let (up, down) = ping(context, asked)?;
    Ok(map! {"up" => up, "down" => down}.into())
}

/// Return the minions that answer a ping.
///
/// CLI Example:
///
///     salt-run manage.up
#[function]
pub fn up(context: &RunnerContext, #[args] asked: PingArgs) -> CallResult {
    ping(context, asked).map(|(up, _)| up.into())
}

/// Return the minions that do not answer a ping.
///
/// removekeys: whether their keys are deleted (False). tgt, tgt_type: the minions (all). timeout: the number of seconds to
/// wait for (the option `timeout`). gather_job_timeout: without effect: silent minions are not asked again.
///
/// CLI Example:
///
///     salt-run manage.down
#[function]
pub fn down(
    context: &RunnerContext,
    /// Whether the keys of the minions that are down are deleted.
    #[default(false)]
    removekeys: bool,
    #[args] asked: PingArgs,
) -> CallResult {
    let (_, down) = ping(context, asked)?;
    if removekeys && !down.is_empty() {
        let wheel = context.calls.wheel_context(context.caller.clone());
        let names =
            down.iter().map(|id| id.parse()).collect::<Result<Vec<MinionId>, _>>().map_err(CallError::execution)?;
        delete(&wheel, |key| names.contains(&key.id))?;
    }
    Ok(down.into())
}

/// Return the minions that match a target, without contacting them.
///
/// CLI Example:
///
///     salt-run manage.targets 'web*'
#[function]
pub fn targets(
    context: &RunnerContext,
    /// Target.
    #[default("*".into())]
    tgt: Value,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
) -> CallResult {
    let request = PublishRequest { tgt, tgt_type, ..PublishRequest::new("*", "test.ping", &context.caller.user) };
    Ok(context.wait(context.master.facts.targets(&request)).map_err(CallError::execution)?.minions.into())
}

/// Return the versions of all minions, grouped by their relation to the master's version.
///
/// CLI Example:
///
///     salt-run manage.versions
#[function]
pub fn versions(context: &RunnerContext) -> CallResult {
    let timeout = context.master.config.timeout.seconds();
    let request = PublishRequest::new("*", "test.version", &context.caller.user);
    let answers = context.wait(context.master.jobs.publish_and_wait(request, timeout)).map_err(CallError::execution)?;
    let returned = answers.returned.into_iter().map(|(id, fields)| {
        let failed = fields.get("retcode").is_some_and(Value::is_truthy);
        let version = fields.get("return").and_then(Value::as_str).filter(|_| !failed).map(str::to_owned);
        (id, version)
    });
    Ok(versions_by_relation(returned.chain(answers.missing.into_iter().map(|id| (id, None)))).into())
}

/// Delete the keys of all minions and of the master. Minions first get the job to delete theirs. Restart the master
/// afterwards: it generates a new key, and minions send theirs again, which have to be accepted.
///
/// CLI Example:
///
///     salt-run manage.key_regen
#[function]
pub fn key_regen(context: &RunnerContext) -> CallResult {
    let request = PublishRequest::new("*", "saltutil.regen_keys", &context.caller.user);
    // Minions without the function, such as Brine's, return an error. They need the new key of the master to be set
    // manually.
    context.publish_and_wait(request, None)?;
    let wheel = context.calls.wheel_context(context.caller.clone());
    delete(&wheel, |_| true)?;
    for name in ["master.pem", "master.pub"] {
        let path = wheel.keys.pki_dir().join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(CallError::execution(format!("deleting {} failed: {error}", path.display())));
            }
            _ => tracing::warn!(path = %path.display(), by = context.caller.user, "a key of the master was deleted"),
        }
    }
    Ok(KEYS_DELETED.into())
}

/// Refused: the master does not log in to hosts. Compare fingerprints with `salt-ssh` or on the host.
///
/// CLI Example:
///
///     salt-run manage.safe_accept my_minion
#[function]
pub fn safe_accept(
    _context: &RunnerContext,
    /// Target.
    target: Value,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
) -> CallResult {
    _ = (target, tgt_type);
    Err(CallError::execution(
        "manage.safe_accept is not supported, as the master does not log in to hosts: compare the fingerprint of \
         `salt-key -f ID` with that of `salt-call --local key.finger` on the minion, and accept the key with `salt-key -a ID`",
    ))
}

/// Refused: it would run a script of the network as root on other hosts.
///
/// CLI Example:
///
///     salt-run manage.bootstrap hosts='host1,host2'
#[function]
pub fn bootstrap(_context: &RunnerContext, #[rest] _args: Vec<Value>, #[keywords] _kwargs: Map) -> CallResult {
    Err(CallError::execution(
        "manage.bootstrap is not supported, as it runs a script of the network as root: install the package of the minion on \
         the host, for example with salt-ssh, and name this master in its configuration",
    ))
}

/// Refused: Brine has no minions for Windows.
///
/// CLI Example:
///
///     salt-run manage.bootstrap_psexec hosts='host1,host2'
#[function]
pub fn bootstrap_psexec(_context: &RunnerContext, #[rest] _args: Vec<Value>, #[keywords] _kwargs: Map) -> CallResult {
    Err(CallError::execution("manage.bootstrap_psexec installs minions on Windows, which Brine does not support"))
}

/// Deletes minion keys.
fn delete(wheel: &WheelContext, is_selected: impl Fn(&Key) -> bool) -> Result<(), CallError> {
    let mut keys = wheel.keys.select("*", &KeyState::ALL).map_err(CallError::execution)?;
    keys.retain(is_selected);
    for (_, result) in brine_master_calls::key_changes::apply(wheel, Act::Delete, &keys) {
        match result {
            Ok(()) | Err(KeyError::Gone { .. }) => {}
            Err(error) => return Err(CallError::execution(error)),
        }
    }
    Ok(())
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
fn ping(context: &RunnerContext, asked: PingArgs) -> Result<(Vec<String>, Vec<String>), CallError> {
    let PingArgs { tgt, tgt_type, timeout, .. } = asked;
    let master = &context.master;
    let timeout = timeout
        .map_or(master.config.timeout.seconds(), |seconds| brine_runtime::seconds::within(0.0..=86_400.0, seconds));
    let request = PublishRequest { tgt, tgt_type, ..PublishRequest::new("*", "test.ping", &context.caller.user) };
    let answers = context.wait(master.jobs.publish_and_wait(request, timeout)).map_err(CallError::execution)?;
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

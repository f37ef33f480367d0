//! `wheel.key`: the minions' keys. `match` is a glob or several separated by commas; results name states by their
//! directories (`minions`, `minions_pre`, `minions_rejected`, `minions_denied`).

use brine_crypt::{CryptError, PrivateKey, PublicKey};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_ids::MinionId;
use brine_master_calls::key_changes::apply;
use brine_master_store::keys::{Act, Key, KeyError, KeyState};
use brine_master_store::metrics;
use brine_system::files;
use brine_text::glob::fnmatch;
use brine_value::{Map, Value, map};

use super::WheelContext;

/// Wheel functions of `key`.
pub static FUNCTIONS: Functions<WheelContext> = registry!(
    "key",
    [
        list,
        list_all,
        glob_match,
        name_match,
        accept,
        accept_dict,
        reject,
        reject_dict,
        delete,
        delete_dict,
        key_str,
        master_key_str,
        finger,
        finger_master,
        gen_pair,
        gen_accept
    ]
);

/// Return the keys in one state: `acc`, `pre` or `un`, `rej`, `den`, or `all`, which also lists the master's own keys.
#[function]
pub fn list(
    context: &WheelContext,
    /// Glob of the ids, or a list of them.
    r#match: String,
) -> CallResult {
    match KeyState::of_word(&r#match) {
        Some(states) if states.len() > 1 => list_all(context),
        Some(states) => listed(context, states).map(Value::Map),
        None => Ok(Value::map()),
    }
}

/// Return all keys, the master's own under `local`.
#[function]
pub fn list_all(context: &WheelContext) -> CallResult {
    let mut all = listed(context, &KeyState::ALL)?;
    all.insert("local".into(), context.keys.local().map_err(CallError::execution)?.into());
    Ok(all.into())
}

/// Return the keys whose ids match, by state.
#[function]
pub fn glob_match(
    context: &WheelContext,
    /// Glob of the ids, or a list of them.
    r#match: Vec<String>,
) -> CallResult {
    list_matching(context, &r#match)
}

/// Return the keys whose ids match, by state. Deprecated name of `glob_match`.
#[function]
pub fn name_match(
    context: &WheelContext,
    /// Glob of the ids, or a list of them.
    r#match: Vec<String>,
) -> CallResult {
    list_matching(context, &r#match)
}

/// Accept pending keys whose ids match; optionally also rejected and denied ones. Return the matching keys by state
/// afterwards. The call fails if it leaves no matching key accepted.
#[function]
pub fn accept(
    context: &WheelContext,
    /// Glob of the ids, or a list of them.
    r#match: Vec<String>,
    /// Whether rejected keys are included.
    #[default(false)]
    include_rejected: bool,
    /// Whether denied keys are included.
    #[default(false)]
    include_denied: bool,
) -> CallResult {
    let states = including(&[(include_rejected, KeyState::Rejected), (include_denied, KeyState::Denied)]);
    change(context, Act::Accept, &select(context, &r#match, &states)?)?;
    list_result(context, &r#match, KeyState::Accepted)
}

/// Accept the given keys, by state: `{minions_pre: [web1, web2]}`.
#[function]
pub fn accept_dict(
    context: &WheelContext,
    /// Glob of the ids, or a list of them.
    r#match: Map,
    /// Whether rejected keys are included.
    #[default(false)]
    include_rejected: bool,
    /// Whether denied keys are included.
    #[default(false)]
    include_denied: bool,
) -> CallResult {
    let states = including(&[(include_rejected, KeyState::Rejected), (include_denied, KeyState::Denied)]);
    change_named(context, Act::Accept, &r#match, &states)
}

/// Reject pending keys whose ids match; optionally also accepted and denied ones. The call fails if it leaves no matching
/// key rejected.
#[function]
pub fn reject(
    context: &WheelContext,
    /// Glob of the ids, or a list of them.
    r#match: Vec<String>,
    /// Whether accepted keys are included.
    #[default(false)]
    include_accepted: bool,
    /// Whether denied keys are included.
    #[default(false)]
    include_denied: bool,
) -> CallResult {
    let states = including(&[(include_accepted, KeyState::Accepted), (include_denied, KeyState::Denied)]);
    change(context, Act::Reject, &select(context, &r#match, &states)?)?;
    list_result(context, &r#match, KeyState::Rejected)
}

/// Reject the given keys, by state: `{minions_pre: [web1, web2]}`.
#[function]
pub fn reject_dict(
    context: &WheelContext,
    /// Glob of the ids, or a list of them.
    r#match: Map,
    /// Whether accepted keys are included.
    #[default(false)]
    include_accepted: bool,
    /// Whether denied keys are included.
    #[default(false)]
    include_denied: bool,
) -> CallResult {
    let states = including(&[(include_accepted, KeyState::Accepted), (include_denied, KeyState::Denied)]);
    change_named(context, Act::Reject, &r#match, &states)
}

/// Delete keys whose ids match, in any state.
#[function]
pub fn delete(
    context: &WheelContext,
    /// Glob of the ids, or a list of them.
    r#match: Vec<String>,
) -> CallResult {
    change(context, Act::Delete, &select(context, &r#match, &KeyState::ALL)?)?;
    list_matching(context, &r#match)
}

/// Delete the given keys, by state: `{minions: [web1], minions_denied: [web2]}`.
#[function]
pub fn delete_dict(
    context: &WheelContext,
    /// Glob of the ids, or a list of them.
    r#match: Map,
) -> CallResult {
    change_named(context, Act::Delete, &r#match, &KeyState::ALL)
}

/// Return the public keys whose ids match, by state and id, without other content of their files.
#[function(name = "print")]
pub fn key_str(
    context: &WheelContext,
    /// Glob of the ids, or a list of them.
    r#match: Vec<String>,
) -> CallResult {
    let mut by_state = Map::new();
    for key in select(context, &r#match, &KeyState::ALL)? {
        if let Some(text) = context.keys.get(key.state, &key.id).map_err(CallError::execution)? {
            let pem = PublicKey::from_pem(&text).map_or(text, |key| key.to_pem());
            add(&mut by_state, key.state.directory(), (&key.id).into(), pem);
        }
    }
    Ok(by_state.into())
}

/// Return the master's public key.
#[function]
pub fn master_key_str(context: &WheelContext) -> CallResult {
    let pem = files::read_to_string(context.keys.pki_dir().join("master.pub")).map_err(CallError::execution)?;
    Ok(map! {"local" => map! {"master.pub" => pem}}.into())
}

/// Return the fingerprints of the keys whose ids match, by state and id; those of the master's own keys under `local`.
/// An invalid key file has the error instead of a fingerprint.
#[function]
pub fn finger(
    context: &WheelContext,
    /// Glob of the ids, or a list of them.
    r#match: Vec<String>,
    /// Hash of the fingerprint; that of the option `hash_type` by default.
    hash_type: Option<String>,
) -> CallResult {
    only_sha256(hash_type.as_deref())?;
    let mut by_state = Map::new();
    for key in select(context, &r#match, &KeyState::ALL)? {
        let finger = context.keys.finger(&key).unwrap_or_else(|error| error.to_string());
        add(&mut by_state, key.state.directory(), (&key.id).into(), finger);
    }
    let joined = r#match.join(",");
    for name in context.keys.local().map_err(CallError::execution)? {
        if joined.split(',').any(|glob| fnmatch(glob, &name)) {
            let finger = context.keys.local_finger(&name).unwrap_or_else(|error| error.to_string());
            add(&mut by_state, "local", name.into(), finger);
        }
    }
    Ok(by_state.into())
}

/// Return the fingerprint of the master's public key, for the minion option `master_finger`.
#[function]
pub fn finger_master(
    context: &WheelContext,
    /// Hash of the fingerprint; that of the option `hash_type` by default.
    hash_type: Option<String>,
) -> CallResult {
    only_sha256(hash_type.as_deref())?;
    let finger = context.keys.local_finger("master.pub").map_err(CallError::execution)?;
    Ok(map! {"local" => map! {"master.pub" => finger}}.into())
}

/// Generate a key pair without storing it.
#[function(name = "gen", secret)]
pub fn gen_pair(
    _context: &WheelContext,
    /// Id of the minion; a new key has a random name without one.
    id_: Option<String>,
    /// Size of the key in bits.
    #[default(2048)]
    keysize: usize,
) -> CallResult {
    let _ = id_;
    make_pair(keysize).map(Value::Map)
}

/// Generate a key pair for a minion and accept its public key. Return the pair; nothing if the minion has a key
/// already, unless `force` replaces it.
#[function(secret)]
pub fn gen_accept(
    context: &WheelContext,
    /// Id of the minion; a new key has a random name without one.
    id_: String,
    /// Size of the key in bits.
    #[default(2048)]
    keysize: usize,
    /// Whether an existing key is replaced.
    #[default(false)]
    force: bool,
) -> CallResult {
    let id: MinionId = id_.parse().map_err(CallError::execution)?;
    if !force && context.keys.current(&id).map_err(CallError::execution)?.is_some() {
        return Ok(Value::map());
    }
    let pair = make_pair(keysize)?;
    let public = pair.get("pub").and_then(Value::as_str).unwrap_or_default();
    context.keys.set(&id, KeyState::Accepted, public).map_err(CallError::execution)?;
    Ok(pair.into())
}

/// Applies an action on behalf of a wheel function: removed keys are skipped, invalid ones are logged.
fn change(context: &WheelContext, act: Act, keys: &[Key]) -> Result<(), CallError> {
    let (keys, special): (Vec<Key>, Vec<Key>) =
        keys.iter().cloned().partition(|key| context.attended || act != Act::Accept || key.id.is_plain());
    for key in special {
        metrics::AUTHENTICATIONS_REFUSED.add(1);
        tracing::warn!(minion = ?key.id.as_str(), "key not accepted by a reaction: the id has special characters; accept it with salt-key");
    }
    let keys = &keys;
    for (_, result) in apply(context, act, keys) {
        match result {
            Ok(()) | Err(KeyError::Gone { .. }) => {}
            Err(error @ KeyError::NotAKey { .. }) => tracing::error!("{error}"),
            Err(error) => return Err(CallError::execution(error)),
        }
    }
    Ok(())
}

fn change_named(context: &WheelContext, act: Act, named: &Map, states: &[KeyState]) -> Result<Value, CallError> {
    let mut keys = Vec::new();
    for (directory, ids) in named {
        let Some(state) = directory.as_str().and_then(KeyState::of_directory) else { continue };
        for id in ids.as_list().unwrap_or_default() {
            keys.push(Key { id: id.to_string().parse().map_err(CallError::execution)?, state });
        }
    }
    let chosen: Vec<_> = keys.iter().filter(|key| states.contains(&key.state)).cloned().collect();
    change(context, act, &chosen)?;
    let mut now = context.keys.select("*", &KeyState::ALL).map_err(CallError::execution)?;
    now.retain(|key| keys.iter().any(|named| named.id == key.id));
    Ok(grouped(&now).into())
}

/// Returns the states that an action covers: pending, and the requested ones.
fn including(more: &[(bool, KeyState)]) -> Vec<KeyState> {
    let more = more.iter().filter(|(is_included, _)| *is_included).map(|(_, state)| *state);
    std::iter::once(KeyState::Pending).chain(more).collect()
}

fn select(context: &WheelContext, patterns: &[String], states: &[KeyState]) -> Result<Vec<Key>, CallError> {
    context.keys.select(&patterns.join(","), states).map_err(CallError::execution)
}

fn list_matching(context: &WheelContext, patterns: &[String]) -> Result<Value, CallError> {
    Ok(grouped(&select(context, patterns, &KeyState::ALL)?).into())
}

/// Returns the matching keys after a change to this state. The call fails if no key is in it: an operator must not take
/// a minion for rejected whose key is accepted.
fn list_result(context: &WheelContext, patterns: &[String], state: KeyState) -> Result<Value, CallError> {
    let after = select(context, patterns, &KeyState::ALL)?;
    if !after.iter().any(|key| key.state == state) {
        context.host.set_retcode(1);
    }
    Ok(grouped(&after).into())
}

fn listed(context: &WheelContext, states: &[KeyState]) -> Result<Map, CallError> {
    let list = |state: &KeyState| Ok((state.directory().into(), context.keys.list(*state)?.into()));
    states.iter().map(list).collect::<Result<_, files::FileError>>().map_err(CallError::execution)
}

/// Groups keys by the directories of their states, as in Salt; states without keys are left out.
pub fn grouped(keys: &[Key]) -> Map {
    let mut by_state = Map::new();
    for key in keys {
        let ids = by_state.entry(key.state.directory().into()).or_insert_with(|| Value::List(Vec::new()));
        if let Value::List(ids) = ids {
            ids.push((&key.id).into());
        }
    }
    by_state
}

/// Adds `{name: {key: value}}`.
fn add(map: &mut Map, name: &str, key: Value, value: String) {
    if let Value::Map(section) = map.entry(name.into()).or_insert_with(Value::map) {
        section.insert(key, value.into());
    }
}

fn only_sha256(hash_type: Option<&str>) -> Result<(), CallError> {
    match hash_type {
        None | Some("sha256") => Ok(()),
        Some(other) => Err(CallError::execution(format!("hash_type '{other}' is not supported: expected sha256"))),
    }
}

/// Generates a key pair, with at least Salt's minimum size.
fn make_pair(keysize: usize) -> Result<Map, CallError> {
    let make = || -> Result<Map, CryptError> {
        let key = PrivateKey::generate(keysize.max(2048))?;
        Ok(map! {"priv" => key.to_pem()?, "pub" => key.public().to_pem()})
    };
    make().map_err(CallError::execution)
}

#[cfg(test)]
mod tests;

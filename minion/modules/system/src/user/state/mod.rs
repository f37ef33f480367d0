//! `user`: states of users.

mod desired;
mod present;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::accounts::{Account, Accounts};
use brine_system::files::Attributes;
use brine_system::user_files;
use brine_value::{Map, Value, map};

use self::desired::{Desired, GECOS};
use crate::shadow::{self, Shadow};
use crate::user::describe;

/// Placeholder for a hash in results.
const HIDDEN: &str = "XXX-REDACTED-XXX";

/// State functions of `user`.
pub static FUNCTIONS: Functions<StateContext> = registry!("user", [present::present, absent]);

/// Ensure that a user is absent; `purge` also deletes the home directory.
///
/// SLS Example:
///
///     olduser:
///       user.absent:
///         - purge: True
#[function]
pub fn absent(
    context: &StateContext,
    /// Login name.
    name: String,
    /// Whether the home directory and its content are deleted, too.
    #[default(false)]
    purge: bool,
    /// Whether the account is removed even if the user is logged in.
    #[default(false)]
    force: bool,
    /// Whether only local accounts are managed, by the programs of libuser.
    #[default(false)]
    local: bool,
) -> CallResult {
    let before = Accounts::read();
    if before.user(&name).is_none() {
        return Ok(StateReturn::ok(&name, format!("User {name} is not present")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("User {name} set for removal")).into());
    }
    let args = map! {"remove" => purge, "force" => force, "local" => local};
    let removed = context.call.call("user.delete", Args { positional: vec![name.as_str().into()], keyword: args })?;
    if !removed.is_truthy() {
        return Ok(StateReturn::failed(&name, format!("Failed to remove user {name}")).into());
    }
    let after = Accounts::read();
    let gone = before.groups_of(&name).into_iter().filter(|group| after.group(group).is_none());
    let mut changes: Map = gone.map(|group| (format!("{group} group").into(), "removed".into())).collect();
    changes.insert(name.as_str().into(), "removed".into());
    Ok(StateReturn::ok(&name, format!("Removed user {name}")).with_changes(changes).into())
}

fn call(context: &StateContext, function: &str, args: &[Value]) -> Result<bool, CallError> {
    Ok(context.call.call(function, Args::positional(args.iter().cloned()))?.is_truthy())
}

fn present_state(
    context: &StateContext,
    name: &str,
    mut desired: Desired,
    accounts: &Accounts,
) -> Result<StateReturn, CallError> {
    let groups = desired.groups.iter().flatten();
    let missing: Vec<String> = groups.filter(|group| accounts.group(group).is_none()).cloned().collect();
    let missing = missing.join(",");
    if !missing.is_empty() && !context.test {
        return Ok(StateReturn::failed(name, format!("The following group(s) are not present: {missing}")));
    }
    // In test mode, an earlier state may create the groups.
    desired.groups.iter_mut().for_each(|groups| groups.retain(|group| accounts.group(group).is_some()));
    let Some(user) = accounts.user(name) else {
        if context.test {
            let pending = if missing.is_empty() { String::new() } else { format!(" (pending groups: {missing})") };
            return Ok(StateReturn::predicted(name, format!("User {name} set to be added{pending}")));
        }
        return add(context, name, &desired);
    };
    let own = Some(name).filter(|name| desired.usergroup == Some(true) && accounts.group(name).is_some());
    let first = Desired { gid: own.map_or_else(|| desired.gid.clone(), Value::from), ..desired.clone() };
    let changes = match first.differences(user, accounts, Shadow::of(name).as_ref()) {
        Ok(changes) => changes,
        Err(comment) => return Ok(StateReturn::failed(name, comment)),
    };
    if changes.is_empty() {
        return Ok(StateReturn::ok(name, format!("User {name} is present and up to date")));
    }
    if context.test {
        let mut comment = "The following user attributes are set to be changed:\n".to_owned();
        comment.extend(changes.iter().map(|(key, value)| format!("{key}: {value}\n")));
        if !missing.is_empty() {
            comment.push_str(&format!("groups (pending creation): {missing}\n"));
        }
        return Ok(StateReturn::predicted(name, comment));
    }
    update(context, user, &desired, accounts, changes)
}

/// Applies the differences, and checks the result.
fn update(
    context: &StateContext,
    user: &Account,
    desired: &Desired,
    accounts: &Accounts,
    mut changes: Map,
) -> Result<StateReturn, CallError> {
    let name = user.name.as_str();
    let (before, shadow_before) = (describe(user, accounts), Shadow::of(name));
    let mut take = |key: &str| changes.shift_remove(key);
    if let (Some(_), Some(password)) = (take("passwd"), &desired.password) {
        shadow::set(&context.call, name, password)?;
    }
    if take("empty_password").is_some() {
        call(context, "shadow.del_password", &[name.into()])?;
    }
    if let Some(lock) = take("password_lock") {
        let function = if lock.is_truthy() { "shadow.lock_password" } else { "shadow.unlock_password" };
        call(context, function, &[name.into()])?;
    }
    if let Some(date) = take("date") {
        call(context, "shadow.set_date", &[name.into(), date])?;
    }
    let (home, no_home) = (take("home"), take("homeDoesNotExist"));
    if let Some(home) = no_home.as_ref().or(home.as_ref()) {
        call(context, "user.chhome", &[name.into(), home.clone(), desired.persist_home.into()])?;
    }
    if let Some(home) = no_home {
        make_home(&home.to_string(), user).map_err(CallError::execution)?;
    }
    for key in ["mindays", "maxdays", "inactdays", "warndays", "expire"] {
        if let Some(days) = take(key) {
            call(context, &format!("shadow.set_{key}"), &[name.into(), days])?;
        }
    }
    for key in ["uid", "gid", "shell"].into_iter().chain(GECOS) {
        if let Some(value) = take(key) {
            call(context, &format!("user.ch{key}"), &[name.into(), value])?;
        }
    }
    // Supplementary groups come last, because they depend on the primary group.
    if let Some(groups) = take("groups") {
        call(context, "user.chgroups", &[name.into(), groups, (!desired.remove_groups).into()])?;
    }
    let now = Accounts::read();
    let Some(user) = now.user(name) else {
        return Ok(StateReturn::failed(name, format!("User {name} is gone")));
    };
    let mut actual_changes = differing(&before, &describe(user, &now));
    let (shadow_before, shadow_now) =
        (shadow_before.map(|shadow| shadow.describe()).unwrap_or_default(), Shadow::of(name));
    if shadow_before.get("passwd").and_then(Value::as_str) != desired.password.as_deref() {
        let shadow = shadow_now.as_ref().map(Shadow::describe).unwrap_or_default();
        actual_changes.extend(differing(&shadow_before, &shadow));
        if let Some(hash) = actual_changes.get_mut("passwd") {
            *hash = HIDDEN.into();
        }
    }
    let word = if actual_changes.is_empty() { "is present and up to date" } else { "" };
    let comment = if word.is_empty() { format!("Updated user {name}") } else { format!("User {name} {word}") };
    let allowed = Desired { allow_uid_change: true, allow_gid_change: true, ..desired.clone() };
    let left = allowed.differences(user, &now, shadow_now.as_ref()).map_err(CallError::Execution)?;
    if !left.is_empty() {
        let comment = format!("These values could not be changed: {}", Value::from(left));
        return Ok(StateReturn::failed(name, comment).with_changes(actual_changes));
    }
    Ok(StateReturn::ok(name, comment).with_changes(actual_changes))
}

/// Returns the fields that have changed.
fn differing(before: &Map, now: &Map) -> Map {
    now.iter()
        .filter(|(key, value)| before.get(*key) != Some(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Creates a home directory with its parent directories.
fn make_home(home: &str, user: &Account) -> std::io::Result<()> {
    let attributes = Attributes { uid: Some(user.uid), gid: Some(user.gid), mode: Some(0o755) };
    user_files::create_dir_all_with(home, attributes).map(|_| ())
}

fn add(context: &StateContext, name: &str, desired: &Desired) -> Result<StateReturn, CallError> {
    let groups: Value = desired.groups.iter().flatten().chain(&desired.optional_groups).collect();
    let mut args = map! {
        "uid" => desired.uid.clone(), "gid" => desired.gid.clone(), "groups" => groups, "home" => desired.home.clone(),
        "shell" => desired.shell.clone(), "unique" => desired.unique, "system" => desired.system,
        "createhome" => desired.createhome, "nologinit" => desired.nologinit, "usergroup" => desired.usergroup,
        "local" => desired.local,
    };
    for (key, text) in GECOS.iter().zip(&desired.gecos) {
        args.insert((*key).into(), text.clone().unwrap_or_default().into());
    }
    let added = context.call.call("user.add", Args { positional: vec![name.into()], keyword: args })?;
    if !added.is_truthy() {
        return Ok(StateReturn::failed(name, format!("Failed to create new user {name}")));
    }
    let now = Accounts::read();
    let mut changes = now.user(name).map(|user| describe(user, &now)).unwrap_or_default();
    if !desired.createhome {
        changes.insert("home".into(), "".into());
    }
    let mut failure = None;
    let password = desired.password.as_ref().filter(|password| !password.is_empty());
    if let Some(password) = password.filter(|_| !desired.empty_password) {
        if !shadow::set(&context.call, name, password)? {
            failure = Some(format!("User {name} created but failed to set password to {HIDDEN}"));
        }
        changes.insert("password".into(), HIDDEN.into());
    }
    if desired.empty_password && password.is_none() {
        if !call(context, "shadow.del_password", &[name.into()])? {
            failure = Some(format!("User {name} created but failed to empty password"));
        }
        changes.insert("password".into(), "".into());
    }
    let is_set = |days: &Value| !days.is_nil();
    for (key, days, is_said, words, of) in [
        ("date", &desired.date, is_set as fn(&Value) -> bool, "last change date", (|s| s.lstchg) as fn(&Shadow) -> i64),
        ("mindays", &desired.mindays, Value::is_truthy, "minimum days", |s| s.min),
        ("maxdays", &desired.maxdays, Value::is_truthy, "maximum days", |s| s.max),
        ("inactdays", &desired.inactdays, Value::is_truthy, "inactive days", |s| s.inact),
        ("warndays", &desired.warndays, Value::is_truthy, "warn days", |s| s.warn),
        ("expire", &desired.expire, Value::is_truthy, "expire days", |s| s.expire),
    ] {
        if !is_said(days) {
            continue;
        }
        call(context, &format!("shadow.set_{key}"), &[name.into(), days.clone()])?;
        if Shadow::of(name).is_none_or(|shadow| Value::from(of(&shadow)) != *days) {
            failure = Some(format!("User {name} created but failed to set {words} to {days}"));
        }
        changes.insert(key.into(), days.clone());
    }
    let outcome = match failure {
        Some(comment) => StateReturn::failed(name, comment),
        None => StateReturn::ok(name, format!("New user {name} created")),
    };
    Ok(outcome.with_changes(changes))
}

#[cfg(test)]
mod tests;

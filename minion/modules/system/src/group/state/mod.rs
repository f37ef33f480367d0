//! `group`: states of groups.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::accounts::{Accounts, GroupEntry};
use brine_value::{FromValue, Map, Value, map};

use crate::user::describe_group;
use brine_function::arguments::names;

/// State functions of `group`.
pub static FUNCTIONS: Functions<StateContext> = registry!("group", [present, absent]);

/// The arguments of `group.present`.
#[derive(Args)]
pub struct PresentArgs {
    /// Name of the group.
    name: String,
    /// Group id; the next free one by default.
    #[default]
    gid: Value,
    /// Whether a new group gets an id in the range of system groups.
    #[default(false)]
    system: bool,
    /// Users that are members.
    addusers: Option<Value>,
    /// Users that are not members.
    delusers: Option<Value>,
    /// Exact list of members.
    members: Option<Value>,
    /// Whether another group may have the same id.
    #[default(false)]
    non_unique: bool,
    /// Whether only local groups are managed, by the programs of libuser.
    #[default(false)]
    local: bool,
}

/// Ensure that a group exists with this GID and these members; unset properties are left unchanged.
///
/// `members` excludes `addusers` and `delusers`.
///
/// SLS Example:
///
///     developers:
///       group.present:
///         - gid: 3000
///         - addusers:
///           - alice
///           - bob
///
///     admins:
///       group.present:
///         - system: True
///         - members:
///           - alice
#[function]
pub fn present(context: &StateContext, #[args] args: PresentArgs) -> CallResult {
    let list = |users: Option<Value>| users.map(|users| names(&users));
    let desired = Desired {
        gid: args.gid,
        system: args.system,
        non_unique: args.non_unique,
        local: args.local,
        add: list(args.addusers),
        remove: list(args.delusers),
        members: list(args.members),
    };
    match present_state(context, &args.name, &desired, &Accounts::read()) {
        Err(CallError::Execution(message)) => Ok(StateReturn::failed(&args.name, message).into()),
        result => result.map(Into::into),
    }
}

/// Ensure that a group is absent.
///
/// SLS Example:
///
///     oldgroup:
///       group.absent: []
#[function]
pub fn absent(
    context: &StateContext,
    /// Name of the group.
    name: String,
    /// Whether only local groups are managed, by the programs of libuser.
    #[default(false)]
    local: bool,
) -> CallResult {
    if Accounts::read().group(&name).is_none() {
        return Ok(StateReturn::ok(&name, "Group not present").into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("Group {name} is set for removal")).into());
    }
    if !call(context, "group.delete", &[name.as_str().into(), local.into()])? {
        return Ok(StateReturn::failed(&name, format!("Failed to remove group {name}")).into());
    }
    Ok(StateReturn::ok(&name, format!("Removed group {name}")).with_changes(map! {name.as_str() => ""}).into())
}

/// The desired group.
#[derive(Default)]
struct Desired {
    gid: Value,
    system: bool,
    non_unique: bool,
    local: bool,
    add: Option<Vec<String>>,
    remove: Option<Vec<String>>,
    members: Option<Vec<String>>,
}

impl Desired {
    /// Returns the differences, in Salt's order.
    fn differences(&self, group: &GroupEntry) -> Map {
        let mut changes = Map::new();
        if self.gid.is_truthy() {
            match u32::from_value(&self.gid) {
                None => return map! {"result" => false, "comment" => "Invalid gid"},
                Some(gid) if gid != group.gid => drop(changes.insert("gid".into(), gid.into())),
                Some(_) => {}
            }
        }
        let sorted = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort();
            names.dedup();
            names
        };
        if let Some(members) = self.members.as_ref().filter(|members| sorted(members) != sorted(&group.members)) {
            let (key, users) = if members.is_empty() { ("delusers", &group.members) } else { ("members", members) };
            changes.insert(key.into(), users.clone().into());
        }
        for (key, users, inside) in [("addusers", &self.add, false), ("delusers", &self.remove, true)] {
            let users: Vec<String> =
                users.iter().flatten().filter(|user| group.members.contains(user) == inside).cloned().collect();
            if !users.is_empty() {
                changes.insert(key.into(), users.into());
            }
        }
        changes
    }
}

fn call(context: &StateContext, function: &str, args: &[Value]) -> Result<bool, CallError> {
    Ok(context.call.call(function, Args::positional(args.iter().cloned()))?.is_truthy())
}

fn present_state(
    context: &StateContext,
    name: &str,
    desired: &Desired,
    accounts: &Accounts,
) -> Result<StateReturn, CallError> {
    if desired.members.is_some() && (desired.add.is_some() || desired.remove.is_some()) {
        let comment =
            "Error: Conflicting options \"members\" with \"addusers\" and/or \"delusers\" can not be used together. ";
        return Ok(StateReturn::predicted(name, comment));
    }
    let mut removed = desired.remove.iter().flatten();
    if removed.any(|user| desired.add.iter().flatten().any(|added| added == user)) {
        return Ok(StateReturn::predicted(name, "Error. Same user(s) can not be added and deleted simultaneously"));
    }
    let Some(group) = accounts.group(name) else {
        return if context.test {
            Ok(StateReturn::predicted(name, format!("Group {name} set to be added")))
        } else {
            add(context, name, desired, accounts)
        };
    };
    let changes = desired.differences(group);
    if changes.is_empty() {
        return Ok(StateReturn::ok(name, format!("Group {name} is present and up to date")));
    }
    // Salt reports the removed members as a set.
    let is_set = |key: &Value| desired.members.is_some() && key.as_str() == Some("delusers");
    let show = |key: &Value, value: &Value| match value.to_string() {
        text if is_set(key) => format!("{{{}}}", text.trim_matches(['[', ']'])),
        text => text,
    };
    let lines: Vec<String> = changes.iter().map(|(key, value)| format!("{key}: {}\n", show(key, value))).collect();
    let comment = format!("The following group attributes are set to be changed:\n{}", lines.concat());
    if context.test {
        return Ok(StateReturn::predicted(name, comment));
    }
    for (key, value) in &changes {
        let function = match key.as_str() {
            Some("gid") => {
                call(context, "group.chgid", &[name.into(), value.clone(), desired.non_unique.into()])?;
                continue;
            }
            Some("members") => {
                call(context, "group.members", &[name.into(), value.clone()])?;
                continue;
            }
            Some("addusers") => "group.adduser",
            _ => "group.deluser",
        };
        for user in value.as_list().unwrap_or_default() {
            call(context, function, &[name.into(), user.clone()])?;
        }
    }
    let left = Accounts::read().group(name).map(|group| desired.differences(group)).unwrap_or_default();
    if !left.is_empty() {
        let failed = StateReturn::failed(name, format!("{comment}Some changes could not be applied"));
        return Ok(failed.with_changes(map! {"Failed" => left}));
    }
    Ok(StateReturn::ok(name, comment).with_changes(map! {"Final" => "All changes applied successfully"}))
}

fn add(context: &StateContext, name: &str, desired: &Desired, accounts: &Accounts) -> Result<StateReturn, CallError> {
    let taken = accounts.groups.iter().find(|group| Value::from(group.gid) == desired.gid && !desired.non_unique);
    if let Some(taken) = taken {
        let comment =
            format!("Group {name} is not present but gid {} is already taken by group {}", taken.gid, taken.name);
        return Ok(StateReturn::failed(name, comment));
    }
    let args = map! {
        "gid" => desired.gid.clone(), "system" => desired.system, "non_unique" => desired.non_unique, "local" => desired.local,
    };
    let added = context.call.call("group.add", Args { positional: vec![name.into()], keyword: args })?;
    if !added.is_truthy() {
        return Ok(StateReturn::failed(name, format!("Failed to create new group {name}")));
    }
    let filled = |users: &Option<Vec<String>>| users.clone().filter(|users| !users.is_empty());
    if let Some(members) = filled(&desired.add).or_else(|| filled(&desired.members)) {
        call(context, "group.members", &[name.into(), members.into()])?;
    }
    let now = Accounts::read();
    let Some(group) = now.group(name) else {
        return Ok(StateReturn::failed(name, format!("Group {name} is gone")));
    };
    let left = desired.differences(group);
    if !left.is_empty() {
        let comment = format!("Group {name} has been created but, some changes could not be applied");
        return Ok(StateReturn::failed(name, comment).with_changes(map! {"Failed" => left}));
    }
    Ok(StateReturn::ok(name, format!("New group {name} created")).with_changes(describe_group(group)))
}

#[cfg(test)]
mod tests;

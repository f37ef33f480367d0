//! `group`: groups as states.

use brine_core::function::{Args, CallError};
use brine_core::{Map, Value, functions, map};

use super::{StateContext, StateReturn};
use crate::modules::accounts::Accounts;
use crate::modules::user::{describe_group, names};

functions! {
    module "group", context StateContext;

    /// A group with this number and these members; what is not said stays.
    fn present(
        context,
        name: String,
        gid: Option<u32> = None,
        system: bool = false,
        addusers: Value = Value::Nil,
        delusers: Value = Value::Nil,
        members: Option<Value> = None,
        non_unique: bool = false,
        **_kwargs
    ) {
        let wanted = Wanted {
            gid, system, non_unique, add: names(&addusers), remove: names(&delusers), members: members.map(|members| names(&members)),
        };
        match present_state(context, &name, &wanted, &Accounts::read()) {
            Err(CallError::Execution(message)) => Ok(StateReturn::failed(&name, message).into()),
            done => done.map(Into::into),
        }
    }

    /// No group of this name.
    fn absent(context, name: String, **_kwargs) {
        if Accounts::read().group(&name).is_none() {
            return Ok(StateReturn::ok(&name, "Group not present").into());
        }
        if context.test {
            return Ok(StateReturn::would(&name, format!("Group {name} is set for removal")).into());
        }
        if !call(context, "group.delete", &[name.as_str().into()])? {
            return Ok(StateReturn::failed(&name, format!("Failed to remove group {name}")).into());
        }
        Ok(StateReturn::ok(&name, format!("Removed group {name}")).with_changes(map! {name.as_str() => ""}).into())
    }
}

/// How a group should be.
#[derive(Default)]
struct Wanted {
    gid: Option<u32>,
    system: bool,
    non_unique: bool,
    add: Vec<String>,
    remove: Vec<String>,
    members: Option<Vec<String>>,
}

fn call(context: &StateContext, function: &str, args: &[Value]) -> Result<bool, CallError> {
    Ok(context.call.call(function, Args::positional(args.iter().cloned()))?.is_truthy())
}

fn present_state(
    context: &StateContext,
    name: &str,
    wanted: &Wanted,
    accounts: &Accounts,
) -> Result<StateReturn, CallError> {
    if wanted.members.is_some() && !(wanted.add.is_empty() && wanted.remove.is_empty()) {
        let comment =
            "Error: Conflicting options \"members\" with \"addusers\" and/or \"delusers\" can not be used together. ";
        return Ok(StateReturn {
            result: if context.test { None } else { Some(false) },
            ..StateReturn::ok(name, comment)
        });
    }
    if let Some(both) = wanted.add.iter().find(|user| wanted.remove.contains(user)) {
        let comment = format!("Error. Same user(s) can not be added and deleted simultaneously: {both}");
        return Ok(StateReturn::failed(name, comment));
    }
    let Some(group) = accounts.group(name) else {
        if context.test {
            return Ok(StateReturn::would(name, format!("Group {name} set to be added")));
        }
        if let Some(taken) = accounts.groups.iter().find(|group| Some(group.gid) == wanted.gid && !wanted.non_unique) {
            let comment =
                format!("Group {name} is not present but gid {} is already taken by group {}", taken.gid, taken.name);
            return Ok(StateReturn::failed(name, comment));
        }
        let args = map! {"gid" => wanted.gid, "system" => wanted.system, "non_unique" => wanted.non_unique};
        let added = context.call.call("group.add", Args { positional: vec![name.into()], keyword: args })?;
        if !added.is_truthy() {
            return Ok(StateReturn::failed(name, format!("Failed to create new group {name}")));
        }
        for user in wanted.add.iter().chain(wanted.members.iter().flatten()) {
            if !call(context, "group.adduser", &[name.into(), user.into()])? {
                return Ok(StateReturn::failed(
                    name,
                    format!("Group {name} has been created but, some changes could not be applied"),
                ));
            }
        }
        let changes = Accounts::read().group(name).map(describe_group).unwrap_or_default();
        return Ok(StateReturn::ok(name, format!("New group {name} created")).with_changes(changes));
    };
    let mut changes = Map::new();
    if let Some(gid) = wanted.gid.filter(|gid| *gid != group.gid) {
        changes.insert("gid".into(), gid.into());
    }
    if let Some(members) = &wanted.members {
        let (mut have, mut asked) = (group.members.clone(), members.clone());
        have.sort();
        asked.sort();
        if have != asked {
            changes.insert("members".into(), members.clone().into());
        }
    }
    let users = |list: &[String], inside: bool| -> Vec<String> {
        list.iter().filter(|user| group.members.contains(user) == inside).cloned().collect()
    };
    for (key, list) in [("addusers", users(&wanted.add, false)), ("delusers", users(&wanted.remove, true))] {
        if !list.is_empty() {
            changes.insert(key.into(), list.into());
        }
    }
    if changes.is_empty() {
        return Ok(StateReturn::ok(name, format!("Group {name} is present and up to date")));
    }
    let lines: Vec<String> = changes.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
    let comment = format!("The following group attributes are set to be changed:\n{}", lines.concat());
    if context.test {
        return Ok(StateReturn::would(name, comment));
    }
    for (key, value) in &changes {
        let done = match key.as_str() {
            Some("gid") => call(context, "group.chgid", &[name.into(), value.clone()])?,
            Some("members") => call(context, "group.members", &[name.into(), value.clone()])?,
            key => {
                let function = if key == Some("addusers") { "group.adduser" } else { "group.deluser" };
                let mut all = true;
                for user in value.as_list().unwrap_or_default() {
                    all &= call(context, function, &[name.into(), user.clone()])?;
                }
                all
            }
        };
        if !done {
            let failed = StateReturn::failed(name, format!("{comment}Some changes could not be applied"));
            return Ok(failed.with_changes(map! {"Failed" => map! {key.clone() => value.clone()}}));
        }
    }
    Ok(StateReturn::ok(name, comment).with_changes(map! {"Final" => "All changes applied successfully"}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn groups_are_told_as_salt_tells_them() {
        let accounts = Accounts::parse("", "adm:x:4:fred,ann\nweb:x:5:\n");
        let context = testing::state_context(true, &[]);
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut told = String::new();
        for (name, wanted) in [
            ("adm", Wanted::default()),
            ("adm", Wanted { gid: Some(4), members: Some(list(&["ann", "fred"])), ..Wanted::default() }),
            ("adm", Wanted { gid: Some(7), ..Wanted::default() }),
            ("adm", Wanted { members: Some(list(&["ann"])), ..Wanted::default() }),
            ("adm", Wanted { add: list(&["ann", "joe"]), remove: list(&["fred", "sue"]), ..Wanted::default() }),
            ("adm", Wanted { add: list(&["ann"]), members: Some(list(&["ann"])), ..Wanted::default() }),
            ("adm", Wanted { add: list(&["ann"]), remove: list(&["ann"]), ..Wanted::default() }),
            ("new", Wanted::default()),
        ] {
            let done = present_state(&context, name, &wanted, &accounts).unwrap();
            told = format!("{told}{}: {}\n", Value::from(done.result), done.comment);
        }
        insta::assert_snapshot!(told, @r#"
        True: Group adm is present and up to date
        True: Group adm is present and up to date
        None: The following group attributes are set to be changed:
        gid: 7

        None: The following group attributes are set to be changed:
        members: ['ann']

        None: The following group attributes are set to be changed:
        addusers: ['joe']
        delusers: ['fred']

        None: Error: Conflicting options "members" with "addusers" and/or "delusers" can not be used together. 
        False: Error. Same user(s) can not be added and deleted simultaneously: ann
        None: Group new set to be added
        "#);
        let taken = Wanted { gid: Some(4), ..Wanted::default() };
        let done = present_state(&testing::state_context(false, &[]), "new", &taken, &accounts).unwrap();
        assert_eq!(done.comment, "Group new is not present but gid 4 is already taken by group adm");
    }

    #[test]
    fn groups_of_this_host_are_left_alone_in_test_mode() {
        let context = testing::state_context(true, &[]);
        for (name, comment) in [("root", "Group root is set for removal"), ("nobody_here", "Group not present")] {
            let args = Args::keyword(map! {"name" => name});
            let done = context.call.minion.states.call(&context, "group.absent", args).unwrap();
            assert_eq!(done.get("comment"), Some(&comment.into()));
        }
    }
}

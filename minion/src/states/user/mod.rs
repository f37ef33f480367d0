//! `user`: users as states.

use brine_core::function::{Args, CallError};
use brine_core::{Map, Value, functions, map};

use super::{StateContext, StateReturn};
use crate::modules::accounts::{Account, Accounts};
use crate::modules::user::{describe, names, set_password};

const HIDDEN: &str = "XXX-REDACTED-XXX";

functions! {
    module "user", context StateContext;

    /// A user with these properties; what is not said stays.
    fn present(
        context,
        name: String,
        uid: Option<u32> = None,
        gid: Value = Value::Nil,
        usergroup: Option<bool> = None,
        groups: Option<Value> = None,
        optional_groups: Value = Value::Nil,
        remove_groups: bool = true,
        home: Option<String> = None,
        createhome: bool = true,
        password: Option<String> = None,
        shell: Option<String> = None,
        unique: bool = true,
        system: bool = false,
        fullname: Option<String> = None,
        allow_uid_change: bool = false,
        allow_gid_change: bool = false,
        **_kwargs
    ) {
        // useradd gives a user a group of its own unless another is said.
        _ = usergroup;
        let wanted = Wanted {
            uid, gid, groups: groups.map(|groups| names(&groups)), optional_groups: names(&optional_groups), remove_groups, home,
            createhome, password, shell, unique, system, fullname, allow_uid_change, allow_gid_change,
        };
        match present_state(context, &name, &wanted, &Accounts::read()) {
            Err(CallError::Execution(message)) => Ok(StateReturn::failed(&name, message).into()),
            done => done.map(Into::into),
        }
    }

    /// No user of this name; `purge` takes the home folder too.
    fn absent(context, name: String, purge: bool = false, force: bool = false, **_kwargs) {
        if Accounts::read().user(&name).is_none() {
            return Ok(StateReturn::ok(&name, format!("User {name} is not present")).into());
        }
        if context.test {
            return Ok(StateReturn::would(&name, format!("User {name} set for removal")).into());
        }
        let before = Accounts::read();
        let removed = call(context, "user.delete", &[name.as_str().into(), purge.into(), force.into()])?;
        if !removed {
            return Ok(StateReturn::failed(&name, format!("Failed to remove user {name}")).into());
        }
        let after = Accounts::read();
        let mut changes = map! {name.as_str() => "removed"};
        for group in before.groups.iter().filter(|group| after.group(&group.name).is_none()) {
            changes.insert(format!("{} group", group.name).into(), "removed".into());
        }
        Ok(StateReturn::ok(&name, format!("Removed user {name}")).with_changes(changes).into())
    }
}

/// How a user should be.
#[derive(Default)]
struct Wanted {
    uid: Option<u32>,
    gid: Value,
    groups: Option<Vec<String>>,
    optional_groups: Vec<String>,
    remove_groups: bool,
    home: Option<String>,
    createhome: bool,
    password: Option<String>,
    shell: Option<String>,
    unique: bool,
    system: bool,
    fullname: Option<String>,
    allow_uid_change: bool,
    allow_gid_change: bool,
}

fn call(context: &StateContext, function: &str, args: &[Value]) -> Result<bool, CallError> {
    Ok(context.call.call(function, Args::positional(args.iter().cloned()))?.is_truthy())
}

/// The hash of a user's password.
fn hash_of(name: &str) -> Option<String> {
    let shadow = std::fs::read_to_string("/etc/shadow").ok()?;
    shadow.lines().find_map(|line| {
        let (user, rest) = line.split_once(':')?;
        (user == name).then(|| rest.split(':').next().unwrap_or_default().to_owned())
    })
}

impl Wanted {
    /// The number of the own group that is asked for.
    fn group_number(&self, accounts: &Accounts) -> Result<Option<u32>, String> {
        if self.gid.is_nil() {
            return Ok(None);
        }
        let text = self.gid.to_string();
        let found = text.parse().ok().or_else(|| accounts.group(&text).map(|group| group.gid));
        found.map(Some).ok_or_else(|| format!("Default group with name \"{text}\" is not present"))
    }

    /// What differs, in the order in which Salt tells it; or what may not be changed.
    fn differences(&self, user: &Account, accounts: &Accounts, hash: Option<&str>) -> Result<Map, String> {
        let mut changes = Map::new();
        let mut refused = Vec::new();
        if let Some(uid) = self.uid.filter(|uid| *uid != user.uid) {
            changes.insert("uid".into(), uid.into());
            if !self.allow_uid_change {
                refused.push(format!(
                    "Changing uid ({} -> {uid}) not permitted, set allow_uid_change to True to force this change. \
                     Note that this will not change file ownership.",
                    user.uid
                ));
            }
        }
        if let Some(gid) = self.group_number(accounts)?.filter(|gid| *gid != user.gid) {
            changes.insert("gid".into(), gid.into());
            if !self.allow_gid_change {
                refused.push(format!(
                    "Changing gid ({} -> {gid}) not permitted, set allow_gid_change to True to force this change. \
                     Note that this will not change file ownership.",
                    user.gid
                ));
            }
        }
        if !refused.is_empty() {
            let list: Vec<String> = refused.iter().map(|line| format!("- {line}")).collect();
            return Err(format!(
                "Encountered error checking for needed changes. Additional info follows:\n\n{}",
                list.join("\n")
            ));
        }
        if let Some(groups) = self.all_groups(user, accounts) {
            changes.insert("groups".into(), groups.into());
        }
        if let Some(home) = self.home.as_ref().filter(|home| **home != user.home) {
            changes.insert("home".into(), home.into());
        }
        let home = self.home.as_ref().unwrap_or(&user.home);
        if self.createhome && !std::path::Path::new(home).is_dir() {
            changes.insert("homeDoesNotExist".into(), home.into());
        }
        if let Some(shell) = self.shell.as_ref().filter(|shell| **shell != user.shell) {
            changes.insert("shell".into(), shell.into());
        }
        if self.password.as_deref().is_some_and(|password| hash != Some(password)) {
            changes.insert("passwd".into(), HIDDEN.into());
        }
        let fullname = user.gecos.split(',').next().unwrap_or_default();
        if let Some(wanted) = self.fullname.as_ref().filter(|wanted| *wanted != fullname) {
            changes.insert("fullname".into(), wanted.into());
        }
        Ok(changes)
    }

    /// The further groups that the user should be in, if those differ from what they are.
    fn all_groups(&self, user: &Account, accounts: &Accounts) -> Option<Vec<String>> {
        let asked = self.groups.as_ref()?;
        let own = accounts.groups.iter().find(|group| group.gid == user.gid).map(|group| group.name.clone());
        let have: Vec<String> =
            accounts.groups_of(&user.name).into_iter().filter(|name| Some(name) != own.as_ref()).collect();
        let optional = self.optional_groups.iter().filter(|name| accounts.group(name).is_some());
        let mut wanted: Vec<String> =
            asked.iter().chain(optional).filter(|name| Some(*name) != own.as_ref()).cloned().collect();
        if !self.remove_groups {
            wanted.extend(have.iter().cloned());
        }
        wanted.sort();
        wanted.dedup();
        (wanted != have).then_some(wanted)
    }
}

fn present_state(
    context: &StateContext,
    name: &str,
    wanted: &Wanted,
    accounts: &Accounts,
) -> Result<StateReturn, CallError> {
    let groups = wanted.groups.iter().flatten();
    let missing: Vec<&str> = groups.filter(|group| accounts.group(group).is_none()).map(String::as_str).collect();
    let Some(user) = accounts.user(name) else {
        if context.test {
            let pending =
                if missing.is_empty() { String::new() } else { format!(" (pending groups: {})", missing.join(",")) };
            return Ok(StateReturn::would(name, format!("User {name} set to be added{pending}")));
        }
        if !missing.is_empty() {
            let comment = format!("The following group(s) are not present: {}", missing.join(","));
            return Ok(StateReturn::failed(name, comment));
        }
        return add(context, name, wanted, accounts);
    };
    if !missing.is_empty() {
        let comment = format!("The following group(s) are not present: {}", missing.join(","));
        return Ok(StateReturn::failed(name, comment));
    }
    let changes = match wanted.differences(user, accounts, hash_of(name).as_deref()) {
        Ok(changes) => changes,
        Err(comment) => return Ok(StateReturn::failed(name, comment)),
    };
    if changes.is_empty() {
        return Ok(StateReturn::ok(name, format!("User {name} is present and up to date")));
    }
    if context.test {
        let lines: Vec<String> = changes.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
        let comment = format!("The following user attributes are set to be changed:\n{}", lines.concat());
        return Ok(StateReturn::would(name, comment));
    }
    let mut done = Map::new();
    for (key, value) in &changes {
        let key = key.to_string();
        let changed = match key.as_str() {
            "uid" => call(context, "user.chuid", &[name.into(), value.clone()])?,
            "gid" => call(context, "user.chgid", &[name.into(), value.clone()])?,
            "groups" => call(context, "user.chgroups", &[name.into(), value.clone()])?,
            "home" => call(context, "user.chhome", &[name.into(), value.clone()])?,
            "shell" => call(context, "user.chshell", &[name.into(), value.clone()])?,
            "fullname" => call(context, "user.chfullname", &[name.into(), value.clone()])?,
            "homeDoesNotExist" => make_home(name, &value.to_string(), accounts)?,
            _ => set_password(&context.call, name, wanted.password.as_deref().unwrap_or_default())?,
        };
        if !changed {
            return Ok(
                StateReturn::failed(name, format!("These values could not be changed: {key}")).with_changes(done)
            );
        }
        done.insert(key.into(), value.clone());
    }
    Ok(StateReturn::ok(name, format!("Updated user {name}")).with_changes(done))
}

/// Makes a home folder that only its owner reads.
fn make_home(name: &str, home: &str, accounts: &Accounts) -> Result<bool, CallError> {
    let Some(user) = accounts.user(name) else { return Ok(false) };
    std::fs::create_dir_all(home).map_err(CallError::execution)?;
    std::fs::set_permissions(home, std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .map_err(CallError::execution)?;
    std::os::unix::fs::chown(home, Some(user.uid), Some(user.gid)).map_err(CallError::execution)?;
    Ok(true)
}

fn add(context: &StateContext, name: &str, wanted: &Wanted, accounts: &Accounts) -> Result<StateReturn, CallError> {
    let optional = wanted.optional_groups.iter().filter(|group| accounts.group(group).is_some());
    let groups: Value = wanted.groups.iter().flatten().chain(optional).collect();
    let args = map! {
        "uid" => wanted.uid, "gid" => wanted.gid.clone(), "groups" => groups, "home" => wanted.home.clone(),
        "shell" => wanted.shell.clone(), "unique" => wanted.unique, "system" => wanted.system,
        "fullname" => wanted.fullname.clone().unwrap_or_default(), "createhome" => wanted.createhome,
    };
    let added = context.call.call("user.add", Args { positional: vec![name.into()], keyword: args })?;
    if !added.is_truthy() {
        return Ok(StateReturn::failed(name, format!("Failed to create new user {name}")));
    }
    let now = Accounts::read();
    let mut changes = now.user(name).map(|user| describe(user, &now)).unwrap_or_default();
    if let Some(password) = &wanted.password {
        if !set_password(&context.call, name, password)? {
            let comment = format!("User {name} created but failed to set password to {HIDDEN}");
            return Ok(StateReturn::failed(name, comment).with_changes(changes));
        }
        changes.insert("passwd".into(), HIDDEN.into());
    }
    Ok(StateReturn::ok(name, format!("New user {name} created")).with_changes(changes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn accounts() -> Accounts {
        Accounts::parse(
            "root:x:0:0:root:/root:/bin/bash\nfred:x:1000:1000:Fred,1:/tmp:/bin/sh\n",
            "root:x:0:\nfred:x:1000:\nadm:x:4:fred\nweb:x:5:\n",
        )
    }

    fn would(name: &str, wanted: &Wanted) -> String {
        let done = present_state(&testing::state_context(true, &[]), name, wanted, &accounts()).unwrap();
        assert_eq!(done.changes, Map::new());
        format!("{}: {}", Value::from(done.result), done.comment)
    }

    fn list(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn users_are_told_as_salt_tells_them() {
        let base = || Wanted { remove_groups: true, createhome: true, ..Wanted::default() };
        let mut told = String::new();
        for (name, wanted) in [
            ("fred", base()),
            (
                "fred",
                Wanted { groups: list(&["adm"]), fullname: Some("Fred".into()), home: Some("/tmp".into()), ..base() },
            ),
            ("fred", Wanted { groups: list(&["web"]), ..base() }),
            ("fred", Wanted { groups: list(&["web"]), remove_groups: false, ..base() }),
            ("fred", Wanted { groups: list(&["adm"]), optional_groups: vec!["web".into(), "nosuch".into()], ..base() }),
            (
                "fred",
                Wanted {
                    shell: Some("/bin/bash".into()),
                    home: Some("/no/such".into()),
                    fullname: Some("F".into()),
                    ..base()
                },
            ),
            ("fred", Wanted { uid: Some(5), ..base() }),
            (
                "fred",
                Wanted { uid: Some(5), gid: "adm".into(), allow_uid_change: true, allow_gid_change: true, ..base() },
            ),
            ("fred", Wanted { gid: "nosuch".into(), ..base() }),
            ("fred", Wanted { groups: list(&["nosuch"]), ..base() }),
            ("fred", Wanted { password: Some("$6$secret".into()), ..base() }),
            ("ann", base()),
            ("ann", Wanted { groups: list(&["adm", "nosuch"]), ..base() }),
        ] {
            told = format!("{told}{}\n", would(name, &wanted));
        }
        insta::assert_snapshot!(told, @r#"
        True: User fred is present and up to date
        True: User fred is present and up to date
        None: The following user attributes are set to be changed:
        groups: ['web']

        None: The following user attributes are set to be changed:
        groups: ['adm', 'web']

        None: The following user attributes are set to be changed:
        groups: ['adm', 'web']

        None: The following user attributes are set to be changed:
        home: /no/such
        homeDoesNotExist: /no/such
        shell: /bin/bash
        fullname: F

        False: Encountered error checking for needed changes. Additional info follows:

        - Changing uid (1000 -> 5) not permitted, set allow_uid_change to True to force this change. Note that this will not change file ownership.
        None: The following user attributes are set to be changed:
        uid: 5
        gid: 4

        False: Default group with name "nosuch" is not present
        False: The following group(s) are not present: nosuch
        None: The following user attributes are set to be changed:
        passwd: XXX-REDACTED-XXX

        None: User ann set to be added
        None: User ann set to be added (pending groups: nosuch)
        "#);
    }

    #[test]
    fn users_of_this_host_are_left_alone_in_test_mode() {
        let context = testing::state_context(true, &[]);
        for (name, comment) in
            [("root", "User root set for removal"), ("nobody_here", "User nobody_here is not present")]
        {
            let args = Args::keyword(map! {"name" => name});
            let done = context.call.minion.states.call(&context, "user.absent", args).unwrap();
            assert_eq!(done.get("comment"), Some(&comment.into()));
        }
    }
}

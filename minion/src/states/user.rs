//! `user`: accounts as states.

use brine_core::function::CallError;
use brine_core::{Map, Value, functions, map};

use super::{StateContext, StateReturn};
use crate::context::Context;
use crate::modules::accounts::Accounts;
use crate::modules::{programs, user};

functions! {
    module "user", context StateContext;

    /// An account with these properties: uid, gid, groups, home, shell, fullname, createhome, system.
    fn present(context, name: String, **kwargs) {
        let there = account(&name);
        let differs = there.as_ref().map(|account| differences(account, &kwargs));
        if differs.as_ref().is_some_and(Map::is_empty) {
            return Ok(StateReturn::ok(&name, format!("User {name} is present and up to date")).into());
        }
        if context.test {
            let comment = match &differs {
                None => format!("User {name} set to be added"),
                Some(differs) => {
                    let told: Vec<String> = differs.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
                    format!("The following user attributes are set to be changed:\n{}", told.concat())
                }
            };
            return Ok(StateReturn::would(&name, comment).into());
        }
        let changed = match &differs {
            None => change(&context.call, "useradd", &options(&kwargs), &name),
            Some(differs) => {
                let mut words = options(differs);
                // Moving in or out is not what usermod is asked for here.
                words.retain(|word| word != "-m" && word != "-M");
                change(&context.call, "usermod", &words, &name)
            }
        };
        match changed {
            Ok(()) => {
                let comment = if differs.is_none() { format!("New user {name} created") } else { format!("Updated user {name}") };
                let changes = differs.unwrap_or_else(|| account(&name).unwrap_or_default());
                Ok(StateReturn::ok(&name, comment).with_changes(changes).into())
            }
            Err(CallError::Execution(message)) => Ok(StateReturn::failed(&name, format!("Failed to create user {name}: {message}")).into()),
            Err(error) => Err(error),
        }
    }

    /// No account of this name.
    fn absent(context, name: String, purge: bool = false, force: bool = false, **_kwargs) {
        if account(&name).is_none() {
            return Ok(StateReturn::ok(&name, format!("User {name} is not present")).into());
        }
        if context.test {
            return Ok(StateReturn::would(&name, format!("User {name} set for removal")).into());
        }
        match user::delete(&context.call, name.clone(), purge, force) {
            Ok(_) => Ok(StateReturn::ok(&name, format!("Removed user {name}")).with_changes(map! {&name => "removed"}).into()),
            Err(CallError::Execution(message)) => Ok(StateReturn::failed(&name, format!("Failed to remove user {name}: {message}")).into()),
            Err(error) => Err(error),
        }
    }
}

/// An account as `user.info` tells it.
fn account(name: &str) -> Option<Map> {
    let accounts = Accounts::read();
    accounts.user(name).map(|account| user::describe(account, &accounts))
}

/// The options of useradd and usermod that these arguments mean.
fn options(kwargs: &Map) -> Vec<String> {
    let mut words = Vec::new();
    let mut add = |name: &str, flag: &str| {
        if let Some(value) = kwargs.get(name).filter(|value| !value.is_nil()) {
            let text = match value {
                Value::List(items) => items.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
                other => other.to_string(),
            };
            words.extend([flag.to_owned(), text]);
        }
    };
    for (name, flag) in
        [("uid", "-u"), ("gid", "-g"), ("groups", "-G"), ("home", "-d"), ("shell", "-s"), ("fullname", "-c")]
    {
        add(name, flag);
    }
    match kwargs.get("createhome").or(kwargs.get("home_created")) {
        Some(wanted) if !wanted.is_truthy() => words.push("-M".into()),
        _ => words.push("-m".into()),
    }
    if kwargs.get("system").is_some_and(Value::is_truthy) {
        words.push("-r".into());
    }
    words
}

/// Runs a program of the shadow suite.
fn change(context: &Context, program: &str, words: &[String], name: &str) -> Result<(), CallError> {
    let name = programs::argument(name)?;
    let line: Vec<String> = [program.to_owned()].into_iter().chain(words.iter().cloned()).chain([name]).collect();
    let output = programs::run(context, &line, &[])?;
    if output.retcode == 0 { Ok(()) } else { Err(CallError::Execution(output.stderr)) }
}

/// The properties that an account does not have as they are wanted.
fn differences(account: &Map, wanted: &Map) -> Map {
    let mut differs = Map::new();
    for name in ["uid", "gid", "home", "shell", "fullname"] {
        let Some(value) = wanted.get(name).filter(|value| !value.is_nil()) else { continue };
        if account.get(name).is_none_or(|have| have.to_string() != value.to_string()) {
            differs.insert(name.into(), value.clone());
        }
    }
    if let Some(Value::List(groups)) = wanted.get("groups") {
        let have = account.get("groups").and_then(Value::as_list).unwrap_or_default();
        if groups.iter().any(|group| !have.contains(group)) {
            differs.insert("groups".into(), groups.clone().into());
        }
    }
    differs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn accounts_are_compared_and_only_told_in_test_mode() {
        let context = testing::state_context(true, &[]);
        let run = |fun: &str, args| {
            context.call.minion.states.call(&context, fun, brine_core::function::Args::keyword(args)).unwrap()
        };
        for (fun, args, result, comment) in [
            (
                "user.present",
                map! {"name" => "root", "uid" => 0},
                Value::Bool(true),
                "User root is present and up to date",
            ),
            ("user.present", map! {"name" => "no_such"}, Value::Nil, "User no_such set to be added"),
            (
                "user.present",
                map! {"name" => "root", "shell" => "/bin/no"},
                Value::Nil,
                "The following user attributes are set to be changed:\nshell: /bin/no\n",
            ),
            ("user.absent", map! {"name" => "no_such"}, Value::Bool(true), "User no_such is not present"),
            ("user.absent", map! {"name" => "root"}, Value::Nil, "User root set for removal"),
        ] {
            let done = run(fun, args);
            assert_eq!((done.get("result"), done.get("comment")), (Some(&result), Some(&comment.into())));
        }
    }
}

//! `user`: accounts of this host.

use brine_core::function::CallError;
use brine_core::{Map, Value, functions, map};
use nix::unistd::{Gid, Group, User, getgrouplist};

use crate::context::Context;
use crate::process::Program;

functions! {
    module "user", context Context;

    /// An account, or nothing if there is none.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.info root
    fn info(_context, name: String) {
        Ok(account(&name).unwrap_or_default().into())
    }

    /// The names of all accounts.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.list_users
    fn list_users(_context) {
        let text = std::fs::read_to_string("/etc/passwd").map_err(CallError::execution)?;
        let mut names: Vec<&str> = text.lines().filter_map(|line| line.split(':').next()).filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        Ok(names.into_iter().collect())
    }

    /// Makes an account.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.add bob uid=1500 shell=/bin/bash
    fn add(context, name: String, **kwargs) {
        change(context, "useradd", &options(&kwargs), &name)
    }

    /// Removes an account; with remove=True its folder too.
    ///
    /// CLI Example:
    ///
    ///     salt '*' user.delete bob remove=True
    fn delete(context, name: String, remove: bool = false, force: bool = false) {
        let flags = [(remove, "-r"), (force, "-f")];
        let words: Vec<String> = flags.iter().filter(|(on, _)| *on).map(|(_, flag)| (*flag).to_owned()).collect();
        change(context, "userdel", &words, &name)
    }
}

/// An account as `user.info` tells it.
pub fn account(name: &str) -> Option<Map> {
    let user = User::from_name(name).ok().flatten()?;
    let own = std::ffi::CString::new(name).ok()?;
    let gids: Vec<Gid> = getgrouplist(&own, user.gid).unwrap_or_default();
    let mut groups: Vec<String> =
        gids.into_iter().filter_map(|gid| Group::from_gid(gid).ok().flatten()).map(|group| group.name).collect();
    groups.sort();
    let gecos = user.gecos.to_string_lossy().into_owned();
    let mut parts = gecos.split(',');
    let mut part = || parts.next().unwrap_or_default().to_owned();
    Some(map! {
        "uid" => user.uid.as_raw(),
        "gid" => user.gid.as_raw(),
        "groups" => groups,
        "home" => user.dir.display().to_string(),
        "name" => &user.name,
        "passwd" => "x",
        "shell" => user.shell.display().to_string(),
        "fullname" => part(),
        "roomnumber" => part(),
        "workphone" => part(),
        "homephone" => part(),
        "other" => part(),
    })
}

/// The options of useradd and usermod that these arguments mean.
pub fn options(kwargs: &Map) -> Vec<String> {
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

/// Runs a program of the shadow suite; true if it succeeds.
pub fn change(context: &Context, program: &str, words: &[String], name: &str) -> Result<Value, CallError> {
    if name.is_empty() || name.starts_with('-') {
        return Err(CallError::Execution(format!("'{name}' is not an account's name")));
    }
    let quoted: Vec<String> = words.iter().map(String::as_str).chain(["--", name]).map(quote).collect();
    let program = Program { command: format!("{program} {}", quoted.join(" ")), ..Program::default() };
    let output = program.run(&context.job.children, &context.job.cancel).map_err(CallError::execution)?;
    if output.retcode != 0 {
        return Err(CallError::Execution(output.stderr));
    }
    Ok(Value::Bool(true))
}

fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_core::list;

    #[test]
    fn accounts_are_told_as_salt_tells_them() {
        let root = account("root").unwrap();
        assert_eq!(
            (root.get("uid"), root.get("name"), root.get("home")),
            (Some(&0.into()), Some(&"root".into()), Some(&"/root".into()))
        );
        assert_eq!(account("no_such_account"), None);
    }

    #[test]
    fn options_are_useradds() {
        let kwargs = map! {"uid" => 1500, "groups" => list!["a", "b"], "shell" => "/bin/sh", "createhome" => false, "system" => true};
        assert_eq!(options(&kwargs), ["-u", "1500", "-G", "a,b", "-s", "/bin/sh", "-M", "-r"]);
        assert_eq!(options(&Map::new()), ["-m"]);
        assert_eq!(quote("it's"), "'it'\\''s'");
    }
}

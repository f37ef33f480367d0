//! `cron`: crontabs as states.

use brine_function::{CallError, functions};
use brine_value::{Map, Value, map};

use super::file::{content, difference};
use super::{StateContext, StateReturn};
use crate::modules::accounts::Accounts;
use crate::modules::cmd::Scratch;
use crate::modules::cron::{self, Done, Job, Wanted, When};

functions! {
    module "cron", context StateContext;

    /// A job in a user's crontab. It is known by its identifier, which is its command if none is said.
    fn present(
        context,
        name: String,
        user: String = "root".into(),
        minute: Value = "*".into(),
        hour: Value = "*".into(),
        daymonth: Value = "*".into(),
        month: Value = "*".into(),
        dayweek: Value = "*".into(),
        comment: Option<String> = None,
        commented: bool = false,
        identifier: Value = false.into(),
        special: Option<String> = None,
    ) {
        let name = name.trim();
        let times = [&minute, &hour, &daymonth, &month, &dayweek];
        let when = special.map_or_else(|| When::times(times), When::Special);
        let identifier = known_by(&identifier, name);
        let wanted = Wanted { when, command: name, identifier: identifier.as_deref(), comment: comment.as_deref(), commented };
        if !context.test {
            return Ok(told(name, &format!("Cron {name}"), &user, set(cron::set(&context.call, &user, &wanted)?)).into());
        }
        let tab = cron::read(&context.call, &user)?;
        let jobs = if matches!(wanted.when, When::Special(_)) { &tab.special } else { &tab.jobs };
        let job = jobs.iter().find(|job| job.is_meant(name, wanted.identifier));
        Ok(would_set(name, &format!("Cron {name}"), job.map(|job| !job.differs(&wanted))).into())
    }

    /// No such job in a user's crontab.
    fn absent(
        context,
        name: String,
        user: String = "root".into(),
        identifier: Value = false.into(),
        special: Option<String> = None,
        **_kwargs
    ) {
        let name = name.trim();
        let identifier = known_by(&identifier, name);
        if context.test {
            let tab = cron::read(&context.call, &user)?;
            let when = special.map(When::Special);
            let jobs = if when.is_some() { &tab.special } else { &tab.jobs };
            let is_it = |job: &Job| {
                job.is_meant(name, identifier.as_deref()) && when.as_ref().is_none_or(|when| *when == job.when)
            };
            return Ok(would_remove(name, &format!("Cron {name}"), jobs.iter().any(is_it)).into());
        }
        let done = match special {
            Some(_) => cron::remove_special(&context.call, &user, name, special, identifier.as_deref())?,
            None => cron::remove_job(&context.call, &user, name, [None; 5], identifier.as_deref())?,
        };
        Ok(told(name, &format!("Cron {name}"), &user, done).into())
    }

    /// A user's whole crontab from a file.
    fn file(
        context,
        name: String,
        source_hash: Option<String> = None,
        source_hash_name: Option<String> = None,
        user: String = "root".into(),
        template: Option<String> = None,
        replace: bool = true,
        defaults: Map = Map::new(),
        **_kwargs
    ) {
        let hash = (source_hash, source_hash_name);
        let defaults = Map::into_iter(map! {"user" => &user}).chain(defaults).collect::<Map>().into();
        whole(context, &name, &user, replace, || content(context, &name, hash, template, defaults)).map(Into::into)
    }

    /// A variable in a user's crontab.
    fn env_present(context, name: String, value: Option<String> = None, user: String = "root".into()) {
        let value = value.unwrap_or_default();
        let what = format!("Cron env {name}");
        if context.test {
            let have = cron::read(&context.call, &user)?.has_variable(&name, &value);
            return Ok(would_set(&name, &what, have).into());
        }
        Ok(told(&name, &what, &user, set(cron::set_variable(&context.call, &user, &name, &value)?)).into())
    }

    /// No such variable in a user's crontab.
    fn env_absent(context, name: String, user: String = "root".into()) {
        let name = name.trim();
        let what = format!("Cron env {name}");
        if context.test {
            let have = cron::read(&context.call, &user)?.has_variable(name, "").is_some();
            return Ok(would_remove(name, &what, have).into());
        }
        Ok(told(name, &what, &user, cron::remove_variable(&context.call, &user, name)?).into())
    }
}

/// The identifier: the job's command unless another is said, or explicitly none.
fn known_by(identifier: &Value, command: &str) -> Option<String> {
    match identifier {
        Value::Bool(false) => Some(command.to_owned()),
        Value::Nil => None,
        other => Some(other.to_string()),
    }
}

/// What would be done with what is there as it should be (true), otherwise (false), or not at all.
fn would_set(name: &str, what: &str, have: Option<bool>) -> StateReturn {
    match have {
        Some(true) => StateReturn::ok(name, format!("{what} already present")),
        Some(false) => StateReturn::would(name, format!("{what} is set to be updated")),
        None => StateReturn::would(name, format!("{what} is set to be added")),
    }
}

fn would_remove(name: &str, what: &str, have: bool) -> StateReturn {
    if have {
        StateReturn::would(name, format!("{what} is set to be removed"))
    } else {
        StateReturn::ok(name, format!("{what} is absent"))
    }
}

/// What the program complains of when something is set is told on a line of its own.
fn set(done: Done) -> Done {
    if let Done::Refused(message) = done { Done::Refused(format!("\n{message}")) } else { done }
}

fn told(name: &str, what: &str, user: &str, done: Done) -> StateReturn {
    let comment = match &done {
        Done::New => format!("{what} added to {user}'s crontab"),
        Done::Updated => format!("{what} updated"),
        Done::Removed => format!("{what} removed from {user}'s crontab"),
        Done::Present => return StateReturn::ok(name, format!("{what} already present")),
        Done::Absent => return StateReturn::ok(name, format!("{what} already absent")),
        Done::Refused(message) => {
            return StateReturn::failed(name, format!("{what} for user {user} failed to commit with error {message}"));
        }
    };
    StateReturn::ok(name, comment).with_changes(map! {user => name})
}

/// Has a user's crontab be this content.
fn whole(
    context: &StateContext,
    name: &str,
    user: &str,
    replace: bool,
    content: impl FnOnce() -> Result<Vec<u8>, String>,
) -> Result<StateReturn, CallError> {
    let accounts = Accounts::read();
    let group = accounts.user(user).and_then(|_| accounts.groups_of(user).into_iter().next());
    let (Some(account), Some(group)) = (accounts.user(user), group) else {
        return Ok(StateReturn::failed(name, format!("Could not identify group for user {user}")));
    };
    let mut have = cron::text(&context.call, user)?;
    if !replace && !have.is_empty() {
        return Ok(StateReturn::ok(name, format!("User {user} already has a crontab. No changes made")));
    }
    if !have.ends_with('\n') {
        have.push('\n');
    }
    let wanted = match content() {
        Ok(wanted) => wanted,
        Err(message) => return Ok(StateReturn::failed(name, message)),
    };
    if wanted == have.as_bytes() {
        return Ok(StateReturn::ok(name, format!("Crontab for user {user} is in the correct state")));
    }
    let mut changes = difference(Some(have.as_bytes()), &wanted, true);
    if context.test {
        let lines: Vec<String> = changes.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
        let comment = format!("The following values are set to be changed:\n{}", lines.concat());
        return Ok(StateReturn::would(name, comment));
    }
    let file = Scratch::new(&wanted, None)?;
    let path = file.path().to_string_lossy();
    let output = cron::install(&context.call, user, &path)?;
    if output.retcode != 0 {
        let comment = format!("Unable to update user {user} crontab {path}. Error: {}", output.stderr);
        return Ok(StateReturn::failed(name, comment));
    }
    if account.uid != nix::unistd::geteuid().as_raw() {
        changes.extend(map! {"user" => user, "group" => group});
    }
    Ok(StateReturn::ok(name, format!("Crontab for user {user} was updated")).with_changes(changes))
}

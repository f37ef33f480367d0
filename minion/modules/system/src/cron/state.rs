//! `cron`: states of crontabs.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, Others, ParamList, function, registry};
use brine_host::accounts::Accounts;
use brine_value::{Map, Value, map};

use crate::cron::{self, CronTime, Desired, Job, Outcome};
use brine_modules_files::cmd::Scratch;
use brine_modules_files::file::{content, difference};

/// State functions of `cron`.
pub static FUNCTIONS: Functions<StateContext> = registry!("cron", [present, absent, file, env_present, env_absent]);

/// The arguments of `cron.present`.
#[derive(Args)]
pub struct PresentArgs {
    /// Command.
    name: String,
    /// User whose crontab it is.
    #[default("root".into())]
    user: String,
    /// Minute of the hour: a crontab field, or `random`.
    #[default("*".into())]
    minute: Value,
    /// Hour of the day: a crontab field, or `random`.
    #[default("*".into())]
    hour: Value,
    /// Day of the month: a crontab field, or `random`.
    #[default("*".into())]
    daymonth: Value,
    /// Month: a crontab field, or `random`.
    #[default("*".into())]
    month: Value,
    /// Day of the week: a crontab field, or `random`.
    #[default("*".into())]
    dayweek: Value,
    /// Comment above the job.
    comment: Option<String>,
    /// Whether the job is commented out.
    #[default(false)]
    commented: bool,
    /// Name of the job for later runs; the command by default.
    #[default(false.into())]
    identifier: Value,
    /// Time such as `@hourly` in the place of the five fields.
    special: Option<String>,
}

/// Ensure that a job is in a user's crontab. The job is recognized by its identifier, by default its command.
///
/// With an identifier, a job whose command changes is replaced; without one, a second job is added.
///
/// SLS Example:
///
///     /usr/local/bin/backup:
///       cron.present:
///         - user: root
///         - minute: 30
///         - hour: 2
///         - identifier: nightly-backup
///         - comment: Nightly backup
///
///     /usr/local/bin/report:
///       cron.present:
///         - special: '@weekly'
///         - user: app
#[function]
pub fn present(context: &StateContext, #[args] args: PresentArgs) -> CallResult {
    let name = args.name.trim();
    let times = [&args.minute, &args.hour, &args.daymonth, &args.month, &args.dayweek];
    let when = args.special.map_or_else(|| CronTime::times(times), CronTime::Special);
    let identifier = identifier_of(&args.identifier, name);
    let desired = Desired {
        when,
        command: name,
        identifier: identifier.as_deref(),
        comment: args.comment.as_deref(),
        commented: args.commented,
    };
    if !context.test {
        return Ok(report(
            name,
            &format!("Cron {name}"),
            &args.user,
            error_on_new_line(cron::set(&context.call, &args.user, &desired)?),
        )
        .into());
    }
    let tab = cron::read(&context.call, &args.user)?;
    let jobs = if matches!(desired.when, CronTime::Special(_)) { &tab.special } else { &tab.jobs };
    let job = jobs.iter().find(|job| job.matches(name, desired.identifier));
    Ok(predict_set(name, &format!("Cron {name}"), job.map(|job| !job.differs(&desired))).into())
}

/// Ensure that a job is not in a user's crontab.
///
/// SLS Example:
///
///     nightly-backup:
///       cron.absent:
///         - identifier: nightly-backup
#[function]
pub fn absent(
    context: &StateContext,
    /// Command of the job.
    name: String,
    /// User whose crontab it is.
    #[default("root".into())]
    user: String,
    /// Name of the job; the command by default.
    #[default(false.into())]
    identifier: Value,
    /// Time such as `@hourly` of the job, if it has one.
    special: Option<String>,
    #[keywords(further_absent)] _kwargs: Map,
) -> CallResult {
    let name = name.trim();
    let identifier = identifier_of(&identifier, name);
    if context.test {
        let tab = cron::read(&context.call, &user)?;
        let when = special.map(CronTime::Special);
        let jobs = if when.is_some() { &tab.special } else { &tab.jobs };
        let is_it =
            |job: &Job| job.matches(name, identifier.as_deref()) && when.as_ref().is_none_or(|when| *when == job.when);
        return Ok(predict_remove(name, &format!("Cron {name}"), jobs.iter().any(is_it)).into());
    }
    let outcome = match special {
        Some(_) => cron::remove_special(&context.call, &user, name, special, identifier.as_deref())?,
        None => cron::remove_job(&context.call, &user, name, [None; 5], identifier.as_deref())?,
    };
    Ok(report(name, &format!("Cron {name}"), &user, outcome).into())
}

/// The arguments of `cron.file`.
#[derive(Args)]
pub struct FileArgs {
    /// URL or path of the content.
    name: String,
    /// Expected checksum of the source (`sha256=...`), or the URL of a file that lists checksums.
    source_hash: Option<String>,
    /// Name that the checksum has in the file of `source_hash`, if it is not that of the source.
    source_hash_name: Option<String>,
    /// User whose crontab it is.
    #[default("root".into())]
    user: String,
    /// Template engine that renders the source, such as `jinja`.
    template: Option<String>,
    /// Whether an existing crontab is replaced.
    #[default(true)]
    replace: bool,
    /// Variables of the template, below those of `context`.
    #[default]
    defaults: Map,
    /// Variables of the template.
    #[default]
    context: Map,
    /// Further arguments. `backup` is without effect: the crontab is written by `crontab`.
    #[keywords(further_file)]
    _kwargs: Map,
}

/// Ensure that a user's crontab has the content of a file.
///
/// SLS Example:
///
///     salt://cron/root.crontab:
///       cron.file:
///         - user: root
///         - template: jinja
#[function]
pub fn file(context: &StateContext, #[args] args: FileArgs) -> CallResult {
    let hash = (args.source_hash, args.source_hash_name);
    let defaults = Map::into_iter(map! {"user" => &args.user}).chain(args.defaults).chain(args.context);
    let defaults = defaults.collect::<Map>().into();
    crontab_state(context, &args.name, &args.user, args.replace, || {
        content(context, &args.name, hash, args.template, defaults)
    })
    .map(Into::into)
}

/// Ensure that a variable is set in a user's crontab.
///
/// SLS Example:
///
///     MAILTO:
///       cron.env_present:
///         - value: ops@example.com
#[function]
pub fn env_present(
    context: &StateContext,
    /// Name of the variable.
    name: String,
    /// Value of the variable.
    value: Option<String>,
    /// User whose crontab it is.
    #[default("root".into())]
    user: String,
) -> CallResult {
    let value = value.unwrap_or_default();
    let what = format!("Cron env {name}");
    if context.test {
        let have = cron::read(&context.call, &user)?.has_variable(&name, &value);
        return Ok(predict_set(&name, &what, have).into());
    }
    Ok(report(&name, &what, &user, error_on_new_line(cron::set_variable(&context.call, &user, &name, &value)?)).into())
}

/// Ensure that a variable is not set in a user's crontab.
///
/// SLS Example:
///
///     MAILTO:
///       cron.env_absent:
///         - user: root
#[function]
pub fn env_absent(
    context: &StateContext,
    /// Name of the variable.
    name: String,
    /// User whose crontab it is.
    #[default("root".into())]
    user: String,
) -> CallResult {
    let name = name.trim();
    let what = format!("Cron env {name}");
    if context.test {
        let have = cron::read(&context.call, &user)?.has_variable(name, "").is_some();
        return Ok(predict_remove(name, &what, have).into());
    }
    Ok(report(name, &what, &user, cron::remove_variable(&context.call, &user, name)?).into())
}

/// Returns the identifier of a job: its command by default, none if it is explicitly null.
fn identifier_of(identifier: &Value, command: &str) -> Option<String> {
    match identifier {
        Value::Bool(false) => Some(command.to_owned()),
        Value::Nil => None,
        other => Some(other.to_string()),
    }
}

/// Returns the prediction for an item that is present as desired (true), present but different (false), or absent.
fn predict_set(name: &str, what: &str, have: Option<bool>) -> StateReturn {
    match have {
        Some(true) => StateReturn::ok(name, format!("{what} already present")),
        Some(false) => StateReturn::predicted(name, format!("{what} is set to be updated")),
        None => StateReturn::predicted(name, format!("{what} is set to be added")),
    }
}

fn predict_remove(name: &str, what: &str, have: bool) -> StateReturn {
    if have {
        StateReturn::predicted(name, format!("{what} is set to be removed"))
    } else {
        StateReturn::ok(name, format!("{what} is absent"))
    }
}

/// Starts the error message of the program on a new line, as Salt does for added and changed items.
fn error_on_new_line(outcome: Outcome) -> Outcome {
    if let Outcome::Refused(message) = outcome { Outcome::Refused(format!("\n{message}")) } else { outcome }
}

fn report(name: &str, what: &str, user: &str, outcome: Outcome) -> StateReturn {
    let comment = match &outcome {
        Outcome::New => format!("{what} added to {user}'s crontab"),
        Outcome::Updated => format!("{what} updated"),
        Outcome::Removed => format!("{what} removed from {user}'s crontab"),
        Outcome::Present => return StateReturn::ok(name, format!("{what} already present")),
        Outcome::Absent => return StateReturn::ok(name, format!("{what} already absent")),
        Outcome::Refused(message) => {
            return StateReturn::failed(name, format!("{what} for user {user} failed to commit with error {message}"));
        }
    };
    StateReturn::ok(name, comment).with_changes(map! {user => name})
}

/// Ensures that a user's crontab has the content of a source.
fn crontab_state(
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
    let new_content = match content() {
        Ok(content) => content,
        Err(message) => return Ok(StateReturn::failed(name, message)),
    };
    if new_content == have.as_bytes() {
        return Ok(StateReturn::ok(name, format!("Crontab for user {user} is in the correct state")));
    }
    let mut changes = difference(Some(have.as_bytes()), &new_content, true);
    if context.test {
        let lines: Vec<String> = changes.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
        let comment = format!("The following values are set to be changed:\n{}", lines.concat());
        return Ok(StateReturn::predicted(name, comment));
    }
    let file = Scratch::new(&new_content, None)?;
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

/// Describes the further arguments of `cron.absent`.
pub(crate) fn further_absent(params: &mut ParamList) {
    params.others(Others::Unused);
    for name in ["cmd", "comment", "commented", "daymonth", "dayweek", "hour", "minute", "month"] {
        params.further(name, "anything", "Without effect: a job is found by its identifier or command.");
    }
}

/// Describes the further arguments of `cron.file`.
pub(crate) fn further_file(params: &mut ParamList) {
    params.others(Others::Variables);
    params.further("backup", "a string", "Without effect: the crontab is written by `crontab`.");
    for name in ["source", "source_hash_sig"] {
        params.further(name, "a string", "Without effect: the source is the name of the state.");
    }
}

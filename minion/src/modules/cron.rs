//! `cron`: the crontabs of users, read and written by the program `crontab`.

mod tab;

use brine_function::{CallError, functions};
use brine_value::Value;

use super::accounts::Accounts;
use super::cmd::{self, Scratch};
use super::programs::{argument, program};
use crate::context::Context;
use crate::process::Output;
pub use tab::{Job, Tab, Wanted, When};

functions! {
    module "cron", context Context;

    /// The text of a user's crontab.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cron.raw_cron root
    fn raw_cron(context, user: String) {
        Ok(text(context, &user)?.into())
    }

    /// What is in a user's crontab: the lines of others, jobs, special jobs such as `@daily`, and variables.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cron.list_tab root
    fn list_tab(context, user: String) {
        Ok(read(context, &user)?.describe())
    }

    /// As `list_tab`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cron.ls root
    fn ls(context, user: String) {
        list_tab(context, user)
    }

    /// One job of a user's crontab, by its identifier or else by its command; False if there is none.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cron.get_entry root identifier=task1
    fn get_entry(context, user: String, identifier: Option<String> = None, cmd: Option<String> = None) {
        let tab = read(context, &user)?;
        let is_it = |job: &&Job| match identifier.as_ref().filter(|identifier| !identifier.is_empty()) {
            Some(identifier) => job.identifier.as_ref() == Some(identifier),
            None => Some(&job.command) == cmd.as_ref(),
        };
        Ok(tab.jobs.iter().chain(&tab.special).find(is_it).map_or(false.into(), |job| job.describe().into()))
    }

    /// Has a job with a word such as `@hourly` be in a user's crontab.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cron.set_special root @hourly 'echo foobar'
    fn set_special(
        context,
        user: String,
        special: String,
        cmd: String,
        commented: bool = false,
        comment: Option<String> = None,
        identifier: Option<String> = None,
    ) {
        let (comment, identifier) = (comment.as_deref(), identifier.as_deref());
        let wanted = Wanted { when: When::Special(special), command: &cmd, identifier, comment, commented };
        Ok(set(context, &user, &wanted)?.into())
    }

    /// Has a job be in a user's crontab. A field of the time may be `random`, or chosen from a range such as `5:10`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cron.set_job root '*' '*' '*' '*' 1 /usr/local/weekly
    fn set_job(
        context,
        user: String,
        minute: Value,
        hour: Value,
        daymonth: Value,
        month: Value,
        dayweek: Value,
        cmd: String,
        commented: bool = false,
        comment: Option<String> = None,
        identifier: Option<String> = None,
    ) {
        let when = When::times([&minute, &hour, &daymonth, &month, &dayweek]);
        let (comment, identifier) = (comment.as_deref(), identifier.as_deref());
        Ok(set(context, &user, &Wanted { when, command: &cmd, identifier, comment, commented })?.into())
    }

    /// Takes a job such as `@hourly` out of a user's crontab.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cron.rm_special root /usr/bin/foo
    fn rm_special(context, user: String, cmd: String, special: Option<String> = None, identifier: Option<String> = None) {
        Ok(remove_special(context, &user, &cmd, special, identifier.as_deref())?.into())
    }

    /// Takes a job out of a user's crontab; with times, only if it runs at these.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cron.rm_job root /usr/local/weekly
    ///     salt '*' cron.rm_job root /usr/bin/foo dayweek=1
    fn rm_job(
        context,
        user: String,
        cmd: String,
        minute: Option<String> = None,
        hour: Option<String> = None,
        daymonth: Option<String> = None,
        month: Option<String> = None,
        dayweek: Option<String> = None,
        identifier: Option<String> = None,
    ) {
        let times = [minute.as_deref(), hour.as_deref(), daymonth.as_deref(), month.as_deref(), dayweek.as_deref()];
        Ok(remove_job(context, &user, &cmd, times, identifier.as_deref())?.into())
    }

    /// As `rm_job`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cron.rm root /usr/local/weekly
    fn rm(
        context,
        user: String,
        cmd: String,
        minute: Option<String> = None,
        hour: Option<String> = None,
        daymonth: Option<String> = None,
        month: Option<String> = None,
        dayweek: Option<String> = None,
        identifier: Option<String> = None,
    ) {
        rm_job(context, user, cmd, minute, hour, daymonth, month, dayweek, identifier)
    }

    /// Has a variable be in a user's crontab.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cron.set_env root MAILTO user@example.com
    fn set_env(context, user: String, name: String, value: Option<String> = None) {
        Ok(set_variable(context, &user, &name, value.as_deref().unwrap_or_default())?.into())
    }

    /// Takes a variable out of a user's crontab.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cron.rm_env root MAILTO
    fn rm_env(context, user: String, name: String) {
        Ok(remove_variable(context, &user, &name)?.into())
    }

    /// Makes a file's text a user's crontab, and says whether that worked.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cron.write_cron_file root /tmp/new_cron
    fn write_cron_file(context, user: String, path: String) {
        Ok((install(context, &user, &path)?.retcode == 0).into())
    }

    /// Makes a file's text a user's crontab, and gives all about the call of `crontab`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cron.write_cron_file_verbose root /tmp/new_cron
    fn write_cron_file_verbose(context, user: String, path: String) {
        Ok(cmd::all(install(context, &user, &path)?).into())
    }
}

/// What was done with a job or a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// It is there now.
    New,
    /// It is otherwise now.
    Updated,
    /// It was there.
    Present,
    /// It is gone now.
    Removed,
    /// It was not there.
    Absent,
    /// The crontab could not be written: what `crontab` says.
    Refused(String),
}

impl From<Done> for Value {
    fn from(done: Done) -> Self {
        match done {
            Done::New => "new".into(),
            Done::Updated => "updated".into(),
            Done::Present => "present".into(),
            Done::Removed => "removed".into(),
            Done::Absent => "absent".into(),
            Done::Refused(message) => message.into(),
        }
    }
}

/// Runs `crontab` for a user: who is that user already may do so without naming him.
fn crontab(context: &Context, user: &str, word: &str) -> Result<Output, CallError> {
    let mut words = vec!["crontab".to_owned()];
    let uid = Accounts::read().user(user).map(|user| user.uid);
    if uid != Some(nix::unistd::geteuid().as_raw()) {
        words.extend(["-u".to_owned(), argument(user)?]);
    }
    words.push(word.to_owned());
    let mut program = program(&words, &[]);
    program.keep_line_ends = true;
    program.run(&context.job.children, &context.job.cancel).map_err(CallError::execution)
}

/// The text of a user's crontab; none is an empty one.
pub fn text(context: &Context, user: &str) -> Result<String, CallError> {
    let text = crontab(context, user, "-l")?.stdout;
    if !text.starts_with("# DO NOT EDIT THIS FILE - edit the master and reinstall.") {
        return Ok(text);
    }
    // Some systems put three lines of their own before each listing.
    Ok(text.split_inclusive('\n').skip(3).collect())
}

/// A user's crontab.
pub fn read(context: &Context, user: &str) -> Result<Tab, CallError> {
    Ok(Tab::parse(&text(context, user)?))
}

/// Makes a file's text a user's crontab.
pub fn install(context: &Context, user: &str, path: &str) -> Result<Output, CallError> {
    let mut output = crontab(context, user, &argument(path)?)?;
    output.stderr.truncate(output.stderr.trim_end().len());
    if output.retcode != 0 {
        context.set_retcode(output.retcode);
    }
    Ok(output)
}

/// Writes a crontab: what was done, unless that is refused.
fn write(context: &Context, user: &str, tab: &Tab, done: Done) -> Result<Done, CallError> {
    let file = Scratch::new(tab.render().as_bytes(), None)?;
    let output = install(context, user, &file.path().to_string_lossy())?;
    Ok(if output.retcode == 0 { done } else { Done::Refused(output.stderr) })
}

/// Has a job be there.
pub fn set(context: &Context, user: &str, wanted: &Wanted) -> Result<Done, CallError> {
    let mut tab = read(context, user)?;
    match tab.set(wanted) {
        None => Ok(Done::Present),
        Some(before) => write(context, user, &tab, if before { Done::Updated } else { Done::New }),
    }
}

/// Has a variable be there.
pub fn set_variable(context: &Context, user: &str, name: &str, value: &str) -> Result<Done, CallError> {
    let mut tab = read(context, user)?;
    match tab.set_variable(name, value) {
        None => Ok(Done::Present),
        Some(before) => write(context, user, &tab, if before { Done::Updated } else { Done::New }),
    }
}

/// Takes a job away, if it runs at these times.
pub fn remove_job(
    context: &Context,
    user: &str,
    command: &str,
    times: [Option<&str>; 5],
    identifier: Option<&str>,
) -> Result<Done, CallError> {
    let mut tab = read(context, user)?;
    let found = tab.jobs.iter().position(|job| job.is_meant(command, identifier) && job.runs_at(times));
    let Some(at) = found else { return Ok(Done::Absent) };
    tab.jobs.remove(at);
    write(context, user, &tab, Done::Removed)
}

/// Takes a special job away. The crontab gets its mark even if there is none.
pub fn remove_special(
    context: &Context,
    user: &str,
    command: &str,
    special: Option<String>,
    identifier: Option<&str>,
) -> Result<Done, CallError> {
    let mut tab = read(context, user)?;
    let when = special.map(When::Special);
    let is_meant = |job: &Job| job.is_meant(command, identifier) && when.as_ref().is_none_or(|when| *when == job.when);
    let removed = tab.special.iter().position(is_meant).map(|at| tab.special.remove(at));
    write(context, user, &tab, removed.map_or(Done::Absent, |_| Done::Removed))
}

/// Takes a variable away. The crontab gets its mark even if there is none.
pub fn remove_variable(context: &Context, user: &str, name: &str) -> Result<Done, CallError> {
    let mut tab = read(context, user)?;
    let removed = tab.remove_variable(name);
    write(context, user, &tab, if removed { Done::Removed } else { Done::Absent })
}

//! `cron`: crontabs of users, with the program `crontab`.

pub(crate) mod state;
mod tab;

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::accounts::Accounts;
use brine_host::process::Output;
use brine_host::programs::{argument, program, which};
use brine_value::Value;

use brine_modules_files::cmd::{self, Scratch};
pub use tab::{CronTime, Desired, Job, Tab};

pub(super) static MODULE: Module =
    Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], unavailable: Some(unavailable), ..Module::EMPTY };

fn unavailable(_context: &Context) -> Option<String> {
    which("crontab").is_none().then(|| "cron module could not be loaded".into())
}

/// Execution functions of `cron`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "cron",
    [
        raw_cron,
        list_tab,
        ls,
        get_entry,
        set_special,
        set_job,
        rm_special,
        rm_job,
        rm,
        set_env,
        rm_env,
        write_cron_file,
        write_cron_file_verbose
    ]
);

/// Return the content of a user's crontab.
///
/// CLI Example:
///
///     salt '*' cron.raw_cron root
#[function]
pub fn raw_cron(
    context: &Context,
    /// User whose crontab it is.
    user: String,
) -> CallResult {
    Ok(text(context, &user)?.into())
}

/// Return the parts of a user's crontab: unmanaged lines, jobs, special jobs such as `@daily`, and variables.
///
/// CLI Example:
///
///     salt '*' cron.list_tab root
#[function]
pub fn list_tab(
    context: &Context,
    /// User whose crontab it is.
    user: String,
) -> CallResult {
    Ok(read(context, &user)?.describe())
}

/// Return the parts of a user's crontab, as `list_tab`.
///
/// CLI Example:
///
///     salt '*' cron.ls root
#[function]
pub fn ls(
    context: &Context,
    /// User whose crontab it is.
    user: String,
) -> CallResult {
    list_tab(context, user)
}

/// Return one job of a user's crontab, by its identifier or else by its command; False if there is none.
///
/// CLI Example:
///
///     salt '*' cron.get_entry root identifier=task1
#[function]
pub fn get_entry(
    context: &Context,
    /// User whose crontab it is.
    user: String,
    /// Name of the job.
    identifier: Option<String>,
    /// Command of the job.
    cmd: Option<String>,
) -> CallResult {
    let tab = read(context, &user)?;
    let is_it = |job: &&Job| match identifier.as_ref().filter(|identifier| !identifier.is_empty()) {
        Some(identifier) => job.identifier.as_ref() == Some(identifier),
        None => Some(&job.command) == cmd.as_ref(),
    };
    Ok(tab.jobs.iter().chain(&tab.special).find(is_it).map_or(false.into(), |job| job.describe().into()))
}

/// Set a job with a special time such as `@hourly` in a user's crontab.
///
/// CLI Example:
///
///     salt '*' cron.set_special root @hourly 'echo foobar'
#[function]
pub fn set_special(
    context: &Context,
    /// User whose crontab it is.
    user: String,
    /// Time such as `@hourly`.
    special: String,
    /// Command of the job.
    cmd: String,
    /// Whether the job is commented out.
    #[default(false)]
    commented: bool,
    /// Comment above the job.
    comment: Option<String>,
    /// Name of the job.
    identifier: Option<String>,
) -> CallResult {
    let (comment, identifier) = (comment.as_deref(), identifier.as_deref());
    let desired = Desired { when: CronTime::Special(special), command: &cmd, identifier, comment, commented };
    Ok(set(context, &user, &desired)?.into())
}

/// The arguments of `cron.set_job`.
#[derive(Args)]
pub struct SetJobArgs {
    /// User whose crontab it is.
    user: String,
    /// Minute of the hour: a crontab field, or `random`.
    minute: Value,
    /// Hour of the day: a crontab field, or `random`.
    hour: Value,
    /// Day of the month: a crontab field, or `random`.
    daymonth: Value,
    /// Month: a crontab field, or `random`.
    month: Value,
    /// Day of the week: a crontab field, or `random`.
    dayweek: Value,
    /// Command.
    cmd: String,
    /// Whether the job is commented out.
    #[default(false)]
    commented: bool,
    /// Comment above the job.
    comment: Option<String>,
    /// Name of the job for later calls.
    identifier: Option<String>,
}

/// Set a job in a user's crontab. A field of the time may be `random`, or a range to choose from, such as `5:10`.
///
/// CLI Example:
///
///     salt '*' cron.set_job root '*' '*' '*' '*' 1 /usr/local/weekly
#[function]
pub fn set_job(context: &Context, #[args] args: SetJobArgs) -> CallResult {
    let when = CronTime::times([&args.minute, &args.hour, &args.daymonth, &args.month, &args.dayweek]);
    let (comment, identifier) = (args.comment.as_deref(), args.identifier.as_deref());
    Ok(set(context, &args.user, &Desired { when, command: &args.cmd, identifier, comment, commented: args.commented })?
        .into())
}

/// Remove a job with a special time such as `@hourly` from a user's crontab.
///
/// CLI Example:
///
///     salt '*' cron.rm_special root /usr/bin/foo
#[function]
pub fn rm_special(
    context: &Context,
    /// User whose crontab it is.
    user: String,
    /// Command of the job.
    cmd: String,
    /// Time such as `@hourly`.
    special: Option<String>,
    /// Name of the job.
    identifier: Option<String>,
) -> CallResult {
    Ok(remove_special(context, &user, &cmd, special, identifier.as_deref())?.into())
}

/// The arguments of `cron.rm_job`.
#[derive(Args)]
pub struct RmJobArgs {
    /// User whose crontab it is.
    user: String,
    /// Command.
    cmd: String,
    /// Minute of the hour, as a crontab field.
    minute: Option<String>,
    /// Hour of the day, as a crontab field.
    hour: Option<String>,
    /// Day of the month, as a crontab field.
    daymonth: Option<String>,
    /// Month, as a crontab field.
    month: Option<String>,
    /// Day of the week, as a crontab field.
    dayweek: Option<String>,
    /// Name of the job.
    identifier: Option<String>,
}

/// Remove a job from a user's crontab; with times, only if it runs at these.
///
/// CLI Example:
///
///     salt '*' cron.rm_job root /usr/local/weekly
///     salt '*' cron.rm_job root /usr/bin/foo dayweek=1
#[function]
pub fn rm_job(context: &Context, #[args] args: RmJobArgs) -> CallResult {
    let times = [
        args.minute.as_deref(),
        args.hour.as_deref(),
        args.daymonth.as_deref(),
        args.month.as_deref(),
        args.dayweek.as_deref(),
    ];
    Ok(remove_job(context, &args.user, &args.cmd, times, args.identifier.as_deref())?.into())
}

/// Remove a job from a user's crontab, as `rm_job`.
///
/// CLI Example:
///
///     salt '*' cron.rm root /usr/local/weekly
#[function]
pub fn rm(context: &Context, #[args] args: RmJobArgs) -> CallResult {
    rm_job(context, args)
}

/// Set a variable in a user's crontab.
///
/// CLI Example:
///
///     salt '*' cron.set_env root MAILTO user@example.com
#[function]
pub fn set_env(
    context: &Context,
    /// User whose crontab it is.
    user: String,
    /// Name of the variable.
    name: String,
    /// Value of the variable.
    value: Option<String>,
) -> CallResult {
    Ok(set_variable(context, &user, &name, value.as_deref().unwrap_or_default())?.into())
}

/// Remove a variable from a user's crontab.
///
/// CLI Example:
///
///     salt '*' cron.rm_env root MAILTO
#[function]
pub fn rm_env(
    context: &Context,
    /// User whose crontab it is.
    user: String,
    /// Name of the variable.
    name: String,
) -> CallResult {
    Ok(remove_variable(context, &user, &name)?.into())
}

/// Install a file as a user's crontab, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' cron.write_cron_file root /tmp/new_cron
#[function]
pub fn write_cron_file(
    context: &Context,
    /// User whose crontab it is.
    user: String,
    /// Path of the file with the new crontab.
    path: String,
) -> CallResult {
    Ok((install(context, &user, &path)?.retcode == 0).into())
}

/// Install a file as a user's crontab, and return the complete result of `crontab`.
///
/// CLI Example:
///
///     salt '*' cron.write_cron_file_verbose root /tmp/new_cron
#[function]
pub fn write_cron_file_verbose(
    context: &Context,
    /// User whose crontab it is.
    user: String,
    /// Path of the file with the new crontab.
    path: String,
) -> CallResult {
    Ok(cmd::result_of_all(install(context, &user, &path)?).into())
}

/// Outcome of a change of a job or a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was added.
    New,
    /// It was changed.
    Updated,
    /// It was present already.
    Present,
    /// It was removed.
    Removed,
    /// It was absent already.
    Absent,
    /// The crontab could not be written; the message of `crontab`.
    Refused(String),
}

impl From<Outcome> for Value {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::New => "new".into(),
            Outcome::Updated => "updated".into(),
            Outcome::Present => "present".into(),
            Outcome::Removed => "removed".into(),
            Outcome::Absent => "absent".into(),
            Outcome::Refused(message) => message.into(),
        }
    }
}

/// Runs `crontab` for a user, without `-u` if the minion runs as this user.
fn crontab(context: &Context, user: &str, word: &str) -> Result<Output, CallError> {
    let mut words = vec!["crontab".to_owned()];
    let uid = Accounts::read().user(user).map(|user| user.uid);
    if uid != Some(nix::unistd::geteuid().as_raw()) {
        words.extend(["-u".to_owned(), argument(user)?]);
    }
    words.push(word.to_owned());
    let mut program = program(&words, &[]);
    program.keep_line_ends = true;
    context.run_program(&program).map_err(CallError::execution)
}

/// Returns the content of a user's crontab; a missing one is empty.
pub fn text(context: &Context, user: &str) -> Result<String, CallError> {
    let text = crontab(context, user, "-l")?.stdout;
    if !text.starts_with("# DO NOT EDIT THIS FILE - edit the master and reinstall.") {
        return Ok(text);
    }
    // Some versions of `crontab` print a header of three lines.
    Ok(text.split_inclusive('\n').skip(3).collect())
}

/// Reads a user's crontab.
pub fn read(context: &Context, user: &str) -> Result<Tab, CallError> {
    Ok(Tab::parse(&text(context, user)?))
}

/// Installs a file as a user's crontab.
pub fn install(context: &Context, user: &str, path: &str) -> Result<Output, CallError> {
    let mut output = crontab(context, user, &argument(path)?)?;
    output.stderr.truncate(output.stderr.trim_end().len());
    if output.retcode != 0 {
        context.set_retcode(output.retcode);
    }
    Ok(output)
}

/// Writes a crontab, and returns `outcome`, or `Refused` if `crontab` fails.
fn write(context: &Context, user: &str, tab: &Tab, outcome: Outcome) -> Result<Outcome, CallError> {
    let file = Scratch::new(tab.render().as_bytes(), None)?;
    let output = install(context, user, &file.path().to_string_lossy())?;
    Ok(if output.retcode == 0 { outcome } else { Outcome::Refused(output.stderr) })
}

/// Sets a job.
pub fn set(context: &Context, user: &str, desired: &Desired) -> Result<Outcome, CallError> {
    let mut tab = read(context, user)?;
    match tab.set(desired) {
        None => Ok(Outcome::Present),
        Some(before) => write(context, user, &tab, if before { Outcome::Updated } else { Outcome::New }),
    }
}

/// Sets a variable.
pub fn set_variable(context: &Context, user: &str, name: &str, value: &str) -> Result<Outcome, CallError> {
    let mut tab = read(context, user)?;
    match tab.set_variable(name, value) {
        None => Ok(Outcome::Present),
        Some(before) => write(context, user, &tab, if before { Outcome::Updated } else { Outcome::New }),
    }
}

/// Removes a job if it runs at these times.
pub fn remove_job(
    context: &Context,
    user: &str,
    command: &str,
    times: [Option<&str>; 5],
    identifier: Option<&str>,
) -> Result<Outcome, CallError> {
    let mut tab = read(context, user)?;
    let position = tab.jobs.iter().position(|job| job.matches(command, identifier) && job.runs_at(times));
    let Some(at) = position else { return Ok(Outcome::Absent) };
    tab.jobs.remove(at);
    write(context, user, &tab, Outcome::Removed)
}

/// Removes a special job. The line that marks the managed part is written even if there is no such job.
pub fn remove_special(
    context: &Context,
    user: &str,
    command: &str,
    special: Option<String>,
    identifier: Option<&str>,
) -> Result<Outcome, CallError> {
    let mut tab = read(context, user)?;
    let when = special.map(CronTime::Special);
    let matches = |job: &Job| job.matches(command, identifier) && when.as_ref().is_none_or(|when| *when == job.when);
    let removed = tab.special.iter().position(matches).map(|at| tab.special.remove(at));
    write(context, user, &tab, removed.map_or(Outcome::Absent, |_| Outcome::Removed))
}

/// Removes a variable. The line that marks the managed part is written even if there is no such variable.
pub fn remove_variable(context: &Context, user: &str, name: &str) -> Result<Outcome, CallError> {
    let mut tab = read(context, user)?;
    let removed = tab.remove_variable(name);
    write(context, user, &tab, if removed { Outcome::Removed } else { Outcome::Absent })
}

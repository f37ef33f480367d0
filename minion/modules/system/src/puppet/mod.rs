//! `puppet`: runs of the agent of Puppet, its state, and the facts of Facter.

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::{Output, Program};
use brine_host::programs::{argument, program};
use brine_modules_files::cmd;
use brine_system::files;
use brine_system::user_files;
use brine_value::json::{from_json, to_json};
use brine_value::{Map, Value, map};
use jiff::Timestamp;
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `puppet`.
pub static FUNCTIONS: Functions<Context> =
    registry!("puppet", [run, noop, enable, disable, status, summary, plugin_sync, facts, fact]);

/// The exit status of a run that changed something.
const CHANGED: i64 = 2;

/// Run Puppet, and return its exit status and output; a run that changed something has the status 0, too.
///
/// The first argument may be a command: `agent`, the default, or `apply`, which is followed by the path of a manifest.
/// Further arguments are options without a value, and keyword arguments options with a value.
///
/// CLI Example:
///
///     salt '*' puppet.run
///     salt '*' puppet.run tags=basefiles::edit,apache::server
///     salt '*' puppet.run agent onetime no-daemonize no-usecacheonfailure no-splay ignorecache
///     salt '*' puppet.run apply /a/b/manifest.pp modulepath=/a/b/modules
#[function]
pub fn run(
    context: &Context,
    /// `agent` (the default) or `apply` and the path of a manifest, and names of options such as `noop`.
    #[rest]
    args: Vec<Value>,
    /// Options of Puppet with values, such as `tags=basefiles::edit`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    run_with(context, args, kwargs)
}

/// Run Puppet without changing anything, and return its exit status and output. The arguments are those of
/// `puppet.run`.
///
/// CLI Example:
///
///     salt '*' puppet.noop
///     salt '*' puppet.noop apply /a/b/manifest.pp
#[function]
pub fn noop(
    context: &Context,
    /// Arguments of `puppet.run`.
    #[rest]
    args: Vec<Value>,
    /// Options of Puppet with values, such as `tags=basefiles::edit`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let args = args.into_iter().chain(["noop".into()]).collect();
    run_with(context, args, kwargs)
}

/// Enable the agent, and return whether it was disabled.
///
/// CLI Example:
///
///     salt '*' puppet.enable
#[function]
pub fn enable(context: &Context) -> CallResult {
    let lock = Puppet::find(context)?.disabled_lock();
    if !lock.is_file() {
        return Ok(false.into());
    }
    user_files::remove_file(&lock).map_err(|error| CallError::Execution(format!("Failed to enable: {error}")))?;
    Ok(true.into())
}

/// Disable the agent, and return whether it was enabled.
///
/// CLI Example:
///
///     salt '*' puppet.disable
///     salt '*' puppet.disable 'Disabled, contact XYZ before enabling'
#[function]
pub fn disable(
    context: &Context,
    /// Reason, which the agent shows.
    message: Option<String>,
) -> CallResult {
    let lock = Puppet::find(context)?.disabled_lock();
    if lock.is_file() {
        return Ok(false.into());
    }
    let content = message.map_or_else(Map::new, |message| map! {"disabled_message" => message});
    let written = files::write_atomic(&lock, to_json(&content.into()).as_bytes(), 0o644);
    written.map_err(|error| CallError::Execution(format!("Failed to disable: {error}")))?;
    Ok(true.into())
}

/// Return the state of the agent: `Administratively disabled`, `Applying a catalog`, `Idle daemon` or `Stopped`, or
/// `Stale lockfile` or `Stale pidfile` after a crash.
///
/// CLI Example:
///
///     salt '*' puppet.status
#[function]
pub fn status(context: &Context) -> CallResult {
    let puppet = Puppet::find(context)?;
    let (lock, pid) = (puppet.vardir.join("state/agent_catalog_run.lock"), puppet.rundir.join("agent.pid"));
    let state = if puppet.disabled_lock().is_file() {
        "Administratively disabled"
    } else if lock.is_file() {
        if is_running(&lock) { "Applying a catalog" } else { "Stale lockfile" }
    } else if pid.is_file() {
        if is_running(&pid) { "Idle daemon" } else { "Stale pidfile" }
    } else {
        "Stopped"
    };
    Ok(state.into())
}

/// Return a summary of the last run of Puppet: its time, durations in seconds, and counts of resources.
///
/// CLI Example:
///
///     salt '*' puppet.summary
#[function]
pub fn summary(context: &Context) -> CallResult {
    let path = Puppet::find(context)?.summary;
    let failed =
        |error: &dyn std::fmt::Display| CallError::Execution(format!("Unable to read puppet run summary: {error}"));
    let text = files::read_to_string(&path).map_err(|error| failed(&error))?;
    let report = brine_yaml::load(&text)
        .map_err(|error| CallError::Execution(format!("YAML error parsing puppet run summary: {error}")))?;
    let mut summary = Map::new();
    if let Some(times) = report.get("time") {
        let second = times.get("last_run").and_then(|time| time.to_string().parse().ok());
        let time = second.and_then(|second| Timestamp::from_second(second).ok());
        let time = time.map(|time| time.to_zoned(brine_clock::zone()).strftime("%Y-%m-%dT%H:%M:%S").to_string());
        summary.insert("last_run".into(), time.unwrap_or_else(|| "invalid or missing timestamp".into()).into());
        let timings = ["total", "config_retrieval"].into_iter();
        let timings = timings.filter_map(|name| Some((name.into(), times.get(name)?.clone())));
        summary.insert("time".into(), timings.collect::<Map>().into());
    }
    summary.extend(report.get("resources").map(|resources| ("resources".into(), resources.clone())));
    Ok(summary.into())
}

/// Fetch plugins from the server of Puppet, and return the messages.
///
/// CLI Example:
///
///     salt '*' puppet.plugin_sync
#[function]
pub fn plugin_sync(context: &Context) -> CallResult {
    let words = ["puppet", "plugin", "download"].map(str::to_owned);
    let output = context.run_program(&Program { merge: true, ..program(&words, &[]) }).map_err(CallError::execution)?;
    context.set_retcode(output.retcode);
    Ok(output.stdout.into())
}

/// Return the facts of Facter.
///
/// CLI Example:
///
///     salt '*' puppet.facts
#[function]
pub fn facts(
    context: &Context,
    /// Whether facts of Puppet are included.
    #[default(false)]
    puppet: bool,
) -> CallResult {
    let output = facter(context, puppet, "--json")?;
    from_json(&output).map_err(|error| CallError::Execution(format!("the output of facter is invalid: {error}")))
}

/// Return a fact of Facter; an empty string if it does not exist.
///
/// CLI Example:
///
///     salt '*' puppet.fact kernel
#[function]
pub fn fact(
    context: &Context,
    /// Name of the fact.
    name: String,
    /// Whether facts of Puppet are included.
    #[default(false)]
    puppet: bool,
) -> CallResult {
    Ok(facter(context, puppet, &argument(&name)?)?.into())
}

/// Runs Facter with an option or the name of a fact.
fn facter(context: &Context, puppet: bool, word: &str) -> Result<String, CallError> {
    let mut words = vec!["facter".to_owned()];
    words.extend(puppet.then(|| "--puppet".to_owned()));
    words.push(word.to_owned());
    let output = context.run_program(&program(&words, &[])).map_err(CallError::execution)?;
    if output.retcode == 0 { Ok(output.stdout) } else { Err(CallError::Execution(output.stderr)) }
}

/// The files of Puppet on this host.
struct Puppet {
    vardir: PathBuf,
    rundir: PathBuf,
    confdir: PathBuf,
    /// The summary of the last run.
    summary: PathBuf,
}

impl Puppet {
    fn find(context: &Context) -> Result<Self, CallError> {
        let names = ["vardir", "rundir", "confdir", "lastrunfile"];
        let words: Vec<String> = ["puppet", "config", "print", "--render-as", "yaml"]
            .iter()
            .chain(&names)
            .map(|word| (*word).to_owned())
            .collect();
        let output = context.run_program(&program(&words, &[])).map_err(CallError::execution)?;
        let unknown = || {
            let message = format!("the directories of Puppet are unknown: {} {}", output.stdout, output.stderr);
            CallError::Execution(message.trim().to_owned())
        };
        let settings = brine_yaml::load(&output.stdout).map_err(|_| unknown())?;
        let path = |name: &str| settings.get(name).and_then(Value::as_str).map(PathBuf::from).ok_or_else(unknown);
        Ok(Puppet {
            vardir: path("vardir")?,
            rundir: path("rundir")?,
            confdir: path("confdir")?,
            summary: path("lastrunfile")?,
        })
    }

    fn disabled_lock(&self) -> PathBuf {
        self.vardir.join("state/agent_disabled.lock")
    }
}

fn run_with(context: &Context, args: Vec<Value>, kwargs: Map) -> CallResult {
    let puppet = Puppet::find(context)?;
    let words = command(&puppet, args, kwargs)?;
    let output: Output = context.run_program(&program(&words, &[])).map_err(CallError::execution)?;
    let retcode = if output.retcode == CHANGED { 0 } else { output.retcode };
    context.set_retcode(retcode);
    Ok(cmd::result_of_all(Output { retcode, ..output }).into())
}

/// Returns the command line of a run.
fn command(puppet: &Puppet, args: Vec<Value>, kwargs: Map) -> Result<Vec<String>, CallError> {
    let (commands, args): (Vec<String>, Vec<String>) =
        args.iter().map(ToString::to_string).partition(|word| word == "agent" || word == "apply");
    let command = commands.last().map_or("agent", String::as_str);
    let mut words = vec!["puppet".to_owned(), command.to_owned()];
    words.extend(
        [("vardir", &puppet.vardir), ("confdir", &puppet.confdir)]
            .map(|(name, path)| format!("--{name}={}", path.display())),
    );
    let mut args = args.into_iter();
    if command == "apply" {
        let manifest = args.next().ok_or_else(|| CallError::execution("puppet apply needs the path of a manifest"))?;
        words.push(argument(&manifest)?);
    }
    for name in args.chain((command == "agent").then(|| "test".to_owned())) {
        words.push(option(&name)?);
    }
    let mut options = map! {"color" => "false"};
    options.extend(kwargs.into_iter().filter(|(name, _)| !name.to_string().starts_with("__")));
    for (name, value) in options {
        words.push(format!("{}={value}", option(&name.to_string())?));
    }
    Ok(words)
}

/// Returns an option of Puppet.
fn option(name: &str) -> Result<String, CallError> {
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if is_name && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
        return Ok(format!("--{name}"));
    }
    Err(CallError::Execution(format!("{name:?} is not an option of Puppet: write it without leading dashes")))
}

/// Whether the process with the PID in a file exists.
fn is_running(file: &std::path::Path) -> bool {
    let pid = std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse::<i32>().ok());
    pid.is_some_and(|pid| pid > 0 && matches!(kill(Pid::from_raw(pid), None), Ok(()) | Err(Errno::EPERM)))
}

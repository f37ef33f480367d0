//! `syslog_ng`: the daemon syslog-ng and its configuration. `render` renders statements, `daemon` starts and stops the
//! daemon.
//!
//! As in Salt, the paths set by `set_binary_path` and `set_config_file` apply to the functions that follow in the same
//! job.

mod daemon;
mod render;
pub(crate) mod state;

use std::path::Path;

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::{program, which};
use brine_system::user_files;
use brine_value::{Map, Value, map};

pub(super) static MODULE: Module =
    Module { functions: &[&FUNCTIONS, &daemon::FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `syslog_ng`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "syslog_ng",
    [
        config,
        set_binary_path,
        set_config_file,
        get_config_file,
        set_parameters,
        config_test,
        version,
        modules,
        stats,
        write_config,
        write_version
    ]
);

/// The keys of the job settings that store the paths.
const BINARY_PATH: &str = "syslog_ng.binary_path";
const CONFIG_FILE: &str = "syslog_ng.config_file";
const DEFAULT_CONFIG_FILE: &str = "/etc/syslog-ng.conf";

/// Build a statement of the configuration, and append it to the configuration file.
///
/// `name` is the name of the statement, and `config` a mapping of its type to a list of options; or `name` has type and
/// name with a dot between them, and `config` is the list. With `write=False` the text is only returned.
///
/// CLI Example:
///
///     salt '*' syslog_ng.config name='source.s_local' config="[{'tcp':[{'ip':'127.0.0.1'},{'port':1233}]}]"
#[function]
pub fn config(
    context: &Context,
    /// Path or id.
    name: String,
    /// Contents of the statement.
    config: Value,
    /// Whether the statement is written to the file.
    #[default(true)]
    write: bool,
) -> CallResult {
    configured(context, &name, &config, write, context.is_test())
}

/// Set the directory of the programs `syslog-ng` and `syslog-ng-ctl`, for the functions that follow in this job.
///
/// CLI Example:
///
///     salt '*' syslog_ng.set_binary_path name=/usr/sbin
#[function]
pub fn set_binary_path(
    context: &Context,
    /// Path or id.
    name: String,
) -> CallResult {
    Ok(replaced(&name, context.job.set(BINARY_PATH, &name).map_or(Value::Nil, Value::from)))
}

/// Set the path of the configuration file, for the functions that follow in this job.
///
/// CLI Example:
///
///     salt '*' syslog_ng.set_config_file name=/etc/syslog-ng/syslog-ng.conf
#[function]
pub fn set_config_file(
    context: &Context,
    /// Path or id.
    name: String,
) -> CallResult {
    let old = context.job.set(CONFIG_FILE, &name).unwrap_or_else(|| DEFAULT_CONFIG_FILE.to_owned());
    Ok(replaced(&name, old.into()))
}

/// Return the path of the configuration file.
///
/// CLI Example:
///
///     salt '*' syslog_ng.get_config_file
#[function]
pub fn get_config_file(context: &Context) -> CallResult {
    Ok(config_file(context).into())
}

/// Set the paths of `set_binary_path` and `set_config_file`; with `version`, begin a new configuration file with the
/// version of the installed syslog-ng.
///
/// CLI Example:
///
///     salt '*' syslog_ng.set_parameters version='3.6'
#[function]
pub fn set_parameters(
    context: &Context,
    /// Version of the configuration.
    version: Option<Value>,
    /// Directory of the programs.
    binary_path: Option<String>,
    /// Path of the configuration file.
    config_file: Option<String>,
    #[rest] _args: Vec<Value>,
    #[keywords] _kwargs: Map,
) -> CallResult {
    for (name, value) in [(BINARY_PATH, binary_path), (CONFIG_FILE, config_file)] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            context.job.set(name, &value);
        }
    }
    if version.is_some_and(|version| version.is_truthy()) {
        let directory = context.job.setting(BINARY_PATH);
        let result = installed_version(context, directory.as_deref());
        let detected_version =
            result.map_err(|answer| CallError::Execution(format!("the version of syslog-ng is unknown: {answer}")))?;
        start_config_file(context, &short_version(&detected_version));
    }
    Ok(map! {"retcode" => 0}.into())
}

/// Check the syntax of a configuration file with `syslog-ng --syntax-only`; the program is searched in PATH, then in
/// `syslog_ng_sbin_dir`.
///
/// CLI Example:
///
///     salt '*' syslog_ng.config_test
///     salt '*' syslog_ng.config_test /home/user/install/syslog-ng/sbin /etc/syslog-ng/syslog-ng.conf
#[function]
pub fn config_test(
    context: &Context,
    /// Directory of the programs `syslog-ng` and `syslog-ng-ctl`.
    syslog_ng_sbin_dir: Option<String>,
    /// Path of the configuration file.
    cfgfile: Option<String>,
) -> CallResult {
    let file = cfgfile.filter(|file| !file.is_empty()).map(|file| format!("--cfgfile={file}"));
    let words: Vec<&str> = ["--syntax-only"].into_iter().chain(file.as_deref()).collect();
    Ok(match run_program(context, syslog_ng_sbin_dir.as_deref(), "syslog-ng", &words) {
        Ok(output) => output.to_value(),
        Err(answer) => answer,
    })
}

/// Return the version of the installed syslog-ng.
///
/// CLI Example:
///
///     salt '*' syslog_ng.version
#[function]
pub fn version(
    context: &Context,
    /// Directory of the programs `syslog-ng` and `syslog-ng-ctl`.
    syslog_ng_sbin_dir: Option<String>,
) -> CallResult {
    Ok(match installed_version(context, syslog_ng_sbin_dir.as_deref()) {
        Ok(version) => map! {"retcode" => 0, "stdout" => version}.into(),
        Err(answer) => answer,
    })
}

/// Return the available modules of syslog-ng.
///
/// CLI Example:
///
///     salt '*' syslog_ng.modules
#[function]
pub fn modules(
    context: &Context,
    /// Directory of the programs `syslog-ng` and `syslog-ng-ctl`.
    syslog_ng_sbin_dir: Option<String>,
) -> CallResult {
    let output = match run_program(context, syslog_ng_sbin_dir.as_deref(), "syslog-ng", &["-V"]) {
        Ok(output) if output.retcode == 0 => output,
        Ok(output) => return Ok(output.to_value()),
        Err(answer) => return Ok(answer),
    };
    let line = output.stdout.lines().find(|line| line.starts_with("Available-Modules"));
    Ok(match line.and_then(|line| line.split_whitespace().nth(1)) {
        Some(modules) => map! {"retcode" => 0, "stdout" => modules}.into(),
        None => map! {"retcode" => -1, "stderr" => "Unable to find the modules."}.into(),
    })
}

/// Return the statistics of the running syslog-ng.
///
/// CLI Example:
///
///     salt '*' syslog_ng.stats
#[function]
pub fn stats(
    context: &Context,
    /// Directory of the programs `syslog-ng` and `syslog-ng-ctl`.
    syslog_ng_sbin_dir: Option<String>,
) -> CallResult {
    Ok(match run_program(context, syslog_ng_sbin_dir.as_deref(), "syslog-ng-ctl", &["stats"]) {
        Ok(output) => output.to_value(),
        Err(answer) => answer,
    })
}

/// Append a text to the configuration file, followed by newlines.
///
/// CLI Example:
///
///     salt '*' syslog_ng.write_config config='# comment'
#[function]
pub fn write_config(
    context: &Context,
    /// Contents of the statement.
    config: Value,
    /// Number of newlines after the text.
    #[default(2)]
    newlines: usize,
) -> CallResult {
    let text = match &config {
        Value::Map(map) if map.len() == 1 => map.values().next().map(ToString::to_string).unwrap_or_default(),
        config => config.to_string(),
    };
    let is_written = append(context, &text, newlines);
    Ok(report("".into(), Some(is_written), map! {"old" => "", "new" => config}, ""))
}

/// Begin a new configuration file with this version.
///
/// CLI Example:
///
///     salt '*' syslog_ng.write_version name="3.6"
#[function]
pub fn write_version(
    context: &Context,
    /// Path or id.
    name: Value,
) -> CallResult {
    let is_written = start_config_file(context, &name.to_string());
    Ok(report(name, Some(is_written), no_changes(), ""))
}

fn config_file(context: &Context) -> String {
    context.job.setting(CONFIG_FILE).unwrap_or_else(|| DEFAULT_CONFIG_FILE.to_owned())
}

/// Returns a result with the keys of a state's result, in Salt's order.
fn report(name: Value, result: Option<bool>, changes: Map, comment: &str) -> Value {
    let result = result.map_or(Value::Nil, Value::from);
    map! {"name" => name, "result" => result, "changes" => changes, "comment" => comment}.into()
}

fn no_changes() -> Map {
    map! {"old" => "", "new" => ""}
}

fn replaced(name: &str, old: Value) -> Value {
    report(name.into(), Some(true), map! {"old" => old, "new" => name}, "")
}

fn configured(context: &Context, name: &str, config: &Value, write: bool, test: bool) -> CallResult {
    let text = render::statement(name, config).map_err(CallError::Execution)?;
    if test {
        let comment = format!("State syslog_ng will write '{text}' into {}", config_file(context));
        return Ok(report(name.into(), None, no_changes(), &comment));
    }
    let is_written = write && append(context, &text, 2);
    Ok(report(name.into(), Some(is_written), map! {"new" => text, "old" => ""}, ""))
}

/// The output of a program.
struct Outcome {
    retcode: i64,
    stdout: String,
    stderr: String,
}

impl Outcome {
    fn to_value(&self) -> Value {
        map! {"retcode" => self.retcode, "stdout" => self.stdout.as_str(), "stderr" => self.stderr.as_str()}.into()
    }
}

/// Runs a program of syslog-ng, which may be in a directory outside of PATH. The error is the result that the function
/// returns.
fn run_program(context: &Context, directory: Option<&str>, name: &str, words: &[&str]) -> Result<Outcome, Value> {
    let directory = directory.filter(|directory| !directory.is_empty());
    let own = directory.map(|directory| Path::new(directory).join(name)).filter(|path| path.is_file());
    // A program in PATH takes precedence.
    let own = own.filter(|_| which(name).is_none());
    let first = own.map_or_else(|| name.to_owned(), |path| path.display().to_string());
    let words: Vec<String> = std::iter::once(first).chain(words.iter().map(|word| (*word).to_owned())).collect();
    match context.run_program(&program(&words, &[])) {
        Ok(output) => Ok(Outcome { retcode: output.retcode, stdout: output.stdout, stderr: output.stderr }),
        Err(error) => Err(map! {"retcode" => -1, "stderr" => error.to_string()}.into()),
    }
}

/// Returns the installed version: the second word of the first line of `syslog-ng -V`. The error is the result that the
/// function returns.
fn installed_version(context: &Context, directory: Option<&str>) -> Result<String, Value> {
    let output = run_program(context, directory, "syslog-ng", &["-V"])?;
    let version = output.stdout.lines().next().and_then(|line| line.split_whitespace().nth(1));
    match version {
        Some(version) if output.retcode == 0 => Ok(version.to_owned()),
        _ => Err(output.to_value()),
    }
}

/// Returns a version in the form of configuration files: `3.38` for `3.38.1`.
fn short_version(version: &str) -> String {
    match version.match_indices('.').nth(1) {
        Some((at, _)) => version[..at].to_owned(),
        None => version.chars().take(3).collect(),
    }
}

/// Replaces the configuration file by a new one with only this version. Returns whether that succeeded; an error is
/// logged.
fn start_config_file(context: &Context, version: &str) -> bool {
    let path = config_file(context);
    match user_files::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::error!(jid = context.job.jid, path, %error, "removing the configuration file failed");
            return false;
        }
        _ => {}
    }
    let now = brine_clock::now().strftime("%Y-%m-%d %H:%M:%S").to_string();
    append(context, &format!("#Generated by Salt on {now}"), 1) && append(context, &format!("@version: {version}"), 2)
}

/// Appends to the configuration file. Returns whether that succeeded; an error is logged.
fn append(context: &Context, text: &str, newlines: usize) -> bool {
    let path = config_file(context);
    let text = format!("{text}{}", "\n".repeat(newlines.min(1000)));
    match user_files::append_bytes(&path, text.as_bytes()) {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(jid = context.job.jid, path, %error, "writing the configuration file failed");
            false
        }
    }
}

#[cfg(test)]
mod tests;

//! `supervisord`: processes of supervisord, with `supervisorctl`.

pub(crate) mod state;

use std::path::{Path, PathBuf};

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::process::{Program, split};
use brine_host::programs::program;
use brine_system::files;
use brine_value::{Map, Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `supervisord`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "supervisord",
    [start, restart, stop, add, remove, reread, update, status, status_raw, status_bool, custom, options]
);

/// The arguments for calling `supervisorctl`.
#[derive(Args, Debug, Clone)]
pub struct Control {
    /// User that runs it.
    pub user: Option<String>,
    /// Configuration file of supervisord.
    pub conf_file: Option<String>,
    /// Path of `supervisorctl`, or of the virtual environment that contains it.
    pub bin_env: Option<String>,
}

/// Start a process, a group (`group:`), or all.
///
/// CLI Example:
///
///     salt '*' supervisord.start <service>
///     salt '*' supervisord.start <group>:
#[function]
pub fn start(
    context: &Context,
    /// Name of the process, or of a group with a colon at its end; all by default.
    #[default("all".into())]
    name: String,
    #[args] control: Control,
) -> CallResult {
    Ok(control.run(context, &["start", without_star(&name)])?.into())
}

/// Restart a process, a group (`group:`), or all.
///
/// CLI Example:
///
///     salt '*' supervisord.restart <service>
#[function]
pub fn restart(
    context: &Context,
    /// Name of the process, or of a group with a colon at its end; all by default.
    #[default("all".into())]
    name: String,
    #[args] control: Control,
) -> CallResult {
    Ok(control.run(context, &["restart", without_star(&name)])?.into())
}

/// Stop a process, a group (`group:`), or all.
///
/// CLI Example:
///
///     salt '*' supervisord.stop <service>
#[function]
pub fn stop(
    context: &Context,
    /// Name of the process, or of a group with a colon at its end; all by default.
    #[default("all".into())]
    name: String,
    #[args] control: Control,
) -> CallResult {
    Ok(control.run(context, &["stop", without_star(&name)])?.into())
}

/// Activate the configuration of a process or group.
///
/// CLI Example:
///
///     salt '*' supervisord.add <name>
#[function]
pub fn add(
    context: &Context,
    /// Name of the process, or of a group with a colon at its end; all by default.
    name: String,
    #[args] control: Control,
) -> CallResult {
    Ok(control.run(context, &["add", group(&name)])?.into())
}

/// Remove a process or group from the active configuration.
///
/// CLI Example:
///
///     salt '*' supervisord.remove <name>
#[function]
pub fn remove(
    context: &Context,
    /// Name of the process, or of a group with a colon at its end; all by default.
    name: String,
    #[args] control: Control,
) -> CallResult {
    Ok(control.run(context, &["remove", group(&name)])?.into())
}

/// Reload the configuration files of the daemon, without adding or removing processes.
///
/// CLI Example:
///
///     salt '*' supervisord.reread
#[function]
pub fn reread(context: &Context, #[args] control: Control) -> CallResult {
    Ok(control.run(context, &["reread"])?.into())
}

/// Reload the configuration, and add, remove or restart the changed processes, or only those of the group `name`.
///
/// CLI Example:
///
///     salt '*' supervisord.update
#[function]
pub fn update(
    context: &Context,
    #[args] control: Control,
    /// Name of the process, or of a group with a colon at its end; all by default.
    name: Option<String>,
) -> CallResult {
    let words = ["update"].into_iter().chain(name.as_deref().map(group)).collect::<Vec<_>>();
    Ok(control.run(context, &words)?.into())
}

/// Return the processes, each with its state and the reason that supervisord reports for it.
///
/// CLI Example:
///
///     salt '*' supervisord.status
#[function]
pub fn status(
    context: &Context,
    /// Name of the process, or of a group with a colon at its end; all by default.
    name: Option<String>,
    #[args] control: Control,
) -> CallResult {
    Ok(control.processes(context, name.as_deref())?.into_iter().collect::<Map>().into())
}

/// Return the output of `supervisorctl status`.
///
/// CLI Example:
///
///     salt '*' supervisord.status_raw
#[function]
pub fn status_raw(
    context: &Context,
    /// Name of the process, or of a group with a colon at its end; all by default.
    name: Option<String>,
    #[args] control: Control,
) -> CallResult {
    let words = ["status"].into_iter().chain(name.as_deref()).collect::<Vec<_>>();
    Ok(control.run(context, &words)?.into())
}

/// Return whether a process exists, and with `expected_state` whether it is in that state.
///
/// CLI Example:
///
///     salt '*' supervisord.status_bool nginx expected_state='RUNNING'
#[function]
pub fn status_bool(
    context: &Context,
    /// Name of the process, or of a group with a colon at its end; all by default.
    name: String,
    /// State that the process should have.
    expected_state: Option<String>,
    #[args] control: Control,
) -> CallResult {
    let all = control.processes(context, Some(&name))?;
    let entry = all.into_iter().find(|(process, _)| process.as_str() == Some(&*name));
    let field = |about: &Value, key: &str| about.get(key).map(ToString::to_string).unwrap_or_default();
    let is_there = |about: &Value| field(about, "reason") != "(no such process)";
    let is_expected = |about: &Value| expected_state.as_ref().is_none_or(|state| field(about, "state") == *state);
    Ok(entry.is_some_and(|(_, about)| is_there(&about) && is_expected(&about)).into())
}

/// Run any command of `supervisorctl`, and return its output.
///
/// CLI Example:
///
///     salt '*' supervisord.custom "mstop '*gunicorn*'"
#[function]
pub fn custom(
    context: &Context,
    /// Command of `supervisorctl`.
    command: String,
    #[args] control: Control,
) -> CallResult {
    let words = split(&command)
        .ok_or_else(|| CallError::Execution(format!("the command '{command}' has an unclosed quote")))?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(control.run(context, &words)?.into())
}

/// Return the options of a process in the configuration file.
///
/// CLI Example:
///
///     salt '*' supervisord.options foo
#[function]
pub fn options(
    _context: &Context,
    /// Name of the process, or of a group with a colon at its end; all by default.
    name: String,
    /// Path of the configuration file.
    conf_file: Option<String>,
) -> CallResult {
    let usual = ["/etc/supervisor/supervisord.conf", "/etc/supervisord.conf"].map(PathBuf::from);
    let path = conf_file.map(PathBuf::from).or_else(|| usual.into_iter().find(|path| path.exists()));
    let path = path.ok_or_else(|| CallError::Execution("No suitable config file found".into()))?;
    let text = files::read_to_string(&path)
        .map_err(|error| CallError::Execution(format!("Unable to read from {}: {error}", path.display())))?;
    let section = section(&text, &format!("program:{name}"));
    section.map(Into::into).ok_or_else(|| CallError::Execution(format!("Process '{name}' not found")))
}

impl Control {
    /// Runs a command of `supervisorctl` and returns its output, with the prefix `ERROR: ` if it fails.
    pub fn run(&self, context: &Context, words: &[&str]) -> Result<String, CallError> {
        let mut all = vec![self.program()?];
        if let Some(file) = &self.conf_file {
            all.extend(["-c".to_owned(), file.clone()]);
        }
        all.extend(words.iter().map(|word| (*word).to_owned()));
        let program = Program { runas: self.user.clone(), ..program(&all, &[]) };
        let output = context.run_program(&program).map_err(CallError::execution)?;
        // `status` exits with 3 if a process is not running, which is not an error.
        let is_status = words.first() == Some(&"status");
        let is_answer = output.retcode == 0 || is_status || output.stdout.contains("ERROR");
        Ok(if is_answer { output.stdout } else { format!("ERROR: {}", output.stdout) })
    }

    /// Returns the processes with their states and reasons.
    pub fn processes(&self, context: &Context, name: Option<&str>) -> Result<Vec<(Value, Value)>, CallError> {
        let words = ["status"].into_iter().chain(name).collect::<Vec<_>>();
        Ok(self.run(context, &words)?.lines().filter_map(process).collect())
    }

    fn program(&self) -> Result<String, CallError> {
        match self.bin_env.as_deref().filter(|path| !path.is_empty()) {
            None => Ok("supervisorctl".to_owned()),
            Some(directory) if Path::new(directory).is_dir() => {
                let program = Path::new(directory).join("bin/supervisorctl");
                if program.is_file() {
                    return Ok(program.display().to_string());
                }
                Err(CallError::Execution("Could not find a `supervisorctl` binary".into()))
            }
            Some(program) => Ok(program.to_owned()),
        }
    }
}

/// Parses a line of `supervisorctl status`: the name, the state and the reason.
fn process(line: &str) -> Option<(Value, Value)> {
    let (name, rest) = line.trim().split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let (state, reason) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some((name.into(), map! {"state" => state, "reason" => reason.trim_start()}.into()))
}

/// Returns the name of a group without the star that the output of `supervisorctl` may contain.
pub(crate) fn without_star(name: &str) -> &str {
    if name.ends_with(":*") { &name[..name.len() - 1] } else { name }
}

fn group(name: &str) -> &str {
    name.strip_suffix(":*").or_else(|| name.strip_suffix(':')).unwrap_or(name)
}

/// Returns the options of a section, with numbers and booleans parsed.
fn section(text: &str, name: &str) -> Option<Map> {
    let mut options: Option<Map> = None;
    let mut is_inside = false;
    for line in text.lines() {
        if let Some(header) = line.trim().strip_prefix('[').and_then(|line| line.split(']').next()) {
            is_inside = header == name;
            if is_inside {
                options.get_or_insert_default();
            }
        } else if let (true, false, Some((key, value))) =
            (is_inside, line.trim_start().starts_with(['#', ';']), line.split_once(['=', ':']))
        {
            let value = value.split(';').next().unwrap_or_default().trim();
            let read = match value.to_lowercase().as_str() {
                "true" => true.into(),
                "false" => false.into(),
                _ => value
                    .parse::<i64>()
                    .map(Value::from)
                    .or_else(|_| value.parse::<f64>().map(Value::from))
                    .unwrap_or_else(|_| value.into()),
            };
            options.get_or_insert_default().insert(key.trim().to_lowercase().into(), read);
        }
    }
    options
}

#[cfg(test)]
mod tests;

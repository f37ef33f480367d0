//! `cmd`: runs commands.
//!
//! From the command line and in states a command runs in a shell; from a template and from another function it does
//! not, as in Salt, unless `python_shell=True` is passed.

mod arguments;
mod chroot;
mod find;
mod permission;
mod scratch;
mod script;
pub(crate) mod state;
mod terminal;
#[cfg(test)]
mod tests;

use brine_context::redact::Redactor;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::{Output, Program};
use brine_text::shell::quote;
use brine_value::{FromValue, Map, Value, map};

pub use arguments::CommandArgs;
use permission::permitted;
pub use scratch::{Scratch, script_content};

const DEFAULT_SHELL: &str = "/bin/sh";

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `cmd`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "cmd",
    [
        run,
        run_bg,
        shell,
        run_stdout,
        run_stderr,
        run_all,
        script::script,
        script::script_retcode,
        script::exec_code,
        script::exec_code_all,
        retcode,
        find::which,
        find::which_bin,
        find::shells,
        find::has_exec,
        chroot::run_chroot,
        terminal::shell_info,
        terminal::tty
    ]
);

/// Run a command, a string or a list of arguments, and return its output. Its exit status becomes the job's
/// retcode.
///
/// CLI Example:
///
///     salt '*' cmd.run "ls -l | awk '/foo/{print \$2}'"
#[function]
pub fn run(
    context: &Context,
    /// Command to run.
    cmd: CommandLine,
    #[args] args: CommandArgs,
) -> CallResult {
    if args.bg.is_truthy() {
        return run_bg(context, cmd, args);
    }
    let (command, args) = permitted(context, cmd, args)?;
    output(context, &command, &args)
}

/// Returns the output of a command, by default with its errors.
pub fn output(context: &Context, command: &str, args: &CommandArgs) -> CallResult {
    let merge = args.redirect_stderr.is_nil() || args.redirect_stderr.is_truthy();
    let program = Program { merge, ..args.program(context, command)? };
    let output = finish(context, &program, args)?;
    let is_failure = output.retcode != 0 && !args.ignore_retcode.is_truthy() && !args.is_quiet();
    if is_failure && args.raise_err.is_truthy() {
        return Err(CallError::Execution(output.stdout));
    }
    Ok(output.stdout.into())
}

/// Start a command in the background and return its PID. The command outlives its job.
///
/// CLI Example:
///
///     salt '*' cmd.run_bg "fstrim-all"
#[function]
pub fn run_bg(
    context: &Context,
    /// Command to run.
    cmd: CommandLine,
    #[args] args: CommandArgs,
) -> CallResult {
    let (command, args) = permitted(context, cmd, args)?;
    Ok(map! {"pid" => start(context, &command, &args)?}.into())
}

/// Run a command in a shell, as `run` with `python_shell=True`, which is the default here in templates, too.
///
/// CLI Example:
///
///     salt '*' cmd.shell "ls -l | wc -l"
#[function]
pub fn shell(
    context: &Context,
    /// Command to run.
    cmd: CommandLine,
    #[args] args: CommandArgs,
) -> CallResult {
    let python_shell = if args.python_shell.is_nil() { true.into() } else { args.python_shell.clone() };
    run(context, cmd, CommandArgs { python_shell, ..args })
}

/// Run a command and return its standard output.
///
/// CLI Example:
///
///     salt '*' cmd.run_stdout "ls -l"
#[function]
pub fn run_stdout(
    context: &Context,
    /// Command to run.
    cmd: CommandLine,
    #[args] args: CommandArgs,
) -> CallResult {
    let (command, args) = permitted(context, cmd, args)?;
    Ok(execute(context, &command, &args)?.stdout.into())
}

/// Run a command and return its standard error.
///
/// CLI Example:
///
///     salt '*' cmd.run_stderr "ls -l /nope"
#[function]
pub fn run_stderr(
    context: &Context,
    /// Command to run.
    cmd: CommandLine,
    #[args] args: CommandArgs,
) -> CallResult {
    let (command, args) = permitted(context, cmd, args)?;
    Ok(execute(context, &command, &args)?.stderr.into())
}

/// Run a command and return its pid, retcode, stdout and stderr.
///
/// CLI Example:
///
///     salt '*' cmd.run_all "ls -l"
#[function]
pub fn run_all(
    context: &Context,
    /// Command to run.
    cmd: CommandLine,
    #[args] args: CommandArgs,
) -> CallResult {
    let (command, args) = permitted(context, cmd, args)?;
    Ok(result_of_all(execute(context, &command, &args)?).into())
}

/// Run a command and return its exit status.
///
/// CLI Example:
///
///     salt '*' cmd.retcode "file /bin/bash"
#[function]
pub fn retcode(
    context: &Context,
    /// Command to run.
    cmd: CommandLine,
    #[args] args: CommandArgs,
) -> CallResult {
    let (command, args) = permitted(context, cmd, args)?;
    Ok(execute(context, &command, &args)?.retcode.into())
}

/// A command as callers pass it: a string, or a list of arguments.
pub struct CommandLine {
    /// The line, in which arguments of a list are quoted.
    line: String,
    /// The arguments of a list, with a space between each two.
    words: Option<String>,
    /// Whether it is a list of one item.
    is_one: bool,
}

impl CommandLine {
    /// Returns the command for a shell, which gets the only item of a list as its line, as in Salt.
    fn for_shell(self) -> Self {
        match self.words {
            Some(line) if self.is_one => CommandLine { line, words: None, is_one: false },
            words => CommandLine { words, ..self },
        }
    }
}

impl FromValue for CommandLine {
    const EXPECTED: &'static str = "a string or a list of strings";
    fn from_value(value: &Value) -> Option<Self> {
        let Value::List(words) = value else {
            return String::from_value(value).map(|line| CommandLine { line, words: None, is_one: false });
        };
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let line = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
        Some(CommandLine { line, words: Some(words.join(" ")), is_one: words.len() == 1 })
    }
}

/// Returns the result of `cmd.run_all`: `pid`, `retcode`, `stdout` and `stderr`.
pub fn result_of_all(output: Output) -> Map {
    map! {"pid" => output.pid, "retcode" => output.retcode, "stdout" => output.stdout, "stderr" => output.stderr}
}

/// Runs a command, and sets the job's retcode.
pub fn execute(context: &Context, command: &str, args: &CommandArgs) -> Result<Output, CallError> {
    finish(context, &args.program(context, command)?, args)
}

/// Runs a command that can write no file larger than this, in bytes, and sets the job's retcode.
pub fn execute_limited(
    context: &Context,
    command: &str,
    args: &CommandArgs,
    file_limit: u64,
) -> Result<Output, CallError> {
    finish(context, &Program { file_limit: Some(file_limit), ..args.program(context, command)? }, args)
}

/// Starts a command without waiting for its end, and returns its PID.
pub fn start(context: &Context, command: &str, args: &CommandArgs) -> Result<u32, CallError> {
    args.program(context, command)?.start().map_err(CallError::execution)
}

/// Runs a program, applies the arguments on exit statuses, and sets the job's retcode.
fn finish(context: &Context, program: &Program, args: &CommandArgs) -> Result<Output, CallError> {
    let is_quiet = args.hide_output.is_truthy() || args.is_quiet();
    // As in Salt, only the name of the program is logged by default: arguments often contain secrets.
    let name = program.command.split_whitespace().next().unwrap_or_default();
    let cwd = program.cwd.as_ref().map(|cwd| cwd.display().to_string());
    tracing::info!(cwd, runas = program.runas, "executing command '{name}'");
    if !is_quiet && tracing::enabled!(tracing::Level::DEBUG) {
        tracing::debug!("command line: {}", Redactor::of(&context.pillar()).hide(&program.command));
    }
    let mut output = context.run_program(program).map_err(CallError::execution)?;
    if output.timed_out {
        output.stdout = format!("{} : Timed out after {} seconds", program.command, args.timeout);
        output.retcode = i64::from(!args.ignores_timeout());
        context.set_retcode(output.retcode);
        return Ok(output);
    }
    let has_any = |words: &[String], text: &str| words.iter().any(|word| text.contains(word.as_str()));
    if Vec::<i64>::from_value(&args.success_retcodes).is_some_and(|good| good.contains(&output.retcode))
        || has_any(&args.success_stdout, &output.stdout)
        || has_any(&args.success_stderr, &output.stderr)
    {
        output.retcode = 0;
    }
    let is_failure = !args.ignore_retcode.is_truthy() && output.retcode != 0;
    if is_failure {
        tracing::error!(jid = context.job.jid, retcode = output.retcode, "command '{name}' failed");
        context.set_retcode(output.retcode);
    }
    if !is_quiet {
        log_output(context, &output, is_failure);
    }
    if args.hide_output.is_truthy() {
        (output.stdout, output.stderr) = (String::new(), String::new());
    }
    Ok(output)
}

/// Logs the output of a command with pillar values redacted; at level error if the command failed, otherwise at debug.
fn log_output(context: &Context, output: &Output, is_failure: bool) {
    if !(is_failure || tracing::enabled!(tracing::Level::DEBUG)) {
        return;
    }
    let redactor = Redactor::of(&context.pillar());
    for (name, text) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        for line in redactor.lines(text) {
            if is_failure {
                tracing::error!("{name}: {line}");
            } else {
                tracing::debug!("{name}: {line}");
            }
        }
    }
}

/// Splits options into arguments.
pub fn split_options(options: &str) -> Result<Vec<String>, CallError> {
    brine_host::process::split(options)
        .ok_or_else(|| CallError::Execution(format!("options are invalid: unclosed quote in '{options}'")))
}

/// Joins arguments into a string that a shell and [`brine_host::process::split`] split alike.
fn joined(args: &Value) -> String {
    match args {
        Value::Nil => String::new(),
        Value::List(items) => items.iter().flat_map(|item| [" ".to_owned(), quote(&item.to_string())]).collect(),
        text => format!(" {text}"),
    }
}

/// Joins arguments into a string as a person reads them.
fn plain(args: &Value) -> String {
    match args {
        Value::List(items) => items.iter().flat_map(|item| [" ".to_owned(), item.to_string()]).collect(),
        other => joined(other),
    }
}

/// Runs a script from its content; `words` are the arguments of the script.
pub fn run_script(context: &Context, content: &[u8], words: &Value, args: &CommandArgs) -> Result<Output, CallError> {
    run_script_if(|_| Ok(()), context, content, words, args)
}

/// Runs a script as [`run_script`], if its command is permitted.
fn run_script_if(
    check: impl FnOnce(&str) -> Result<(), CallError>,
    context: &Context,
    content: &[u8],
    words: &Value,
    args: &CommandArgs,
) -> Result<Output, CallError> {
    let script = Scratch::new(content, args.user().as_deref())?;
    check(&format!("{}{}", script.path().display(), plain(words)))?;
    let command = format!("{}{}", script.path().display(), joined(words));
    let program = args.program(context, &command)?;
    // A script without a `#!` line can only be run by a shell.
    let shell = program.shell.clone().or_else(|| (!content.starts_with(b"#!")).then(|| DEFAULT_SHELL.to_owned()));
    finish(context, &Program { shell, ..program }, args)
}

/// Whether a command succeeds: its words, without a shell unless `cmd_safe` is off. Does not set the job's retcode.
pub fn succeeds(context: &Context, command: &str) -> Result<bool, CallError> {
    let through_shell = !context.config().cmd_safe;
    let args = CommandArgs::read(&map! {"ignore_retcode" => true, "python_shell" => through_shell})?;
    Ok(execute(context, command, &args)?.retcode == 0)
}

//! `cmd`: running commands.
//!
//! From the command line and in states a command goes through a shell; from a template it does not, as in
//! Salt, unless `python_shell=True` says so.

use std::path::PathBuf;
use std::time::Duration;

use brine_core::function::{Args, CallError};
use brine_core::{Map, Value, functions, map};

use crate::context::Context;
use crate::process::{Output, Program};

const DEFAULT_SHELL: &str = "/bin/sh";

functions! {
    module "cmd", context Context;

    /// Runs a command and gives what it wrote. Its exit status becomes the job's retcode.
    ///
    /// Takes cwd, stdin, runas, shell, python_shell, env, clean_env, timeout, ignore_retcode and
    /// success_retcodes.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cmd.run "ls -l | awk '/foo/{print \$2}'"
    fn run(context, cmd: String, **kwargs) {
        let output = execute(context, &cmd, &kwargs)?;
        let parts: Vec<&str> = [output.stdout.as_str(), output.stderr.as_str()].into_iter().filter(|text| !text.is_empty()).collect();
        Ok(parts.join("\n").into())
    }

    /// As `run`, with a shell in any case.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cmd.shell "ls -l | wc -l"
    fn shell(context, cmd: String, **kwargs) {
        let mut kwargs = kwargs;
        kwargs.insert("python_shell".into(), true.into());
        run(context, cmd, kwargs)
    }

    /// Runs a command and gives what it wrote to its output.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cmd.run_stdout "ls -l"
    fn run_stdout(context, cmd: String, **kwargs) {
        Ok(execute(context, &cmd, &kwargs)?.stdout.into())
    }

    /// Runs a command and gives what it wrote to its error output.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cmd.run_stderr "ls -l /nope"
    fn run_stderr(context, cmd: String, **kwargs) {
        Ok(execute(context, &cmd, &kwargs)?.stderr.into())
    }

    /// Runs a command and gives all about it: pid, retcode, stdout, stderr.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cmd.run_all "ls -l"
    fn run_all(context, cmd: String, **kwargs) {
        let output = execute(context, &cmd, &kwargs)?;
        Ok(map! {"pid" => output.pid, "retcode" => output.retcode, "stdout" => output.stdout, "stderr" => output.stderr}.into())
    }

    /// Runs a command and gives its exit status.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cmd.retcode "file /bin/bash"
    fn retcode(context, cmd: String, **kwargs) {
        Ok(execute(context, &cmd, &kwargs)?.retcode.into())
    }

    /// Gives where a program is, or nothing.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cmd.which cat
    fn which(_context, cmd: String) {
        Ok(find_program(&cmd).map(|path| path.display().to_string()).into())
    }

    /// Whether there is such a program.
    ///
    /// CLI Example:
    ///
    ///     salt '*' cmd.has_exec cat
    fn has_exec(_context, cmd: String) {
        Ok(find_program(&cmd).is_some().into())
    }
}

fn find_program(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let runs = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|status| status.is_file() && status.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(runs);
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(runs)
}

/// Runs a command with Salt's keyword arguments, and sets the job's retcode.
pub fn execute(context: &Context, command: &str, kwargs: &Map) -> Result<Output, CallError> {
    let program = program(context, command, kwargs)?;
    let output = program.run(&context.job.children, &context.job.cancel).map_err(CallError::execution)?;
    let flag = |name: &str| kwargs.get(name).is_some_and(Value::is_truthy);
    let good = kwargs.get("success_retcodes").and_then(Value::as_list).unwrap_or_default();
    if output.timed_out {
        let after = program.timeout.unwrap_or_default().as_secs();
        let stdout = format!("{command} : Timed out after {after} seconds");
        context.set_retcode(1);
        return Ok(Output { stdout, retcode: 1, ..output });
    }
    if !flag("ignore_retcode") && !good.contains(&output.retcode.into()) && output.retcode != 0 {
        context.set_retcode(output.retcode);
    }
    Ok(output)
}

/// The command that Salt's keyword arguments describe.
fn program(context: &Context, command: &str, kwargs: &Map) -> Result<Program, CallError> {
    let text = |name: &str| kwargs.get(name).filter(|value| !value.is_nil()).map(ToString::to_string);
    let flag = |name: &str| kwargs.get(name).map(Value::is_truthy);
    let through_shell = flag("python_shell").unwrap_or(!context.in_template);
    let timeout =
        kwargs.get("timeout").and_then(Value::as_f64).map(|seconds| Duration::from_secs_f64(seconds.clamp(0.0, 1e9)));
    Ok(Program {
        command: command.to_owned(),
        shell: through_shell.then(|| text("shell").unwrap_or_else(|| DEFAULT_SHELL.to_owned())),
        cwd: text("cwd").map(PathBuf::from),
        env: environment(kwargs.get("env"))?,
        clean_env: flag("clean_env").unwrap_or(false),
        stdin: text("stdin"),
        runas: text("runas").or_else(|| text("user")),
        timeout,
    })
}

/// `env` as a mapping or a list of one-key mappings.
fn environment(env: Option<&Value>) -> Result<Vec<(String, String)>, CallError> {
    let pairs = |map: &Map| map.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect::<Vec<_>>();
    match env {
        None | Some(Value::Nil) => Ok(Vec::new()),
        Some(Value::Map(map)) => Ok(pairs(map)),
        Some(Value::List(items)) if items.iter().all(|item| item.as_map().is_some()) => {
            Ok(items.iter().filter_map(Value::as_map).flat_map(pairs).collect())
        }
        Some(other) => {
            Err(CallError::Execution(format!("env is a mapping or a list of mappings, not {}", other.type_name())))
        }
    }
}

/// Whether a shell command succeeds: for conditions of states. It does not count as the job's retcode.
pub fn succeeds(context: &Context, command: &str, kwargs: &Map) -> Result<bool, CallError> {
    let mut kwargs = kwargs.clone();
    kwargs.insert("ignore_retcode".into(), true.into());
    kwargs.insert("python_shell".into(), true.into());
    Ok(execute(context, command, &kwargs)?.retcode == 0)
}

/// The arguments of `cmd.run_all` for a command.
pub fn args(command: &str, kwargs: Map) -> Args {
    Args { positional: vec![command.into()], keyword: kwargs }
}

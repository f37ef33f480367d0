//! Runs `rabbitmqctl` and `rabbitmq-plugins`, and parses their lists.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use brine_context::Context;
use brine_function::CallError;
use brine_host::process::{Output, Program};
use brine_host::programs::{argument, program};
use brine_value::json::{from_json, to_json};
use brine_value::{Map, Value};

pub(super) const RABBITMQCTL: &str = "rabbitmqctl";
const RABBITMQ_PLUGINS: &str = "rabbitmq-plugins";
/// The account of the server in packages of distributions.
const ACCOUNT: &str = "rabbitmq";
/// The size up to which `rabbitmqctl` is searched for its call of a shell, in bytes.
const SCRIPT_LIMIT: u64 = 16 << 10;
/// The prompt of commands that read a password.
const PROMPT: &str = "Password:";

/// The programs of the server on this host.
pub(super) struct Ctl<'a> {
    context: &'a Context,
    /// The account that runs them; by default that of the minion.
    runas: Option<String>,
}

impl<'a> Ctl<'a> {
    pub(super) fn new(context: &'a Context, runas: Option<String>) -> Self {
        Ctl { context, runas: runas.filter(|user| !user.is_empty()) }
    }

    /// Runs a command of `rabbitmqctl` and returns its messages.
    pub(super) fn run(&self, words: &[&str]) -> Result<String, CallError> {
        checked(self.rabbitmqctl(words, Program::default())?)
    }

    /// Runs a command as [`Ctl::run`] whose arguments may contain passwords: errors of starting it omit them.
    pub(super) fn run_secret(&self, words: &[&str]) -> Result<String, CallError> {
        checked(self.rabbitmqctl(words, Program { quiet: true, ..Program::default() })?)
    }

    /// Runs a command of `rabbitmqctl` for a user with a password, which is not among the arguments that other accounts
    /// see in the list of processes.
    pub(super) fn run_with_password(&self, command: &str, user: &str, password: &str) -> Result<Output, CallError> {
        // `rabbitmqctl` reads one line and trims it.
        if password.is_empty() || password.trim() != password || password.contains(['\n', '\r', '\0']) {
            let expected = "expected one line that is not empty and has no white space around it";
            return Err(CallError::Execution(format!("the password of user '{user}' is invalid: {expected}")));
        }
        let stdin = Some(format!("{password}\n"));
        let mut output = self.rabbitmqctl(&[command, &argument(user)?], Program { stdin, ..Program::default() })?;
        let lines = output.stdout.lines().filter(|line| line.trim_end() != PROMPT);
        output.stdout = lines.collect::<Vec<_>>().join("\n");
        Ok(output)
    }

    /// Runs a command of `rabbitmqctl` that lists objects, and returns them.
    pub(super) fn list(&self, command: &str, words: &[&str]) -> Result<Vec<Map>, CallError> {
        let row = |row| match row {
            Value::Map(row) => Ok(row),
            _ => Err(unexpected(command)),
        };
        match self.json(command, words)? {
            Value::List(rows) => rows.into_iter().map(row).collect(),
            _ => Err(unexpected(command)),
        }
    }

    /// Runs a command of `rabbitmqctl` and returns its output, which is JSON.
    pub(super) fn json(&self, command: &str, words: &[&str]) -> Result<Value, CallError> {
        // Text would depend on the release: headings and the order of columns differ.
        let words = [&[command, "-q", "--formatter=json"], words].concat();
        from_json(&self.run(&words)?).map_err(|_| unexpected(command))
    }

    /// Runs a command of `rabbitmq-plugins` and returns its messages.
    pub(super) fn plugins(&self, words: &[&str]) -> Result<String, CallError> {
        checked(self.output(RABBITMQ_PLUGINS, words, Program { runas: self.runas.clone(), ..Program::default() })?)
    }

    fn rabbitmqctl(&self, words: &[&str], settings: Program) -> Result<Output, CallError> {
        let program = self.context.minion.programs.find(RABBITMQCTL);
        let runas = account(program.as_deref(), self.runas.clone());
        self.output(RABBITMQCTL, words, Program { runas, ..settings })
    }

    fn output(&self, name: &str, words: &[&str], settings: Program) -> Result<Output, CallError> {
        let words: Vec<String> = std::iter::once(&name).chain(words).map(|word| (*word).to_owned()).collect();
        let command = program(&words, &[]).command;
        self.context.run_program(&Program { command, ..settings }).map_err(CallError::execution)
    }
}

/// Returns the messages of a successful command; warnings on its standard error are no failure.
pub(super) fn checked(output: Output) -> Result<String, CallError> {
    if output.retcode == 0 {
        return Ok(output.stdout);
    }
    let error = if output.stderr.is_empty() { output.stdout } else { output.stderr };
    Err(CallError::Execution(format!("RabbitMQ command failed: {}", error.trim())))
}

/// Returns the error of output that is not the expected JSON.
pub(super) fn unexpected(command: &str) -> CallError {
    let hint = "check that the server is RabbitMQ 3.8 or newer";
    CallError::Execution(format!("the output of 'rabbitmqctl {command}' is invalid: expected JSON; {hint}"))
}

/// Returns the account that runs `rabbitmqctl`.
///
/// Debian installs a script of this name that, as root, runs the program as `rabbitmq` through a shell, which expands
/// `$` and backquotes in names. Started by that account, the script passes the arguments on unchanged.
fn account(path: Option<&Path>, runas: Option<String>) -> Option<String> {
    let is_root = runas.as_deref().is_none_or(|user| user == "root");
    let uses_shell = |path: &Path| {
        let mut script = Vec::new();
        let read = File::open(path).and_then(|file| file.take(SCRIPT_LIMIT).read_to_end(&mut script));
        read.is_ok() && String::from_utf8_lossy(&script).contains("su rabbitmq")
    };
    if is_root && path.is_some_and(uses_shell) { Some(ACCOUNT.into()) } else { runas }
}

/// Checks that a regular expression, which may be empty, cannot be mistaken for an option.
pub(super) fn pattern(word: &str) -> Result<&str, CallError> {
    if word.starts_with('-') {
        let error = format!("the regular expression '{word}' cannot be used: it starts with '-'; begin it with '[-]'");
        return Err(CallError::Execution(error));
    }
    Ok(word)
}

/// Returns a field of a listed object as text.
pub(super) fn field(row: &Map, name: &str) -> Result<String, CallError> {
    let missing = || CallError::Execution(format!("the output of rabbitmqctl is invalid: expected the field '{name}'"));
    row.get(name).map(text).ok_or_else(missing)
}

/// Returns a value as text: strings as they are, other values as JSON.
pub(super) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| to_json(value), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_with_a_shell_runs_as_the_account_of_the_server() {
        let directory = tempfile::tempdir().unwrap();
        let (wrapper, plain) = (directory.path().join("wrapper"), directory.path().join("plain"));
        std::fs::write(&wrapper, "#!/bin/sh\nsu rabbitmq -s /bin/sh -c \"/usr/lib/x ${CMDLINE}\"\n").unwrap();
        std::fs::write(&plain, b"#!/bin/sh\nexec erl \xff\n").unwrap();
        for (path, runas, expected) in [
            (Some(&wrapper), None, Some("rabbitmq")),
            (Some(&wrapper), Some("root"), Some("rabbitmq")),
            (Some(&wrapper), Some("joe"), Some("joe")),
            (Some(&plain), None, None),
            (Some(&plain), Some("root"), Some("root")),
            (Some(&directory.path().join("missing")), None, None),
            (None, Some("joe"), Some("joe")),
        ] {
            assert_eq!(account(path.map(std::path::PathBuf::as_path), runas.map(str::to_owned)).as_deref(), expected);
        }
    }
}

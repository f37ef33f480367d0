//! Modules that are programs in any language: executable files without an extension.
//!
//! A call runs the program with the name of the function as its only argument. Its standard input is a JSON mapping:
//! `args`, `kwargs`, and those of `opts`, `grains` and `pillar` that the call has. Its standard output is the result as
//! JSON. An exit status other than 0 is a failure, whose message is the standard error. With the argument `describe`,
//! the program lists its functions as a JSON mapping of names to `doc`, `args` and `defaults`, as in
//! [`Described`](crate::Described).

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use brine_system::processes::Group;
use brine_value::{Map, Value, json, map};

use crate::{Call, PythonError};

/// The timeout of listing a program's functions.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval at which a call checks whether its job was cancelled.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The maximum size of a result, in bytes.
const MAX_OUTPUT: u64 = 16 << 20;
/// The maximum number of bytes of standard error that are kept.
const MAX_STDERR: u64 = 64 << 10;

/// Returns the functions of a program with their documentation and parameters.
pub(crate) fn describe(path: &Path) -> Result<Map, String> {
    let answer = run(path, "describe", b"", Some(Instant::now() + DESCRIBE_TIMEOUT), || false)?;
    match answer {
        Value::Map(functions) if functions.values().all(|about| about.as_map().is_some()) => Ok(functions),
        other => Err(format!("'describe' answered {}, not a mapping of mappings", other.type_name())),
    }
}

/// Calls a function of a program.
pub(crate) fn call(path: &Path, call: Call<'_>, is_cancelled: impl Fn() -> bool) -> Result<Value, PythonError> {
    let name = call.function.rsplit('.').next().unwrap_or_default();
    let mut input = map! {"args" => call.args.positional, "kwargs" => call.args.keyword};
    input.extend(call.data.iter().map(|(name, data)| ((*name).into(), Value::Map((**data).clone()))));
    let input = json::to_json(&input.into());
    run(path, name, input.as_bytes(), call.deadline, is_cancelled)
        .map_err(|message| PythonError::Raised { class: "CommandExecutionError".into(), message })
}

/// Runs a program to its end; kills its whole process group when it ends or the call is cancelled.
fn run(
    path: &Path,
    argument: &str,
    input: &[u8],
    deadline: Option<Instant>,
    is_cancelled: impl Fn() -> bool,
) -> Result<Value, String> {
    let program = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let failed = |error: io::Error| format!("the program '{program}' does not run: {error}");
    let mut command = Command::new(path);
    command.arg(argument);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (group, pipes) = Group::start(&mut command).map_err(failed)?;
    let (stdin, stdout, stderr) = (pipes.stdin, pipes.stdout, pipes.stderr);
    let (output, error, ended) = std::thread::scope(|scope| {
        // A program may end without reading all of its input.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
        let stdout = scope.spawn(move || bounded(stdout, MAX_OUTPUT));
        let stderr = scope.spawn(move || bounded(stderr, MAX_STDERR));
        let ended = wait(&group, deadline, is_cancelled, || stdout.is_finished());
        // Processes that the program left running would keep the pipes open.
        let status = group.kill();
        let ended = ended.map(|()| status);
        (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default(), ended)
    });
    let status = ended.and_then(|ended| ended.map_err(failed))?;
    // At the limit, the pipe was closed, so most programs have failed to write the rest.
    if output.len() as u64 == MAX_OUTPUT {
        return Err(format!("'{program}' wrote {MAX_OUTPUT} bytes or more"));
    }
    let error = String::from_utf8_lossy(&error);
    if !status.success() {
        let message = if error.trim().is_empty() { format!("'{program}' ended with {status}") } else { error.into() };
        return Err(message.trim_end().to_owned());
    }
    for line in error.lines().filter(|line| !line.trim().is_empty()) {
        tracing::info!(program, "{line}");
    }
    let text = String::from_utf8(output).map_err(|_| format!("the output of '{program}' is not UTF-8"))?;
    if text.trim().is_empty() {
        return Ok(Value::Nil);
    }
    json::from_json(&text).map_err(|error| format!("the output of '{program}' is not JSON: {error}"))
}

/// Waits for the end of a program. The error is the reason why the call was cancelled.
fn wait(
    group: &Group,
    deadline: Option<Instant>,
    is_cancelled: impl Fn() -> bool,
    has_closed: impl Fn() -> bool,
) -> Result<(), String> {
    while !group.is_over() {
        let reason = if is_cancelled() {
            Some("its job was ended")
        } else if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some("its deadline has passed")
        } else {
            None
        };
        if let Some(reason) = reason {
            return Err(format!("the call was cancelled: {reason}"));
        }
        // Most programs end as soon as they have closed their standard output.
        std::thread::sleep(if has_closed() { Duration::from_millis(1) } else { POLL_INTERVAL });
    }
    Ok(())
}

/// Reads a pipe up to a limit, and then closes it, so that further writes fail.
fn bounded(pipe: Option<impl Read>, limit: u64) -> Vec<u8> {
    let mut output = Vec::new();
    if let Some(pipe) = pipe
        && let Err(error) = pipe.take(limit).read_to_end(&mut output)
    {
        tracing::warn!(%error, "reading the output of a program failed");
    }
    output
}

#[cfg(test)]
mod tests;

//! `cmd`: versions of shells and other interpreters, and messages to terminals.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use brine_context::Context;
use brine_function::{CallError, CallResult, function};
use brine_host::process::Program;
use brine_host::programs::program;
use brine_value::{Value, map};
use fancy_regex::Regex;
use nix::libc::{O_NOCTTY, O_NONBLOCK};

/// The interpreters: the expression that finds the version, and the command that prints it.
const SHELLS: &[(&str, &str, &[&str])] = &[
    ("bash", r"(?i)version (\d\S*)", &["bash", "--version"]),
    ("zsh", r"(?i)^zsh (\d\S*)", &["zsh", "--version"]),
    ("tcsh", r"(?i)^tcsh (\d\S*)", &["tcsh", "--version"]),
    ("perl", r"(?i)^(\d\S*)", &["perl", "-e", "printf \"%vd\\n\", $^V;"]),
    ("python", r"(?i)^Python (\d\S*)", &["python", "-V"]),
    ("ruby", r"(?i)^ruby (\d\S*)", &["ruby", "-v"]),
    ("php", r"(?i)^PHP (\d\S*)", &["php", "-v"]),
];
/// The timeout for printing a version.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Return the version of a shell or another interpreter: bash, perl, php, python, ruby, tcsh or zsh. `list_modules` is
/// without effect: it is for PowerShell.
///
/// CLI Example:
///
///     salt '*' cmd.shell_info bash
#[function]
pub fn shell_info(
    context: &Context,
    /// Name of the shell, such as `bash`.
    shell: String,
    /// Without effect: it is for PowerShell.
    #[default(false)]
    list_modules: bool,
) -> CallResult {
    // Only for PowerShell.
    _ = list_modules;
    let Some((_, pattern, words)) = SHELLS.iter().find(|(name, ..)| *name == shell) else {
        let error = format!("Salt does not know how to get the version number for {shell}");
        return Ok(map! {"error" => error, "installed" => Value::Nil}.into());
    };
    let failed = |reason: &str| {
        let error = format!("Unable to run command '{}' Reason: {reason}", words.join(" "));
        map! {"error" => error, "installed" => false}.into()
    };
    let Some(path) = context.minion.programs.find(words[0]) else {
        return Ok(failed(&format!("[Errno 2] No such file or directory: '{}'", words[0])));
    };
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let program = Program { merge: true, timeout: Some(TIMEOUT), ..program(&words, &[]) };
    let output = context.run_program(&program).map_err(CallError::execution)?;
    if output.timed_out {
        return Ok(failed("Timed out."));
    }
    let regex = Regex::new(pattern).map_err(CallError::execution)?;
    let captures = regex.captures(&output.stdout).map_err(CallError::execution)?;
    let Some(raw) = captures.and_then(|captures| Some(captures.get(1)?.as_str().to_owned())) else {
        let error = format!("The version regex pattern for shell {shell}, could not find the version string");
        return Ok(map! {"installed" => Value::Nil, "path" => path, "error" => error, "stdout" => output.stdout}.into());
    };
    let digits = raw.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
    let mut parts: Vec<&str> = digits.split('.').take(3).collect();
    if parts.len() == 1 {
        parts.push("0");
    }
    Ok(map! {"installed" => true, "path" => path, "version_raw" => raw.as_str(), "version" => parts.join(".")}.into())
}

/// Write a string to a terminal, such as `tty0` or `pts3`.
///
/// CLI Example:
///
///     salt '*' cmd.tty tty0 'This is a test'
///     salt '*' cmd.tty pts3 'This is a test'
#[function]
pub fn tty(
    _context: &Context,
    /// Name of the terminal, such as `tty0` or `pts/3`.
    device: String,
    /// Text to write.
    #[default]
    echo: String,
) -> CallResult {
    let path = match (device.strip_prefix("tty"), device.strip_prefix("pts")) {
        (Some(rest), _) if rest.chars().all(|c| c.is_ascii_alphanumeric()) => format!("/dev/{device}"),
        (_, Some(rest)) if rest.chars().all(|c| c.is_ascii_digit()) => format!("/dev/pts/{rest}"),
        _ => return Ok(map! {"Error" => "The specified device is not a valid TTY"}.into()),
    };
    // O_NONBLOCK: a stopped terminal must not block. O_NOCTTY: the device must not become the controlling terminal.
    #[allow(clippy::disallowed_methods, reason = "a device below /dev, where root alone makes names")]
    let file = File::options().write(true).custom_flags(O_NONBLOCK | O_NOCTTY).open(&path);
    Ok(match file.and_then(|mut file| file.write_all(echo.as_bytes())) {
        Ok(()) => map! {"Success" => format!("Message was successfully echoed to {path}")},
        Err(error) => {
            tracing::error!(path, %error, "writing to a terminal failed");
            map! {"Error" => format!("Echoing to {path} returned error")}
        }
    }
    .into())
}

#[cfg(test)]
mod tests;

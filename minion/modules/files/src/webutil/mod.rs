//! `webutil`: users of htpasswd files, with the program `htpasswd`.

pub(crate) mod state;
#[cfg(test)]
mod tests;

use std::path::Path;

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::{Output, Program};
use brine_host::programs::{argument, program};

use crate::cmd::result_of_all;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `webutil`.
pub static FUNCTIONS: Functions<Context> = registry!("webutil", [useradd, userdel, verify]);

/// Add a user to an htpasswd file, or change the password of one, and return the exit status and output of `htpasswd`.
/// A missing file is created.
///
/// CLI Example:
///
///     salt '*' webutil.useradd /etc/httpd/htpasswd larry badpassword
///     salt '*' webutil.useradd /etc/httpd/htpasswd larry badpassword opts=B
#[function]
pub fn useradd(
    context: &Context,
    /// Path of the file.
    pwfile: String,
    /// Name of the user.
    user: String,
    /// Password of the user.
    password: String,
    /// Letters of options of `htpasswd`: `n` returns the line instead of writing it; `B` (bcrypt), `5` (SHA-512), `2`
    /// (SHA-256), `m` (MD5, the default), `s` (SHA-1), `d` (crypt) and `p` (plain text) choose the format.
    #[default]
    opts: String,
    /// User that `htpasswd` runs as.
    runas: Option<String>,
) -> CallResult {
    let only_shows = opts.contains('n');
    let create = if only_shows || Path::new(&pwfile).exists() { "" } else { "c" };
    let file = Some(pwfile).filter(|_| !only_shows);
    let output = with_password(context, [create, &opts], file, &user, password, runas)?;
    Ok(result_of_all(output).into())
}

/// Delete a user from an htpasswd file, and return the lines of the output of `htpasswd`.
///
/// CLI Example:
///
///     salt '*' webutil.userdel /etc/httpd/htpasswd larry
#[function]
pub fn userdel(
    context: &Context,
    /// Path of the file.
    pwfile: String,
    /// Name of the user.
    user: String,
    /// User that `htpasswd` runs as.
    runas: Option<String>,
    /// Whether the exit status and the outputs are returned.
    #[default(false)]
    all_results: bool,
) -> CallResult {
    if !Path::new(&pwfile).exists() {
        return Ok("Error: The specified htpasswd file does not exist".into());
    }
    let words = ["htpasswd".to_owned(), "-D".to_owned(), argument(&pwfile)?, checked_user(&user)?];
    let output = run(context, &Program { runas, merge: !all_results, ..program(&words, &[]) })?;
    Ok(if all_results { result_of_all(output).into() } else { output.stdout.lines().collect() })
}

/// Return whether an htpasswd file has a user with this password.
///
/// CLI Example:
///
///     salt '*' webutil.verify /etc/httpd/htpasswd larry maybepassword
#[function]
pub fn verify(
    context: &Context,
    /// Path of the file.
    pwfile: String,
    /// Name of the user.
    user: String,
    /// Password of the user.
    password: String,
    /// Letters of options of `htpasswd`, as in `webutil.useradd`.
    #[default]
    opts: String,
    /// User that `htpasswd` runs as.
    runas: Option<String>,
) -> CallResult {
    if !Path::new(&pwfile).exists() {
        return Ok(false.into());
    }
    let output = with_password(context, ["v", &opts], Some(pwfile), &user, password, runas)?;
    Ok((output.retcode == 0).into())
}

/// Runs `htpasswd` with a password on its standard input, where other users of the host do not see it.
fn with_password(
    context: &Context,
    [mode, opts]: [&str; 2],
    pwfile: Option<String>,
    user: &str,
    password: String,
    runas: Option<String>,
) -> Result<Output, CallError> {
    if !opts.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Err(CallError::Execution(format!("opts is invalid: expected letters of options, got '{opts}'")));
    }
    // The program reads one line.
    if password.contains(['\n', '\r', '\0']) {
        return Err(CallError::Execution("the password is invalid: it contains a newline or NUL".into()));
    }
    let mut words = vec!["htpasswd".to_owned(), format!("-i{mode}{opts}")];
    words.extend(pwfile.map(|file| argument(&file)).transpose()?);
    words.push(checked_user(user)?);
    run(context, &Program { runas, stdin: Some(password + "\n"), ..program(&words, &[]) })
}

/// Checks that a user does not become several lines of the file: `htpasswd` only rejects ':'.
fn checked_user(user: &str) -> Result<String, CallError> {
    if user.contains(|c: char| c.is_control() || c == ':') {
        return Err(CallError::Execution(format!(
            "the user {user:?} is invalid: it contains ':' or a control character"
        )));
    }
    argument(user)
}

fn run(context: &Context, program: &Program) -> Result<Output, CallError> {
    let output = context.run_program(program).map_err(CallError::execution)?;
    context.set_retcode(output.retcode);
    Ok(output)
}

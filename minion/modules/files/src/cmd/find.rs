//! Look-up of programs and shells.

use brine_context::Context;
use brine_function::{CallResult, function};
use brine_host::programs::find_program;

/// Return the path of a program; nothing if it is not found.
///
/// CLI Example:
///
///     salt '*' cmd.which cat
#[function]
pub fn which(
    _context: &Context,
    /// Name of the program.
    cmd: String,
) -> CallResult {
    Ok(find_program(&cmd).map(|path| path.display().to_string()).into())
}

/// Return the path of the first program of a list that is found; nothing if there is none.
///
/// CLI Example:
///
///     salt '*' cmd.which_bin '[pip2, pip, pip-python]'
#[function]
pub fn which_bin(
    _context: &Context,
    /// Names of programs; the first that is found is returned.
    cmds: Vec<String>,
) -> CallResult {
    Ok(cmds.iter().find_map(|cmd| find_program(cmd)).map(|path| path.display().to_string()).into())
}

/// Return the login shells in `/etc/shells`.
///
/// CLI Example:
///
///     salt '*' cmd.shells
#[function]
pub fn shells(_context: &Context) -> CallResult {
    let text = std::fs::read_to_string("/etc/shells").unwrap_or_default();
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect())
}

/// Return whether a program is available.
///
/// CLI Example:
///
///     salt '*' cmd.has_exec cat
#[function]
pub fn has_exec(
    _context: &Context,
    /// Name of the program.
    cmd: String,
) -> CallResult {
    Ok(find_program(&cmd).is_some().into())
}

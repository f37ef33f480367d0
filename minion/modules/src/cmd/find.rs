//! Finding programs and shells.

use brine_context::Context;
use brine_function::{CallResult, function};
use brine_host::programs::find_program;

/// Gives where a program is, or nothing.
///
/// CLI Example:
///
///     salt '*' cmd.which cat
#[function]
pub fn which(_context: &Context, cmd: String) -> CallResult {
    Ok(find_program(&cmd).map(|path| path.display().to_string()).into())
}

/// Gives where the first of several programs is that there is, or nothing.
///
/// CLI Example:
///
///     salt '*' cmd.which_bin '[pip2, pip, pip-python]'
#[function]
pub fn which_bin(_context: &Context, cmds: Vec<String>) -> CallResult {
    Ok(cmds.iter().find_map(|cmd| find_program(cmd)).map(|path| path.display().to_string()).into())
}

/// The shells that users may have, from `/etc/shells`.
///
/// CLI Example:
///
///     salt '*' cmd.shells
#[function]
pub fn shells(_context: &Context) -> CallResult {
    let text = std::fs::read_to_string("/etc/shells").unwrap_or_default();
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect())
}

/// Whether there is such a program.
///
/// CLI Example:
///
///     salt '*' cmd.has_exec cat
#[function]
pub fn has_exec(_context: &Context, cmd: String) -> CallResult {
    Ok(find_program(&cmd).is_some().into())
}

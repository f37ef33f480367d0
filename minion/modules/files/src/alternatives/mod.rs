//! `alternatives`: the alternatives system, with `update-alternatives`.

pub(crate) mod state;

use std::path::Path;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::Output;
use brine_host::programs::argument;
use brine_value::Value;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `alternatives`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "alternatives",
    [display, show_link, show_current, check_exists, check_installed, install, remove, auto, set]
);

/// Return the alternatives of a name.
///
/// CLI Example:
///
///     salt '*' alternatives.display editor
#[function]
pub fn display(
    context: &Context,
    /// Name of the group of alternatives, such as `editor`.
    name: String,
) -> CallResult {
    Ok(shown(context, &name)?.into())
}

/// Return the link of a name.
///
/// CLI Example:
///
///     salt '*' alternatives.show_link editor
#[function]
pub fn show_link(
    context: &Context,
    /// Name of the group of alternatives, such as `editor`.
    name: String,
) -> CallResult {
    let output = call(context, "--query", &[&name])?;
    let link = output.stdout.lines().find_map(|line| line.strip_prefix("Link:"));
    Ok(link.filter(|_| !is_refused(&output)).map_or(false.into(), |link| link.trim().into()))
}

/// Return the current path of a name; False if the name is unknown.
///
/// CLI Example:
///
///     salt '*' alternatives.show_current editor
#[function]
pub fn show_current(
    _context: &Context,
    /// Name of the group of alternatives, such as `editor`.
    name: String,
) -> CallResult {
    Ok(current(&name).map_or(false.into(), Value::from))
}

/// Return whether a path is an alternative of a name.
///
/// CLI Example:
///
///     salt '*' alternatives.check_exists name path
#[function]
pub fn check_exists(
    context: &Context,
    /// Name of the group of alternatives, such as `editor`.
    name: String,
    /// Path of the alternative.
    path: String,
) -> CallResult {
    Ok(exists(context, &name, &path)?.into())
}

/// Return whether a path is the current alternative of a name.
///
/// CLI Example:
///
///     salt '*' alternatives.check_installed name path
#[function]
pub fn check_installed(
    _context: &Context,
    /// Name of the group of alternatives, such as `editor`.
    name: String,
    /// Path of the alternative.
    path: String,
) -> CallResult {
    Ok((current(&name) == Some(path)).into())
}

/// Add an alternative to a name.
///
/// CLI Example:
///
///     salt '*' alternatives.install editor /usr/bin/editor /usr/bin/emacs23 50
#[function]
pub fn install(
    context: &Context,
    /// Name of the group of alternatives, such as `editor`.
    name: String,
    /// Path of the link by which programs are called, such as `/usr/bin/editor`.
    link: String,
    /// Path of the alternative.
    path: String,
    /// Priority of the alternative; the highest one is current in automatic mode.
    priority: i64,
) -> CallResult {
    add(context, &name, &link, &path, priority)
}

/// Remove an alternative of a name.
///
/// CLI Example:
///
///     salt '*' alternatives.remove name path
#[function]
pub fn remove(
    context: &Context,
    /// Name of the group of alternatives, such as `editor`.
    name: String,
    /// Path of the alternative.
    path: String,
) -> CallResult {
    change(context, "--remove", &[&name, &path])
}

/// Select the alternative with the highest priority for a name.
///
/// CLI Example:
///
///     salt '*' alternatives.auto name
#[function]
pub fn auto(
    context: &Context,
    /// Name of the group of alternatives, such as `editor`.
    name: String,
) -> CallResult {
    change(context, "--auto", &[&name])
}

/// Select an alternative of a name.
///
/// CLI Example:
///
///     salt '*' alternatives.set name path
#[function]
pub fn set(
    context: &Context,
    /// Name of the group of alternatives, such as `editor`.
    name: String,
    /// Path of the alternative.
    path: String,
) -> CallResult {
    change(context, "--set", &[&name, &path])
}

fn call(context: &Context, action: &str, operands: &[&str]) -> Result<Output, CallError> {
    let program = if context.os_family() == "RedHat" { "alternatives" } else { "update-alternatives" };
    let mut words = vec![program.to_owned(), action.to_owned()];
    for operand in operands {
        // Priorities may be negative.
        words.push(if operand.parse::<i64>().is_ok() { (*operand).to_owned() } else { argument(operand)? });
    }
    run(context, &words, &[])
}

/// Returns the alternatives of a name. The error is the message of `update-alternatives`.
pub fn shown(context: &Context, name: &str) -> Result<String, CallError> {
    let output = call(context, "--display", &[name])?;
    Ok(if is_refused(&output) { output.stderr } else { output.stdout })
}

/// Whether a path is an alternative of a name.
pub fn exists(context: &Context, name: &str, path: &str) -> Result<bool, CallError> {
    let output = call(context, "--display", &[name])?;
    Ok(!is_refused(&output) && output.stdout.lines().any(|line| line.starts_with(path)))
}

fn is_refused(output: &Output) -> bool {
    output.retcode != 0 && !output.stderr.is_empty()
}

/// Runs a command that makes a change, and returns its output.
pub fn change(context: &Context, action: &str, operands: &[&str]) -> Result<Value, CallError> {
    let output = call(context, action, operands)?;
    if output.retcode == 0 {
        return Ok(output.stdout.into());
    }
    context.set_retcode(output.retcode);
    Ok(output.stderr.into())
}

/// Adds an alternative to a name.
pub fn add(context: &Context, name: &str, link: &str, path: &str, priority: i64) -> Result<Value, CallError> {
    change(context, "--install", &[link, name, path, &priority.to_string()])
}

/// Returns the current path of a name.
pub fn current(name: &str) -> Option<String> {
    Some(std::fs::read_link(Path::new("/etc/alternatives").join(name)).ok()?.display().to_string())
}

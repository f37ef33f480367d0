//! `keyboard`: the keyboard layouts of the console and of X.

pub(crate) mod state;

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::lines::{self, Missing};
use brine_host::programs::{argument, which};
use brine_system::files;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `keyboard`.
pub static FUNCTIONS: Functions<Context> = registry!("keyboard", [get_sys, set_sys, get_x, set_x]);

/// Return the layout of the console.
///
/// CLI Example:
///
///     salt '*' keyboard.get_sys
#[function]
pub fn get_sys(context: &Context) -> CallResult {
    Ok(console(context)?.into())
}

/// Set the layout of the console, and return it.
///
/// CLI Example:
///
///     salt '*' keyboard.set_sys dvorak
#[function]
pub fn set_sys(
    context: &Context,
    /// Layout, such as `us` or `de`.
    layout: String,
) -> CallResult {
    let layout = argument(&layout)?;
    if which("localectl").is_some() {
        set_layout(context, &["localectl", "set-keymap", &layout])?;
    } else {
        let (path, start) = settings_file(context)?;
        lines::set(path, start, &format!("{start}{layout}"), Missing::Append)?;
    }
    Ok(layout.into())
}

/// Return the layout of X.
///
/// CLI Example:
///
///     salt '*' keyboard.get_x
#[function]
pub fn get_x(context: &Context) -> CallResult {
    let output = run(context, &["setxkbmap", "-query"].map(str::to_owned), &[])?;
    let layout = value_after(&output.stdout, "layout:");
    layout.map(Into::into).ok_or_else(|| CallError::Execution(format!("the layout of X is unknown: {}", output.stderr)))
}

/// Set the layout of X, and return it.
///
/// CLI Example:
///
///     salt '*' keyboard.set_x dvorak
#[function]
pub fn set_x(
    context: &Context,
    /// Layout, such as `us` or `de`.
    layout: String,
) -> CallResult {
    let layout = argument(&layout)?;
    set_layout(context, &["setxkbmap", &layout])?;
    Ok(layout.into())
}

/// Runs a program that changes the layout.
fn set_layout(context: &Context, words: &[&str]) -> Result<(), CallError> {
    let output = run(context, &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), &[])?;
    if output.retcode == 0 {
        return Ok(());
    }
    context.set_retcode(output.retcode);
    Err(CallError::Execution(format!("setting the layout failed: {}", output.stderr)))
}

fn console(context: &Context) -> Result<String, CallError> {
    if which("localectl").is_some() {
        let output = run(context, &["localectl".to_owned()], &[])?;
        let keymap = value_after(&output.stdout, "VC Keymap:");
        return keymap.ok_or_else(|| CallError::Execution(format!("localectl reports no keymap: {}", output.stderr)));
    }
    let (path, start) = settings_file(context)?;
    let text = files::read_if_exists(path).map_err(CallError::execution)?.unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(start));
    Ok(value.unwrap_or_default().trim().replace('"', ""))
}

/// Returns the rest of the first line that starts with these words.
fn value_after(text: &str, words: &str) -> Option<String> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(words)).map(|value| value.trim().to_owned())
}

/// Returns the file with the layout, and the prefix of its line.
fn settings_file(context: &Context) -> Result<(&'static str, &'static str), CallError> {
    match context.os_family().as_str() {
        "RedHat" => Ok(("/etc/sysconfig/keyboard", "LAYOUT=")),
        "Debian" => Ok(("/etc/default/keyboard", "XKBLAYOUT=")),
        "Gentoo" => Ok(("/etc/conf.d/keymaps", "keymap=")),
        other => {
            Err(CallError::Execution(format!("the keyboard layout of {other} systems without localectl is unknown")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_found_in_the_output() {
        let output = "System Locale: LANG=C.UTF-8\n    VC Keymap: de-latin1\n   X11 Layout: de\n";
        assert_eq!(value_after(output, "VC Keymap:").as_deref(), Some("de-latin1"));
        assert_eq!(value_after("rules:      evdev\nlayout:     us,de\n", "layout:").as_deref(), Some("us,de"));
        assert_eq!(value_after("", "layout:"), None);
    }
}

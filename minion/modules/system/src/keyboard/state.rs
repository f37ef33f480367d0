//! `keyboard`: states of the keyboard layouts.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::map;

/// State functions of `keyboard`.
pub static FUNCTIONS: Functions<StateContext> = registry!("keyboard", [system, xorg]);

/// Ensure that the console has this layout.
///
/// SLS Example:
///
///     de:
///       keyboard.system: []
#[function]
pub fn system(
    context: &StateContext,
    /// Layout, such as `us` or `de`.
    name: String,
) -> CallResult {
    ensured(context, &name, ("keyboard.get_sys", "keyboard.set_sys"), ("System", "system"))
}

/// Ensure that X has this layout.
///
/// SLS Example:
///
///     de:
///       keyboard.xorg: []
#[function]
pub fn xorg(
    context: &StateContext,
    /// Layout, such as `us` or `de`.
    name: String,
) -> CallResult {
    ensured(context, &name, ("keyboard.get_x", "keyboard.set_x"), ("XOrg", "XOrg"))
}

fn ensured(context: &StateContext, name: &str, (get, set): (&str, &str), (of, inside): (&str, &str)) -> CallResult {
    if context.call.call(get, Args::default())?.as_str() == Some(name) {
        return Ok(StateReturn::ok(name, format!("{of} layout {name} already set")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(name, format!("{of} layout {name} needs to be set")).into());
    }
    Ok(match context.call.call(set, Args::positional([name.into()])) {
        Ok(_) => StateReturn::ok(name, format!("Set {inside} keyboard layout {name}"))
            .with_changes(map! {"layout" => name})
            .into(),
        Err(error) => StateReturn::failed(name, format!("Failed to set {inside} keyboard layout: {error}")).into(),
    })
}

//! `alternatives`: states of the alternatives system. Salt 3006 has them; later releases have only the execution
//! functions.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallResult, Functions, function, registry};
use brine_value::map;

use crate::alternatives as module;

/// State functions of `alternatives`.
pub static FUNCTIONS: Functions<StateContext> = registry!("alternatives", [install, remove, auto, set]);

/// Ensure that a path is an alternative of a name, behind this link. The path with the highest priority is current
/// unless one was selected.
///
/// SLS Example:
///
///     editor:
///       alternatives.install:
///         - link: /usr/bin/editor
///         - path: /usr/bin/vim.basic
///         - priority: 50
#[function]
pub fn install(
    context: &StateContext,
    /// Name of the group of alternatives, such as `editor`.
    name: String,
    /// Path of the link by which programs are called, such as `/usr/bin/editor`.
    link: String,
    /// Path of the alternative.
    path: String,
    /// Priority of the alternative; the highest one is current in automatic mode.
    priority: i64,
) -> CallResult {
    let fields = map! {"link" => &link, "path" => &path, "priority" => priority};
    let report = |state: StateReturn| Ok(StateReturn { more: fields.clone(), ..state }.into());
    if module::exists(&context.call, &name, &path)? {
        return report(StateReturn::ok(&name, format!("Alternative {path} for {name} is already registered")));
    }
    if context.test {
        let comment = format!("Alternative will be set for {name} to {path} with priority {priority}");
        return report(StateReturn::predicted(&name, comment));
    }
    let output = module::add(&context.call, &name, &link, &path, priority)?;
    if !module::exists(&context.call, &name, &path)? {
        return report(StateReturn::failed(&name, format!("Alternative for {name} not installed: {output}")));
    }
    let comment = if module::current(&name).as_ref() == Some(&path) {
        format!("Alternative for {name} set to path {path} with priority {priority}")
    } else {
        format!("Alternative {path} for {name} registered with priority {priority} and not set to default")
    };
    let mut changes = map! {"name" => &name};
    changes.extend(fields.clone());
    report(StateReturn::ok(&name, comment).with_changes(changes))
}

/// Ensure that a path is not an alternative of a name.
///
/// SLS Example:
///
///     editor:
///       alternatives.remove:
///         - path: /usr/bin/nano
#[function]
pub fn remove(
    context: &StateContext,
    /// Name of the group of alternatives, such as `editor`.
    name: String,
    /// Path of the alternative.
    path: String,
) -> CallResult {
    let report = |state| Ok(with_path(state, &path).into());
    if !module::exists(&context.call, &name, &path)? {
        return report(match module::current(&name) {
            Some(now) => StateReturn::ok(&name, format!("Alternative for {name} is set to it's default path {now}")),
            None => StateReturn::failed(&name, format!("Alternative for {name} doesn't exist")),
        });
    }
    if context.test {
        return report(StateReturn::predicted(&name, format!("Alternative for {name} will be removed")));
    }
    module::change(&context.call, "--remove", &[&name, &path])?;
    report(match module::current(&name) {
        Some(now) => {
            let comment = format!("Alternative for {name} removed. Falling back to path {now}");
            StateReturn::ok(&name, comment).with_changes(map! {"path" => now})
        }
        None => StateReturn::ok(&name, format!("Alternative for {name} removed")),
    })
}

/// Ensure that a name is in automatic mode: its alternative with the highest priority is current.
///
/// SLS Example:
///
///     editor:
///       alternatives.auto: []
#[function]
pub fn auto(
    context: &StateContext,
    /// Name of the group of alternatives, such as `editor`.
    name: String,
) -> CallResult {
    let status = module::shown(&context.call, &name)?;
    if status.lines().next().is_some_and(|line| line.ends_with(" auto mode")) {
        return Ok(StateReturn::ok(&name, format!("{name} already in auto mode")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("{name} will be put in auto mode")).into());
    }
    let output = module::change(&context.call, "--auto", &[&name])?;
    Ok(StateReturn::ok(&name, "").with_changes(map! {"result" => output}).into())
}

/// Ensure that a path is the current alternative of a name.
///
/// SLS Example:
///
///     editor:
///       alternatives.set:
///         - path: /usr/bin/vim.basic
#[function]
pub fn set(
    context: &StateContext,
    /// Name of the group of alternatives, such as `editor`.
    name: String,
    /// Path of the alternative.
    path: String,
) -> CallResult {
    let report = |state| Ok(with_path(state, &path).into());
    if module::current(&name).as_ref() == Some(&path) {
        return report(StateReturn::ok(&name, format!("Alternative for {name} already set to {path}")));
    }
    if !module::exists(&context.call, &name, &path)? {
        return report(StateReturn::failed(&name, format!("Alternative {path} for {name} doesn't exist")));
    }
    if context.test {
        return report(StateReturn::predicted(&name, format!("Alternative for {name} will be set to path {path}")));
    }
    module::change(&context.call, "--set", &[&name, &path])?;
    report(if module::current(&name).as_ref() == Some(&path) {
        let comment = format!("Alternative for {name} set to path {path}");
        StateReturn::ok(&name, comment).with_changes(map! {"path" => &path})
    } else {
        StateReturn::failed(&name, format!("Alternative for {name} not updated"))
    })
}

fn with_path(state: StateReturn, path: &str) -> StateReturn {
    StateReturn { more: map! {"path" => path}, ..state }
}

#[cfg(test)]
mod tests;

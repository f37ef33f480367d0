//! `alias`: states of mail aliases.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::{Value, map};

use crate::aliases;

/// State functions of `alias`.
pub static FUNCTIONS: Functions<StateContext> = registry!("alias", [present, absent]);

/// Ensure that a mail alias has this target, or the targets of a list.
///
/// SLS Example:
///
///     root:
///       alias.present:
///         - target: ops@example.com
#[function]
pub fn present(
    context: &StateContext,
    /// Alias.
    name: String,
    /// Address, or list of addresses, that mail for the alias goes to.
    target: Value,
) -> CallResult {
    if aliases::has(&context.call, &name, &target)? {
        return Ok(StateReturn::ok(&name, format!("Alias {name} already present")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("Alias {name} -> {target} is set to be added")).into());
    }
    let comment = format!("Set email alias {name} -> {target}");
    context.call.call("aliases.set_target", Args::positional([name.as_str().into(), target]))?;
    Ok(StateReturn::ok(&name, comment).with_changes(map! {"alias" => &name}).into())
}

/// Ensure that a mail alias is absent.
///
/// SLS Example:
///
///     oldteam:
///       alias.absent: []
#[function]
pub fn absent(
    context: &StateContext,
    /// Alias.
    name: String,
) -> CallResult {
    if aliases::target(&context.call, &name)?.is_none() {
        return Ok(StateReturn::ok(&name, format!("Alias {name} already absent")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("Alias {name} is set to be removed")).into());
    }
    context.call.call("aliases.rm_alias", Args::positional([name.as_str().into()]))?;
    let comment = format!("Removed alias {name}");
    Ok(StateReturn::ok(&name, comment).with_changes(map! {"alias" => &name}).into())
}

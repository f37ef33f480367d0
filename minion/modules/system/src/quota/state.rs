//! `quota`: states of the quota system.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::{FromValue, Value, map};

/// State functions of `quota`.
pub static FUNCTIONS: Functions<StateContext> = registry!("quota", [mode]);

/// Ensure that the quotas of a file system are enabled or disabled.
///
/// SLS Example:
///
///     /home:
///       quota.mode:
///         - mode: 'on'
///         - quotatype: user
#[function]
pub fn mode(
    context: &StateContext,
    /// The mount point, or the device.
    name: String,
    /// `on` or `off`.
    mode: Value,
    /// Whose quotas are compared: `user` or `group`. Both are enabled and disabled together.
    quotatype: String,
) -> CallResult {
    let failed = |comment: String| Ok(StateReturn::failed(&name, comment).into());
    let Some(is_on) = bool::from_value(&mode) else {
        return failed(format!("mode is invalid: expected on or off, got {mode}"));
    };
    if !matches!(quotatype.as_str(), "user" | "group") {
        return failed(format!("quotatype is invalid: expected user or group, got {quotatype}"));
    }
    let desired = if is_on { "on" } else { "off" };
    let call = |function: &str| {
        context.call.call(&format!("quota.{function}"), Args::positional([Value::from(name.as_str())]))
    };
    let modes = call("get_mode")?;
    let modes = modes.as_map().into_iter().flatten().next();
    let current = match modes.map(|(_, about)| (about, about.get(&quotatype))) {
        Some((_, Some(state))) => state.to_string(),
        Some((about @ Value::Str(_), _)) => {
            return failed(format!("Quota for {name} cannot be set to {desired}: {about}"));
        }
        _ => return failed(format!("Quota for {name} cannot be set to {desired}: its mode is unknown")),
    };
    if current == desired {
        return Ok(StateReturn::ok(&name, format!("Quota for {name} already set to {desired}")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("Quota for {name} needs to be set to {desired}")).into());
    }
    if !call(desired)?.is_truthy() {
        return failed(format!("Failed to set quota for {name} to {desired}"));
    }
    let changes = map! {"quota" => name.as_str()};
    Ok(StateReturn::ok(&name, format!("Set quota for {name} to {desired}")).with_changes(changes).into())
}

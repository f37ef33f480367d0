//! `sysfs`: states of attributes below `/sys`.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallResult, Functions, function, registry};
use brine_value::{Value, map};

use super::{ROOT, find, set, value_of};

/// State functions of `sysfs`.
pub static FUNCTIONS: Functions<StateContext> = registry!("sysfs", [present]);

/// Ensure that an attribute has this value. `config` is without effect, as in Salt.
///
/// SLS Example:
///
///     kernel/mm/transparent_hugepage/enabled:
///       sysfs.present:
///         - value: never
#[function]
pub fn present(
    context: &StateContext,
    /// Path of the attribute below `/sys`, such as `kernel/mm/transparent_hugepage/enabled`.
    name: String,
    /// Value of the attribute.
    value: Value,
    /// Without effect, as in Salt.
    #[default]
    config: Value,
) -> CallResult {
    // Salt ignores this argument, too.
    _ = config;
    let current = value_of(ROOT, &name);
    let report = match &current {
        Value::Bool(false) => StateReturn::failed(&name, format!("SysFS attribute {name} doesn't exist.")),
        Value::Map(_) => StateReturn::failed(&name, format!("{name} is not a SysFS attribute.")),
        current if selected(current) == value => {
            StateReturn::ok(&name, format!("SysFS attribute {name} is already set."))
        }
        _ if context.test => StateReturn::predicted(&name, format!("SysFS attribute {name} set to be changed.")),
        _ if find(ROOT, &name).is_some_and(|path| set(&path, &value)) => {
            let comment = format!("Updated SysFS attribute {name} to {value}");
            StateReturn::ok(&name, comment).with_changes(map! {name.as_str() => value})
        }
        _ => StateReturn::failed(&name, format!("Failed to set {name} to {value}")),
    };
    Ok(report.into())
}

/// Returns the selected value of an attribute that lists its possible values, such as `b` of `a [b] c`.
pub(super) fn selected(current: &Value) -> Value {
    let chosen = current.as_str().and_then(|text| {
        let (_, rest) = text.rsplit_once('[')?;
        Some(rest.split(']').next().unwrap_or(rest))
    });
    chosen.map_or_else(|| current.clone(), Value::from)
}

//! `rabbitmq_plugin`: states of plugins.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallResult, Functions, function, registry};
use brine_value::map;

use super::or_error;
use crate::rabbitmq::ctl::Ctl;
use crate::rabbitmq::plugin;

/// State functions of `rabbitmq_plugin`.
pub static FUNCTIONS: Functions<StateContext> = registry!("rabbitmq_plugin", [enabled, disabled]);

/// Ensure that a plugin is enabled.
///
/// SLS Example:
///
///     rabbitmq_management:
///       rabbitmq_plugin.enabled: []
#[function]
pub fn enabled(
    context: &StateContext,
    /// Name of the plugin.
    name: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    set(context, &name, runas, true)
}

/// Ensure that a plugin is disabled.
///
/// SLS Example:
///
///     rabbitmq_shovel:
///       rabbitmq_plugin.disabled: []
#[function]
pub fn disabled(
    context: &StateContext,
    /// Name of the plugin.
    name: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    set(context, &name, runas, false)
}

fn set(context: &StateContext, name: &str, runas: Option<String>, enable: bool) -> CallResult {
    let ctl = Ctl::new(&context.call, runas);
    let (participle, old, new) = if enable { ("enabled", "", name) } else { ("disabled", name, "") };
    let ensure = || {
        if plugin::enabled(&ctl)?.iter().any(|plugin| plugin == name) == enable {
            return Ok(StateReturn::ok(name, format!("Plugin '{name}' is already {participle}.")));
        }
        let report = if context.test {
            StateReturn::predicted(name, format!("Plugin '{name}' is set to be {participle}."))
        } else {
            plugin::set(&ctl, name, enable)?;
            StateReturn::ok(name, format!("Plugin '{name}' was {participle}."))
        };
        Ok(report.with_changes(map! {"old" => old, "new" => new}))
    };
    or_error(name, ensure())
}

//! Plugins of a RabbitMQ server.

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::map;

use super::ctl::Ctl;

/// Execution functions of `rabbitmq` for plugins.
pub static FUNCTIONS: Functions<Context> = registry!(
    "rabbitmq",
    [list_available_plugins, list_enabled_plugins, plugin_is_enabled, enable_plugin, disable_plugin]
);

/// Return the names of all plugins, enabled or not.
///
/// CLI Example:
///
///     salt '*' rabbitmq.list_available_plugins
#[function]
pub fn list_available_plugins(
    context: &Context,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(names(&Ctl::new(context, runas).plugins(&["list", "-m"])?).into())
}

/// Return the names of the enabled plugins, without those that were only enabled as their dependencies.
///
/// CLI Example:
///
///     salt '*' rabbitmq.list_enabled_plugins
#[function]
pub fn list_enabled_plugins(
    context: &Context,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(enabled(&Ctl::new(context, runas))?.into())
}

/// Return whether a plugin is enabled.
///
/// CLI Example:
///
///     salt '*' rabbitmq.plugin_is_enabled rabbitmq_plugin_name
#[function]
pub fn plugin_is_enabled(
    context: &Context,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(enabled(&Ctl::new(context, runas))?.contains(&name).into())
}

/// Enable a plugin.
///
/// CLI Example:
///
///     salt '*' rabbitmq.enable_plugin foo
#[function]
pub fn enable_plugin(
    context: &Context,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(map! {"Enabled" => set(&Ctl::new(context, runas), &name, true)?}.into())
}

/// Disable a plugin.
///
/// CLI Example:
///
///     salt '*' rabbitmq.disable_plugin foo
#[function]
pub fn disable_plugin(
    context: &Context,
    /// Name of the item: the user, virtual host, queue, plugin, policy or upstream.
    name: String,
    /// User that the program runs as.
    runas: Option<String>,
) -> CallResult {
    Ok(map! {"Disabled" => set(&Ctl::new(context, runas), &name, false)?}.into())
}

/// Returns the names of the enabled plugins.
pub(super) fn enabled(ctl: &Ctl) -> Result<Vec<String>, CallError> {
    Ok(names(&ctl.plugins(&["list", "-m", "-e"])?))
}

/// Enables or disables a plugin and returns the messages of the program.
pub(super) fn set(ctl: &Ctl, name: &str, enable: bool) -> Result<String, CallError> {
    ctl.plugins(&[if enable { "enable" } else { "disable" }, &argument(name)?])
}

/// Returns the lines of a list that are names: headings are sentences.
fn names(list: &str) -> Vec<String> {
    let is_name = |line: &&str| !line.is_empty() && !line.contains(char::is_whitespace);
    list.lines().map(str::trim).filter(is_name).map(str::to_owned).collect()
}

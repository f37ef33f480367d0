//! `sysctl`: states of kernel parameters.

use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::files;
use brine_value::{Value, map};

use crate::sysctl;

/// State functions of `sysctl`.
pub static FUNCTIONS: Functions<StateContext> = registry!("sysctl", [present]);

/// Ensure that a kernel parameter has this value, now and at boot.
///
/// SLS Example:
///
///     net.ipv4.ip_forward:
///       sysctl.present:
///         - value: 1
///
///     vm.swappiness:
///       sysctl.present:
///         - value: 10
///         - config: /etc/sysctl.d/50-memory.conf
#[function]
pub fn present(
    context: &StateContext,
    /// Name of the parameter, such as `net.ipv4.ip_forward`.
    name: String,
    /// Value of the parameter.
    value: Value,
    /// File that sets the parameter at boot; that of the system, `/etc/sysctl.d/99-salt.conf`, by default.
    config: Option<String>,
) -> CallResult {
    let config = config.unwrap_or_else(|| sysctl::default_file().into());
    let text = value.to_string();
    if context.test {
        return would(context, &name, &text, &config).map(Into::into);
    }
    let outcome = match sysctl::set_and_save(&context.call, &name, &text, &config) {
        Ok(true) => StateReturn::ok(&name, format!("Updated sysctl value {name} = {text}"))
            .with_changes(map! {name.as_str() => value}),
        Ok(false) => StateReturn::ok(&name, format!("Sysctl value {name} = {text} is already set")),
        Err(CallError::Execution(error)) => {
            StateReturn::failed(&name, format!("Failed to set {name} to {text}: {error}"))
        }
        Err(error) => return Err(error),
    };
    Ok(outcome.into())
}

fn would(context: &StateContext, name: &str, value: &str, config: &str) -> Result<StateReturn, CallError> {
    let exists = Path::new(config).exists();
    let text = if exists { files::read_to_string(config).ok() } else { Some(String::new()) };
    let Some(text) = text else {
        return Ok(StateReturn::predicted(
            name,
            format!(
                "Sysctl option {name} might be changed, we failed to check config file at {config}. The file is either \
             unreadable, or missing."
            ),
        ));
    };
    let current = sysctl::current(&context.call, name)?;
    let is_configured = sysctl::configured(&text).any(|(have, _)| have == name);
    let is_current = current.split_whitespace().eq(value.split_whitespace());
    let comment = match (current.is_empty(), is_configured) {
        (false, true) if is_current => {
            return Ok(StateReturn::ok(name, format!("Sysctl value {name} = {value} is already set")));
        }
        (false, false) if is_current => format!(
            "Sysctl value is currently set on the running system but not in a config file. Sysctl option {name} set \
             to be changed to {value} in config file."
        ),
        (false, false) => format!("Sysctl option {name} set to be changed to {value}"),
        (true, true) => format!(
            "Sysctl value {name} is present in configuration file but is not present in the running config. The value \
             {name} is set to be changed to {value}"
        ),
        (false, true) | (true, false) => format!("Sysctl option {name} would be changed to {value}"),
    };
    Ok(StateReturn::predicted(name, comment))
}

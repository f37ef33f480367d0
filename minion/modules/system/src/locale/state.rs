//! `locale`: states of locales.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::map;

/// State functions of `locale`.
pub static FUNCTIONS: Functions<StateContext> = registry!("locale", [system, present]);

/// Ensure that the system locale is this one.
///
/// SLS Example:
///
///     en_US.UTF-8:
///       locale.system:
///         - require:
///           - locale: en_US.UTF-8
#[function]
pub fn system(
    context: &StateContext,
    /// Name of the locale, such as `en_US.UTF-8`.
    name: String,
) -> CallResult {
    match set(context, &name) {
        Err(CallError::Execution(error)) => {
            Ok(StateReturn::failed(&name, format!("Failed to set system locale: {error}")).into())
        }
        result => result.map(Into::into),
    }
}

/// Ensure that a locale is available.
///
/// SLS Example:
///
///     en_US.UTF-8:
///       locale.present: []
#[function]
pub fn present(
    context: &StateContext,
    /// Name of the locale, such as `en_US.UTF-8`.
    name: String,
) -> CallResult {
    let call = |function: &str| context.call.call(function, Args::positional([name.as_str().into()]));
    let outcome = if call("locale.avail")?.is_truthy() {
        StateReturn::ok(&name, format!("Locale {name} is already present"))
    } else if context.test {
        StateReturn::predicted(&name, format!("Locale {name} needs to be generated"))
    } else if call("locale.gen_locale")?.is_truthy() {
        StateReturn::ok(&name, format!("Generated locale {name}")).with_changes(map! {"locale" => &name})
    } else {
        StateReturn::failed(&name, format!("Failed to generate locale {name}"))
    };
    Ok(outcome.into())
}

fn set(context: &StateContext, name: &str) -> Result<StateReturn, CallError> {
    Ok(if context.call.call("locale.get_locale", Args::default())?.as_str() == Some(name) {
        StateReturn::ok(name, format!("System locale {name} already set"))
    } else if context.test {
        StateReturn::predicted(name, format!("System locale {name} needs to be set"))
    } else if context.call.call("locale.set_locale", Args::positional([name.into()]))?.is_truthy() {
        StateReturn::ok(name, format!("Set system locale {name}")).with_changes(map! {"locale" => name})
    } else {
        StateReturn::failed(name, format!("Failed to set system locale to {name}"))
    })
}

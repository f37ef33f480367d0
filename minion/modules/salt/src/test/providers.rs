//! The names that Salt has for the implementations of modules on this host.

use brine_context::Context;
use brine_function::{CallResult, function};
use brine_value::{Map, Value};

/// Return Salt's name of the implementation of a module on this host, or false if there is no such module.
///
/// CLI Example:
///
///     salt '*' test.provider pkg
#[function]
pub fn provider(
    context: &Context,
    /// Name of the module, or of the function.
    module: String,
) -> CallResult {
    let exists = context.minion.functions.has_module(&module);
    Ok(if exists { implementation(&module).into() } else { Value::Bool(false) })
}

/// Return the modules of this host by Salt's names of their implementations.
///
/// CLI Example:
///
///     salt '*' test.providers
#[function]
pub fn providers(context: &Context) -> CallResult {
    let functions = context.minion.functions.iter();
    Ok(functions
        .map(|function| (implementation(function.module).into(), function.module.into()))
        .collect::<Map>()
        .into())
}

fn implementation(module: &str) -> &str {
    match module {
        "pkg" => "aptpkg",
        "cmd" => "cmdmod",
        "service" => "systemd_service",
        "user" => "useradd",
        "group" => "groupadd",
        other => other,
    }
}

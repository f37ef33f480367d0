//! `pyenv`: states of versions of Python.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::{Value, map};

use super::version_of;

/// State functions of `pyenv`.
pub static FUNCTIONS: Functions<StateContext> = registry!("pyenv", [installed, absent, install_pyenv]);

/// Ensure that a version of Python is installed, with pyenv itself, and with `default` that it is the default.
///
/// SLS Example:
///
///     3.12.3:
///       pyenv.installed:
///         - user: app
///         - default: True
#[function]
pub fn installed(
    context: &StateContext,
    /// Version of Python, such as `3.12.3`.
    name: String,
    /// Whether the version becomes the default.
    #[default(false)]
    default: bool,
    /// User whose pyenv it is.
    user: Option<String>,
) -> CallResult {
    let version = version_of(&name)?;
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("python {version} is set to be installed")).into());
    }
    let user = || Value::from(user.clone());
    if !call(context, "is_installed", [user()])?.is_truthy() && !call(context, "install", [user()])?.is_truthy() {
        return Ok(StateReturn::failed(&name, "pyenv failed to install").into());
    }
    let mut report = StateReturn::ok(&name, "Requested python exists.");
    if !is_there(context, &version, user())? {
        // The result is the messages, which may be empty.
        if call(context, "install_python", [version.as_str().into(), user()])? == false.into() {
            return Ok(StateReturn::failed(&name, "Could not install python.").into());
        }
        report = StateReturn::ok(&name, "Successfully installed python")
            .with_changes(map! {version.as_str() => "Installed"});
    }
    let mut is_default = call(context, "default", [Value::Nil, user()])?.as_str() == Some(&version);
    if default && !is_default {
        call(context, "default", [version.as_str().into(), user()])?;
        is_default = true;
    }
    report.more.insert("default".into(), is_default.into());
    Ok(report.into())
}

/// Ensure that a version of Python is not installed.
///
/// SLS Example:
///
///     3.8.0:
///       pyenv.absent:
///         - user: app
#[function]
pub fn absent(
    context: &StateContext,
    /// Version of Python, such as `3.12.3`.
    name: String,
    /// User whose pyenv it is.
    user: Option<String>,
) -> CallResult {
    let version = version_of(&name)?;
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("python {version} is set to be uninstalled")).into());
    }
    let user = || Value::from(user.clone());
    if !call(context, "is_installed", [user()])?.is_truthy() {
        return Ok(StateReturn::ok(&name, format!("pyenv not installed, {version} not either")).into());
    }
    if !is_there(context, &version, user())? {
        return Ok(StateReturn::ok(&name, format!("python {version} is already absent")).into());
    }
    if call(context, "default", [Value::Nil, user()])?.as_str() == Some(&version) {
        call(context, "default", ["system".into(), user()])?;
    }
    call(context, "uninstall_python", [version.as_str().into(), user()])?;
    if is_there(context, &version, user())? {
        return Ok(StateReturn::failed(&name, "Failed to uninstall python").into());
    }
    let changes = map! {version => "Uninstalled"};
    Ok(StateReturn::ok(&name, "Successfully removed python").with_changes(changes).into())
}

/// Ensure that pyenv is installed.
///
/// SLS Example:
///
///     pyenv_of_app:
///       pyenv.install_pyenv:
///         - user: app
#[function]
pub fn install_pyenv(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// User whose pyenv it is.
    user: Option<String>,
) -> CallResult {
    let user = || Value::from(user.clone());
    if call(context, "is_installed", [user()])?.is_truthy() {
        return Ok(StateReturn::ok(&name, "pyenv is already installed").into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, "pyenv is set to be installed").into());
    }
    Ok(if call(context, "install", [user()])?.is_truthy() {
        StateReturn::ok(&name, "pyenv installed")
    } else {
        StateReturn::failed(&name, "pyenv failed to install")
    }
    .into())
}

fn call<const N: usize>(context: &StateContext, function: &str, args: [Value; N]) -> CallResult {
    context.call.call(&format!("pyenv.{function}"), Args::positional(args))
}

fn is_there(context: &StateContext, version: &str, user: Value) -> Result<bool, brine_function::CallError> {
    let versions = call(context, "versions", [user])?;
    Ok(versions.as_list().unwrap_or_default().contains(&version.into()))
}

#[cfg(test)]
mod tests;

//! `webutil`: states of the users of htpasswd files.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_system::files;
use brine_value::{Map, Value, map};

/// State functions of `webutil`.
pub static FUNCTIONS: Functions<StateContext> = registry!("webutil", [user_exists, user_absent]);

/// Ensure that an htpasswd file has a user.
///
/// SLS Example:
///
///     alice:
///       webutil.user_exists:
///         - password: secret
///         - htpasswd_file: /etc/nginx/htpasswd
///         - options: B
///         - update: True
#[function]
pub fn user_exists(
    context: &StateContext,
    /// Name of the user.
    name: String,
    /// Password of the user.
    password: Option<String>,
    /// Path of the file; a missing one is created.
    htpasswd_file: Option<String>,
    /// Letters of options of `htpasswd`, as in the execution function `webutil.useradd`.
    #[default]
    options: String,
    /// Whether the password is set in any case.
    #[default(false)]
    force: bool,
    /// User that `htpasswd` runs as.
    runas: Option<String>,
    /// Whether another password is replaced.
    #[default(false)]
    update: bool,
) -> CallResult {
    let (Some(password), Some(file)) = (password, htpasswd_file) else {
        return Ok(StateReturn::failed(&name, "password and htpasswd_file are required").into());
    };
    let more = map! {"opts" => options, "runas" => runas};
    let call = |function: &str| {
        let args = [file.as_str(), &name, &password].map(Value::from).to_vec();
        context.call.call(&format!("webutil.{function}"), Args { positional: args, keyword: more.clone() })
    };
    let is_wanted = has_user(&file, &name)? && !force && (!update || call("verify")?.is_truthy());
    if is_wanted {
        return Ok(StateReturn::ok(&name, "User already known").into());
    }
    let changes = map! {name.as_str() => true};
    if context.test {
        let comment = format!("User '{name}' is set to be added to htpasswd file");
        return Ok(StateReturn::predicted(&name, comment).with_changes(changes).into());
    }
    Ok(report(&name, &call("useradd")?, changes))
}

/// Ensure that an htpasswd file does not have a user.
///
/// SLS Example:
///
///     bob:
///       webutil.user_absent:
///         - htpasswd_file: /etc/nginx/htpasswd
#[function]
pub fn user_absent(
    context: &StateContext,
    /// Name of the user.
    name: String,
    /// Path of the file.
    htpasswd_file: Option<String>,
    /// User that `htpasswd` runs as.
    runas: Option<String>,
) -> CallResult {
    let Some(file) = htpasswd_file else {
        return Ok(StateReturn::failed(&name, "htpasswd_file is required").into());
    };
    if !has_user(&file, &name)? {
        return Ok(StateReturn::ok(&name, "User already not in file").into());
    }
    let changes = map! {name.as_str() => true};
    if context.test {
        let comment = format!("User '{name}' is set to be removed from htpasswd file");
        return Ok(StateReturn::predicted(&name, comment).with_changes(changes).into());
    }
    let positional = [file.as_str(), &name].map(Value::from).to_vec();
    let keyword = map! {"runas" => runas, "all_results" => true};
    Ok(report(&name, &context.call.call("webutil.userdel", Args { positional, keyword })?, changes))
}

/// Whether a file has a line of a user; a missing file has none.
fn has_user(file: &str, user: &str) -> Result<bool, CallError> {
    let text = files::read_if_exists(file).map_err(CallError::execution)?.unwrap_or_default();
    Ok(text.lines().any(|line| line.split_once(':').is_some_and(|(name, _)| name == user)))
}

/// Returns the result of a run of `htpasswd`, whose comment are its messages.
fn report(name: &str, output: &Value, changes: Map) -> Value {
    let messages = output.get("stderr").map(ToString::to_string).unwrap_or_default();
    if output.get("retcode").and_then(Value::as_i64) == Some(0) {
        StateReturn::ok(name, messages).with_changes(changes).into()
    } else {
        StateReturn::failed(name, messages).into()
    }
}

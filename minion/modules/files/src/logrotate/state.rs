//! `logrotate`: states of the configuration of log rotation.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::{Value, map};

use crate::logrotate::number;

/// State functions of `logrotate`.
pub static FUNCTIONS: Functions<StateContext> = registry!("logrotate", [set]);

/// Ensure that a directive has this value, or for a log that a directive (`value`) has this `setting`.
///
/// SLS Example:
///
///     keep_four:
///       logrotate.set:
///         - key: rotate
///         - value: 4
///
///     keep_ten_of_wtmp:
///       logrotate.set:
///         - key: /var/log/wtmp
///         - value: rotate
///         - setting: 10
#[function]
pub fn set(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Directive, or the path of a log with a block of its own.
    key: String,
    /// Value of the directive; for a log its directive.
    value: Value,
    /// Value of the directive of a log.
    #[default]
    setting: Value,
    /// Path of the configuration file.
    #[default("/etc/logrotate.conf".into())]
    conf_file: String,
) -> CallResult {
    let mut args = map! {"key" => &key, "conf_file" => conf_file};
    if !setting.is_nil() {
        args.insert("value".into(), value.clone());
    }
    let old = context.call.call("logrotate.get", Args::keyword(args.clone()))?;
    let (what, new) = if setting.is_nil() {
        (format!("command '{key}'"), numbered(value.clone()))
    } else {
        (format!("block '{key}' command '{value}'"), numbered(setting.clone()))
    };
    // Capitalized at the start of the sentence, unless a verb comes first.
    let capital = what.replacen("command", "Command", usize::from(setting.is_nil())).replacen("block", "Block", 1);
    if old == new {
        return Ok(StateReturn::ok(&name, format!("{capital} already has value: {new}")).into());
    }
    let changes = map! {"old" => old, "new" => new.clone()};
    if context.test {
        let comment = format!("{capital} will be set to value: {new}");
        return Ok(StateReturn::predicted(&name, comment).with_changes(changes).into());
    }
    if setting.is_nil() {
        args.insert("value".into(), new.clone());
    } else {
        args.insert("setting".into(), new.clone());
    }
    let outcome = if context.call.call("logrotate.set", Args::keyword(args))?.is_truthy() {
        StateReturn::ok(&name, format!("Set {what} value: {new}"))
    } else {
        StateReturn::failed(&name, format!("Unable to set {what} value: {new}"))
    };
    Ok(outcome.with_changes(changes).into())
}

/// Converts a string of digits to an integer.
fn numbered(value: Value) -> Value {
    if let Value::Str(text) = &value { number(text) } else { value }
}

//! `syslog_ng`: states of the configuration and the processes of syslog-ng.

use brine_context::StateContext;
use brine_function::{CallResult, Functions, function, registry};
use brine_value::{Map, Value};

use super::configured;
use super::daemon::{self, StartArgs};

/// State functions of `syslog_ng`.
pub static FUNCTIONS: Functions<StateContext> = registry!("syslog_ng", [config, stopped, started, reloaded]);

/// Append a statement to the configuration file of syslog-ng: see `syslog_ng.config`. It is appended by every run:
/// begin the file with `syslog_ng.write_version`.
#[function]
pub fn config(context: &StateContext, name: String, config: Value, #[default(true)] write: bool) -> CallResult {
    configured(&context.call, &name, &config, write, context.test)
}

/// Ensure that no process of syslog-ng is running.
#[function]
pub fn stopped(context: &StateContext, #[default] name: Value) -> CallResult {
    daemon::stopped(&context.call, name, context.test)
}

/// Start syslog-ng with these options.
#[function]
pub fn started(context: &StateContext, #[args] args: StartArgs, #[keywords] _kwargs: Map) -> CallResult {
    daemon::started(&context.call, &args, context.test)
}

/// Reload the configuration of syslog-ng.
#[function]
pub fn reloaded(context: &StateContext, name: Value) -> CallResult {
    daemon::reload(&context.call, name)
}

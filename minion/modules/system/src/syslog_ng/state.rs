//! `syslog_ng`: states of the configuration and the processes of syslog-ng.

use brine_context::StateContext;
use brine_function::{CallResult, Functions, Others, ParamList, function, registry};
use brine_value::{Map, Value};

use super::configured;
use super::daemon::{self, StartArgs};

/// State functions of `syslog_ng`.
pub static FUNCTIONS: Functions<StateContext> = registry!("syslog_ng", [config, stopped, started, reloaded]);

/// Append a statement to the configuration file of syslog-ng: see `syslog_ng.config`. It is appended by every run:
/// begin the file with `syslog_ng.write_version`.
///
/// SLS Example:
///
///     s_local:
///       syslog_ng.config:
///         - config:
///           - source:
///             - internal: []
///         - write: True
#[function]
pub fn config(
    context: &StateContext,
    /// Id of the statement.
    name: String,
    /// Contents of the statement.
    config: Value,
    /// Whether the statement is written to the file; otherwise it is only returned.
    #[default(true)]
    write: bool,
) -> CallResult {
    configured(&context.call, &name, &config, write, context.test)
}

/// Ensure that no process of syslog-ng is running.
///
/// SLS Example:
///
///     stop_syslog_ng:
///       syslog_ng.stopped:
///         - name: syslog-ng
#[function]
pub fn stopped(
    context: &StateContext,
    /// Name of the state.
    #[default]
    name: Value,
) -> CallResult {
    daemon::stopped(&context.call, name, context.test)
}

/// Start syslog-ng with these options.
///
/// SLS Example:
///
///     start_syslog_ng:
///       syslog_ng.started:
///         - user: root
///         - group: root
#[function]
pub fn started(
    context: &StateContext,
    #[args] args: StartArgs,
    #[keywords(further_started)] _kwargs: Map,
) -> CallResult {
    daemon::started(&context.call, &args, context.test)
}

/// Reload the configuration of syslog-ng.
///
/// SLS Example:
///
///     reload_syslog_ng:
///       syslog_ng.reloaded:
///         - name: syslog-ng
#[function]
pub fn reloaded(
    context: &StateContext,
    /// Name of the state.
    name: Value,
) -> CallResult {
    daemon::reload(&context.call, name)
}

/// Describes the further arguments of `syslog_ng.started`.
pub(crate) fn further_started(params: &mut ParamList) {
    params.others(Others::Unused);
    for name in ["cfgfile", "use_fd"] {
        params.further(name, "a string", "Without effect, as in Salt.");
    }
}

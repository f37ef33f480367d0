//! `ssh`: functions on hosts that are reached by ssh, without a minion.

use brine_function::{CallResult, Functions, function, registry};
use brine_master_custom::SshCall;
use brine_value::{Map, Value};

use super::salt::with_keywords;
use super::{RunnerContext, public};

/// Runner functions of `ssh`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("ssh", [cmd]);

/// Call an execution function on hosts of the roster by ssh, and return the returns by host.
///
/// CLI Example:
///
///     salt-run ssh.cmd 'web*' test.ping
///     salt-run ssh.cmd 'web*' state.apply arg='[nginx]' kwarg='{test: True}'
#[function]
pub fn cmd(
    context: &RunnerContext,
    /// Target: hosts of the roster.
    tgt: Value,
    /// Name of the function.
    fun: String,
    /// The positional arguments.
    #[default]
    arg: Vec<Value>,
    /// The timeout of connecting, in seconds (the option ssh_timeout).
    timeout: Option<u64>,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
    /// The keyword arguments.
    #[default]
    kwarg: Map,
    /// Run fun as a command of the hosts' shell (False).
    #[default]
    raw_shell: bool,
) -> CallResult {
    let arg = with_keywords(arg, public(kwarg));
    let user = context.caller.user.clone();
    let call = SshCall { tgt, tgt_type, fun, arg, is_raw: raw_shell, timeout, user };
    context.host()?.call_by_ssh(&call).map(Value::Map)
}

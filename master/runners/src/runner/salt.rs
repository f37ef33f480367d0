//! `salt`: execution functions, on the master or on minions.

use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;

use super::{RunnerContext, public};

/// Runner functions of `salt`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("salt", [cmd, execute]);

/// Call an execution function on the master's host.
///
/// with_pillar: ignored; the functions see no pillar (False).
///
/// CLI Example:
///
///     salt-run salt.cmd test.arg 1 2 a=1
#[function]
pub fn cmd(
    context: &RunnerContext,
    /// Name of the execution function.
    fun: String,
    /// Arguments of the function.
    #[rest]
    args: Vec<Value>,
    /// Keyword arguments of the function.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut keyword = public(kwargs);
    keyword.shift_remove("with_pillar");
    let args = Args { positional: args, keyword };
    match context.master.functions.as_ref().map(|host| host.functions(None)) {
        Some(functions) if functions.has(&fun) => functions.call(&fun, args),
        _ => Ok(CallError::NotAvailable(fun).to_string().into()),
    }
}

/// Call an execution function on minions, and return the results by minion.
///
/// CLI Example:
///
///     salt-run salt.execute '*' test.echo arg='[hello]'
#[function]
pub fn execute(
    context: &RunnerContext,
    /// Target.
    tgt: Value,
    /// Name of the function.
    fun: String,
    /// The positional arguments.
    #[default]
    arg: Vec<Value>,
    /// Seconds to wait for; the option timeout if it is left out.
    timeout: Option<f64>,
    /// Type of the target.
    #[default("glob".into())]
    tgt_type: String,
    /// Additional returners, separated by commas.
    #[default]
    ret: String,
    /// The job id; a new one if it is left out.
    #[default]
    jid: String,
    /// The keyword arguments.
    #[default]
    kwarg: Map,
    /// Keyword arguments of the function, too; those of `kwarg` take precedence.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut named = public(kwargs);
    named.extend(kwarg);
    let mut request = PublishRequest { tgt, tgt_type, ..PublishRequest::new("*", &fun, &context.caller.user) };
    request.arg = with_keywords(arg, named);
    request.ret = ret;
    if !jid.is_empty() {
        request.jid = Some(jid.parse().map_err(CallError::execution)?);
    }
    context.publish_and_wait(request, timeout).map(Value::Map)
}

/// Returns the arguments of a job in their wire format.
pub(super) fn with_keywords(mut arg: Vec<Value>, keywords: Map) -> Vec<Value> {
    if !keywords.is_empty() {
        let mut last = map! {"__kwarg__" => true};
        last.extend(keywords);
        arg.push(last.into());
    }
    arg
}

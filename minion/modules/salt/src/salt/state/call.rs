//! `salt.function`: calls an execution function on minions.

use brine_context::{StateContext, StateReturn};
use brine_function::arguments::refuse;
use brine_function::{Args, CallResult, Others, ParamList, function};
use brine_value::{Map, Value};

use super::{Job, ReturnerArgs, RunArgs, called, words};

/// The arguments of `salt.function`.
#[derive(Args)]
pub struct FunctionArgs {
    /// Full name of the execution function.
    name: String,
    /// Target: which minions.
    tgt: Value,
    /// Type of the target: `glob`, `list`, `grain`, `compound`, ...
    #[default("glob".into())]
    tgt_type: String,
    /// Positional arguments of the function.
    #[default]
    arg: Value,
    /// Keyword arguments of the function.
    kwarg: Option<Map>,
    #[args]
    returners: ReturnerArgs,
    /// Whether a minion that does not return has failed.
    #[default(false)]
    expect_minions: bool,
    /// Minions that may fail.
    #[default]
    fail_minions: Value,
    /// Execution function that decides whether each return is a success.
    fail_function: Option<String>,
    #[args]
    how: RunArgs,
    /// Further arguments, ignored; `ssh` and `roster` are refused.
    #[keywords(further_function)]
    kwargs: Map,
}

/// Call an execution function on minions. It has failed on a minion if its retcode is not 0, if it returns false,
/// or if `fail_function`, an execution function called on the master, returns false for its return.
///
/// SLS Example:
///
///     cmd.run:
///       salt.function:
///         - tgt: web*
///         - arg:
///           - systemctl reload nginx
///
///     ping_all:
///       salt.function:
///         - name: test.ping
///         - tgt: '*'
#[function]
pub fn function(context: &StateContext, #[args] settings: FunctionArgs) -> CallResult {
    refuse("salt.function", &settings.kwargs, &super::SSH)?;
    let name = &settings.name;
    let tgt = &settings.tgt;
    if context.test {
        let comment = format!("Function {name} would be executed on target {tgt}");
        return Ok(StateReturn::predicted(name, comment).into());
    }
    let positional = match settings.arg {
        Value::Nil => Vec::new(),
        Value::List(args) => args,
        Value::Str(text) => text.split_whitespace().map(Value::from).collect(),
        one => vec![one],
    };
    let args = Args { positional, keyword: settings.kwarg.unwrap_or_default() };
    let job = Job::new((settings.tgt, settings.tgt_type), settings.returners, settings.how, settings.expect_minions);
    let answers = match job.run(context, "function", name, name, args)? {
        Ok(answers) => answers,
        Err(error) => return Ok(StateReturn::failed(name, error.to_string()).into()),
    };
    let good = |value: &Value| match &settings.fail_function {
        None => true,
        Some(function) => {
            context.call.call(function, Args::positional([value.clone()])).is_ok_and(|good| good.is_truthy())
        }
    };
    Ok(called(name, &answers, &words(&settings.fail_minions), good).into())
}

/// Describes the further arguments of `salt.function`.
pub(crate) fn further_function(params: &mut ParamList) {
    params.others(Others::Unused);
    for name in ["roster", "ssh"] {
        params.further(name, "a string", "Refused: orchestrations have minions as targets, not hosts of salt-ssh.");
    }
}

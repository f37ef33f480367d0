//! `saltutil` functions that call the master: in orchestrations, and in their templates.

use std::sync::Arc;

use brine_context::Context;
use brine_function::arguments::refuse;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_job::orchestration::{Called, MasterAccess, OrchestratedJob};
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;

/// Returns the master that a job runs on, or an error for functions that only work there.
pub(crate) fn master_of<'a>(context: &'a Context, what: &str) -> Result<&'a Arc<dyn MasterAccess>, CallError> {
    context.job.master.as_ref().ok_or_else(|| {
        CallError::Execution(format!("{what} works on the master: call it by salt-run state.orchestrate"))
    })
}

/// Execution functions of `saltutil`.
pub static FUNCTIONS: Functions<Context> = registry!("saltutil", [runner, wheel, cmd, cmd_iter]);

/// Execution functions of `state`.
pub static STATE: Functions<Context> = registry!("state", [orchestrate]);

/// The arguments of calls of the master's functions.
#[derive(Args)]
pub struct MasterCallArgs {
    /// Full name of the function.
    name: String,
    /// Positional arguments of the function.
    #[default]
    arg: Value,
    /// Keyword arguments of the function.
    kwarg: Option<Map>,
    /// Whether the result has the details of the call.
    #[default(false)]
    full_return: bool,
    /// Further keyword arguments of the function.
    #[keywords]
    kwargs: Map,
}

/// Call a runner function on the master. Only in orchestrations.
///
/// CLI Example:
///
///     {% set up = salt['saltutil.runner']('manage.up') %}
#[function]
pub fn runner(context: &Context, #[args] call: MasterCallArgs) -> CallResult {
    let master = master_of(context, "saltutil.runner")?;
    let MasterCallArgs { name, arg, kwarg, full_return, kwargs } = call;
    returned(master.runner(&name, parsed_arguments(arg, kwarg, public(kwargs))), full_return)
}

/// Call a wheel function on the master. Only in orchestrations.
///
/// CLI Example:
///
///     {% set keys = salt['saltutil.wheel']('key.list_all') %}
#[function]
pub fn wheel(context: &Context, #[args] call: MasterCallArgs) -> CallResult {
    let master = master_of(context, "saltutil.wheel")?;
    let MasterCallArgs { name, arg, kwarg, full_return, kwargs } = call;
    returned(master.wheel(&name, parsed_arguments(arg, kwarg, public(kwargs))), full_return)
}

/// Run orchestrations on the master, as `salt-run state.orchestrate`. Only in orchestrations.
///
/// CLI Example:
///
///     {% set run = salt['state.orchestrate']('orch.web') %}
#[function]
pub fn orchestrate(
    context: &Context,
    /// SLS files, as a list or with commas.
    mods: Value,
    /// Environment of the SLS files.
    #[default("base".into())]
    saltenv: String,
    /// Whether the states only predict their changes.
    test: Option<bool>,
    /// SLS files and ids that are left out.
    #[default]
    exclude: Value,
    /// Pillar over that of the master, as a mapping.
    #[default]
    pillar: Value,
    /// Environment of the pillar.
    pillarenv: Option<String>,
) -> CallResult {
    let master = master_of(context, "state.orchestrate")?;
    let mut keyword = map! {
        "mods" => mods, "saltenv" => saltenv, "test" => test, "exclude" => exclude, "pillar" => pillar,
        "pillarenv" => pillarenv,
    };
    keyword.retain(|_, value| !value.is_nil());
    returned(master.runner("state.orchestrate", Args::keyword(keyword)), false)
}

/// The arguments of `saltutil.cmd`.
#[derive(Args)]
pub struct CmdArgs {
    /// Target: which minions.
    tgt: Value,
    /// Full name of the execution function.
    fun: String,
    /// Positional arguments of the function.
    #[default]
    arg: Value,
    /// Seconds to wait for returns.
    timeout: Option<f64>,
    /// Type of the target: `glob`, `list`, `grain`, `compound`, ...
    #[default("glob".into())]
    tgt_type: String,
    /// Additional returners of the minions.
    #[default]
    ret: String,
    /// Keyword arguments of the function.
    kwarg: Option<Map>,
    /// Whether a minion that does not return has failed.
    #[default(false)]
    expect_minions: bool,
    /// Size of batches: a number, or a percentage of the minions.
    #[default]
    batch: Value,
    /// Number of minions to choose at random from the target.
    subset: Option<usize>,
    /// Further arguments, ignored; `ssh` is refused.
    #[keywords]
    kwargs: Map,
}

/// Call a function on minions and return the `ret`, `retcode`, `out` and `jid` of each. Only in orchestrations.
///
/// CLI Example:
///
///     {% set uptime = salt['saltutil.cmd']('web*', 'status.uptime') %}
#[function]
pub fn cmd(context: &Context, #[args] args: CmdArgs) -> CallResult {
    refuse("saltutil.cmd", &args.kwargs, &[("ssh", "run salt-ssh for hosts without a minion")])?;
    let request = PublishRequest {
        tgt: args.tgt,
        tgt_type: args.tgt_type,
        arg: arguments(args.arg, args.kwarg, Map::new()).to_wire(),
        ret: args.ret,
        ..PublishRequest::new("", &args.fun, "")
    };
    let ask = OrchestratedJob {
        timeout: args.timeout.map(|seconds| brine_runtime::seconds::within(0.0..=1e9, seconds)),
        batch: (!args.batch.is_nil()).then(|| args.batch.to_string()),
        subset: args.subset,
        ..OrchestratedJob::new(request)
    };
    let answers = master_of(context, "saltutil.cmd")?.ask(ask).map_err(CallError::execution)?;
    let mut all = Map::new();
    for answer in answers {
        let reported = match answer.returned {
            Some(returned) => {
                let field = |name: &str| returned.get(name).cloned().unwrap_or_default();
                map! {"ret" => field("return"), "retcode" => field("retcode"), "out" => field("out"), "jid" => &answer.jid}
            }
            None if args.expect_minions => map! {"failed" => true},
            None => continue,
        };
        all.insert(answer.id.into(), reported.into());
    }
    Ok(all.into())
}

/// Call a function on minions like `saltutil.cmd`, and return a list with an entry for each minion.
///
/// CLI Example:
///
///     {% for answer in salt['saltutil.cmd_iter']('web*', 'status.uptime') %}
#[function]
pub fn cmd_iter(context: &Context, #[args] args: CmdArgs) -> CallResult {
    let Value::Map(all) = cmd(context, args)? else { return Ok(Value::List(Vec::new())) };
    Ok(all.into_iter().map(|(id, reported)| Value::from(Map::from_iter([(id, reported)]))).collect())
}

/// Returns keyword arguments without those that publishing adds, whose names begin with `__`.
fn public(kwargs: Map) -> Map {
    kwargs.into_iter().filter(|(key, _)| !key.as_str().is_some_and(|key| key.starts_with("__"))).collect()
}

/// Returns the arguments of a function of the master, merged from `arg`, `kwarg` and the arguments by name.
pub(crate) fn arguments(arg: Value, kwarg: Option<Map>, kwargs: Map) -> Args {
    let positional = match arg {
        Value::Nil => Vec::new(),
        Value::List(args) => args,
        one => vec![one],
    };
    let mut keyword = kwargs;
    keyword.extend(kwarg.unwrap_or_default());
    Args { positional, keyword }
}

/// As [`arguments`], with the strings of `arg` parsed like words of a command line: values in YAML, and `name=value`.
pub(crate) fn parsed_arguments(arg: Value, kwarg: Option<Map>, kwargs: Map) -> Args {
    let Args { positional, keyword } = arguments(arg, kwarg, kwargs);
    let mut args = Args::default();
    for value in positional {
        match value {
            Value::Str(word) => {
                let parsed = brine_function::arguments::parse(&[word], &[]);
                args.positional.extend(parsed.positional);
                args.keyword.extend(parsed.keyword);
            }
            other => args.positional.push(other),
        }
    }
    args.keyword.extend(keyword);
    args
}

fn returned(called: Called, full_return: bool) -> Result<Value, CallError> {
    if full_return {
        let Called { jid, value, success } = called;
        return Ok(map! {"return" => value, "success" => success, "jid" => &jid}.into());
    }
    Ok(called.value)
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    #[test]
    fn strings_for_functions_of_the_master_are_parsed() {
        for (arg, kwarg, kwargs, positional, keyword) in [
            (list!["foo", "bar=off"], None, map! {}, list!["foo"], map! {"bar" => false}),
            (list!["1", "[a]", 2, "a==b"], None, map! {}, list![1, list!["a"], 2, "a==b"], map! {}),
            (list!["a=1"], Some(map! {"a" => 2}), map! {"b" => "c=1"}, list![], map! {"a" => 2, "b" => "c=1"}),
            ("x".into(), None, map! {}, list!["x"], map! {}),
            (Value::Nil, None, map! {}, list![], map! {}),
        ] {
            let args = parsed_arguments(arg.clone(), kwarg, kwargs);
            assert_eq!((Value::from(args.positional), args.keyword), (positional, keyword), "{arg}");
        }
    }
}

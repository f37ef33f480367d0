//! `test`: reports on options and modules, and functions that only log or return a message.

use std::sync::Arc;

use brine_context::Context;
use brine_function::{CallResult, function};
use brine_value::{Map, Value, list, map};

/// Return all options of the minion, with its grains.
///
/// CLI Example:
///
///     salt '*' test.opts_pkg
#[function]
pub fn opts_pkg(context: &Context) -> CallResult {
    let mut opts = Arc::unwrap_or_clone(context.opts());
    opts.insert("grains".into(), Value::Map((*context.grains()).clone()));
    Ok(opts.into())
}

/// Return the names of all execution functions and modules. None is missing: the other lists of Salt's report are the
/// same or empty.
///
/// CLI Example:
///
///     salt '*' test.module_report
#[function]
pub fn module_report(context: &Context) -> CallResult {
    let functions: Vec<Value> = context.minion.functions.iter().map(|function| function.full_name().into()).collect();
    let mut modules: Vec<&str> = context.minion.functions.iter().map(|function| function.module).collect();
    modules.dedup();
    let modules: Value = modules.into_iter().collect();
    let report: Map = map! {
        "functions" => functions.clone(), "function_attrs" => functions.clone(), "function_subs" => functions,
        "modules" => modules.clone(), "module_attrs" => modules, "missing_attrs" => list![], "missing_subs" => list![],
    };
    Ok(report.into())
}

/// Log a warning about a deprecated feature, and return true.
///
/// CLI Example:
///
///     salt '*' test.deprecation_warning
#[function]
pub fn deprecation_warning(context: &Context) -> CallResult {
    tracing::warn!(jid = context.job.jid, "this is a test of a warning about a deprecated feature");
    Ok(true.into())
}

/// Return a message that this function has been replaced by `cmd.tty`.
///
/// CLI Example:
///
///     salt '*' test.tty tty0 'This is a test'
#[function]
pub fn tty(_context: &Context, #[rest] _args: Vec<Value>, #[keywords] _kwargs: Map) -> CallResult {
    Ok("ERROR: This function has been moved to cmd.tty".into())
}

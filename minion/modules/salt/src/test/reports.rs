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

/// Log two warnings about a deprecated feature, unless `PYTHONWARNINGS` is `ignore`, and return true.
///
/// CLI Example:
///
///     salt '*' test.deprecation_warning
#[function]
pub fn deprecation_warning(context: &Context) -> CallResult {
    if std::env::var_os("PYTHONWARNINGS").is_none_or(|kinds| kinds != "ignore") {
        let date = "by date very far into the future (3000-01-01)";
        for end in ["by version", date] {
            tracing::warn!(jid = context.job.jid, "DeprecationWarning: This is a test deprecation warning {end}.");
        }
    }
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

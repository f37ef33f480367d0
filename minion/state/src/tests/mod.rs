//! Runs of small SLS files; the expected results were recorded from Salt 3008.3.

mod conditions;
mod mistakes;
mod queue;
mod requisites;
mod runs;

use std::fmt::Write as _;

use brine_context::Context;
use brine_function::{Args, CallError};
use brine_value::{Map, Value, map};

use crate::testing;

fn call(context: &Context, fun: &str, positional: &[&str], keyword: Map) -> Result<Value, CallError> {
    let positional = positional.iter().map(|text| Value::from(*text)).collect();
    context.call(fun, Args { positional, keyword })
}

/// Formats each state on one line: number, id, result, whether it changed something or was not run, comment.
fn report(results: &Value) -> String {
    let mut lines = String::new();
    for (tag, result) in results.as_map().unwrap() {
        let text = |key: &str| result.get(key).map(ToString::to_string).unwrap_or_default();
        let id = tag.to_string().split("_|-").nth(1).unwrap().to_owned();
        let changed = if result.get("changes").is_some_and(Value::is_truthy) { "changed" } else { "-" };
        let ran = if text("__state_ran__") == "False" { " (not run)" } else { "" };
        let (number, result, comment) = (text("__run_num__"), text("result"), text("comment").replace('\n', " / "));
        writeln!(lines, "{number} {id} {result} {changed}{ran}: {comment}").unwrap();
    }
    lines
}

/// Applies an SLS, and returns the results and the job's retcode.
fn apply(name: &str, sls: &str, test: bool) -> String {
    let context = testing::context(&[(&format!("{name}.sls"), sls)]);
    let results = call(&context, "state.apply", &[name], map! {"test" => test}).unwrap();
    let retcode = context.job.retcode.load(std::sync::atomic::Ordering::Relaxed);
    format!("{}retcode {retcode}", report(&results))
}

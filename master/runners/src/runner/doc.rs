//! `doc`: documentation of runner and wheel functions.

use brine_function::{CallResult, Function, Functions, Registry, function, registry};
use brine_text::glob::fnmatch;
use brine_value::{Map, Value};
use brine_wire::PublishRequest;

use super::RunnerContext;

/// Runner functions of `doc`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("doc", [runner, wheel, execution, nearest]);

/// Return the documentation of runner functions.
///
/// CLI Example:
///
///     salt-run doc.runner jobs
#[function]
pub fn runner(
    context: &RunnerContext,
    /// Names of modules or functions, or globs over names of functions; all functions if none is given.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    Ok(documented(&context.calls.runners, &args))
}

/// Return the documentation of wheel functions.
///
/// CLI Example:
///
///     salt-run doc.wheel key
#[function]
pub fn wheel(
    context: &RunnerContext,
    /// Names of modules or functions, or globs over names of functions; all functions if none is given.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    Ok(documented(&context.calls.wheels, &args))
}

/// Return the documentation of the execution functions of all minions that answer.
///
/// CLI Example:
///
///     salt-run doc.execution
#[function]
pub fn execution(
    context: &RunnerContext,
    /// Names of modules or functions; all functions if none is given.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    let request = PublishRequest { arg: args, ..PublishRequest::new("*", "sys.doc", &context.caller.user) };
    let answers = context.publish_and_wait(request, None)?.into_values();
    let documented = answers.filter_map(|answer| match answer {
        Value::Map(functions) => Some(functions),
        _ => None,
    });
    let mut functions: Map = documented.flatten().collect();
    functions.sort_by(|one, _, other, _| one.as_str().cmp(&other.as_str()));
    Ok(functions.into())
}

/// Return the runner function with the most similar name; an empty result if no name is similar.
///
/// CLI Example:
///
///     salt-run doc.nearest jobs.lst_jobs
#[function]
pub fn nearest(
    context: &RunnerContext,
    /// The mistyped name.
    name: String,
) -> CallResult {
    let names = context.calls.runners.iter().map(Function::full_name);
    Ok(brine_text::nearest::nearest(&name, names).map_or(Value::Nil, Value::from))
}

fn documented<C>(registry: &Registry<C>, patterns: &[Value]) -> Value {
    let asked = |name: &str| {
        patterns.is_empty()
            || patterns.iter().any(|pattern| {
                let pattern = pattern.to_string();
                fnmatch(&pattern, name) || name.starts_with(&format!("{pattern}."))
            })
    };
    let functions = registry.iter().filter(|function| asked(&function.full_name()));
    Value::Map(functions.map(|function| (function.full_name().into(), function.docstring().into())).collect())
}

//! `doc`: what runner and wheel functions do.

use brine_function::{Function, Registry, functions};
use brine_text::glob::fnmatch;
use brine_value::Value;

use super::RunnerContext;

functions! {
    module "doc", context RunnerContext;

    /// Return the documentation of runner functions.
    ///
    /// args: names of modules or functions, or globs over names of functions; all functions if none is given.
    ///
    /// CLI Example:
    ///
    ///     salt-run doc.runner jobs
    fn runner(context, *args) {
        Ok(documented(&context.master.runners, &args))
    }

    /// Return the documentation of wheel functions.
    ///
    /// args: names of modules or functions, or globs over names of functions; all functions if none is given.
    ///
    /// CLI Example:
    ///
    ///     salt-run doc.wheel key
    fn wheel(context, *args) {
        Ok(documented(&context.master.wheels, &args))
    }

    /// Return the name of the runner function that a mistyped name probably means; nothing if none is near.
    ///
    /// name: the mistyped name.
    ///
    /// CLI Example:
    ///
    ///     salt-run doc.nearest jobs.lst_jobs
    fn nearest(context, name: String) {
        let known = context.master.runners.iter().map(Function::full_name);
        Ok(brine_text::nearest::nearest(&name, known).map_or(Value::Nil, Value::from))
    }
}

fn documented<C>(registry: &Registry<C>, wanted: &[Value]) -> Value {
    let asked = |name: &str| {
        wanted.is_empty()
            || wanted.iter().any(|pattern| {
                let pattern = pattern.to_string();
                fnmatch(&pattern, name) || name.starts_with(&format!("{pattern}."))
            })
    };
    let found = registry.iter().filter(|function| asked(&function.full_name()));
    Value::Map(found.map(|function| (function.full_name().into(), function.docstring().into())).collect())
}

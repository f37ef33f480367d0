//! `doc`: what runner and wheel functions do.

use brine_core::function::Registry;
use brine_core::glob::fnmatch;
use brine_core::{Value, functions};

use super::RunnerContext;

functions! {
    module "doc", context RunnerContext;

    /// The documentation of runner functions: of all, of modules, or of single functions.
    ///
    /// CLI Example:
    ///
    ///     salt-run doc.runner jobs
    fn runner(context, *args) {
        Ok(documented(&context.master.runners, &args))
    }

    /// The documentation of wheel functions.
    ///
    /// CLI Example:
    ///
    ///     salt-run doc.wheel key
    fn wheel(context, *args) {
        Ok(documented(&context.master.wheels, &args))
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

//! `sys`: what functions there are, and what they do.

use brine_core::function::{Function, Param, ParamKind};
use brine_core::glob::fnmatch;
use brine_core::{Map, Value, functions, map};

use crate::context::Context;

functions! {
    module "sys", context Context;

    /// The documentation of all functions, of modules or of single functions.
    ///
    /// CLI Example:
    ///
    ///     salt '*' sys.doc test.ping
    fn doc(context, *args) {
        let wanted: Vec<String> = args.iter().map(ToString::to_string).collect();
        let asked = |name: &str| {
            wanted.is_empty() || wanted.iter().any(|pattern| fnmatch(pattern, name) || name.starts_with(&format!("{pattern}.")))
        };
        let found = context.minion.functions.iter().filter(|function| asked(&function.full_name()));
        Ok(Value::Map(found.map(|function| (function.full_name().into(), function.docstring().into())).collect()))
    }

    /// The names of all functions, or of those of some modules.
    ///
    /// CLI Example:
    ///
    ///     salt '*' sys.list_functions
    fn list_functions(context, *args) {
        Ok(names(context.minion.functions.iter(), &args))
    }

    /// The names of all modules.
    ///
    /// CLI Example:
    ///
    ///     salt '*' sys.list_modules
    fn list_modules(context, *args) {
        let mut modules: Vec<&str> = context.minion.functions.iter().map(|function| function.module).collect();
        modules.dedup();
        let asked = |name: &str| args.is_empty() || args.iter().any(|pattern| fnmatch(&pattern.to_string(), name));
        Ok(modules.into_iter().filter(|name| asked(name)).collect())
    }

    /// The parameters of functions.
    ///
    /// CLI Example:
    ///
    ///     salt '*' sys.argspec test.echo
    fn argspec(context, module: String = String::new()) {
        let asked = |name: &str| module.is_empty() || fnmatch(&module, name) || name.starts_with(&format!("{module}."));
        let found = context.minion.functions.iter().filter(|function| asked(&function.full_name()));
        Ok(Value::Map(found.map(|function| (function.full_name().into(), spec(function.params).into())).collect()))
    }

    /// The names of all state functions, or of those of some modules.
    ///
    /// CLI Example:
    ///
    ///     salt '*' sys.list_state_functions
    fn list_state_functions(context, *args) {
        Ok(names(context.minion.states.iter(), &args))
    }

    /// The names of all state modules.
    ///
    /// CLI Example:
    ///
    ///     salt '*' sys.list_state_modules
    fn list_state_modules(context, *args) {
        let mut modules: Vec<&str> = context.minion.states.iter().map(|function| function.module).collect();
        modules.dedup();
        let asked = |name: &str| args.is_empty() || args.iter().any(|pattern| fnmatch(&pattern.to_string(), name));
        Ok(modules.into_iter().filter(|name| asked(name)).collect())
    }

    /// The parameters of state functions.
    ///
    /// CLI Example:
    ///
    ///     salt '*' sys.state_argspec file.managed
    fn state_argspec(context, module: String = String::new()) {
        let asked = |name: &str| module.is_empty() || fnmatch(&module, name) || name.starts_with(&format!("{module}."));
        let found = context.minion.states.iter().filter(|function| asked(&function.full_name()));
        Ok(Value::Map(found.map(|function| (function.full_name().into(), spec(function.params).into())).collect()))
    }

    /// The documentation of state functions.
    ///
    /// CLI Example:
    ///
    ///     salt '*' sys.state_doc file.managed
    fn state_doc(context, *args) {
        let asked = |name: &str| args.is_empty() || args.iter().any(|pattern| {
            let pattern = pattern.to_string();
            fnmatch(&pattern, name) || name.starts_with(&format!("{pattern}."))
        });
        let found = context.minion.states.iter().filter(|function| asked(&function.full_name()));
        Ok(Value::Map(found.map(|function| (function.full_name().into(), function.docstring().into())).collect()))
    }
}

fn names<C: 'static>(functions: impl Iterator<Item = &'static Function<C>>, wanted: &[Value]) -> Value {
    let asked = |function: &Function<C>| {
        wanted.is_empty()
            || wanted.iter().any(|pattern| {
                let pattern = pattern.to_string();
                function.module == pattern || fnmatch(&pattern, &function.full_name())
            })
    };
    functions.filter(|function| asked(function)).map(Function::full_name).collect()
}

/// Parameters as Python's argspec tells them.
fn spec(params: &[Param]) -> Map {
    let named = params.iter().filter(|param| matches!(param.kind, ParamKind::Required | ParamKind::Optional(_)));
    let defaults: Vec<Value> = params
        .iter()
        .filter_map(|param| match param.kind {
            ParamKind::Optional(default) => Some(default()),
            _ => None,
        })
        .collect();
    // Salt says true or nothing, never false.
    let takes = |wanted: fn(&ParamKind) -> bool| params.iter().any(|param| wanted(&param.kind)).then_some(true);
    map! {
        "args" => named.map(|param| param.name).collect::<Value>(),
        "defaults" => if defaults.is_empty() { Value::Nil } else { defaults.into() },
        "varargs" => takes(|kind| matches!(kind, ParamKind::Rest)),
        "kwargs" => takes(|kind| matches!(kind, ParamKind::Keywords)),
    }
}

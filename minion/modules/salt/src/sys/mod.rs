//! `sys`: names and documentation of functions.

mod schema;

use brine_context::{Context, Module, runners, suggest};
use brine_function::{CallResult, Function, Functions, Param, ParamKind, Registry, function, registry};
use brine_returners::{BACKENDS, Backend, BackendOption};
use brine_sls::render::RENDERERS;
use brine_text::glob::fnmatch;
use brine_text::nearest::nearest;
use brine_value::{Map, Value, map};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `sys`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "sys",
    [
        doc,
        list_functions,
        list_modules,
        argspec,
        list_state_functions,
        list_state_modules,
        state_argspec,
        schema::state_schema,
        state_doc,
        list_returners,
        list_returner_functions,
        returner_argspec,
        returner_doc,
        list_runners,
        list_runner_functions,
        runner_argspec,
        runner_doc,
        list_renderers,
        renderer_doc,
        reload_modules
    ]
);

/// Reload custom modules with the next call of one of their functions.
///
/// CLI Example:
///
///     salt '*' sys.reload_modules
#[function]
pub fn reload_modules(context: &Context) -> CallResult {
    context.minion.custom.refresh();
    Ok(Value::Nil)
}

/// Return the documentation of all functions, of modules or of single functions, and a message for a state or an
/// unknown name.
///
/// CLI Example:
///
///     salt '*' sys.doc test.ping
#[function]
pub fn doc(
    context: &Context,
    /// Names of functions or modules, or globs; all by default.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    let minion = &context.minion;
    let missing = |name: &str| {
        let is_state = minion.states.has_module(name) || minion.states.get(name).is_some();
        if is_state {
            format!("'{name}' is a state: see sys.state_doc {name}")
        } else {
            suggest::not_available(minion, name)
        }
    };
    Ok(docs(context, &minion.functions, &args, missing))
}

/// Return the names of all functions, or of those of some modules.
///
/// CLI Example:
///
///     salt '*' sys.list_functions
#[function]
pub fn list_functions(
    context: &Context,
    /// Names of functions or modules, or globs; all by default.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    Ok(names(context.minion.functions.iter(), &args))
}

/// Return the names of all modules.
///
/// CLI Example:
///
///     salt '*' sys.list_modules
#[function]
pub fn list_modules(
    context: &Context,
    /// Names of functions or modules, or globs; all by default.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    let mut modules: Vec<&str> = context.minion.functions.iter().map(|function| function.module).collect();
    modules.dedup();
    Ok(modules.into_iter().filter(|name| matches_any(name, &args)).collect())
}

/// Return the parameters of functions.
///
/// CLI Example:
///
///     salt '*' sys.argspec test.echo
#[function]
pub fn argspec(
    context: &Context,
    /// Name of the module or function, or a glob; all by default.
    #[default]
    module: String,
) -> CallResult {
    Ok(specs(&context.minion.functions, &module))
}

/// Return the names of all state functions, or of those of some modules.
///
/// CLI Example:
///
///     salt '*' sys.list_state_functions
#[function]
pub fn list_state_functions(
    context: &Context,
    /// Names of functions or modules, or globs; all by default.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    Ok(names(context.minion.states.iter(), &args))
}

/// Return the names of all state modules.
///
/// CLI Example:
///
///     salt '*' sys.list_state_modules
#[function]
pub fn list_state_modules(
    context: &Context,
    /// Names of functions or modules, or globs; all by default.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    let mut modules: Vec<&str> = context.minion.states.iter().map(|function| function.module).collect();
    modules.dedup();
    Ok(modules.into_iter().filter(|name| matches_any(name, &args)).collect())
}

/// Return the parameters of state functions.
///
/// CLI Example:
///
///     salt '*' sys.state_argspec file.managed
#[function]
pub fn state_argspec(
    context: &Context,
    /// Name of the module or function, or a glob; all by default.
    #[default]
    module: String,
) -> CallResult {
    Ok(specs(&context.minion.states, &module))
}

/// Return the documentation of all state functions, of state modules or of single state functions, and a message
/// for an unknown name.
///
/// CLI Example:
///
///     salt '*' sys.state_doc file.managed
#[function]
pub fn state_doc(
    context: &Context,
    /// Names of functions or modules, or globs; all by default.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    let minion = &context.minion;
    let missing = |name: &str| {
        let is_function = minion.functions.has_module(name) || minion.functions.get(name).is_some();
        if is_function {
            format!("'{name}' is an execution function: see sys.doc {name}")
        } else {
            suggest::no_state(&minion.states, name)
        }
    };
    Ok(docs(context, &minion.states, &args, missing))
}

/// Return the names of all returners, or of those that match.
///
/// CLI Example:
///
///     salt '*' sys.list_returners
///     salt '*' sys.list_returners 's*'
#[function]
pub fn list_returners(
    _context: &Context,
    /// Names of functions or modules, or globs; all by default.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    Ok(BACKENDS.iter().map(|backend| backend.name).filter(|name| matches_any(name, &args)).collect())
}

/// Return the names of the functions that store returns, or of those of some returners.
///
/// CLI Example:
///
///     salt '*' sys.list_returner_functions
///     salt '*' sys.list_returner_functions sqlite3
#[function]
pub fn list_returner_functions(
    _context: &Context,
    /// Names of functions or modules, or globs; all by default.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    Ok(returner_functions(&args).collect())
}

/// Return the parameters of the functions that store returns.
///
/// CLI Example:
///
///     salt '*' sys.returner_argspec sqlite3
#[function]
pub fn returner_argspec(
    _context: &Context,
    /// Name of the module or function, or a glob; all by default.
    #[default]
    module: String,
) -> CallResult {
    let asked = if module.is_empty() { Vec::new() } else { vec![Value::from(module)] };
    let params = map! {
        "args" => vec!["ret".to_owned()], "defaults" => Value::Nil, "varargs" => Value::Nil, "kwargs" => Value::Nil,
    };
    Ok(returner_functions(&asked).map(|name| (name.into(), params.clone().into())).collect::<Map>().into())
}

fn returner_functions(asked: &[Value]) -> impl Iterator<Item = String> {
    let named = BACKENDS.iter().map(|backend| (backend.name, format!("{}.returner", backend.name)));
    named
        .filter(|(name, function)| matches_any(name, asked) || matches_any(function, asked))
        .map(|(_, function)| function)
}

/// Return the documentation of returners: what they store, and their options.
///
/// CLI Example:
///
///     salt '*' sys.returner_doc
///     salt '*' sys.returner_doc sqlite3
#[function]
pub fn returner_doc(
    _context: &Context,
    /// Names of functions or modules, or globs; all by default.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    // As in Salt, under the name of the function that stores a return.
    let asked = BACKENDS.iter().filter(|backend| {
        matches_any(backend.name, &args) || matches_any(&format!("{}.returner", backend.name), &args)
    });
    let described = asked.map(|backend| (format!("{}.returner", backend.name).into(), description(backend).into()));
    Ok(Value::Map(described.collect()))
}

/// Return the names of the modules of runner functions, or of those that match. A name with `*` matches functions. The master
/// runs these functions: `salt-run` calls them.
///
/// CLI Example:
///
///     salt '*' sys.list_runners
///     salt '*' sys.list_runners 'm*'
#[function]
pub fn list_runners(
    _context: &Context,
    /// Names of functions or modules, or globs; all by default.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    let is_selected = |function: &Function<()>| {
        args.is_empty()
            || args.iter().map(ToString::to_string).any(|pattern| {
                if pattern.contains('*') {
                    fnmatch(&pattern, &function.full_name())
                } else {
                    function.module == pattern
                }
            })
    };
    let mut modules: Vec<&str> =
        runners::declared().iter().filter(|function| is_selected(function)).map(|function| function.module).collect();
    modules.dedup();
    Ok(modules.into_iter().collect())
}

/// Return the names of runner functions, or of those of some modules.
///
/// CLI Example:
///
///     salt '*' sys.list_runner_functions
///     salt '*' sys.list_runner_functions jobs 'manage.u*'
#[function]
pub fn list_runner_functions(
    _context: &Context,
    /// Names of functions or modules, or globs; all by default.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    Ok(names(runners::declared().iter(), &args))
}

/// Return the parameters of runner functions.
///
/// CLI Example:
///
///     salt '*' sys.runner_argspec jobs
#[function]
pub fn runner_argspec(
    _context: &Context,
    /// Name of the module or function, or a glob; all by default.
    #[default]
    module: String,
) -> CallResult {
    Ok(specs(runners::declared(), &module))
}

/// Return the documentation of runner functions, of all or of some modules or functions, and a message for an unknown name.
///
/// CLI Example:
///
///     salt '*' sys.runner_doc
///     salt '*' sys.runner_doc jobs.list_jobs
#[function]
pub fn runner_doc(
    context: &Context,
    /// Names of functions or modules, or globs; all by default.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    let names = || runners::declared().iter().map(Function::full_name);
    let missing = |name: &str| {
        let hint = nearest(name, names()).map(|near| format!(" Did you mean '{near}'?")).unwrap_or_default();
        format!("'{name}' is not available.{hint}")
    };
    Ok(docs(context, runners::declared(), &args, missing))
}

/// Return the names of all renderers, or of those that match.
///
/// CLI Example:
///
///     salt '*' sys.list_renderers
#[function]
pub fn list_renderers(
    _context: &Context,
    /// Names of functions or modules, or globs; all by default.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    Ok(RENDERERS.iter().map(|(name, ..)| *name).filter(|name| matches_any(name, &args)).collect())
}

/// Return the documentation of renderers.
///
/// CLI Example:
///
///     salt '*' sys.renderer_doc
///     salt '*' sys.renderer_doc jinja 'y*'
#[function]
pub fn renderer_doc(
    _context: &Context,
    /// Names of functions or modules, or globs; all by default.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    let asked = RENDERERS.iter().filter(|(name, ..)| matches_any(name, &args));
    Ok(Value::Map(asked.map(|(name, _, doc)| ((*name).into(), (*doc).into())).collect()))
}

/// Whether a name matches one of the patterns. Without patterns, every name matches.
fn matches_any(name: &str, patterns: &[Value]) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| fnmatch(&pattern.to_string(), name))
}

/// Returns the description of a returner, followed by its options, a line each.
fn description(backend: &Backend) -> String {
    let option = |option: &BackendOption| {
        let default = option.default.map(|default| format!(" (default: {default})")).unwrap_or_default();
        format!("{}: {}{default}", option.name, option.doc)
    };
    let options: Vec<String> = backend.options.iter().map(option).collect();
    if options.is_empty() { backend.doc.to_owned() } else { format!("{}\n\n{}", backend.doc, options.join("\n")) }
}

/// Returns the documentation of the requested functions, and for each unknown name the result of `missing`; then the job
/// has failed.
fn docs<C: 'static>(
    context: &Context,
    registry: &Registry<C>,
    patterns: &[Value],
    missing: impl Fn(&str) -> String,
) -> Value {
    let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
    let is = |pattern: &str, name: &str| {
        fnmatch(pattern, name) || name.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('.'))
    };
    let all: Vec<(String, String)> =
        registry.iter().map(|function| (function.full_name(), function.docstring())).collect();
    let is_found = |pattern: &&String| all.iter().any(|(name, _)| is(pattern, name));
    let unknown: Vec<&String> = patterns.iter().filter(|pattern| !is_found(pattern)).collect();
    if !unknown.is_empty() {
        context.set_retcode(1);
    }
    let unknown: Map = unknown.into_iter().map(|name| (name.as_str().into(), missing(name).into())).collect();
    let asked = |name: &str| patterns.is_empty() || patterns.iter().any(|pattern| is(pattern, name));
    let mut docs: Map = all
        .iter()
        .filter(|(name, _)| asked(name))
        .map(|(name, doc)| (name.as_str().into(), doc.as_str().into()))
        .collect();
    docs.extend(unknown);
    docs.into()
}

fn names<C: 'static>(functions: impl Iterator<Item = &'static Function<C>>, patterns: &[Value]) -> Value {
    let asked = |function: &Function<C>| {
        patterns.is_empty()
            || patterns.iter().any(|pattern| {
                let pattern = pattern.to_string();
                function.module == pattern || fnmatch(&pattern, &function.full_name())
            })
    };
    functions.filter(|function| asked(function)).map(Function::full_name).collect()
}

/// Returns the parameters of the functions of a module, of those that match a pattern, or of all.
fn specs<C: 'static>(registry: &Registry<C>, module: &str) -> Value {
    let asked = |name: &str| module.is_empty() || fnmatch(module, name) || name.starts_with(&format!("{module}."));
    let functions = registry.iter().filter(|function| asked(&function.full_name()));
    Value::Map(functions.map(|function| (function.full_name().into(), spec(function.params()).into())).collect())
}

/// Returns parameters in the form of Python's argspec.
fn spec(params: &[Param]) -> Map {
    let named = params.iter().filter(|param| param.is_named());
    let defaults: Vec<Value> = params.iter().filter_map(Param::default).collect();
    // Salt returns true or null, never false.
    let takes = |is_kind: fn(&ParamKind) -> bool| params.iter().any(|param| is_kind(&param.kind)).then_some(true);
    map! {
        "args" => named.map(|param| param.name).collect::<Value>(),
        "defaults" => if defaults.is_empty() { Value::Nil } else { defaults.into() },
        "varargs" => takes(|kind| matches!(kind, ParamKind::Rest)),
        "kwargs" => takes(|kind| matches!(kind, ParamKind::Keywords(_))),
    }
}

#[cfg(test)]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "functions get their context by reference")]
mod tests;

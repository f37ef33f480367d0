//! `module`: states that call execution functions.

use brine_context::{Context, StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Function, Functions, function, registry};
use brine_ids::Jid;
use brine_returners::store_in;
use brine_value::{Map, Value, map};

/// State functions of `module`.
pub static FUNCTIONS: Functions<StateContext> = registry!("module", [run, wait, watch, mod_watch]);

/// Call execution functions: either those that are keys, `- test.echo: [{text: hi}]`, or the one in `name`, with
/// `args`, `kwargs`, its own parameters and a `returner`. A key may have a suffix after a colon, `-
/// test.echo:again: [hi]`, to call a function several times.
///
/// The state has changes whenever a function was called, and fails if one returns `False`, or a mapping with
/// `result: False` or a `retcode` that is not 0. Conditions such as `onchanges` and `unless` make it idempotent.
///
/// SLS Example:
///
///     restart_minion_service:
///       module.run:
///         - service.restart:
///           - name: nginx
///
///     two_calls:
///       module.run:
///         - test.ping: []
///         - file.set_mode:
///           - path: /srv/app
///           - mode: '0750'
///
///     fetch_etc_hosts:
///       module.run:
///         - name: cp.get_file
///         - path: salt://hosts
///         - dest: /etc/hosts
#[function]
pub fn run(
    context: &StateContext,
    /// Name of the state, or the function to call if no function is a key.
    name: String,
    /// Functions with their arguments as keys; otherwise the arguments of the function in `name`, also as `args` and
    /// `kwargs`, and a `returner` of its result. A parameter of the function that is called `name`, `fun` or `state` is
    /// written with `m_` before it.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    // A single key that is not a function is a parameter, and `name` is the function.
    let calls: Option<Vec<Call>> = kwargs
        .iter()
        .map(|(key, arguments)| Some(Call::new(key.as_str().filter(|key| key.contains('.'))?, arguments)))
        .collect();
    Ok(match calls {
        Some(calls) if !calls.is_empty() => by_keys(context, &name, calls),
        _ => by_name(context, &name, &kwargs).in_order(RESULT_KEYS),
    })
}

/// Call execution functions only when a watched state has changes.
///
/// SLS Example:
///
///     reload_haproxy:
///       module.wait:
///         - name: service.reload
///         - m_name: haproxy
///         - watch:
///           - file: /etc/haproxy/haproxy.cfg
#[function]
pub fn wait(
    _context: &StateContext,
    /// Name of the function, such as `service.restart`.
    name: String,
    /// Arguments of the function, as in `module.run`.
    #[keywords]
    _kwargs: Map,
) -> CallResult {
    Ok(StateReturn::ok(&name, "").into())
}

/// Call execution functions only when a watched state has changes, as `wait`.
///
/// SLS Example:
///
///     reload_haproxy:
///       module.watch:
///         - name: service.reload
///         - m_name: haproxy
///         - watch:
///           - file: /etc/haproxy/haproxy.cfg
#[function]
pub fn watch(
    _context: &StateContext,
    /// Name of the function, such as `service.restart`.
    name: String,
    /// Arguments of the function, as in `module.run`.
    #[keywords]
    _kwargs: Map,
) -> CallResult {
    Ok(StateReturn::ok(&name, "").into())
}

/// Call the functions when a watched state has changes.
///
/// SLS Example:
///
///     reload_haproxy:
///       module.wait:
///         - name: service.reload
///         - m_name: haproxy
///         - watch:
///           - file: /etc/haproxy/haproxy.cfg
#[function]
pub fn mod_watch(
    context: &StateContext,
    /// Name of the state, or the function to call if no function is a key.
    name: String,
    /// The arguments of the watching state, and `sfun`, its function.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut kwargs = kwargs;
    kwargs.shift_remove("sfun");
    run(context, name, kwargs)
}

/// Order of the keys in results of functions.
const RESULT_KEYS: [&str; 4] = ["name", "changes", "comment", "result"];

/// A call that is written as a key.
struct Call {
    /// The key in the SLS file.
    key: String,
    args: Args,
}

impl Call {
    fn new(key: &str, arguments: &Value) -> Self {
        let mut args = Args::default();
        let single = [arguments.clone()];
        for item in arguments.as_list().unwrap_or(if arguments.is_nil() { &[] } else { &single }) {
            match item {
                Value::Map(named) => args.keyword.extend(named.clone()),
                value => args.positional.push(value.clone()),
            }
        }
        Call { key: key.to_owned(), args }
    }

    fn function(&self) -> &str {
        self.key.split(':').next().unwrap_or_default()
    }
}

/// Returns the required parameters of a function that are missing.
fn missing(function: &Function<Context>, args: &Args) -> Vec<&'static str> {
    let required = function.params().iter().filter(|param| param.is_required());
    let missing = required.skip(args.positional.len()).filter(|param| !args.keyword.contains_key(param.name));
    missing.map(|param| param.name).collect()
}

/// Whether a return or a value within it reports a failure.
fn is_failure(value: &Value) -> bool {
    match value {
        Value::Bool(good) => !good,
        Value::Map(map) => map.iter().any(|(key, value)| match key.as_str() {
            Some("result") if *value == Value::Bool(false) => true,
            Some("retcode") if *value != 0.into() && *value != Value::Bool(false) => true,
            _ => value.as_map().is_some() && is_failure(value),
        }),
        _ => false,
    }
}

/// Returns the message of an error, without the prefix of the command line.
fn error_message(error: CallError) -> String {
    match error {
        CallError::Arguments { message, .. }
        | CallError::Invocation { message, .. }
        | CallError::Execution(message)
        | CallError::Exception(message) => message,
        CallError::NotAvailable(_) => error.to_string(),
    }
}

fn by_keys(context: &StateContext, name: &str, calls: Vec<Call>) -> Value {
    let functions = &context.call.minion.functions;
    let listed = |calls: &[&Call]| {
        let names: Vec<&str> = calls.iter().map(|call| call.function()).collect();
        (if names.len() == 1 { "" } else { "s" }, names.join(", "))
    };
    let names: Vec<String> = calls.iter().map(|call| call.key.clone()).collect();
    let (available, unknown): (Vec<&Call>, Vec<&Call>) =
        calls.iter().partition(|call| functions.get(call.function()).is_some());
    if context.test || !unknown.is_empty() {
        let mut comments = Vec::new();
        if !unknown.is_empty() {
            let (plural, names) = listed(&unknown);
            comments.push(format!("Unavailable function{plural}: {names}."));
        }
        if context.test && !available.is_empty() {
            let (plural, names) = listed(&available);
            comments.push(format!("Function{plural} {names} to be executed."));
        }
        let result = (!unknown.is_empty()).then_some(false);
        return named(StateReturn { result, ..StateReturn::ok(name, comments.join(" ")) }, names);
    }
    let (mut lines, mut failed, mut changes) = (Vec::new(), Vec::new(), Map::new());
    for Call { key, args } in calls {
        let fun = key.split(':').next().unwrap_or_default();
        let missing = functions.get(fun).map(|function| missing(function, &args)).unwrap_or_default();
        if !missing.is_empty() {
            failed.push(format!("'{key}' failed: Missing arguments: {}", missing.join(", ")));
            continue;
        }
        match context.call.call_nested(fun, args) {
            Ok(value) if is_failure(&value) => failed.push(match &value {
                Value::Map(_) => format!("'{key}' failed: {}", comment(&value).unwrap_or("(error message N/A)".into())),
                _ => format!("'{key}': {value}"),
            }),
            Ok(value) => {
                let text = match &value {
                    Value::Map(_) => comment(&value).unwrap_or("Success".into()),
                    _ => value.to_string(),
                };
                lines.push(format!("{key}: {text}"));
                changes.insert(key.into(), value);
            }
            Err(error) => failed.push(format!("'{key}' failed: {}", error_message(error))),
        }
    }
    let succeeded = failed.is_empty();
    failed.extend(lines);
    let mut all = StateReturn::ok(name, failed.join(", ")).with_changes(changes);
    all.result = Some(succeeded);
    named(all, names)
}

fn comment(value: &Value) -> Option<String> {
    value.get("comment").map(ToString::to_string)
}

/// Returns a result whose name is the list of the called functions.
fn named(outcome: StateReturn, names: Vec<String>) -> Value {
    let mut outcome = outcome.in_order(RESULT_KEYS);
    if let Some(fields) = outcome.as_map_mut() {
        fields.insert("name".into(), names.into());
    }
    outcome
}

/// Returns the name of a function's parameter in the legacy form: names that states reserve get the prefix `m_`.
fn written(param: &'static str) -> &'static str {
    match param {
        "name" => "m_name",
        "names" => "m_names",
        "fun" => "m_fun",
        "state" => "m_state",
        "saltenv" => "m_saltenv",
        other => other,
    }
}

fn by_name(context: &StateContext, name: &str, kwargs: &Map) -> StateReturn {
    let Some(function) = context.call.minion.functions.get(name) else {
        return StateReturn::failed(name, format!("Module function {name} is not available"));
    };
    if context.test {
        return StateReturn::predicted(name, format!("Module function {name} is set to execute"));
    }
    for (key, is_right, kind) in [
        ("args", kwargs.get("args").is_none_or(|args| args.as_list().is_some()), "list"),
        ("kwargs", kwargs.get("kwargs").is_none_or(|args| args.as_map().is_some()), "dict"),
    ] {
        if !is_right {
            return StateReturn::failed(name, format!("'{key}' must be a {kind}."));
        }
    }
    let mut args = Args::default();
    for param in function.params() {
        let own = param.is_named();
        if let (true, Some(value)) = (own, kwargs.get(written(param.name))) {
            args.keyword.insert(param.name.into(), value.clone());
        }
    }
    args.positional = kwargs.get("args").and_then(Value::as_list).unwrap_or_default().to_vec();
    args.keyword.extend(kwargs.get("kwargs").and_then(Value::as_map).cloned().unwrap_or_default());
    let missing: Vec<&str> = missing(function, &args).into_iter().map(written).collect();
    if !missing.is_empty() {
        let comment = format!("The following arguments are missing: {}", missing.join(" "));
        return StateReturn::failed(name, comment);
    }
    match context.call.call_nested(name, args) {
        Ok(value) => {
            if let Some(returner) = kwargs.get("returner").and_then(Value::as_str) {
                let minion = &context.call.minion;
                let id = minion.id.as_str();
                let load = map! {"jid" => Jid::new().to_string(), "id" => id, "fun" => name, "return" => value.clone()};
                store_in(returner, &minion.config.opts, &context.call.grains(), &load);
            }
            let mut outcome = StateReturn::ok(name, format!("Module function {name} executed"));
            outcome.result = Some(!is_failure(&value));
            outcome.with_changes(map! {"ret" => value})
        }
        Err(error) => {
            let comment = format!("Module function {name} threw an exception. Exception: {}", error_message(error));
            StateReturn::failed(name, comment)
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;
    use crate::testing;

    #[test]
    fn functions_are_called_in_both_forms() {
        for (args, test, reported) in [
            (
                map! {"name" => "n", "test.echo" => list![map! {"text" => "hi"}], "test.ping" => list![]},
                false,
                "True: test.echo: hi, test.ping: True",
            ),
            (map! {"name" => "n", "test.arg" => list!["a"]}, false, "True: test.arg: Success"),
            (map! {"name" => "n", "test.echo" => list!["hi"]}, true, "None: Function test.echo to be executed."),
            (map! {"name" => "n", "no.such" => list![]}, false, "False: Unavailable function: no.such."),
            (map! {"name" => "n", "test.false" => list![]}, false, "False: 'test.false': False"),
            (map! {"name" => "n", "test.exception" => list!["oh"]}, false, "False: 'test.exception' failed: oh"),
            (map! {"name" => "test.echo", "text" => "hi"}, false, "True: Module function test.echo executed"),
            (
                map! {"name" => "test.arg", "args" => list![1], "kwargs" => map! {"a" => 2}},
                false,
                "True: Module function test.arg executed",
            ),
            (map! {"name" => "test.echo", "text" => "hi"}, true, "None: Module function test.echo is set to execute"),
            (map! {"name" => "no.such"}, false, "False: Module function no.such is not available"),
            (map! {"name" => "n", "cmd.run" => list!["echo $HOME|cat"]}, false, "True: cmd.run: $HOME|cat"),
        ] {
            let context = testing::state_context(test, &[]);
            let outcome = context.call.minion.states.call(&context, "module.run", Args::keyword(args)).unwrap();
            assert_eq!(format!("{}: {}", outcome.get("result").unwrap(), outcome.get("comment").unwrap()), reported);
        }
    }
}

//! `module`: execution functions as states.

use brine_core::function::{Args, CallError, ParamKind};
use brine_core::{Map, Value, functions, map};

use super::{StateContext, StateReturn};

functions! {
    module "module", context StateContext;

    /// Calls execution functions: either those that are keys, `- test.echo: [{text: hi}]`, or the one that
    /// is the name, with `args`, `kwargs` and its own parameters beside it.
    fn run(context, name: String, **kwargs) {
        let calls: Vec<(String, Args)> = kwargs
            .iter()
            .filter_map(|(key, given)| Some((key.as_str().filter(|key| key.contains('.'))?.to_owned(), arguments(given))))
            .collect();
        Ok(if calls.is_empty() { by_name(context, &name, &kwargs) } else { by_keys(context, &name, calls) })
    }

    /// Calls execution functions only when something watched has changed.
    fn wait(_context, name: String, **_kwargs) {
        Ok(StateReturn::ok(&name, "").into())
    }

    /// What is done when something watched has changed: the functions are called.
    fn mod_watch(context, name: String, **kwargs) {
        let mut kwargs = kwargs;
        kwargs.shift_remove("sfun");
        run(context, name, kwargs)
    }
}

/// A list of values and of mappings of names to values.
fn arguments(given: &Value) -> Args {
    let mut args = Args::default();
    let single = [given.clone()];
    for item in given.as_list().unwrap_or(&single) {
        match item {
            Value::Map(named) => args.keyword.extend(named.clone()),
            Value::Nil => {}
            value => args.positional.push(value.clone()),
        }
    }
    args
}

/// Whether a value says that its function failed.
fn is_failure(value: &Value) -> bool {
    let says_no = |key: &str| value.get(key) == Some(&Value::Bool(false));
    value == &Value::Bool(false) || says_no("result") || says_no("success")
}

fn by_keys(context: &StateContext, name: &str, calls: Vec<(String, Args)>) -> Value {
    let known = |function: &str| context.call.minion.functions.get(function).is_some();
    let missing: Vec<&str> = calls.iter().map(|(fun, _)| fun.as_str()).filter(|fun| !known(fun)).collect();
    if !missing.is_empty() {
        let plural = if missing.len() == 1 { "" } else { "s" };
        let comment = format!("Unavailable function{plural}: {}.", missing.join(", "));
        let missing: Vec<String> = missing.into_iter().map(str::to_owned).collect();
        return named(StateReturn::failed(name, comment), missing);
    }
    let names: Vec<String> = calls.iter().map(|(fun, _)| fun.clone()).collect();
    if context.test {
        let plural = if names.len() == 1 { "" } else { "s" };
        let comment = format!("Function{plural} {} to be executed.", names.join(", "));
        return named(StateReturn::would(name, comment), names);
    }
    let (mut done, mut failed, mut changes) = (Vec::new(), Vec::new(), Map::new());
    for (fun, args) in calls {
        match context.call.call(&fun, args) {
            Ok(value) if is_failure(&value) => failed.push(format!("'{fun}': {value}")),
            Ok(value) => {
                let shown = if value.as_map().is_some() { "Success".to_owned() } else { value.to_string() };
                done.push(format!("{fun}: {shown}"));
                changes.insert(fun.into(), value);
            }
            Err(CallError::Execution(message) | CallError::Exception(message)) => {
                failed.push(format!("'{fun}' failed: {message}"));
            }
            Err(error) => failed.push(format!("'{fun}' failed: {error}")),
        }
    }
    let succeeded = failed.is_empty();
    failed.extend(done);
    let mut all = StateReturn::ok(name, failed.join(", ")).with_changes(changes);
    all.result = Some(succeeded);
    named(all, names)
}

/// A result whose name is the list of functions that it is about.
fn named(done: StateReturn, names: Vec<String>) -> Value {
    let mut done = Value::from(done);
    if let Some(done) = done.as_map_mut() {
        done.insert("name".into(), names.into());
    }
    done
}

fn by_name(context: &StateContext, name: &str, kwargs: &Map) -> Value {
    let fun = name.to_owned();
    let Some(function) = context.call.minion.functions.get(&fun) else {
        return StateReturn::failed(name, format!("Module function {fun} is not available")).into();
    };
    if context.test {
        return StateReturn::would(name, format!("Module function {fun} is set to execute")).into();
    }
    for (key, is_right, kind) in [
        ("args", kwargs.get("args").is_none_or(|args| args.as_list().is_some()), "list"),
        ("kwargs", kwargs.get("kwargs").is_none_or(|args| args.as_map().is_some()), "dict"),
    ] {
        if !is_right {
            return StateReturn::failed(name, format!("'{key}' must be a {kind}.")).into();
        }
    }
    let mut args = Args::default();
    for param in function.params {
        let own = matches!(param.kind, ParamKind::Required | ParamKind::Optional(_));
        // A function's own `name` is written `m_name`, as `name` is the state's.
        let key = if param.name == "name" { "m_name" } else { param.name };
        if let (true, Some(value)) = (own, kwargs.get(key)) {
            args.keyword.insert(param.name.into(), value.clone());
        }
    }
    args.positional = kwargs.get("args").and_then(Value::as_list).unwrap_or_default().to_vec();
    args.keyword.extend(kwargs.get("kwargs").and_then(Value::as_map).cloned().unwrap_or_default());
    let required = function.params.iter().filter(|param| matches!(param.kind, ParamKind::Required));
    let missing = required.skip(args.positional.len()).filter(|param| !args.keyword.contains_key(param.name));
    let missing: Vec<&str> = missing.map(|param| param.name).collect();
    if !missing.is_empty() {
        let comment = format!("The following arguments are missing: {}", missing.join(", "));
        return StateReturn::failed(name, comment).into();
    }
    match context.call.call(&fun, args) {
        Ok(value) => {
            let mut done = StateReturn::ok(name, format!("Module function {fun} executed"));
            done.result = Some(!is_failure(&value));
            done.with_changes(map! {"ret" => value}).into()
        }
        Err(error) => {
            let message = error.to_string();
            let message = message.strip_prefix("ERROR: ").unwrap_or(&message);
            StateReturn::failed(name, format!("Module function {fun} threw an exception. Exception: {message}")).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_core::list;

    use super::*;
    use crate::testing;

    #[test]
    fn functions_are_called_by_both_styles() {
        for (args, test, told) in [
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
        ] {
            let context = testing::state_context(test, &[]);
            let done = context.call.minion.states.call(&context, "module.run", Args::keyword(args)).unwrap();
            assert_eq!(format!("{}: {}", done.get("result").unwrap(), done.get("comment").unwrap()), told);
        }
    }
}

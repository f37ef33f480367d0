//! `mine`: the mines of the minions, for the master itself.

use brine_core::function::CallError;
use brine_core::value::FromValue;
use brine_core::wire::PublishRequest;
use brine_core::{Map, Value, functions};

use super::RunnerContext;
use crate::facts::mine;

functions! {
    module "mine", context RunnerContext;

    /// Return the results of one function or several in the mines of minions. The master may read all of them.
    ///
    /// fun: a function or its alias; several separated by commas or as a list give a mapping by function.
    ///
    /// CLI Example:
    ///
    ///     salt-run mine.get '*' network.ip_addrs
    fn get(context, tgt: Value, fun: Value, tgt_type: String = "glob".into()) {
        let functions: Vec<String> = match &fun {
            Value::Str(names) => names.split(',').map(|name| name.trim().to_owned()).collect(),
            other => Vec::from_value(other).ok_or_else(|| {
                CallError::execution(format!("fun is invalid: expected a name or a list of names, got {other}"))
            })?,
        };
        let by_function = functions.len() > 1 || fun.as_list().is_some();
        let mut found = Map::new();
        for id in context.minions(tgt, tgt_type)? {
            let mut entries = context.storage().mines.get(&id).map_err(CallError::execution)?;
            for function in &functions {
                let Some(value) = entries.shift_remove(function.as_str()).and_then(mine::result) else { continue };
                if !by_function {
                    found.insert(id.as_str().into(), value);
                } else if let Value::Map(results) = found.entry(function.as_str().into()).or_insert_with(Value::map) {
                    results.insert(id.as_str().into(), value);
                }
            }
        }
        Ok(found.into())
    }

    /// Have minions update their mines, and return what each said.
    ///
    /// clear: remove what the mines hold first.
    /// mine_functions: the functions to run, in the place of the minions' own.
    ///
    /// CLI Example:
    ///
    ///     salt-run mine.update 'web*'
    fn update(context, tgt: Value, tgt_type: String = "glob".into(), clear: bool = false, mine_functions: Value = Value::Nil) {
        let mut request = PublishRequest { tgt, tgt_type, ..PublishRequest::new("*", "mine.update", &context.caller.user) };
        request.arg = vec![clear.into(), mine_functions];
        context.ask(request, None).map(Value::Map)
    }
}

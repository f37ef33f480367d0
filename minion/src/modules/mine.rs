//! `mine`: what minions tell of themselves for other minions to know. The master keeps it.

use brine_core::function::{Args, CallError};
use brine_core::{Map, Value, functions, map};

use crate::context::Context;

functions! {
    module "mine", context Context;

    /// Calls a function and puts what it returns into the mine, under its own name or, with `mine_function`, that
    /// of another one. `allow_tgt` (of type `allow_tgt_type`) says which minions may have it. Gives false if there
    /// is no such function or it fails.
    ///
    /// CLI Example:
    ///
    ///     salt '*' mine.send grains.get os
    ///     salt '*' mine.send system mine_function=grains.get os allow_tgt='web*'
    fn send(context, name: String, *args, **kwargs) {
        match entry(context, &name, args, kwargs) {
            Some(value) => tell(context, map! {name => value}, false),
            None => Ok(Value::Bool(false)),
        }
    }

    /// Puts what `mine_functions` names into the mine, or what is given in its form. `clear` takes away what was
    /// there before.
    ///
    /// CLI Example:
    ///
    ///     salt '*' mine.update
    fn update(context, clear: bool = false, mine_functions: Value = Value::Nil) {
        let configured = || context.config().opts.get("mine_functions").or(context.pillar().get("mine_functions")).cloned();
        let wanted = if mine_functions.is_truthy() { mine_functions } else { configured().unwrap_or_default() };
        let wanted: Vec<(String, Value)> = match wanted {
            Value::Map(functions) => functions.into_iter().map(|(name, given)| (name.to_string(), given)).collect(),
            Value::List(names) => names.into_iter().map(|name| (name.to_string(), Value::Nil)).collect(),
            _ => Vec::new(),
        };
        let mut data = Map::new();
        for (name, given) in wanted {
            let (args, kwargs) = arguments(given);
            if let Some(value) = entry(context, &name, args, kwargs) {
                data.insert(name.into(), value);
            }
        }
        if data.is_empty() && !clear { Ok(Value::Bool(true)) } else { tell(context, data, clear) }
    }

    /// What minions have in their mines: by minion, or by function and minion if several functions are asked for.
    ///
    /// CLI Example:
    ///
    ///     salt '*' mine.get '*' network.ip_addrs
    ///     salt '*' mine.get 'os:Fedora' network.ip_addrs grain
    fn get(context, tgt: Value, fun: Value, tgt_type: String = "glob".into(), exclude_minion: bool = false) {
        let load = map! {"cmd" => "_mine_get", "tgt" => tgt, "fun" => fun, "tgt_type" => tgt_type};
        if !context.minion.upstream.has_master() {
            // Without a master nobody keeps a mine.
            return Ok(Value::map());
        }
        let mut found = context.minion.upstream.ask(load).map_err(CallError::execution)?;
        if let (true, Value::Map(found)) = (exclude_minion, &mut found) {
            let own = context.minion.id.as_str();
            found.shift_remove(own);
            found.values_mut().filter_map(Value::as_map_mut).for_each(|of_function| _ = of_function.shift_remove(own));
        }
        Ok(found)
    }

    /// Takes a function out of this minion's mine.
    ///
    /// CLI Example:
    ///
    ///     salt '*' mine.delete grains.get
    fn delete(context, fun: String) {
        context.minion.upstream.ask(map! {"cmd" => "_mine_delete", "fun" => fun}).map_err(CallError::execution)
    }

    /// Takes away all of this minion's mine.
    ///
    /// CLI Example:
    ///
    ///     salt '*' mine.flush
    fn flush(context) {
        context.minion.upstream.ask(map! {"cmd" => "_mine_flush"}).map_err(CallError::execution)
    }
}

fn tell(context: &Context, data: Map, clear: bool) -> Result<Value, CallError> {
    let load = map! {"cmd" => "_mine", "data" => data, "clear" => clear};
    context.minion.upstream.ask(load).map_err(CallError::execution)
}

/// What goes into the mine for a function; nothing if it cannot be called.
fn entry(context: &Context, name: &str, positional: Vec<Value>, mut keyword: Map) -> Option<Value> {
    let function =
        keyword.shift_remove("mine_function").map_or_else(|| name.to_owned(), |function| function.to_string());
    let (allow, kind) = (keyword.shift_remove("allow_tgt"), keyword.shift_remove("allow_tgt_type"));
    keyword.retain(|name, _| !name.as_str().is_some_and(|name| name.starts_with("__pub_")));
    match context.call(&function, Args { positional, keyword }) {
        Ok(value) => match allow {
            None | Some(Value::Nil) => Some(value),
            Some(allow) => Some(
                map! {"__data__" => value, "__saltmine_acl__" => 1, "allow_tgt" => allow, "allow_tgt_type" => kind}
                    .into(),
            ),
        },
        Err(error) => {
            tracing::error!(function, %error, "a function of the mine could not be called");
            None
        }
    }
}

/// The arguments of a function in `mine_functions`: a list, in which one-key maps are named ones, or a mapping.
fn arguments(given: Value) -> (Vec<Value>, Map) {
    match given {
        Value::Map(keyword) => (Vec::new(), keyword),
        Value::List(items) => {
            let (mut positional, mut keyword) = (Vec::new(), Map::new());
            for item in items {
                match item {
                    Value::Map(named) => keyword.extend(named),
                    value => positional.push(value),
                }
            }
            (positional, keyword)
        }
        _ => (Vec::new(), Map::new()),
    }
}

#[cfg(test)]
mod tests {
    use brine_core::list;

    use super::*;

    #[test]
    fn arguments_are_read_in_every_form() {
        for (given, positional, keyword) in [
            (Value::Nil, vec![], map! {}),
            (list![], vec![], map! {}),
            (list!["eth0", map! {"mine_function" => "x.y"}], vec!["eth0".into()], map! {"mine_function" => "x.y"}),
            (map! {"cidr" => "10.0.0.0/8"}.into(), vec![], map! {"cidr" => "10.0.0.0/8"}),
        ] {
            assert_eq!(arguments(given), (positional, keyword));
        }
    }
}

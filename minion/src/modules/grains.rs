//! `grains`: facts about this host.

use std::path::PathBuf;
use std::sync::Arc;

use brine_core::function::CallError;
use brine_core::sls::yaml::{self, Style};
use brine_core::target::traverse;
use brine_core::{Map, Value, files, functions, map};

use crate::context::Context;

functions! {
    module "grains", context Context;

    /// All grains.
    ///
    /// CLI Example:
    ///
    ///     salt '*' grains.items
    fn items(context) {
        Ok(Value::Map((*context.grains()).clone()))
    }

    /// Some grains by name.
    ///
    /// CLI Example:
    ///
    ///     salt '*' grains.item os osrelease
    fn item(context, *args) {
        let grains = grains(context);
        let named = args.iter().map(|name| {
            let found = traverse(&grains, &name.to_string(), ":").cloned().unwrap_or_else(|| "".into());
            (name.clone(), found)
        });
        Ok(Value::Map(named.collect()))
    }

    /// The grain at a path such as `ip4_interfaces:eth0`, or the default.
    ///
    /// CLI Example:
    ///
    ///     salt '*' grains.get pkg:apache
    fn get(context, key: String, default: Value = "".into(), delimiter: String = ":".into()) {
        Ok(traverse(&grains(context), &key, &delimiter).cloned().unwrap_or(default))
    }

    /// The names of all grains.
    ///
    /// CLI Example:
    ///
    ///     salt '*' grains.ls
    fn ls(context) {
        let mut names: Vec<String> = context.grains().keys().map(ToString::to_string).collect();
        names.sort();
        Ok(names.into())
    }

    /// Whether there is a grain that says something.
    ///
    /// CLI Example:
    ///
    ///     salt '*' grains.has_value pkg:apache
    fn has_value(context, key: String) {
        Ok(traverse(&grains(context), &key, ":").is_some_and(Value::is_truthy).into())
    }

    /// Whether a grain is equal to a value.
    ///
    /// CLI Example:
    ///
    ///     salt '*' grains.equals fqdn host.example.org
    fn equals(context, key: String, value: Value) {
        Ok(traverse(&grains(context), &key, ":").is_some_and(|have| have.to_string() == value.to_string()).into())
    }

    /// Chooses from a mapping by a grain: `{'Debian': .., 'RedHat': .., 'default': ..}`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' grains.filter_by '{Debian: Debheads rule, RedHat: I love my hat}'
    fn filter_by(context, lookup_dict: Map, grain: String = "os_family".into(), merge: Value = Value::Nil, default: Value = "default".into(), base: Value = Value::Nil) {
        let value = traverse(&grains(context), &grain, ":").map(ToString::to_string);
        let by_value = value.as_ref().and_then(|value| {
            let exact = lookup_dict.get(value.as_str());
            exact.or_else(|| lookup_dict.iter().find(|(key, _)| brine_core::glob::fnmatch(&key.to_string(), value)).map(|(_, found)| found))
        });
        let mut chosen = by_value.or_else(|| lookup_dict.get(&default)).cloned().unwrap_or_default();
        if let Some(Value::Map(mut under)) = lookup_dict.get(&base).filter(|_| base.is_truthy()).cloned() {
            if let Value::Map(over) = &chosen {
                brine_core::sls::pillar::merge(&mut under, over);
            }
            chosen = under.into();
        }
        // What is nothing, as an empty text, merges nothing.
        if merge.is_truthy() {
            let Value::Map(over) = merge else {
                return Err(CallError::Execution("filter_by merge argument must be a dictionary.".into()));
            };
            let mut merged = chosen.as_map().cloned().unwrap_or_default();
            brine_core::sls::pillar::merge(&mut merged, &over);
            chosen = merged.into();
        }
        Ok(chosen)
    }

    /// Sets a grain, for good.
    ///
    /// CLI Example:
    ///
    ///     salt '*' grains.setval key val
    fn setval(context, key: String, val: Value) {
        change(context, |own| _ = own.insert(key.as_str().into(), val.clone()))?;
        Ok(map! {key.as_str() => val.clone()}.into())
    }

    /// Sets a grain that was set by hand to nothing.
    ///
    /// CLI Example:
    ///
    ///     salt '*' grains.delval key
    fn delval(context, key: String) {
        change(context, |own| _ = own.insert(key.as_str().into(), Value::Nil))?;
        Ok(map! {key.as_str() => Value::Nil}.into())
    }

    /// Removes a grain that was set by hand.
    ///
    /// CLI Example:
    ///
    ///     salt '*' grains.delkey key
    fn delkey(context, key: String) {
        change(context, |own| _ = own.shift_remove(key.as_str()))?;
        Ok(map! {key.as_str() => Value::Nil}.into())
    }

    /// Adds to a grain that is a list.
    ///
    /// CLI Example:
    ///
    ///     salt '*' grains.append roles web
    fn append(context, key: String, val: Value) {
        let mut list = match traverse(&grains(context), &key, ":") {
            Some(Value::List(list)) => list.clone(),
            Some(_) => return Ok(format!("The key {key} is not a valid list").into()),
            None => Vec::new(),
        };
        if list.contains(&val) {
            return Ok(format!("The val {val} was already in the list {key}").into());
        }
        list.push(val);
        setval(context, key, list.into())
    }

    /// Removes from a grain that is a list.
    ///
    /// CLI Example:
    ///
    ///     salt '*' grains.remove roles web
    fn remove(context, key: String, val: Value) {
        let mut list = match traverse(&grains(context), &key, ":") {
            Some(Value::List(list)) => list.clone(),
            _ => return Ok(format!("The key {key} is not a valid list").into()),
        };
        let Some(at) = list.iter().position(|have| *have == val) else {
            return Ok(format!("The val {val} was not in the list {key}").into());
        };
        list.remove(at);
        setval(context, key, list.into())
    }
}

fn grains(context: &Context) -> Value {
    Value::Map((*context.grains()).clone())
}

/// The file that holds the grains set by hand.
fn own_file(context: &Context) -> PathBuf {
    context.config().config_dir.join("grains")
}

/// Changes the grains set by hand, on disk and as they are in use.
fn change(context: &Context, change: impl FnOnce(&mut Map)) -> Result<(), CallError> {
    let path = own_file(context);
    let text = files::read_if_exists(&path).map_err(CallError::execution)?.unwrap_or_default();
    let mut own =
        match yaml::load(&text).map_err(|error| CallError::Execution(format!("{}: {error}", path.display())))? {
            Value::Map(own) => own,
            _ => Map::new(),
        };
    let before: Vec<Value> = own.keys().cloned().collect();
    change(&mut own);
    let written = yaml::dump(&Value::Map(own.clone()), Style::BLOCK);
    files::write_atomic(&path, written.as_bytes(), 0o644).map_err(CallError::execution)?;
    let mut all = (*context.grains()).clone();
    for gone in before.iter().filter(|key| !own.contains_key(*key)) {
        all.shift_remove(gone);
    }
    all.extend(own);
    *context.minion.grains.write() = Arc::new(all);
    Ok(())
}

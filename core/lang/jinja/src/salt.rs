//! `salt` in templates: functions of the host, called as in Python.

use std::fmt;
use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_value::{Map, Value};
use minijinja::value::{Object, ObjectRepr, Value as JinjaValue, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::behaviour::{Behaviour, MayBeUndefined, Origin};
use super::data::{Dict, Tree, from_jinja, like, refuse_undefined, split_args, split_kwargs, to_jinja, to_ordered};
use super::host::Host;
use super::limits;
use super::messages::{SALT_FUNCTION, missing_function, missing_in_module};

/// Arguments that name an environment.
const ENVIRONMENTS: [&str; 2] = ["saltenv", "pillarenv"];

/// `salt` in templates: `salt['mod.fun']` is a function, `salt.mod` a module.
pub(super) struct Salt(pub Host);

impl fmt::Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<salt functions>")
    }
}

impl Object for Salt {
    fn get_value(self: &Arc<Self>, key: &JinjaValue) -> Option<JinjaValue> {
        let name = key.as_str()?;
        let host = self.0.clone();
        if !name.contains('.') {
            if !host.has_module(name) {
                return None;
            }
            return Some(JinjaValue::from_object(LoadedModule { host, name: name.to_owned() }));
        }
        self.0.has(name).then(|| JinjaValue::from_object(Function { host, name: name.to_owned() }))
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        args: &[JinjaValue],
    ) -> Result<JinjaValue, Error> {
        // `salt.get('mod.fun', default)`, as with any mapping; everything else is a module.
        let (positional, _) = split_args(args)?;
        match (method, positional.as_slice()) {
            ("get", [name, rest @ ..]) => {
                let default = rest.first().cloned().unwrap_or_else(|| JinjaValue::from(()));
                Ok(self.get_value(name).unwrap_or(default))
            }
            _ => Err(missing_function(method)),
        }
    }
}

/// `salt.mod` in templates.
pub(super) struct LoadedModule {
    host: Host,
    name: String,
}

impl fmt::Debug for LoadedModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<LoadedMod module='salt.loaded.{}'>", self.name)
    }
}

impl Object for LoadedModule {
    fn get_value(self: &Arc<Self>, key: &JinjaValue) -> Option<JinjaValue> {
        let name = format!("{}.{}", self.name, key.as_str()?);
        self.host.has(&name).then(|| JinjaValue::from_object(Function { host: self.host.clone(), name }))
    }

    fn call_method(
        self: &Arc<Self>,
        state: &mut State<'_, '_>,
        method: &str,
        args: &[JinjaValue],
    ) -> Result<JinjaValue, Error> {
        let name = format!("{}.{method}", self.name);
        if self.host.has(&name) {
            return call(state, &self.host, &name, args);
        }
        Err(if self.host.has_module(&self.name) { missing_in_module(method) } else { missing_function(&self.name) })
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// One function.
pub(super) struct Function {
    host: Host,
    name: String,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<LoadedFunc name='{}'>", self.name)
    }
}

impl Object for Function {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[JinjaValue]) -> Result<JinjaValue, Error> {
        call(state, &self.host, &self.name, args)
    }
}

fn call(state: &State<'_, '_>, host: &Host, name: &str, args: &[JinjaValue]) -> Result<JinjaValue, Error> {
    // Counts the steps so far, before the function may start a render inside of this one.
    limits::check_fuel(state)?;
    let behaviour = host.behaviour(name);
    refuse_undefined_arguments(behaviour.undefined, args)?;
    let (positional, keyword) = split_args(args)?;
    if let Some(value) = host.tree(name).and_then(|tree| looked_up(tree, &positional, &keyword)) {
        return Ok(value);
    }
    let changed = if behaviour.changes_first && keyword.get("in_place").is_none_or(Value::is_truthy) {
        first(&positional, args)?
    } else {
        None
    };
    let arguments = Args { positional: positional.iter().map(from_jinja).collect(), keyword };
    limits::check()?;
    let value = host.call(name, arguments);
    limits::check()?;
    let value = value.map_err(|error| Error::new(ErrorKind::InvalidOperation, message(name, error)))?;
    let result =
        if behaviour.is_ordered { to_ordered(&value) } else { like(&value, &origins(host, name, &behaviour, args)?) };
    match (changed, &value) {
        (Some(changed), Value::Map(_)) => {
            changed.overlay(&result);
            Ok(JinjaValue::from_dyn_object(changed))
        }
        // Undefined arguments are passed as null. If the function returns null, the first of them is returned as
        // undefined.
        (_, Value::Nil) => Ok(undefined(&positional, args)?.unwrap_or(result)),
        _ => Ok(result),
    }
}

/// Returns the value that a function such as `pillar.get` finds, shared with other templates. Calls with further
/// options, such as merging a default, are left to the function.
fn looked_up(tree: &Tree, positional: &[JinjaValue], keyword: &Map) -> Option<JinjaValue> {
    let path = match positional {
        [path] | [path, _] => path.as_str()?,
        _ => return None,
    };
    let mut delimiter = ":";
    for (name, value) in keyword {
        match (name.as_str()?, value) {
            ("delimiter", Value::Str(string)) => delimiter = string.as_str(),
            ("default" | "unmask" | "merge_nested_lists", _)
            | ("merge", Value::Nil | Value::Bool(false))
            | ("saltenv" | "pillarenv", Value::Nil)
            | ("ordered", Value::Bool(true)) => {}
            _ => return None,
        }
    }
    tree.at(path, delimiter).filter(|value| !value.is_none())
}

/// Returns the values that determine the types of mappings in a function's result: the first value with a mapping at
/// the same path decides.
fn origins(host: &Host, name: &str, behaviour: &Behaviour, args: &[JinjaValue]) -> Result<Vec<JinjaValue>, Error> {
    if behaviour.origins.is_empty() {
        return Ok(Vec::new());
    }
    let (positional, keyword) = split_kwargs(args)?;
    let argument = |index: usize, named: &str| {
        let keyword = || keyword.iter().find(|(name, _)| name == named).map(|(_, value)| value);
        positional.get(index).or_else(keyword).cloned()
    };
    let at_key = || host.pillar()?.at(argument(0, "key")?.as_str()?, ":");
    let mut origins = Vec::new();
    for origin in behaviour.origins {
        match *origin {
            Origin::Argument(index, named) => origins.extend(argument(index, named)),
            Origin::Pillar => origins.extend(host.pillar().map(Tree::value)),
            Origin::PillarAtKey => origins.extend(at_key()),
            Origin::Merged(index, named) => {
                if let Some(merged) = argument(index, named).filter(|merged| merged.kind() == ValueKind::Map) {
                    origins.extend(without(host, name, (index, named), args)?);
                    origins.push(merged);
                }
            }
        }
    }
    Ok(origins)
}

/// Calls a function without one of its arguments, and returns its result; `None` if it fails or returns nil.
fn without(
    host: &Host,
    name: &str,
    (index, named): (usize, &str),
    args: &[JinjaValue],
) -> Result<Option<JinjaValue>, Error> {
    let (positional, mut keyword) = split_args(args)?;
    let mut positional: Vec<Value> = positional.iter().map(from_jinja).collect();
    keyword.shift_remove(named);
    if let Some(argument) = positional.get_mut(index) {
        *argument = Value::Nil;
    }
    let result = host.call(name, Args { positional, keyword }).ok();
    Ok(result.filter(|value| !value.is_nil()).map(|value| to_jinja(&value)))
}

/// Returns the message for a failed call; errors that Python itself raises are worded as Python does.
fn message(name: &str, error: CallError) -> String {
    match error {
        CallError::Arguments { message, .. } | CallError::Exception(message) => message,
        CallError::Invocation { message, .. } => {
            let unknown = message.strip_prefix("The following keyword arguments are not valid: ");
            match unknown.and_then(|unknown| unknown.split_once('=')) {
                Some((unknown, _)) => {
                    let name = name.rsplit('.').next().unwrap_or(name);
                    format!("{name}() got an unexpected keyword argument '{unknown}'")
                }
                None => format!("{SALT_FUNCTION}{message}"),
            }
        }
        CallError::Execution(message) => format!("{SALT_FUNCTION}{message}"),
        CallError::NotAvailable(_) => format!("{SALT_FUNCTION}{error}"),
    }
}

/// Refuses undefined arguments that the function does not accept.
fn refuse_undefined_arguments(allowed: MayBeUndefined, args: &[JinjaValue]) -> Result<(), Error> {
    let default = match allowed {
        MayBeUndefined::All => return Ok(()),
        MayBeUndefined::Default(index) => Some(index),
        MayBeUndefined::None => None,
    };
    let (positional, keyword) = split_kwargs(args)?;
    for (index, value) in positional.iter().enumerate() {
        if default != Some(index) {
            refuse_undefined(value)?;
        }
    }
    for (named, value) in &keyword {
        if !(ENVIRONMENTS.contains(&named.as_str()) || default.is_some() && named == "default") {
            refuse_undefined(value)?;
        }
    }
    Ok(())
}

/// Returns the first undefined argument.
fn undefined(positional: &[JinjaValue], args: &[JinjaValue]) -> Result<Option<JinjaValue>, Error> {
    let (_, keyword) = split_kwargs(args)?;
    let mut all = positional.iter().chain(keyword.iter().map(|(_, value)| value));
    Ok(all.find(|value| value.is_undefined()).cloned())
}

/// Returns the first argument, by position or as `dest`, if it is a mapping.
fn first(positional: &[JinjaValue], args: &[JinjaValue]) -> Result<Option<Arc<Dict>>, Error> {
    let (_, keyword) = split_kwargs(args)?;
    let named = || keyword.iter().find(|(name, _)| name == "dest").map(|(_, value)| value);
    Ok(positional.first().or_else(named).and_then(JinjaValue::downcast_object::<Dict>))
}

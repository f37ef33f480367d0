//! The structure check of high data.

use brine_value::python::ordered_str;
use brine_value::{Map, Value};

use super::high::text;
use super::is_dunder;
use super::requisite::RequisiteKind;

/// Returns all structural errors, state by state, in Salt's wording.
pub(super) fn check(states: &Map) -> Vec<String> {
    let mut errors = Vec::new();
    for (id, body) in states.iter().filter(|(id, _)| !is_dunder(id)) {
        let place = Location { id: id.to_string(), sls: text(body, "__sls__") };
        if id.as_str().is_none() {
            errors.push(format!(
                "ID '{id}' in SLS '{}' is not formed as a string, but is type {}. It may need to be quoted.",
                place.sls,
                id.type_name()
            ));
        }
        let Value::Map(body) = body else {
            let body = ordered_str(body);
            errors.push(format!("The type {id} in {body} is not formatted as a dictionary"));
            continue;
        };
        for (state, arguments) in body.iter().filter(|(state, _)| !is_dunder(state)) {
            place.state(&state.to_string(), arguments, &mut errors);
        }
    }
    errors
}

/// The location of an error.
struct Location {
    id: String,
    sls: String,
}

impl Location {
    fn state(&self, state: &str, arguments: &Value, errors: &mut Vec<String>) {
        let Location { id, sls } = self;
        let arguments = match arguments {
            Value::List(arguments) => arguments,
            Value::Nil => {
                return errors.push(format!(
                    "ID '{id}' in SLS '{sls}' contains a short declaration ({state}) with a trailing colon. When not passing any arguments to a state, the colon must be omitted."
                ));
            }
            _ => return errors.push(format!("State '{id}' in SLS '{sls}' is not formed as a list")),
        };
        let mut functions: Vec<&str> = state.split_once('.').map(|(_, function)| function).into_iter().collect();
        for argument in arguments {
            match argument {
                Value::Str(function) => {
                    functions.push(function);
                    if function.trim().contains(' ') {
                        errors.push(format!(
                            "The function \"{function}\" in state \"{id}\" in SLS \"{sls}\" has whitespace, a function with whitespace is not supported, perhaps this is an argument that is missing a \":\""
                        ));
                    }
                }
                Value::Map(argument) => self.argument(argument, errors),
                _ => {}
            }
        }
        match functions[..] {
            [] => errors.push(format!("No function declared in state '{id}' in SLS '{sls}'")),
            [_] => {}
            _ => errors.push(format!(
                "Too many functions declared in state '{id}' in SLS '{sls}'. Please choose one of the following: {}",
                functions.join(", ")
            )),
        }
    }

    fn argument(&self, argument: &Map, errors: &mut Vec<String>) {
        let Location { id, sls } = self;
        let Some((name, value)) = argument.first() else { return };
        let list = value.as_list();
        if name.as_str() == Some("names") && list.is_none() {
            errors.push(format!("The 'names' argument in state '{id}' in SLS '{sls}' needs to be formed as a list"));
        }
        if name.as_str() == Some("names") {
            list.into_iter().flatten().filter_map(Value::as_map).for_each(|entry| self.own_arguments(entry, errors));
        }
        let is_requisite = |name: &str| RequisiteKind::parse(name).is_some() || name == "onfail_stop";
        if !name.as_str().is_some_and(is_requisite) {
            return;
        }
        match list {
            None => {
                errors
                    .push(format!("The {name} statement in state '{id}' in SLS '{sls}' needs to be formed as a list"));
            }
            Some(items) => items.iter().for_each(|item| self.requisite(item, errors)),
        }
        if argument.len() != 1 {
            errors.push(format!("Multiple dictionaries defined in argument of state '{id}' in SLS '{sls}'"));
        }
    }

    /// Checks an entry of `names` with arguments of its own. Salt ends with an exception where they are no list.
    fn own_arguments(&self, entry: &Map, errors: &mut Vec<String>) {
        let is_list = |arguments: &Value| match arguments {
            Value::List(items) => items.iter().all(|item| matches!(item, Value::Map(_))),
            other => other.is_nil(),
        };
        if let Some((name, _)) = entry.first().filter(|(_, arguments)| !is_list(arguments)) {
            let Location { id, sls } = self;
            errors.push(format!(
                "The arguments of the name '{name}' in state '{id}' in SLS '{sls}' need to be formed as a list of \
                 mappings"
            ));
        }
    }

    fn requisite(&self, item: &Value, errors: &mut Vec<String>) {
        let Location { id, sls } = self;
        let (module, name) = match item {
            Value::Str(_) => return,
            Value::Map(map) if map.len() == 1 => match map.first() {
                Some((module, name)) => (module.to_string(), name),
                None => return,
            },
            other => {
                let other = ordered_str(other);
                return errors.push(format!(
                    "Requisite declaration {other} in state {id} in SLS {sls} is not formed as a single key dictionary"
                ));
            }
        };
        if let Some((short, _)) = module.split_once('.') {
            errors.push(format!(
                "Invalid requisite type '{module}' in state '{id}', in SLS '{sls}'. Requisite types must not contain dots, did you mean '{short}'?"
            ));
        }
        if matches!(name, Value::List(_) | Value::Map(_)) {
            let name = ordered_str(name);
            errors.push(format!("Illegal requisite \"{name}\" in SLS \"{sls}\", please check your syntax.\n"));
        }
    }
}

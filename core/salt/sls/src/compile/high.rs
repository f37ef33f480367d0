//! High data: all states by id in canonical form, with the `extend` and `exclude` declarations.

use brine_value::python::ordered_str;
use brine_value::{Map, Value};

use super::is_dunder;

/// The merged data of SLS files.
///
/// Each state has the canonical form `{module: [arguments.., function], __sls__: .., __env__: ..}`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HighData {
    /// The states by id.
    pub states: Map,
    /// Ids with their extensions.
    pub extend: Vec<(Value, Value)>,
    /// Excluded SLS files and ids: a name or glob of an SLS, `{sls: ..}` or `{id: ..}`.
    pub exclude: Vec<Value>,
    /// The next order number, counted in the order of parsing.
    next_order: i64,
    /// The numbers of states shown before `extend` and before `exclude`: the states of all SLS files before the first
    /// with such a declaration.
    shown_before: [Option<usize>; 2],
}

/// The first order number for states without `order`.
const FIRST_ORDER: i64 = 10_000;

impl HighData {
    /// Returns the structural errors, in Salt's wording.
    pub fn errors(&self) -> Vec<String> {
        super::verify::check(&self.states)
    }

    /// Creates empty high data.
    pub fn new() -> Self {
        HighData { next_order: FIRST_ORDER, ..HighData::default() }
    }

    /// Reads data that does not come from named SLS files: `state.high`, `state.template_str`. Includes are not
    /// followed. Returns the data and the errors.
    pub fn from_data(data: &Value, sls: &str, saltenv: &str) -> (Self, Vec<String>) {
        let (mut high, mut errors) = (HighData::new(), Vec::new());
        match data {
            Value::Map(data) => {
                let mut part = Part::read(data.clone(), sls, saltenv, &mut errors);
                // As in Salt, states without an SLS get no order number, and run in the order of their names.
                if !sls.is_empty() {
                    high.number(&mut part.states);
                }
                high.merge(part, &mut errors);
            }
            data if data.is_truthy() => errors.push("High data is not a dictionary and is invalid".to_owned()),
            _ => {}
        }
        (high, errors)
    }

    /// Returns the data in the form of `state.show_sls`.
    pub fn to_value(&self) -> Value {
        let extend = self.extend.iter().map(|(id, body)| Value::Map(brine_value::map! {id.clone() => body.clone()}));
        let lists = [("__extend__", extend.collect()), ("__exclude__", self.exclude.clone())];
        let mut map = Map::new();
        for place in 0..=self.states.len() {
            for ((key, list), before) in lists.iter().zip(self.shown_before) {
                let list: &Vec<Value> = list;
                if !list.is_empty() && before.unwrap_or(0) == place {
                    map.insert((*key).into(), list.clone().into());
                }
            }
            map.extend(self.states.get_index(place).map(|(id, body)| (id.clone(), body.clone())));
        }
        map.into()
    }

    /// Numbers the states that have no order, in the order of parsing.
    pub(super) fn number(&mut self, states: &mut Map) {
        let bodies = states.values_mut().filter_map(Value::as_map_mut);
        for (key, list) in bodies.flatten() {
            let Value::List(list) = list else { continue };
            if key.as_str().is_none_or(|key| key.starts_with('_')) {
                continue;
            }
            let ordered = list.iter().any(|arg| first_key(arg).and_then(Value::as_str) == Some("order"));
            if !ordered {
                list.push(brine_value::map! {"order" => self.next_order}.into());
                self.next_order += 1;
            }
        }
    }

    /// Merges the states of one SLS. Ids must be new.
    pub(super) fn merge(&mut self, part: Part, errors: &mut Vec<String>) {
        for (before, is_empty) in self.shown_before.iter_mut().zip([part.extend.is_empty(), part.exclude.is_empty()]) {
            if !is_empty {
                before.get_or_insert(self.states.len());
            }
        }
        for extension in part.extend {
            // The same extension may be included more than once.
            if !self.extend.contains(&extension) {
                self.extend.push(extension);
            }
        }
        self.exclude.extend(part.exclude);
        merge_states(&mut self.states, part.states, errors);
    }
}

/// The data of one SLS, with its includes.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub states: Map,
    pub extend: Vec<(Value, Value)>,
    pub exclude: Vec<Value>,
}

impl Part {
    /// Parses the data of one SLS, without its includes.
    pub fn read(mut data: Map, sls: &str, saltenv: &str, errors: &mut Vec<String>) -> Self {
        let mut part = Part::default();
        match data.shift_remove("extend") {
            None => {}
            Some(Value::Map(extend)) => {
                for (id, body) in extend {
                    let Value::Map(mut body) = body else {
                        errors.push(format!("Extension name '{id}' in SLS '{sls}' is not a dictionary"));
                        continue;
                    };
                    add_origin(&mut body, sls, saltenv);
                    split_functions(&mut body, None, errors);
                    part.extend.push((id, body.into()));
                }
            }
            Some(_) => errors.push(format!("Extension value in SLS '{sls}' is not a dictionary")),
        }
        match data.shift_remove("exclude") {
            None => {}
            Some(Value::List(items)) => part.exclude = items,
            Some(_) => errors.push(format!("Exclude Declaration in SLS {sls} is not formed as a list")),
        }
        for (id, body) in data {
            let body = normal(&id, body, sls, saltenv, errors);
            part.states.insert(id, body);
        }
        part
    }
}

/// Returns the body of an id in canonical form. An invalid body is left unchanged, and the structure check reports it.
fn normal(id: &Value, body: Value, sls: &str, saltenv: &str, errors: &mut Vec<String>) -> Value {
    match body {
        Value::Map(mut body) => {
            split_functions(&mut body, Some((id, sls)), errors);
            add_origin(&mut body, sls, saltenv);
            body.into()
        }
        // `id: module.function`
        Value::Str(short) if short.contains('.') => {
            let mut words = short.split('.');
            let (module, function) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            brine_value::map! {"__sls__" => sls, "__env__" => saltenv, module => brine_value::list![function]}.into()
        }
        odd => {
            errors.push(format!("ID {id} in SLS {sls} is not a dictionary"));
            odd
        }
    }
}

/// Converts `module.function: [arguments]` to `module: [arguments, function]`. The structure check reports arguments
/// that are not a list.
fn split_functions(body: &mut Map, reported_as: Option<(&Value, &str)>, errors: &mut Vec<String>) {
    let mut seen: Vec<String> = Vec::new();
    for key in body.keys().cloned().collect::<Vec<_>>() {
        let name = key.to_string();
        if name.starts_with('_') || body.get(&key).and_then(Value::as_list).is_none() {
            continue;
        }
        let Some((module, rest)) = name.split_once('.') else {
            seen.push(name);
            continue;
        };
        if let Some((id, sls)) = reported_as
            && seen.iter().any(|have| have == module)
        {
            errors.push(format!("ID '{id}' in SLS '{sls}' contains multiple state declarations of the same type"));
            continue;
        }
        if let Some(Value::List(mut arguments)) = body.shift_remove(&key) {
            arguments.push(rest.split('.').next().unwrap_or_default().into());
            body.shift_remove(module);
            body.insert(module.into(), arguments.into());
        }
        seen.push(module.to_owned());
    }
}

fn add_origin(body: &mut Map, sls: &str, saltenv: &str) {
    for (key, value) in [("__sls__", sls), ("__env__", saltenv)] {
        if !body.contains_key(key) {
            body.insert(key.into(), value.into());
        }
    }
}

/// Merges states; a duplicate id is an error unless both bodies are equal.
pub(super) fn merge_states(into: &mut Map, states: Map, errors: &mut Vec<String>) {
    for (id, body) in states {
        if let Some(have) = into.get(&id).filter(|have| **have != body && !is_dunder(&id)) {
            let origin = |body: &Value| format!("{}:{}", text(body, "__env__"), text(body, "__sls__"));
            errors.push(format!(
                "Detected conflicting IDs, SLS IDs need to be globally unique.\n    The conflicting ID is '{id}' and is found in SLS '{}' and SLS '{}'",
                origin(have),
                origin(&body)
            ));
        }
        into.insert(id, body);
    }
}

/// Returns the error for an SLS that does not render to a mapping.
pub(super) fn not_a_mapping(sls: &str, data: &Value) -> [String; 2] {
    [
        format!("SLS {sls} does not render to a dictionary"),
        format!("Error when rendering state with contents: {}", ordered_str(data)),
    ]
}

/// Returns the string under a key of a state's body.
pub(super) fn text(body: &Value, key: &str) -> String {
    body.get(key).map(ToString::to_string).unwrap_or_default()
}

/// Returns the first key of an argument: its name.
pub(super) fn first_key(argument: &Value) -> Option<&Value> {
    argument.as_map().and_then(Map::first).map(|(key, _)| key)
}

/// Returns the states of a body: module and arguments.
pub(super) fn states_of(body: &Value) -> impl Iterator<Item = (&str, &Value)> {
    body.as_map()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str()?, value)))
        .filter(|(key, _)| !key.starts_with("__"))
}

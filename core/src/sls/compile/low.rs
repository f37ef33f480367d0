//! Low chunks: one call of a state function each, in the order in which they run.

use std::collections::HashMap;

use super::high::{HighData, is_dunder};
use super::order;
use super::requisite::{Reference, Requisite, RequisiteKind, take_all};
use crate::value::{Map, Value};

/// One call of a state function.
#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    /// The state module, such as `file`.
    pub state: String,
    /// The function, such as `managed`.
    pub fun: String,
    /// The id that the state has in its SLS.
    pub id: String,
    /// What the state is about; the id if nothing else is said.
    pub name: String,
    /// The SLS that the state is from.
    pub sls: String,
    /// The environment that the SLS is from.
    pub saltenv: String,
    /// The SLS files that include that one.
    pub included_from: Vec<String>,
    /// Its place among the others, before requisites.
    pub order: f64,
    /// The arguments, without requisites.
    pub args: Map,
    /// What it says about other states.
    pub requisites: Vec<Requisite>,
}

impl Chunk {
    /// What the return of this chunk is called: `file_|-id_|-name_|-managed`.
    pub fn tag(&self) -> String {
        format!("{}_|-{}_|-{}_|-{}", self.state, self.id, self.name, self.fun)
    }

    /// The chunk as `state.show_lowstate` shows it.
    pub fn to_value(&self) -> Value {
        let mut map = crate::map! {
            "state" => &self.state,
            "name" => &self.name,
            "__sls__" => &self.sls,
            "__env__" => &self.saltenv,
        };
        if !self.included_from.is_empty() {
            map.insert("__sls_included_from__".into(), self.included_from.clone().into());
        }
        map.insert("__id__".into(), (&self.id).into());
        map.extend(self.args.clone());
        let mut requisites: Vec<(String, Vec<Value>)> = Vec::new();
        for requisite in &self.requisites {
            let Reference { module, name } = &requisite.reference;
            let item = if module == "id" { Value::from(name) } else { crate::map! {module => name}.into() };
            let kind = requisite.kind.name().to_owned();
            match requisites.iter_mut().find(|(have, _)| *have == kind) {
                Some((_, items)) => items.push(item),
                None => requisites.push((kind, vec![item])),
            }
        }
        map.extend(requisites.into_iter().map(|(kind, items)| (kind.into(), items.into())));
        let order = if self.order.fract() == 0.0 { Value::Int(self.order as i64) } else { self.order.into() };
        map.insert("order".into(), order);
        map.insert("fun".into(), (&self.fun).into());
        map.into()
    }
}

/// Compiles high data. All errors are told, in Salt's words.
pub fn compile(mut high: HighData) -> Result<Vec<Chunk>, Vec<String>> {
    let mut errors = std::mem::take(&mut high.errors);
    apply_requisites_in(&mut high, &mut errors);
    errors.append(&mut high.errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut included: HashMap<&str, Vec<String>> = HashMap::new();
    for (sls, by) in &high.included_from {
        included.entry(sls).or_default().push(by.clone());
    }
    let (mut chunks, mut auto_order) = (Vec::new(), 10_000.0);
    for (id, body) in &high.states {
        let Some(body) = body.as_map() else { continue };
        let text = |key: &str| body.get(key).map(ToString::to_string).unwrap_or_default();
        let (sls, saltenv) = (text("__sls__"), text("__env__"));
        for (state, list) in body.iter().filter(|(key, _)| !is_dunder(key)) {
            let base = Chunk {
                state: state.to_string(),
                fun: String::new(),
                id: id.to_string(),
                name: id.to_string(),
                included_from: included.get(sls.as_str()).cloned().unwrap_or_default(),
                sls: sls.clone(),
                saltenv: saltenv.clone(),
                order: auto_order,
                args: Map::new(),
                requisites: Vec::new(),
            };
            match chunks_of(base, list.as_list().unwrap_or_default()) {
                Ok(mut found) => chunks.append(&mut found),
                Err(error) => errors.push(error),
            }
            auto_order += 1.0;
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    order::resolve(&mut chunks);
    order::sort(chunks)
}

/// The chunks of one state: several if it has `names`.
fn chunks_of(mut base: Chunk, list: &[Value]) -> Result<Vec<Chunk>, String> {
    let mut names: Option<Vec<Value>> = None;
    for item in list {
        match item {
            Value::Str(function) => base.fun.clone_from(function),
            Value::Map(map) => {
                for (key, value) in map {
                    match (key.as_str(), value) {
                        (Some("names"), Value::List(list)) => names = Some(list.clone()),
                        (Some("names"), _) => {
                            return Err(format!(
                                "The 'names' argument in state '{}' in SLS '{}' needs to be formed as a list",
                                base.id, base.sls
                            ));
                        }
                        (Some("name"), Value::Str(name)) => base.name.clone_from(name),
                        // A name that is no text, and a state's own name, are not arguments.
                        (Some("name" | "state"), _) => {}
                        (Some("order"), order) => base.order = order::parse(order, base.order),
                        _ => _ = base.args.insert(key.clone(), value.clone()),
                    }
                }
            }
            _ => {}
        }
    }
    base.requisites = take_all(&mut base.args, &base.id, &base.sls)?;
    let Some(names) = names else { return Ok(vec![base]) };
    let mut chunks: Vec<Chunk> = Vec::new();
    for name in &names {
        let mut chunk = base.clone();
        match name {
            Value::Map(map) => {
                if let Some((name, args)) = map.first() {
                    chunk.name = name.to_string();
                    let more = args.as_list().unwrap_or_default().iter().filter_map(Value::as_map);
                    chunk.args.extend(more.flat_map(|map| map.iter().map(|(key, value)| (key.clone(), value.clone()))));
                }
            }
            plain => chunk.name = plain.to_string(),
        }
        if chunks.iter().all(|have| have.name != chunk.name) {
            chunk.order += chunks.len() as f64 * 0.0001;
            chunks.push(chunk);
        }
    }
    Ok(chunks)
}

/// Turns `require_in` and its like into the requisites of the states that they name.
fn apply_requisites_in(high: &mut HighData, errors: &mut Vec<String>) {
    let mut additions: Vec<(String, Map, String)> = Vec::new();
    for (id, body) in &mut high.states {
        let Some(body) = body.as_map_mut() else { continue };
        let sls = body.get("__sls__").map(ToString::to_string).unwrap_or_default();
        for (state, list) in body.iter_mut() {
            let Value::List(list) = list else { continue };
            let own = crate::map! {state.clone() => id.clone()};
            for map in list.iter_mut().filter_map(Value::as_map_mut) {
                let inner: Vec<Value> = map
                    .keys()
                    .filter(|key| key.as_str().is_some_and(|key| RequisiteKind::parse_in(key).is_some()))
                    .cloned()
                    .collect();
                for key in inner {
                    let Some(kind) = key.as_str().and_then(RequisiteKind::parse_in) else { continue };
                    let items = match map.shift_remove(&key) {
                        Some(Value::List(items)) => items,
                        Some(one) => vec![one],
                        None => continue,
                    };
                    for item in &items {
                        match Reference::from_value(item) {
                            Ok(Some(reference)) => {
                                let list = Value::List(vec![
                                    crate::map! {kind.name() => Value::List(vec![own.clone().into()])}.into(),
                                ]);
                                additions.push((reference.name, crate::map! {reference.module => list}, sls.clone()));
                            }
                            Ok(None) => {}
                            Err(error) => errors.push(error),
                        }
                    }
                }
            }
            list.retain(|item| item.as_map().is_none_or(|map| !map.is_empty()));
        }
    }
    for (name, body, sls) in additions {
        let Some((module, _)) = body.first() else { continue };
        let target = find_target(high, &module.to_string(), &name);
        match target {
            Some((id, state)) => {
                let args = body.first().map(|(_, args)| args.clone()).unwrap_or_default();
                high.extend(&id, &Map::from_iter([(Value::from(state), args)]), &sls);
            }
            None => high.extend(&name, &body, &sls),
        }
    }
}

/// The id and module that a reference of a `_in` requisite means: by id, else by `name`.
fn find_target(high: &HighData, module: &str, name: &str) -> Option<(String, String)> {
    let state_of = |body: &Value| {
        let states = body.as_map()?.keys().filter(|key| !is_dunder(key));
        states.map(ToString::to_string).find(|state| module == "id" || module == "sls" || state == module)
    };
    if let Some(body) = high.states.get(name) {
        return state_of(body).map(|state| (name.to_owned(), state));
    }
    high.states.iter().find_map(|(id, body)| {
        let state = state_of(body)?;
        let args = body.get(&state)?.as_list()?;
        let named = args.iter().any(|arg| arg.get("name").and_then(Value::as_str) == Some(name));
        named.then(|| (id.to_string(), state))
    })
}

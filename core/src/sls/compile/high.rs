//! High data: every SLS with what it includes, put together and checked.

use crate::glob::{fnmatch, is_pattern};
use crate::value::{Map, Value};

/// Where rendered SLS files come from.
pub trait SlsSource {
    /// The data of an SLS, or nothing if the environment has no such SLS. An error is told in Salt's words.
    fn render(&self, sls: &str, saltenv: &str) -> Result<Option<Value>, String>;

    /// The names of all SLS files of an environment: for includes with globs.
    fn available(&self, saltenv: &str) -> Vec<String>;

    /// Whether an SLS is the `init.sls` of a folder: relative includes start there.
    fn is_init(&self, sls: &str, saltenv: &str) -> bool;
}

/// All states by id, each with `__sls__` and `__env__`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HighData {
    /// By id.
    pub states: Map,
    /// For each SLS, which ones include it.
    pub included_from: Vec<(String, String)>,
    pub(super) extends: Vec<(String, Map)>,
    pub(super) excludes: Vec<Value>,
    /// What is wrong, in Salt's words.
    pub errors: Vec<String>,
}

/// Loads SLS files and all that they include.
pub fn load(source: &impl SlsSource, names: &[String], saltenv: &str) -> HighData {
    let mut loader = Loader { source, saltenv, done: Vec::new(), high: HighData::default() };
    for name in names {
        if is_pattern(name) {
            for found in source.available(saltenv).iter().filter(|sls| fnmatch(name, sls)) {
                loader.sls(found, None);
            }
        } else {
            loader.sls(name, None);
        }
    }
    loader.high.finish()
}

/// High data that did not come out of files: `state.high`, `state.template_str`.
pub fn load_data(data: &Value, sls: &str, saltenv: &str) -> HighData {
    let mut high = HighData::default();
    high.add(data, sls, saltenv);
    high.finish()
}

struct Loader<'a, S> {
    source: &'a S,
    saltenv: &'a str,
    done: Vec<String>,
    high: HighData,
}

impl<S: SlsSource> Loader<'_, S> {
    fn sls(&mut self, sls: &str, included_by: Option<&str>) {
        if let Some(by) = included_by {
            self.high.included_from.push((sls.to_owned(), by.to_owned()));
        }
        if self.done.iter().any(|done| done == sls) {
            return;
        }
        self.done.push(sls.to_owned());
        let saltenv = self.saltenv;
        let data = match self.source.render(sls, saltenv) {
            Ok(Some(Value::Nil)) => return,
            Ok(Some(data)) => data,
            Ok(None) => {
                return self.high.errors.push(match included_by {
                    None => format!("No matching sls found for '{sls}' in env '{saltenv}'"),
                    Some(_) => format!(
                        "Specified SLS {sls} in saltenv {saltenv} is not available on the salt master or through a configured fileserver"
                    ),
                });
            }
            Err(error) => return self.high.errors.push(format!("Rendering SLS '{saltenv}:{sls}' failed: {error}")),
        };
        let Value::Map(mut data) = data else {
            let contents = crate::value::python::repr(&data);
            self.high.errors.push(format!("SLS {sls} does not render to a dictionary"));
            return self.high.errors.push(format!("Error when rendering state with contents: {contents}"));
        };
        match data.shift_remove("include") {
            None | Some(Value::Nil) => {}
            Some(Value::List(items)) => items.iter().for_each(|item| self.include(sls, item)),
            Some(_) => self.high.errors.push(format!("Include Declaration in SLS {sls} is not formed as a list")),
        }
        self.high.add(&Value::Map(data), sls, saltenv);
    }

    fn include(&mut self, sls: &str, item: &Value) {
        // `{environment: sls}` names the environment; there is one per run.
        let name = match item {
            Value::Map(map) => map.first().map(|(_, name)| name.to_string()).unwrap_or_default(),
            other => other.to_string(),
        };
        let name = match self.absolute(sls, &name) {
            Ok(name) => name,
            Err(error) => return self.high.errors.push(error),
        };
        if is_pattern(&name) {
            for found in self.source.available(self.saltenv) {
                if fnmatch(&name, &found) && found != sls {
                    self.sls(&found, Some(sls));
                }
            }
        } else {
            self.sls(&name, Some(sls));
        }
    }

    /// A name that starts with dots is relative: one dot is the including file's own package, each further
    /// one goes up.
    fn absolute(&self, sls: &str, name: &str) -> Result<String, String> {
        let rest = name.trim_start_matches('.');
        let dots = name.len() - rest.len();
        if dots == 0 {
            return Ok(name.to_owned());
        }
        let mut package: Vec<&str> = sls.split('.').collect();
        let up = if self.source.is_init(sls, self.saltenv) { dots - 1 } else { dots };
        if up > package.len() {
            return Err(format!(
                "Attempted relative include of '{name}' within SLS '{}:{sls}' goes beyond top level package ",
                self.saltenv
            ));
        }
        package.truncate(package.len() - up);
        package.push(rest);
        Ok(package.join("."))
    }
}

impl HighData {
    /// Takes in the data of one SLS.
    fn add(&mut self, data: &Value, sls: &str, saltenv: &str) {
        let Some(data) = data.as_map() else {
            return self.errors.push(format!("SLS {sls} does not render to a dictionary"));
        };
        for (id, body) in data {
            let Some(name) = id.as_str() else {
                let got = id.type_name();
                self.errors.push(format!(
                    "ID '{id}' in SLS '{sls}' is not formed as a string, but is type {got}. It may need to be quoted."
                ));
                continue;
            };
            match (name, body) {
                ("extend", Value::Map(extend)) => self.extends.push((sls.to_owned(), extend.clone())),
                ("extend", _) => self.errors.push(format!("Extension value in SLS '{sls}' is not a dictionary")),
                ("exclude", Value::List(items)) => self.excludes.extend(items.iter().cloned()),
                ("exclude", _) => self.errors.push(format!("Exclude Declaration in SLS {sls} is not formed as a list")),
                _ => match normalised(name, body, sls, true) {
                    Ok(body) => self.insert(name, body, sls, saltenv),
                    Err(errors) => self.errors.extend(errors),
                },
            }
        }
    }

    fn insert(&mut self, id: &str, mut body: Map, sls: &str, saltenv: &str) {
        if let Some(have) = self.states.get(id).and_then(Value::as_map) {
            let same = have.iter().filter(|(key, _)| !is_dunder(key)).eq(body.iter());
            if !same {
                let other = have.get("__sls__").map(ToString::to_string).unwrap_or_default();
                self.errors.push(format!(
                    "Detected conflicting IDs, SLS IDs need to be globally unique.\n    The conflicting ID is '{id}' and is found in SLS '{saltenv}:{other}' and SLS '{saltenv}:{sls}'"
                ));
            }
            return;
        }
        body.insert("__sls__".into(), sls.into());
        body.insert("__env__".into(), saltenv.into());
        self.states.insert(id.into(), body.into());
    }

    /// Applies `extend` and `exclude`.
    fn finish(mut self) -> Self {
        for (sls, extend) in std::mem::take(&mut self.extends) {
            for (id, body) in &extend {
                let name = id.to_string();
                match normalised(&name, body, &sls, false) {
                    Ok(body) => self.extend(&name, &body, &sls),
                    Err(errors) => self.errors.extend(errors),
                }
            }
        }
        let excludes = std::mem::take(&mut self.excludes);
        self.states.retain(|id, body| {
            let sls = body.get("__sls__").map(ToString::to_string).unwrap_or_default();
            !excludes.iter().any(|exclude| match exclude {
                Value::Map(map) => {
                    map.get("sls").is_some_and(|pattern| fnmatch(&pattern.to_string(), &sls))
                        || map.get("id").is_some_and(|excluded| excluded == id)
                }
                plain => fnmatch(&plain.to_string(), &sls),
            })
        });
        self
    }

    /// Adds to a state: requisites are added, other arguments replace those of the same name.
    pub(super) fn extend(&mut self, id: &str, body: &Map, sls: &str) {
        let Some(target) = self.states.get_mut(id).and_then(Value::as_map_mut) else {
            let environment = "base";
            return self.errors.push(format!(
                "Cannot extend ID '{id}' in '{environment}:{sls}'. It is not part of the high state.\nThis is likely due to a missing include statement or an incorrectly typed ID.\nEnsure that a state with an ID of '{id}' is available\nin environment '{environment}' and to SLS '{sls}'"
            ));
        };
        for (state, args) in body {
            let more = args.as_list().unwrap_or_default();
            match target.get_mut(state) {
                Some(Value::List(have)) => extend_args(have, more),
                _ => _ = target.insert(state.clone(), args.clone()),
            }
        }
    }
}

fn extend_args(have: &mut Vec<Value>, more: &[Value]) {
    use super::requisite::RequisiteKind;
    for item in more {
        let Some((name, value)) = item.as_map().and_then(Map::first) else {
            // A function's name takes the place of the other.
            if let Some(at) = have.iter().position(|old| old.as_str().is_some()) {
                have[at] = item.clone();
            } else {
                have.push(item.clone());
            }
            continue;
        };
        let old = have.iter_mut().filter_map(Value::as_map_mut).find_map(|map| map.get_mut(name));
        match (old, value) {
            (Some(Value::List(list)), Value::List(more))
                if name.as_str().is_some_and(|name| RequisiteKind::parse(name).is_some()) =>
            {
                list.extend(more.iter().cloned());
            }
            (Some(old), value) => *old = value.clone(),
            (None, _) => have.push(item.clone()),
        }
    }
}

pub(super) fn is_dunder(key: &Value) -> bool {
    key.as_str().is_some_and(|key| key.starts_with("__"))
}

/// The body of an id in one form: `{module: [args.., function]}`. An extension names no function.
fn normalised(id: &str, body: &Value, sls: &str, whole: bool) -> Result<Map, Vec<String>> {
    let (mut normal, mut errors) = (Map::new(), Vec::new());
    match body {
        // `id: module.function`
        Value::Str(short) if short.contains('.') => {
            let (module, function) = short.split_once('.').unwrap_or((short, ""));
            normal.insert(module.into(), Value::List(vec![function.into()]));
        }
        Value::Map(states) => {
            for (state, args) in states {
                let name = state.to_string();
                if is_dunder(state) {
                    continue;
                }
                let (module, function) =
                    name.split_once('.').map_or((name.as_str(), None), |(module, function)| (module, Some(function)));
                let mut list = match args {
                    Value::List(list) => list.clone(),
                    Value::Nil if function.is_some() => {
                        errors.push(format!(
                            "ID '{id}' in SLS '{sls}' contains a short declaration ({name}) with a trailing colon. When not passing any arguments to a state, the colon must be omitted."
                        ));
                        continue;
                    }
                    _ => {
                        errors.push(format!("State '{id}' in SLS '{sls}' is not formed as a list"));
                        continue;
                    }
                };
                list.extend(function.map(Value::from));
                let functions: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                match functions[..] {
                    [] if !whole => {}
                    [] => errors.push(format!("No function declared in state '{id}' in SLS '{sls}'")),
                    [one] if one.trim().contains(' ') => errors.push(format!(
                        "The function \"{one}\" in state \"{id}\" in SLS \"{sls}\" has whitespace, a function with whitespace is not supported, perhaps this is an argument that is missing a \":\""
                    )),
                    [_] => {}
                    _ => errors.push(format!(
                        "Too many functions declared in state '{id}' in SLS '{sls}'. Please choose one of the following: {}",
                        functions.join(", ")
                    )),
                }
                if normal.insert(module.into(), Value::List(list)).is_some() {
                    errors.push(format!(
                        "ID '{id}' in SLS '{sls}' contains multiple state declarations of the same type"
                    ));
                }
            }
        }
        _ => errors.push(format!("ID {id} in SLS {sls} is not a dictionary")),
    }
    if errors.is_empty() { Ok(normal) } else { Err(errors) }
}

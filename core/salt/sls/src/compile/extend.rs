//! `extend`, `exclude`, and the inverse requisites: `require_in`, `use`, ...
//!
//! All inverse requisites are converted to extensions of a state, so they share one mechanism and its error message.

use brine_text::glob::fnmatch;
use brine_value::{Map, Value};

use super::high::{HighData, first_key, states_of, text};
use super::is_dunder;
use super::requisite::RequisiteKind;

/// Applies all extensions. With `strict`, the module must match as well as the id.
pub(super) fn apply_extensions(high: &mut HighData, strict: bool) -> Vec<String> {
    let mut errors = Vec::new();
    let excluded: Vec<String> = high
        .exclude
        .iter()
        .filter_map(|item| match item {
            Value::Str(sls) => Some(sls.clone()),
            other => other.get("sls").map(ToString::to_string),
        })
        .collect();
    for (name, body) in std::mem::take(&mut high.extend) {
        let Some((module, _)) = states_of(&body).next() else {
            errors.push(format!("Extension name '{name}' in SLS '{}' has no state", text(&body, "__sls__")));
            continue;
        };
        let exists = high.states.get(&name).is_some_and(|target| target.get(module).is_some());
        let id = if exists {
            name
        } else {
            let matches = find(&high.states, &name, module, strict);
            let [(id, _)] = &matches[..] else {
                errors.push(cannot_extend(&name, &body));
                continue;
            };
            id.clone()
        };
        if excluded.contains(&text(&body, "__sls__")) {
            continue;
        }
        let Some(target) = high.states.get_mut(&id).and_then(Value::as_map_mut) else { continue };
        for (state, more) in states_of(&body) {
            match (target.get_mut(state), more) {
                (Some(Value::List(have)), Value::List(more)) => {
                    for argument in more {
                        extend_arguments(have, argument);
                    }
                }
                (Some(_), _) => {}
                (None, _) => _ = target.insert(state.into(), more.clone()),
            }
        }
    }
    errors
}

fn cannot_extend(name: &Value, body: &Value) -> String {
    let or_base = |key| Some(text(body, key)).filter(|text| !text.is_empty()).unwrap_or_else(|| "base".to_owned());
    let (saltenv, sls) = (or_base("__env__"), or_base("__sls__"));
    format!(
        "Cannot extend ID '{name}' in '{saltenv}:{sls}'. It is not part of the high state.\nThis is likely due to a missing include statement or an incorrectly typed ID.\nEnsure that a state with an ID of '{name}' is available\nin environment '{saltenv}' and to SLS '{sls}'"
    )
}

/// Merges one argument: a function name replaces the old one, requisites are appended, other arguments replace those of
/// the same name.
fn extend_arguments(have: &mut Vec<Value>, argument: &Value) {
    let mut is_merged = false;
    for old in have.iter_mut() {
        match (argument, first_key(argument), first_key(old)) {
            (Value::Str(_), ..) if old.as_str().is_some() => {
                *old = argument.clone();
                is_merged = true;
            }
            (Value::Map(map), Some(name), Some(old_name)) if name == old_name => {
                let requisite = name.as_str().and_then(RequisiteKind::parse).is_some();
                let name = name.clone();
                match (map.get(&name), old.as_map_mut().and_then(|old| old.get_mut(&name))) {
                    (Some(Value::List(more)), Some(Value::List(list))) if requisite => {
                        list.extend(more.iter().cloned());
                    }
                    _ => *old = argument.clone(),
                }
                is_merged = true;
            }
            // A single name replaces `names`.
            (_, Some(name), Some(old_name)) if name.as_str() == Some("name") && old_name.as_str() == Some("names") => {
                *old = argument.clone();
                is_merged = true;
            }
            _ => {}
        }
    }
    if !is_merged {
        have.push(argument.clone());
    }
}

/// Returns the ids, and the module in each, that a name refers to: the id itself, all states of an SLS, or else every
/// state of the module that has an argument with this value.
fn find(states: &Map, name: &Value, module: &str, strict: bool) -> Vec<(Value, String)> {
    if let Some(body) = states.get(name)
        && (!strict || body.get(module).is_some())
    {
        return vec![(name.clone(), module.to_owned())];
    }
    if module == "sls" {
        return states_of_sls(states, name);
    }
    let mut matches = Vec::new();
    for (id, body) in states {
        let arguments = body.get(module).and_then(Value::as_list).unwrap_or_default();
        let maps = arguments.iter().filter_map(Value::as_map).filter(|argument| argument.len() == 1);
        let times = maps.filter(|argument| argument.values().any(|value| value == name)).count();
        matches.extend(std::iter::repeat_n((id.clone(), module.to_owned()), times));
    }
    matches
}

fn states_of_sls(states: &Map, sls: &Value) -> Vec<(Value, String)> {
    let of_sls = states.iter().filter(|(_, body)| body.get("__sls__") == Some(sls));
    of_sls.flat_map(|(id, body)| states_of(body).map(|(state, _)| (id.clone(), state.to_owned()))).collect()
}

/// An inverse requisite, by its effect on other states.
#[derive(Clone, Copy, PartialEq)]
enum Inverse {
    /// The named states get this requisite on the declaring state.
    Requisite(&'static str),
    /// The declaring state copies the arguments of the named ones.
    Use,
    /// The named states copy the arguments of the declaring one.
    UseIn,
}

impl Inverse {
    /// Returns the requisite of the resulting extension.
    fn word(self) -> &'static str {
        match self {
            Inverse::Requisite(word) => word,
            Inverse::Use | Inverse::UseIn => "use",
        }
    }
}

fn inverse(name: &str) -> Option<Inverse> {
    Some(match name {
        "require_in" => Inverse::Requisite("require"),
        "watch_in" => Inverse::Requisite("watch"),
        "onfail_in" => Inverse::Requisite("onfail"),
        "onchanges_in" => Inverse::Requisite("onchanges"),
        "prereq_in" => Inverse::Requisite("prereq"),
        "use" => Inverse::Use,
        "use_in" => Inverse::UseIn,
        _ => return None,
    })
}

/// Extensions by target name.
#[derive(Default)]
struct Extensions(indexmap::IndexMap<Value, Map>);

impl Extensions {
    fn arguments(&mut self, name: &Value, module: &str) -> Option<&mut Vec<Value>> {
        let body = self.0.entry(name.clone()).or_default();
        match body.entry(module.into()).or_insert_with(|| Value::List(Vec::new())) {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    /// Adds a requisite on `of` to the named state.
    fn add(&mut self, (name, module): (&Value, &str), kind: &str, of: Map, origin: &Value) {
        let Some(arguments) = self.arguments(name, module) else { return };
        let have = arguments.iter_mut().filter_map(Value::as_map_mut).find_map(|map| map.get_mut(kind));
        match have {
            Some(Value::List(list)) => list.push(of.into()),
            _ => arguments.push(brine_value::map! {kind => brine_value::list![of]}.into()),
        }
        if let Some(body) = self.0.get_mut(name) {
            for key in ["__env__", "__sls__"] {
                body.insert(key.into(), text(origin, key).into());
            }
        }
    }
}

/// Converts `require_in` and the other inverse requisites, `use` and `use_in` into extensions, and applies them.
pub(super) fn apply_requisites_in(high: &mut HighData, disabled: &[String]) -> Vec<String> {
    let (mut extensions, mut errors) = (Extensions::default(), Vec::new());
    for (id, body) in &high.states {
        for (state, arguments) in states_of(body) {
            for argument in arguments.as_list().unwrap_or_default() {
                let Some((key, value)) = argument.as_map().and_then(Map::first) else { continue };
                let Some(inverse) = key.as_str().and_then(inverse) else { continue };
                if disabled.iter().any(|name| key.as_str() == Some(name)) {
                    continue;
                }
                let declaring = DeclaringState { id, state, body };
                declaring.collect(inverse, value, &high.states, &mut extensions, &mut errors);
            }
        }
    }
    high.extend = extensions.0.into_iter().map(|(name, body)| (name, body.into())).collect();
    errors.append(&mut apply_extensions(high, true));
    errors
}

/// The state that declares an inverse requisite.
struct DeclaringState<'a> {
    id: &'a Value,
    state: &'a str,
    body: &'a Value,
}

impl DeclaringState<'_> {
    fn collect(
        &self,
        inverse: Inverse,
        value: &Value,
        states: &Map,
        extensions: &mut Extensions,
        errors: &mut Vec<String>,
    ) {
        let items: Vec<Value> = match value {
            Value::List(items) => items.clone(),
            Value::Map(map) => {
                map.iter().map(|(module, name)| brine_value::map! {module.clone() => name.clone()}.into()).collect()
            }
            _ => return,
        };
        for item in &items {
            // As in Salt, a bare string that matches nothing is ignored.
            let Some((module, name)) = named(item, states) else { continue };
            // A mapping instead of a list extends the named state, also for `use`, where it has no effect.
            let inverse = if value.as_list().is_some() { inverse } else { Inverse::Requisite(inverse.word()) };
            let word = inverse.word();
            if let Some((short, _)) = module.split_once('.') {
                errors.push(format!(
                    "Invalid requisite in {word}: {module} for {name}, in SLS '{}'. Requisites must not contain dots, did you mean '{short}'?",
                    text(self.body, "__sls__")
                ));
            }
            let targets = match &module[..] {
                "sls" => states_of_sls(states, &name),
                _ => vec![(name, module)],
            };
            for (name, module) in &targets {
                match inverse {
                    Inverse::Requisite(kind) => {
                        let of = brine_value::map! {self.state => self.id.clone()};
                        extensions.add((name, module), kind, of, self.body);
                    }
                    Inverse::Use => {
                        for (id, state) in find(states, name, module, true) {
                            copy(states, (&id, &state), (self.id, self.state), extensions);
                        }
                    }
                    Inverse::UseIn => {
                        for (id, state) in find(states, name, module, true) {
                            copy(states, (self.id, self.state), (&id, &state), extensions);
                        }
                    }
                }
            }
        }
    }
}

/// Returns the module and name that an item refers to; a bare string is an id, or else a name.
fn named(item: &Value, states: &Map) -> Option<(String, Value)> {
    match item {
        Value::Map(map) => map.first().map(|(module, name)| (module.to_string(), name.clone())),
        bare => {
            if let Some(body) = states.get(bare) {
                return states_of(body).next().map(|(state, _)| (state.to_owned(), bare.clone()));
            }
            let named = |arguments: &Value| {
                arguments.as_list().is_some_and(|list| list.iter().any(|argument| argument.get("name") == Some(bare)))
            };
            let all = states.iter().flat_map(|(id, body)| states_of(body).map(move |state| (id, state)));
            all.filter(|(_, (_, arguments))| named(arguments))
                .last()
                .map(|(id, (state, _))| (state.to_owned(), id.clone()))
        }
    }
}

/// Whether an argument is excluded from `use`, because it belongs to one state only.
fn is_excluded_from_use(name: &str) -> bool {
    inverse(name).is_some()
        || matches!(name, "name" | "names" | "require" | "watch" | "prereq" | "onfail" | "onfail_stop" | "onchanges")
}

/// Copies the arguments of state `from` that state `to` lacks.
fn copy(states: &Map, from: (&Value, &str), to: (&Value, &str), extensions: &mut Extensions) {
    let arguments = |(id, state): (&Value, &str)| {
        let list = states.get(id).and_then(|body| body.get(state)).and_then(Value::as_list).unwrap_or_default();
        list.iter().filter(|argument| argument.as_map().is_some_and(|map| map.len() == 1))
    };
    let has: Vec<&Value> = arguments(to).filter_map(first_key).collect();
    let copied: Vec<Value> = arguments(from)
        .filter(|argument| {
            first_key(argument)
                .is_some_and(|name| !has.contains(&name) && !name.as_str().is_some_and(is_excluded_from_use))
        })
        .cloned()
        .collect();
    if let Some(list) = extensions.arguments(to.0, to.1) {
        list.extend(copied);
    }
}

/// Removes the excluded states.
pub(super) fn apply_excludes(high: &mut HighData) {
    let (mut by_sls, mut by_id) = (Vec::new(), Vec::new());
    for item in std::mem::take(&mut high.exclude) {
        match &item {
            Value::Str(sls) => by_sls.push(sls.clone()),
            Value::Map(map) if map.len() == 1 => {
                by_sls.extend(map.get("sls").map(ToString::to_string));
                by_id.extend(map.get("id").cloned());
            }
            _ => {}
        }
    }
    high.states.retain(|id, body| {
        let sls = text(body, "__sls__");
        is_dunder(id) || !(by_id.contains(id) || !sls.is_empty() && by_sls.iter().any(|pattern| fnmatch(pattern, &sls)))
    });
}
